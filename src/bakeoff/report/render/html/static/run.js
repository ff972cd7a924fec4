// The page of one run: the list of trials, the matrix of large runs, and one trial at a time.

const TONES = { pass: "pass", fail: "fail", timeout: "timeout", recorded: "plain" };
const tone = (verdict) => TONES[verdict] || "lost";
const CONTROL = 12; // the colour of controls, see marks.py
const MOST_PICTURES = 24; // of one case, side by side
const MOST_OFFERED = 100; // trials to show beside one
class Run {
  constructor(data) { this.take(data); }
  take(data) {
    Object.assign(this, data); // subjects, cases, rounds, verdicts, case_chunk, case_place and the columns of trials
    this.rowOf = new Map(this.trial.map((trial, row) => [trial, row]));
  }
  get size() { return this.subjects.length * this.cases.length * this.rounds; }
  subjectOf(trial) { return trial % this.subjects.length; }
  caseOf(trial) { return Math.floor(trial / this.subjects.length) % this.cases.length; }
  roundOf(trial) { return Math.floor(trial / (this.subjects.length * this.cases.length)); }
  find(caseAt, subjectAt, round) { return (round * this.cases.length + caseAt) * this.subjects.length + subjectAt; }
  answersOf(row) { return this.answer_kinds[this.answers[row]]; }
  isControl(subject) { return this.marks[subject][0] === CONTROL; }
  outcome(row) { return this.verdicts[this.verdict[row]]; }
  caseVerdict(row) { const trial = this.trial[row]; return this.case_verdicts[this.caseOf(trial) * this.subjects.length + this.subjectOf(trial)] ?? "undecided"; }
  async detail(row) { return (await chunk(`records-${this.chunk[row]}`))[this.place[row]]; }
  async pictureOf(trial) {
    const at = this.picture[this.rowOf.get(trial)] ?? -1;
    if (at < 0) return { problem: at === -2 ? "nothing was handed in" : "none was taken" };
    const [chunkAt, place] = this.pictures[at];
    return (await chunk(`pictures-${chunkAt}`))[place];
  }
  /** The pictures of one case and round, this trial's first and the others by score. */
  async picturesBeside(trial) {
    const order = this.best_first.map((subject) => this.find(this.caseOf(trial), subject, this.roundOf(trial)));
    const some = [trial, ...order.filter((other) => other !== trial)].slice(0, MOST_PICTURES);
    const all = await Promise.all(some.map(async (other) => ({ trial: other, picture: await this.pictureOf(other) })));
    const taken = some.some((other) => this.picture[this.rowOf.get(other)] >= 0);
    return taken ? all.filter((each) => this.rowOf.has(each.trial)) : [];
  }
  async case(at) { return (await chunk(`cases-${this.case_chunk[at]}`))[this.case_place[at]]; }
}

// ---- the matrix of a run too large to draw whole ----
function cellOf(run, caseAt, subjectAt) {
  let scored = 0, passed = 0, timeouts = 0, lost = 0, first;
  for (let round = 0; round < run.rounds; round++) {
    const trial = run.find(caseAt, subjectAt, round);
    const row = run.rowOf.get(trial);
    if (row === undefined) continue;
    first ??= trial;
    const outcome = run.outcome(row);
    if (tone(outcome) === "lost") { lost++; continue; }
    scored++;
    passed += outcome === "pass";
    timeouts += outcome === "timeout";
  }
  const place = caseAt * run.subjects.length + subjectAt;
  if (run.counts) [scored, passed, timeouts, lost] = [run.counts.scored[place], run.counts.passed[place], run.counts.timeouts[place], run.counts.lost[place]];
  if (scored + lost === 0) return { tone: "none", text: "·", note: "not run", score: null };
  const score = run.case_scores[place], judged = run.case_verdicts?.[place];
  const text = score === null ? "lost" : String(Math.round(100 * score));
  const losses = lost ? `, ${lost} lost` : "";
  if (judged) return { tone: tone(judged), text, note: `${judged}: ${passed} of ${countOf(scored, "round")} passed${losses}`, score, first };
  if (score === null) return { tone: "lost", text, note: `${lost} lost`, score, first };
  const kind = passed === scored || score === 1 ? "pass" : score > 0 ? "partial" : timeouts === scored ? "timeout" : "fail";
  return { tone: kind, text, note: `${passed} of ${scored} passed${losses}`, score, first };
}

function setUpMatrix(run) {
  const host = byId("matrix-table");
  if (!host) return () => {};
  const columns = [{ title: "Case", cell: (at) => run.cases[at], sort: (at) => run.cases[at] }];
  run.best_first.forEach((subjectAt) => columns.push({
    title: run.subjects[subjectAt],
    help: run.subjects[subjectAt],
    mark: run.marks[subjectAt],
    align: "centre",
    sort: (at) => cellOf(run, at, subjectAt).score,
    cell: (at) => {
      const cell = cellOf(run, at, subjectAt);
      const inside = [cell.text, h("span", { class: "sr" }, ` ${cell.note}`)];
      const properties = { class: `cell tone-${cell.tone}`, title: cell.note };
      return cell.first === undefined ? h("span", properties, inside) : h("a", { ...properties, href: `#t=${cell.first}` }, inside);
    },
  }));
  const table = new WindowedTable(host, columns, "Score by case and subject", "matrix");
  const refresh = () => table.show(run.cases.map((_, at) => at));
  refresh();
  sortInPlace(table, "cases");
  return () => table.staying(refresh);
}

class TrialSheet {
  constructor(run, list) {
    this.run = run;
    this.table = list.table;
    this.dialog = byId("trial");
    byId("trial-close").addEventListener("click", () => this.dialog.close());
    byId("trial-previous").addEventListener("click", () => this.step(-1));
    byId("trial-next").addEventListener("click", () => this.step(1));
    byId("trial-with").addEventListener("change", (event) => { writePlace({ with: event.target.value }, true); this.follow(); });
    this.dialog.addEventListener("close", () => this.closed());
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.dialog.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("select")) return;
      if (event.key === "j") this.step(1);
      if (event.key === "k") this.step(-1);
    });
    onPlace(() => this.follow());
    this.follow();
  }
  /** The address says which trials are open, so a link to them can be passed on. */
  follow() {
    const [trial, other] = ["t", "with"].map((key) => (/^\d+$/.test(placeNow.get(key) ?? "") && Number(placeNow.get(key)) < this.run.size ? Number(placeNow.get(key)) : undefined));
    if (trial !== undefined) this.open(trial, other === trial ? undefined : other);
    else if (this.dialog.open) this.dialog.close();
  }
  closed() {
    this.trial = undefined;
    this.shows = false;
    writePlace({ t: null, with: null }, true);
    const opener = this.opener?.isConnected ? this.opener : document.querySelector(`a[href="${this.opener?.getAttribute?.("href")}"]`);
    opener?.focus({ preventScroll: true });
  }
  step(by) {
    const rows = this.table.rows;
    const place = rows.indexOf(this.run.rowOf.get(this.trial));
    const next = rows[place < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, place + by))];
    if (next !== undefined) writePlace({ t: String(this.run.trial[next]), with: null }, false);
    this.follow();
  }
  async open(trial, other) {
    const run = this.run, row = run.rowOf.get(trial), fresh = this.trial !== trial || this.other !== other;
    this.trial = trial;
    this.other = other;
    if (!this.dialog.open) { this.opener = document.activeElement; this.dialog.showModal(); }
    const place = this.table.rows.indexOf(row);
    byId("trial-title").textContent = run.cases[run.caseOf(trial)];
    byId("trial-sub").replaceChildren(...this.subtitle(trial, row));
    byId("trial-previous").disabled = place <= 0;
    byId("trial-next").disabled = place < 0 || place >= this.table.rows.length - 1;
    this.offerOthers(trial, other);
    this.dialog.classList.toggle("two", other !== undefined);
    const body = byId("trial-body");
    if (fresh) body.replaceChildren(h("p", {}, "reading…"));
    const blocks = other === undefined ? await this.blocks(trial, row) : await besideBlocks(run, trial, other);
    if (this.trial !== trial || this.other !== other) return; // another one was opened meanwhile
    body.replaceChildren(...blocks);
    nameRegions(body);
    this.shows = row !== undefined;
    if (!fresh) return;
    body.scrollTop = 0;
    byId("trial-title").focus();
  }
  async blocks(trial, row) {
    const run = this.run, asked = await run.case(run.caseOf(trial));
    if (row === undefined) return [h("p", {}, run.left_out ? "This trial was not run, or is not listed on this page." : "This trial was not run."), promptBlock(asked)];
    const detail = await run.detail(row);
    const beside = run.pictures.length ? await run.picturesBeside(trial) : [];
    return trialBlocks(detail, asked, run.why[row], beside.length > 0 && pictureBlock(run, trial, beside));
  }
  /** The trials that this one can be shown beside: the same case by other subjects, and its other rounds. */
  offerOthers(trial, other) {
    const run = this.run, caseAt = run.caseOf(trial), round = run.roundOf(trial), mine = run.subjectOf(trial);
    const name = (one) => run.subjects[run.subjectOf(one)] + (run.rounds > 1 ? `, round ${count(run.roundOf(one) + 1)}` : "");
    const others = run.best_first.filter((subject) => subject !== mine).map((subject) => run.find(caseAt, subject, round));
    for (let at = 0; at < Math.min(run.rounds, MOST_OFFERED); at++) if (at !== round) others.push(run.find(caseAt, mine, at));
    if (other !== undefined && !others.includes(other)) others.push(other);
    const listed = others.filter((one) => run.rowOf.has(one)).slice(0, MOST_OFFERED);
    const label = (one) => (run.caseOf(one) === caseAt ? "" : `${run.cases[run.caseOf(one)]}: `) + `${name(one)} (${run.outcome(run.rowOf.get(one))})`;
    const select = byId("trial-with");
    select.replaceChildren(h("option", { value: "" }, "nothing"), ...listed.map((one) => h("option", { value: one }, label(one))));
    select.value = other === undefined ? "" : String(other);
    select.parentElement.hidden = listed.length === 0;
  }
  subtitle(trial, row) {
    const run = this.run;
    const outcome = row === undefined ? "not run" : run.outcome(row);
    const said = [h("strong", {}, subjectMark(run.marks[run.subjectOf(trial)]), run.subjects[run.subjectOf(trial)]), chip(outcome, tone(outcome))];
    const answers = row !== undefined && run.answersOf(row);
    if (ANSWERS[answers]) said.push(h("span", { class: "badge", title: ANSWERS[answers] }, answers));
    if (row !== undefined) said.push(h("span", {}, percent(run.score[row])), h("span", {}, duration(run.seconds[row])));
    if (run.rounds > 1) said.push(this.rounds(trial));
    return said;
  }
  rounds(trial) {
    const run = this.run;
    const first = Math.max(0, Math.min(run.roundOf(trial) - 5, run.rounds - 11));
    const some = Array.from({ length: Math.min(11, run.rounds) }, (_, place) => first + place);
    return h("span", { class: "rounds" }, "Round ", some.map((round) => {
      const other = run.find(run.caseOf(trial), run.subjectOf(trial), round);
      return h("a", { href: `#t=${other}`, "aria-current": other === trial && "true" }, count(round + 1));
    }));
  }
}

/** Gives a function that takes in new data. */
async function setUpRun() {
  const run = new Run(await chunk("trials"));
  const list = new TrialList(run), refreshMatrix = setUpMatrix(run), sheet = new TrialSheet(run, list);
  document.documentElement.dataset.ready = "yes";
  return async () => {
    run.take(await chunk("trials"));
    list.refresh();
    refreshMatrix();
    if (!sheet.shows) sheet.follow(); // a trial that is being read stays as it is
  };
}
const runTakes = setUpRun();
