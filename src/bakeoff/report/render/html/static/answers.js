// The matrix of answers: cases down, prompts × subjects across, the answer itself in each cell.

const CUT = 900; // characters of an answer that a cell renders; the trial shows all of it
const MOST_DIFF_WORDS = 400;
const CONTEXT_OF_CASE = 300; // characters of a variable beside a case

/** The cases of a run as rows, and its prompts × subjects as columns. */
class AnswerGrid {
  constructor(run) { this.take(run); }
  take(run) {
    this.run = run;
    this.rows = []; // each: { name, cases: the place of the case under each prompt }
    const rowOf = new Map(), several = run.prompts.length > 1;
    run.cases.forEach((id, at) => {
      const name = several ? run.case_names[at] : id;
      if (!rowOf.has(name)) { rowOf.set(name, { name, cases: [] }); this.rows.push(rowOf.get(name)); }
      rowOf.get(name).cases[several ? run.case_prompt[at] : 0] = at;
    });
    const prompts = several ? run.prompts.map((_, place) => place) : [0];
    this.columns = prompts.flatMap((prompt) => run.best_first.map((subject) => ({
      id: `${prompt}.${subject}`, prompt, subject,
      control: run.isControl(subject),
      name: several ? `${run.prompts[prompt]} · ${run.subjects[subject]}` : run.subjects[subject],
    })));
  }
  cell(row, column) {
    const at = row.cases[column.prompt];
    return at === undefined ? { tone: "none", text: "·", note: "not run", score: null } : cellOf(this.run, at, column.subject);
  }
  meanOf(column) {
    const scores = this.rows.map((row) => this.cell(row, column).score).filter((score) => score !== null);
    return scores.length ? scores.reduce((sum, score) => sum + score, 0) / scores.length : null;
  }
  before(row, column) { return this.run.before?.scores[row.cases[column.prompt] * this.run.subjects.length + column.subject] ?? null; }
  tagsOf(row) { return row.cases.flatMap((at) => this.run.case_tags[at] ?? []); }
}

/** What was answered in each trial, cut to what cells show; texts that were read once are kept. */
class AnswerTexts {
  constructor(run) { this.run = run; this.texts = new Map(); }
  known(trial) { return this.texts.get(trial); }
  async of(trial) {
    const row = this.run.rowOf.get(trial);
    if (!this.texts.has(trial)) this.keep(trial, await this.run.detail(row));
    return this.texts.get(trial);
  }
  keep(trial, detail) {
    const said = outputOf(detail), whole = said?.trim() && said.trimStart(); // a cell has no room for empty lines
    const failure = (detail.phases || []).find((phase) => phase.failure)?.failure;
    this.texts.set(trial, { text: whole?.slice(0, CUT), cut: (whole?.length ?? 0) > CUT, size: whole?.length, whole: whole?.length <= CUT ? whole : undefined, failure: failure?.message?.slice(0, CUT) });
  }
}

// ---- what a cell shows ----

/** An answer as it was meant: JSON and patches coloured, Markdown rendered. Nothing in it can be clicked or focused. */
function answerNodes(text) {
  if (isPatch(text)) return h("code", {}, coloured(text, "patch"));
  if (/^\s*[[{]/.test(text)) return h("code", {}, coloured(text, "code"));
  if (!MARKED.test(text)) return text;
  const rendered = h("div", { class: "markdown" }, markdown(text));
  rendered.querySelectorAll("a").forEach((link) => link.replaceWith(...link.childNodes));
  rendered.querySelectorAll("[tabindex]").forEach((box) => ["tabindex", "role", "aria-label"].forEach((name) => box.removeAttribute(name)));
  return rendered;
}
/** The words that differ from another answer. */
function answerDiff(base, text, name) {
  if (base === text) return h("span", { class: "tone-muted" }, `Same as ${name}.`);
  const words = (one) => one.split(/([^\p{L}\p{N}]+)/u).filter(Boolean).slice(0, MOST_DIFF_WORDS);
  const [before, after] = [words(base), words(text)], nodes = [];
  let a = 0, b = 0;
  for (const [nextA, nextB] of [...commonPlaces(before, after), [before.length, after.length]]) {
    if (a < nextA) nodes.push(h("del", { class: "remove" }, before.slice(a, nextA).join("")));
    if (b < nextB) nodes.push(h("ins", { class: "add" }, after.slice(b, nextB).join("")));
    if (nextA < before.length) nodes.push(before[nextA]);
    [a, b] = [nextA + 1, nextB + 1];
  }
  return nodes;
}
function answerContent(said, base, baseName) {
  if (said.text === undefined) return h("span", { class: "tone-muted" }, said.failure ? `no answer: ${said.failure}` : "no answer");
  if (said.text.trim() === "") return h("span", { class: "tone-muted" }, "(empty answer)");
  return [base?.text !== undefined ? answerDiff(base.text, said.text, baseName) : answerNodes(said.text), said.cut && h("span", { class: "tone-muted" }, ` … (${countOf(said.size, "character")})`)];
}

class AnswerTable extends WindowedTable {
  get height() { return (PHONE.matches ? 17 : 9) * parseFloat(getComputedStyle(document.documentElement).fontSize); }
  show(rows) {
    this.table.classList.toggle("fixed", rows.length > WHOLE); // rows of one height can be left out while they are not seen
    super.show(rows);
  }
  /** Arrow keys walk through the cells, also to rows that are not drawn yet. */
  move(event) {
    const aside = { ArrowLeft: -1, ArrowRight: 1 }[event.key], cell = event.target.closest("tbody td");
    if (!aside || !cell) return super.move(event);
    event.preventDefault();
    for (let next = cell; (next = aside < 0 ? next.previousElementSibling : next.nextElementSibling);) {
      const link = next.querySelector("a.cell");
      if (link) return link.focus();
    }
  }
}

class AnswerMatrix {
  constructor(run) {
    this.grid = new AnswerGrid(run);
    this.texts = new AnswerTexts(run);
    this.form = byId("answer-filters");
    this.tags = new TagFilters(this.form.querySelector(".tags"));
    this.table = new AnswerTable(byId("matrix-table"), [], "Answers by case", "answers");
    this.table.window.addEventListener("click", (event) => this.clicked(event));
    this.form.addEventListener("input", (event) => this.changed(event.target));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    PHONE.addEventListener("change", () => this.follow());
    this.refresh();
    onPlace(() => this.follow());
  }
  refresh() {
    const { against, column } = this.form.elements;
    this.grid.take(this.grid.run);
    for (const select of [against, column]) addOptions(select, this.grid.columns.map((one) => one.id), this.grid.columns.map((one) => one.name));
    this.tags.take(this.grid.run.tags.map((tag) => (this.grid.run.prompts.length > 1 && tag.startsWith("prompt=") ? null : tag)));
    const { before } = this.grid.run, { show } = this.form.elements;
    if (before && !show.querySelector("[value=changed]")) show.append(h("option", { value: "changed", title: before.run }, "changed since last run"));
    this.asked = null;
    this.table.staying(() => this.follow());
  }
  // ---- the state, which is in the address ----
  get hidden() {
    const given = placeNow.get("hide");
    return given === null ? this.grid.columns.filter((one) => one.control && this.grid.columns.some((other) => !other.control)).map((one) => one.id) : given.split(" ");
  }
  get shownColumns() {
    const { columns } = this.grid, hidden = this.hidden;
    const kept = columns.filter((one) => !hidden.includes(one.id));
    if (!PHONE.matches) return kept.length ? kept : columns;
    return [columns.find((one) => one.id === placeNow.get("column")) ?? kept[0] ?? columns[0]];
  }
  get base() { return this.grid.columns.find((one) => one.id === placeNow.get("against")); }
  hide(id, hidden) {
    const next = hidden ? [...this.hidden, id] : this.hidden.filter((one) => one !== id);
    writePlace({ hide: next.join(" ") || "none" }, true);
    this.follow();
  }
  follow() {
    const { text, show, against, column } = this.form.elements;
    const asked = JSON.stringify([...["find", "show", "against", "column", "hide"].map((key) => placeNow.get(key)), placeNow.getAll("tagged"), PHONE.matches]);
    if (asked === this.asked) return;
    this.asked = asked;
    if (text.value.trim() !== (placeNow.get("find") ?? "")) text.value = placeNow.get("find") ?? "";
    show.value = placeNow.get("show") ?? "";
    if (show.selectedIndex < 0) show.value = "";
    against.value = this.base?.id ?? "";
    this.tags.values = placeNow.getAll("tagged");
    this.drawColumns();
    column.value = this.shownColumns[0].id;
    this.filter();
  }
  changed(field) {
    const { text, show, against, column } = this.form.elements;
    const picked = field === column ? { column: column.value } : {};
    writePlace({ find: text.value.trim(), show: show.value, against: against.value, tagged: this.tags.values, ...picked }, field !== text);
    this.follow();
  }
  // ---- columns and cells ----
  drawColumns() {
    const { grid } = this, base = this.base, hidden = grid.columns.filter((one) => this.hidden.includes(one.id));
    const title = { title: "Case", cell: (row) => this.caseBox(row), sort: (row) => row.name };
    this.table.useColumns([title, ...this.shownColumns.map((column) => ({
      title: column.name,
      help: column.name,
      name: column.id,
      heading: [grid.run.prompts.length > 1 && h("span", { class: "prompt" }, grid.run.prompts[column.prompt]), h("span", { class: "who" }, subjectMark(grid.run.marks[column.subject]), h("span", {}, grid.run.subjects[column.subject].split(/(?<=[:/])/).map((part) => [part, h("wbr")]), " ", h("small", {}, percent(grid.meanOf(column)))))],
      beside: h("button", { type: "button", class: "link hide", "aria-label": `Hide ${column.name}`, title: "Hide this column", onclick: () => this.hide(column.id, true) }, "×"),
      sort: (row) => grid.cell(row, column).score,
      cell: (row) => this.cellBox(row, column, base && base !== column ? base : undefined),
    }))]);
    this.table.table.style.minWidth = `${11 + 9.5 * this.shownColumns.length}rem`;
    const line = byId("hidden-columns");
    line.hidden = hidden.length === 0 || PHONE.matches;
    line.replaceChildren("Hidden: ", ...hidden.flatMap((one) => [h("button", { type: "button", class: "link", "aria-label": `Show ${one.name}`, onclick: () => this.hide(one.id, false) }, one.name), " "]));
  }
  caseBox(row) {
    const box = h("div", { class: "box" }, h("strong", {}, row.name));
    this.fillCase(box, row);
    return box;
  }
  async fillCase(box, row) {
    const asked = await this.grid.run.case(row.cases.find((at) => at !== undefined));
    const values = Object.entries(asked.variables ?? {}), facts = [["expected", asked.expected], ...(values.length ? values : [["prompt", asked.prompt]])];
    box.append(h("dl", {}, facts.filter(([, value]) => value).map(([name, value]) => h("div", { class: name === "expected" && "expected" }, h("dt", {}, `${name}:`), " ", h("dd", {}, value.slice(0, CONTEXT_OF_CASE) + (value.length > CONTEXT_OF_CASE ? "…" : ""))))));
  }
  cellBox(row, column, base) {
    const { grid } = this, cell = grid.cell(row, column), before = grid.before(row, column);
    const corner = h("span", { class: "corner" }, cornerOf(cell, `${row.name}, ${column.name}`), before !== null && before !== cell.score && h("span", { class: "was", title: `in ${grid.run.before.run}` }, `was ${Math.round(100 * before)}`));
    const said = h("div", { class: "reply" }), box = h("div", { class: "box" }, corner, said);
    if (cell.first === undefined) return box;
    const why = grid.run.why[grid.run.rowOf.get(cell.first)];
    if (why) corner.after(h("p", { class: "why" }, why));
    this.fillCell(said, cell.first, base && grid.cell(row, base).first, base?.name);
    return box;
  }
  async fillCell(said, trial, baseTrial, baseName) {
    const read = (one) => this.texts.known(one) ?? this.texts.of(one);
    const [mine, theirs] = [read(trial), baseTrial === undefined ? undefined : read(baseTrial)];
    const [text, other] = mine instanceof Promise || theirs instanceof Promise ? await Promise.all([mine, theirs]) : [mine, theirs];
    said.append(...[answerContent(text, other, baseName)].flat(Infinity).filter(Boolean));
  }
  clicked(event) {
    if (event.target.closest("a, button") || !getSelection().isCollapsed) return;
    const link = event.target.closest("td")?.querySelector("a.cell");
    link?.focus({ preventScroll: true });
    link?.click();
  }
  // ---- filters ----
  filter() {
    const { grid } = this, wanted = this.form.elements.text.value.trim().toLowerCase(), tags = this.tags.places, columns = this.shownColumns;
    const test = this.test(this.form.elements.show.value, columns);
    const rows = grid.rows.filter((row) => tags.every((tag) => grid.tagsOf(row).includes(tag)) && test(row));
    const asked = (this.searching = Symbol(wanted));
    const show = (found, more = "") => {
      const some = found ? rows.filter((row) => found.has(row)) : rows;
      byId("answer-count").textContent = `${count(some.length)} of ${countOf(grid.rows.length, "case")}${more}`;
      this.table.show(some);
    };
    const differ = this.form.elements.show.value === "answers";
    if (wanted === "" && !differ) return show();
    show(new Set(), ", reading…");
    this.search(wanted, rows, columns, differ, () => this.searching === asked).then((found) => found && show(found));
  }
  test(kind, columns) {
    const { grid } = this, judged = columns.some((one) => !one.control) ? columns.filter((one) => !one.control) : columns;
    const scores = (row) => judged.map((column) => grid.cell(row, column).score);
    if (kind === "failed") return (row) => judged.some((column) => !["pass", "plain", "none"].includes(grid.cell(row, column).tone));
    if (kind === "outcomes") return (row) => new Set(scores(row)).size > 1;
    if (kind === "changed") return (row) => judged.some((column) => grid.before(row, column) !== null && grid.before(row, column) !== grid.cell(row, column).score);
    return () => true;
  }
  /** The rows with these letters in their name, case or answers, or those with different answers. */
  async search(wanted, rows, columns, differ, alive) {
    const { run } = this.grid, said = new Map(), named = new Set();
    const rowOf = new Map(rows.flatMap((row) => row.cases.map((at) => [at, row])));
    const places = new Set(columns.map((one) => one.id));
    const trials = run.trial.filter((trial) => rowOf.has(run.caseOf(trial)) && places.has(`${run.prompts.length > 1 ? run.case_prompt[run.caseOf(trial)] : 0}.${run.subjectOf(trial)}`));
    const records = trials.map((trial) => ({ at: run.chunk[run.rowOf.get(trial)], place: run.place[run.rowOf.get(trial)], trial }));
    const done = await searchChunks("records", records, differ ? "" : wanted, alive, ({ trial }, detail) => said.set(trial, (outputOf(detail) ?? "").trim()));
    const cases = [...rowOf.keys()].map((at) => ({ at: run.case_chunk[at], place: run.case_place[at], row: rowOf.get(at) }));
    const matches = (text) => wanted === "" || text.toLowerCase().includes(wanted);
    if (!done || !(await searchChunks("cases", cases, wanted, alive, ({ row }, asked) => { if (matches([row.name, asked.prompt, asked.expected, ...Object.values(asked.variables ?? {})].join("\n"))) named.add(row); }))) return null;
    const found = new Map(rows.map((row) => [row, new Set()]));
    for (const [trial, text] of said) { const row = rowOf.get(run.caseOf(trial)); found.get(row).add(text); if (matches(text)) named.add(row); }
    return new Set(rows.filter((row) => (named.has(row) || matches(row.name)) && (!differ || found.get(row).size > 1)));
  }
  /** The trials below and above one in its column, as rows of the list of trials. */
  walkFrom(element, trial) {
    const { grid } = this, { run } = grid;
    if (!this.table.window.contains(element)) return undefined;
    const prompt = run.prompts.length > 1 ? run.case_prompt[run.caseOf(trial)] : 0, column = { prompt, subject: run.subjectOf(trial) };
    return this.table.rows.map((row) => run.rowOf.get(grid.cell(row, column).first)).filter((row) => row !== undefined);
  }
}
function cornerOf(cell, name) {
  const inside = [cell.text, h("span", { class: "sr" }, ` ${cell.note}: ${name}`)], properties = { class: `cell tone-${cell.tone}`, title: cell.note };
  return cell.first === undefined ? h("span", properties, inside) : h("a", { ...properties, href: `#t=${cell.first}` }, inside);
}
