// The list of trials: search over cases, reasons and everything that was said, filters, and the address that keeps them.

const RANKS = ["fail", "timeout", "grader", "infra", "budget", "recorded", "pass"]; // what did not pass comes first
const rank = (verdict) => RANKS.indexOf(verdict);
const FILTERS = ["q", "subject", "outcome", "tag"]; // in the address
const MOST_TAG_FILTERS = 6;
const SEARCH_PAUSE = 200; // milliseconds after the last letter
const AROUND = [24, 80]; // characters before and after a match

function trialColumns(run, found) {
  const any = (values) => values.some((value) => value !== null && value !== 0);
  const columns = [
    { title: "Case", cell: (row) => h("a", { href: `#t=${run.trial[row]}` }, run.cases[run.caseOf(run.trial[row])]), sort: (row) => run.cases[run.caseOf(run.trial[row])] },
    { title: "Subject", cell: (row) => [subjectMark(run.marks[run.subjectOf(run.trial[row])]), run.subjects[run.subjectOf(run.trial[row])]], sort: (row) => run.subjects[run.subjectOf(run.trial[row])] },
    run.rounds > 1 && { title: "Round", align: "end", cell: (row) => count(run.roundOf(run.trial[row]) + 1), sort: (row) => run.roundOf(run.trial[row]) },
    { title: "Outcome", cell: (row) => chip(run.outcome(row), tone(run.outcome(row))), sort: (row) => run.outcome(row) },
    run.case_verdicts && run.rounds > 1 && { title: "Case outcome", help: "of all rounds together", cell: (row) => chip(run.caseVerdict(row), tone(run.caseVerdict(row))), sort: (row) => run.caseVerdict(row) },
    any(run.answers) && { title: "Answers", help: "of the model: live, live and recorded, or replayed from recordings", cell: (row) => run.answersOf(row), sort: (row) => run.answers[row] },
    { title: "Score", align: "end", cell: (row) => percent(run.score[row]), sort: (row) => run.score[row] },
    { title: "Time", align: "end", cell: (row) => duration(run.seconds[row]), sort: (row) => run.seconds[row] },
    any(run.cost) && { title: "Cost", align: "end", cell: (row) => roughly(money(run.cost[row]), run.estimated[row]), sort: (row) => run.cost[row] },
    any(run.tokens) && { title: "Tokens", align: "end", cell: (row) => roughly(count(run.tokens[row]), run.estimated[row]), sort: (row) => run.tokens[row] },
    { title: "Why", cell: (row) => (found.has(row) ? h("span", { title: found.get(row) }, h("span", { class: "tone-muted" }, "said: "), found.get(row)) : run.why[row]), sort: (row) => run.why[row] || null },
  ];
  return columns.filter(Boolean);
}

/** Every text of a trial that a person may look for. */
function* saidIn(detail) {
  if (detail.output) yield detail.output;
  for (const step of detail.steps || []) for (const part of step.parts || []) yield* [part.text, part.name, part.arguments, part.result, part.error].filter(Boolean);
  for (const [name, text] of Object.entries(detail.files || {})) yield* [name, text];
  for (const score of detail.scores || []) if (score.reason) yield score.reason;
  for (const test of detail.tests || []) yield* [test.name, test.message].filter(Boolean);
  for (const phase of detail.phases || []) if (phase.failure?.message) yield phase.failure.message;
  if (detail.stderr) yield detail.stderr;
}
/** The words around the first match, or undefined. */
function matchIn(detail, wanted) {
  for (const text of saidIn(detail)) {
    const at = text.toLowerCase().indexOf(wanted);
    if (at >= 0) return `${at > AROUND[0] ? "…" : ""}${text.slice(Math.max(0, at - AROUND[0]), at + wanted.length + AROUND[1])}`.replace(/\s+/g, " ");
  }
}

class TrialList {
  constructor(run) {
    this.run = run;
    this.found = new Map(); // what was said, by row, of the trials that match by that alone
    this.table = new WindowedTable(byId("trial-table"), trialColumns(run, this.found), "Trials");
    this.form = byId("trial-filters");
    this.tags = new TagFilters(byId("tag-filters"));
    this.form.addEventListener("input", (event) => this.changed(event.target.type !== "search"));
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.refresh();
    sortInPlace(this.table);
    onPlace(() => this.follow());
  }
  /** Take in the data of the run, at first and when it has changed. */
  refresh() {
    const { run } = this, { subject, verdict } = this.form.elements;
    addOptions(subject, run.subjects);
    addOptions(verdict, run.verdicts.filter((_, place) => run.verdict.includes(place)));
    this.tags.take(run.tags);
    const last = (row) => Number(run.isControl(run.subjectOf(run.trial[row]))); // controls only test the cases
    this.all = run.trial.map((_, row) => row).sort((one, other) => last(one) - last(other) || rank(run.outcome(one)) - rank(run.outcome(other)) || one - other);
    this.words = run.trial.map((trial, row) => `${run.cases[run.caseOf(trial)]} ${run.why[row]}`.toLowerCase());
    this.searched = this.asked = null;
    this.table.staying(() => this.follow());
  }
  /** Set the fields to what the address says. */
  follow() {
    const { text, subject, verdict } = this.form.elements;
    const wanted = placeNow.getAll("tag"), asked = JSON.stringify([...placeNow].filter(([key]) => FILTERS.includes(key)));
    if (asked === this.asked) return; // only a trial was opened: the rows stay, and so does the focus
    this.asked = asked;
    if (text.value.trim() !== (placeNow.get("q") ?? "")) text.value = placeNow.get("q") ?? "";
    subject.value = placeNow.get("subject") ?? "";
    verdict.value = placeNow.get("outcome") ?? "";
    for (const select of [subject, verdict]) if (select.selectedIndex < 0) select.value = "";
    this.tags.values = wanted;
    this.filter();
  }
  changed(push) {
    const { text, subject, verdict } = this.form.elements;
    writePlace({ q: text.value.trim(), subject: subject.value, outcome: verdict.value, tag: this.tags.values }, push);
    this.filter();
  }
  filter() {
    const { run } = this, { text, subject, verdict } = this.form.elements;
    const wanted = text.value.trim().toLowerCase();
    const subjectAt = run.subjects.indexOf(subject.value), verdictAt = run.verdicts.indexOf(verdict.value);
    const tags = this.tags.places;
    this.candidates = this.all.filter((row) =>
      (verdictAt < 0 || run.verdict[row] === verdictAt) &&
      (subjectAt < 0 || run.subjectOf(run.trial[row]) === subjectAt) &&
      tags.every((tag) => run.case_tags[run.caseOf(run.trial[row])].includes(tag)));
    this.show(wanted);
    clearTimeout(this.waiting);
    if (wanted === "") { this.searched = null; this.found.clear(); return; }
    if (this.searched !== wanted) this.waiting = setTimeout(() => this.search(wanted), SEARCH_PAUSE);
  }
  show(wanted) {
    if (this.searched !== wanted) this.found.clear();
    const rows = wanted === "" ? this.candidates : this.candidates.filter((row) => this.words[row].includes(wanted) || this.found.has(row));
    this.tell(rows.length, wanted !== "" && this.searched !== wanted ? ", searching what was said…" : "");
    this.table.show(rows);
  }
  tell(shown, more) {
    const { run } = this;
    byId("trial-count").textContent = `${count(shown)} of ${countOf(this.all.length, `${run.left_out ? "listed" : "recorded"} trial`)}${more}`;
  }
  async search(wanted) {
    const { run } = this, mine = (this.searching = Symbol(wanted)), found = new Map();
    const records = run.trial.map((_, row) => ({ at: run.chunk[row], place: run.place[row], row }));
    const visit = ({ row }, detail) => {
      const match = this.words[row].includes(wanted) ? undefined : matchIn(detail, wanted);
      if (match !== undefined) found.set(row, match);
    };
    const tell = (share) => this.tell(this.table.rows.length, `, ${Math.round(100 * share)} % of what was said searched…`);
    if (!(await searchChunks("records", records, wanted, () => this.searching === mine, visit, tell))) return;
    this.searched = wanted;
    this.found.clear();
    for (const [row, match] of found) this.found.set(row, match);
    this.show(wanted);
  }
}

/** Visit the items of chunks; a chunk that does not contain the letters is not parsed. False: no longer wanted. */
async function searchChunks(prefix, items, wanted, alive, visit, tell) {
  const letters = JSON.stringify(wanted).slice(1, -1), groups = [...Map.groupBy(items, (item) => item.at)].sort(([one], [other]) => one - other);
  let told = performance.now();
  for (const [place, [at, some]] of groups.entries()) {
    const text = await chunkText(`${prefix}-${at}`);
    if (!alive()) return false;
    if (text.toLowerCase().includes(letters)) {
      const details = JSON.parse(text);
      for (const item of some) visit(item, details[item.place]);
    }
    if (tell && performance.now() - told > 250) { told = performance.now(); tell(place / groups.length); }
  }
  return true;
}

/** A select for each kind of tag. */
class TagFilters {
  constructor(host) { this.host = host; this.selects = new Map(); }
  /** Offer these tags, each at its place in the list of all tags; null is not offered. */
  take(tags) { tags.forEach((tag, place) => { if (tag !== null) this.add(tag, place); }); }
  add(tag, place) {
    const at = tag.indexOf("="), key = at > 0 ? tag.slice(0, at) : "", value = at > 0 ? tag.slice(at + 1) : tag;
    if (!this.selects.has(key)) {
      if (this.selects.size >= MOST_TAG_FILTERS) return;
      const select = h("select", { "data-tag": key }, h("option", { value: "" }, "all"));
      this.selects.set(key, select);
      this.host.append(h("label", {}, key || "Tag", select));
    }
    const select = this.selects.get(key);
    if (![...select.options].some((option) => option.value === tag)) select.append(h("option", { value: tag, "data-place": place }, value));
  }
  get chosen() { return [...this.selects.values()].filter((select) => select.value); }
  get values() { return this.chosen.map((select) => select.value); }
  set values(wanted) {
    for (const select of this.selects.values()) select.value = [...select.options].find((option) => option.value && wanted.includes(option.value))?.value ?? "";
  }
  get places() { return this.chosen.map((select) => Number(select.selectedOptions[0].dataset.place)); }
}
function addOptions(select, values, names = values) {
  const known = new Set([...select.options].map((option) => option.value));
  values.forEach((value, place) => { if (!known.has(value)) select.append(h("option", { value }, names[place])); });
}
