// The page of one run: the list of trials, the matrix of large runs, and one trial at a time.

const TONES = { pass: "pass", fail: "fail", timeout: "timeout", recorded: "plain" };
const tone = (verdict) => TONES[verdict] || "lost";
const RANKS = ["fail", "timeout", "grader", "infra", "budget", "recorded", "pass"]; // what did not pass comes first
const rank = (verdict) => RANKS.indexOf(verdict);
const OPEN_TESTS = 12; // failed tests that are not folded
const MOST_PICTURES = 24; // of one case, side by side
const LONG_TEXT = 20_000; // characters shown before one asks for more
const MORE_TEXT = 200_000;
const ANSWERS = {
  replayed: "replayed from recordings, at least in part: cost and time are those of the recording",
  recorded: "answered live, and recorded for replays",
};

class Run {
  constructor(data) {
    Object.assign(this, data); // subjects, cases, rounds, verdicts, case_chunk, case_place and the columns of trials
    this.rowOf = new Map(this.trial.map((trial, row) => [trial, row]));
  }
  get size() { return this.subjects.length * this.cases.length * this.rounds; }
  subjectOf(trial) { return trial % this.subjects.length; }
  caseOf(trial) { return Math.floor(trial / this.subjects.length) % this.cases.length; }
  roundOf(trial) { return Math.floor(trial / (this.subjects.length * this.cases.length)); }
  find(caseAt, subjectAt, round) { return (round * this.cases.length + caseAt) * this.subjects.length + subjectAt; }
  answersOf(row) { return this.answer_kinds[this.answers[row]]; }
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

// ---- the list ----
function trialColumns(run) {
  const any = (values) => values.some((value) => value !== null && value !== 0);
  const columns = [
    { title: "Case", cell: (row) => h("a", { href: `#t=${run.trial[row]}` }, run.cases[run.caseOf(run.trial[row])]), sort: (row) => run.cases[run.caseOf(run.trial[row])] },
    { title: "Subject", cell: (row) => run.subjects[run.subjectOf(run.trial[row])], sort: (row) => run.subjects[run.subjectOf(run.trial[row])] },
    run.rounds > 1 && { title: "Round", align: "end", cell: (row) => count(run.roundOf(run.trial[row]) + 1), sort: (row) => run.roundOf(run.trial[row]) },
    { title: "Outcome", cell: (row) => chip(run.outcome(row), tone(run.outcome(row))), sort: (row) => run.outcome(row) },
    run.case_verdicts && run.rounds > 1 && { title: "Case outcome", help: "of all rounds together", cell: (row) => chip(run.caseVerdict(row), tone(run.caseVerdict(row))), sort: (row) => run.caseVerdict(row) },
    any(run.answers) && { title: "Answers", help: "of the model: live, live and recorded, or replayed from recordings", cell: (row) => run.answersOf(row), sort: (row) => run.answers[row] },
    { title: "Score", align: "end", cell: (row) => percent(run.score[row]), sort: (row) => run.score[row] },
    { title: "Time", align: "end", cell: (row) => duration(run.seconds[row]), sort: (row) => run.seconds[row] },
    any(run.cost) && { title: "Cost", align: "end", cell: (row) => roughly(money(run.cost[row]), run.estimated[row]), sort: (row) => run.cost[row] },
    any(run.tokens) && { title: "Tokens", align: "end", cell: (row) => roughly(count(run.tokens[row]), run.estimated[row]), sort: (row) => run.tokens[row] },
    { title: "Why", cell: (row) => run.why[row], sort: (row) => run.why[row] || null },
  ];
  return columns.filter(Boolean);
}

function setUpTrials(run) {
  const table = new WindowedTable(byId("trial-table"), trialColumns(run), "Trials");
  const form = byId("trial-filters");
  const { text, subject, verdict, tag } = form.elements;
  run.subjects.forEach((name, place) => subject.append(h("option", { value: place }, name)));
  run.verdicts.forEach((name, place) => { if (run.verdict.includes(place)) verdict.append(h("option", { value: place }, name)); });
  if (tag) run.tags.forEach((name, place) => tag.append(h("option", { value: place }, name)));
  const all = run.trial.map((_, row) => row).sort((one, other) => rank(run.outcome(one)) - rank(run.outcome(other)) || one - other);
  const words = [];
  for (const row of all) words[row] = `${run.cases[run.caseOf(run.trial[row])]} ${run.why[row]}`.toLowerCase();
  const filter = () => {
    const wanted = text.value.trim().toLowerCase();
    const rows = all.filter((row) =>
      (verdict.value === "" || run.verdict[row] === Number(verdict.value)) &&
      (subject.value === "" || run.subjectOf(run.trial[row]) === Number(subject.value)) &&
      (!tag || tag.value === "" || run.case_tags[run.caseOf(run.trial[row])].includes(Number(tag.value))) &&
      (wanted === "" || words[row].includes(wanted)));
    byId("trial-count").textContent = `${count(rows.length)} of ${count(all.length)} ${run.left_out ? "listed" : "recorded"} trials`;
    table.show(rows);
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
  return table;
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
  if (judged) return { tone: tone(judged), text, note: `${judged}: ${passed} of ${scored} rounds passed${losses}`, score, first };
  if (score === null) return { tone: "lost", text, note: `${lost} lost`, score, first };
  const kind = passed === scored || score === 1 ? "pass" : score > 0 ? "partial" : timeouts === scored ? "timeout" : "fail";
  return { tone: kind, text, note: `${passed} of ${scored} passed${losses}`, score, first };
}

function setUpMatrix(run) {
  const host = byId("matrix-table");
  if (!host) return;
  const columns = [{ title: "Case", cell: (at) => run.cases[at], sort: (at) => run.cases[at] }];
  run.best_first.forEach((subjectAt) => columns.push({
    title: run.subjects[subjectAt],
    align: "centre",
    sort: (at) => cellOf(run, at, subjectAt).score,
    cell: (at) => {
      const cell = cellOf(run, at, subjectAt);
      const inside = [cell.text, h("span", { class: "sr" }, ` ${cell.note}`)];
      const properties = { class: `cell tone-${cell.tone}`, title: cell.note };
      return cell.first === undefined ? h("span", properties, inside) : h("a", { ...properties, href: `#t=${cell.first}` }, inside);
    },
  }));
  new WindowedTable(host, columns, "Score by case and subject", "matrix").show(run.cases.map((_, at) => at));
}

// ---- one trial ----
function longText(text, language) {
  const code = h("code");
  const box = h("pre", { tabindex: "0" }, code);
  let shown = 0;
  const more = h("button", { type: "button", onclick: () => grow(MORE_TEXT) });
  function grow(by) {
    const piece = text.slice(shown, shown + by);
    code.append(...(shown === 0 ? coloured(piece, language) : [piece]));
    shown += piece.length;
    more.hidden = shown >= text.length;
    more.textContent = `Show more (${count(text.length - shown)} characters left)`;
  }
  grow(LONG_TEXT);
  return text.length > LONG_TEXT ? h("div", {}, box, more) : box;
}

const WORDS = /^(?:and|as|async|await|break|case|catch|class|const|continue|def|default|del|do|elif|else|enum|except|export|extends|false|finally|fn|for|from|func|function|if|impl|import|in|interface|is|lambda|let|match|mut|new|nil|none|not|null|or|package|pass|pub|public|private|raise|return|self|static|struct|super|switch|this|throw|true|try|type|use|var|while|with|yield|True|False|None)$/;
const TOKENS = /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(\/\/[^\n]*|(?:^|(?<=\s))#[^\n]*|\/\*[^]*?\*\/)|\b(\d[\w.]*)\b|\b([A-Za-z_]\w*)\b/g;
const isPatch = (text) => /^(?:diff --git|--- |\+\+\+ |@@ )/m.test(text.slice(0, 2000));

/** Text as nodes, coloured where that helps: code and patches only, and only by splitting it. */
function coloured(text, language) {
  if (language === "patch") return text.split(/(?<=\n)/).map(patchLine);
  if (language !== "code") return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(TOKENS)) {
    const kind = found[1] ? "string" : found[2] ? "comment" : found[3] ? "number" : WORDS.test(found[4]) ? "word" : null;
    if (!kind) continue;
    nodes.push(text.slice(end, found.index), h("span", { class: kind }, found[0]));
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}
function patchLine(line) {
  const kind = line.startsWith("+") ? "add" : line.startsWith("-") ? "remove" : line.startsWith("@@") ? "hunk" : null;
  return kind ? h("span", { class: kind }, line) : line;
}

function block(title, ...content) {
  return h("section", {}, h("h3", {}, title), content);
}
function folded(title, content, open = false) {
  return h("details", { open }, h("summary", {}, title), content);
}
function failureBlock(failure, where) {
  const lost = failure.kind !== "subject" && failure.kind !== "timeout";
  return h("div", { class: lost ? "failure lost" : "failure" },
    h("strong", {}, `${failure.kind}: ${failure.type}`), ` in ${where}`,
    failure.message && h("p", {}, failure.message.slice(0, LONG_TEXT)),
    failure.detail && folded("Detail", longText(failure.detail)));
}
function usageWords(usage) {
  if (!usage) return "";
  const said = [];
  if (usage.input || usage.output) said.push(`${count(usage.input || 0)} tokens in, ${count(usage.output || 0)} out`);
  if (usage.cache_read) said.push(`${count(usage.cache_read)} from cache`);
  if (usage.reasoning) said.push(`${count(usage.reasoning)} reasoning`);
  if (usage.cost !== undefined) said.push(money(usage.cost));
  return said.join(", ");
}
function partBlock(part) {
  if (part.type !== "tool") {
    return h("div", { class: `part ${part.type}` }, part.type === "reasoning" && h("span", { class: "label" }, "reasoning"), longText(part.text));
  }
  return h("div", { class: "part tool" },
    h("span", { class: "label" }, "tool ", h("strong", {}, part.name), part.ms !== undefined && ` ${duration(part.ms / 1000)}`),
    part.arguments !== undefined && folded("Arguments", longText(part.arguments, "code"), part.arguments.length < 600),
    part.result !== undefined && folded("Result", longText(part.result, "code"), part.result.length < 600),
    part.error && h("div", { class: "failure" }, h("p", {}, part.error.slice(0, LONG_TEXT))));
}
function stepBlock(step, place) {
  const about = [`Step ${place + 1}`, step.seconds !== undefined && duration(step.seconds), usageWords(step.usage), step.finish && `finished: ${step.finish}`];
  return h("div", { class: "step" }, h("h4", {}, about.filter(Boolean).join(" · ")), (step.parts || []).map(partBlock));
}
function scoreRows(scores) {
  const rows = scores.map((score) => h("tr", {},
    h("th", { scope: "row" }, score.name),
    h("td", { class: "end" }, score.value === undefined ? "unscored" : percent(score.value)),
    h("td", {}, score.reason && (score.reason.length > 300 ? folded("Reason", longText(score.reason), true) : score.reason),
      score.about && folded("More", longText(score.about, "code")),
      score.failure && failureBlock(score.failure, "scoring"))));
  const head = h("tr", {}, h("th", { scope: "col" }, "Scorer"), h("th", { scope: "col", class: "end" }, "Score"), h("th", { scope: "col" }, "Reason"));
  return h("div", { class: "scroll", role: "region", "aria-label": "Scores", tabindex: "0" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}
function fileBlocks(files, open) {
  return Object.entries(files).map(([name, text]) => folded(name, longText(text, isPatch(text) ? "patch" : "code"), open));
}
function testRow(test) {
  const about = [test.name, test.hidden && h("span", { class: "badge", title: "the subject did not see this test" }, "hidden")];
  return h("li", { class: test.passed ? "passed" : "failed" },
    h("span", { class: "mark", "aria-hidden": "true" }, test.passed ? "✓" : "✗"),
    h("div", {}, h("span", { class: "sr" }, test.passed ? "passed: " : "failed: "), about.filter(Boolean), test.message && messageBlock(test.message)));
}
const messageBlock = (text) => (text.length > 200 || text.includes("\n") ? longText(text) : h("p", { class: "said" }, text));
/** Failed tests with their messages first; the passed ones are folded where there are failed ones. */
function testBlock(tests) {
  const failed = tests.filter((test) => !test.passed), passed = tests.filter((test) => test.passed);
  const list = (some) => h("ul", { class: "tests" }, some.map(testRow));
  const title = failed.length ? `${count(failed.length)} of ${count(tests.length)} tests failed` : (tests.length === 1 ? "The test passed" : `All ${count(tests.length)} tests passed`);
  return block(passed.length || !failed.length ? title : `${countOf(failed.length, "failed test")}`,
    failed.length > 0 && list(failed.slice(0, OPEN_TESTS)),
    failed.length > OPEN_TESTS && folded(`${count(failed.length - OPEN_TESTS)} more failed`, list(failed.slice(OPEN_TESTS))),
    passed.length > 0 && (failed.length ? folded(`${count(passed.length)} passed`, list(passed)) : list(passed)));
}
function answerBlock(files, changes) {
  return block("Handed in", Object.entries(files).map(([name, text]) => {
    const patch = changes?.[name];
    return [
      folded(patch === "" ? `${name}, as it was at the start` : name, longText(text, isPatch(text) ? "patch" : "code"), true),
      patch && folded(`${name}, changes to the start`, longText(patch, "patch"), true),
    ];
  }));
}
function pictureFigure(run, trial, picture, own) {
  const name = run.subjects[run.subjectOf(trial)], outcome = run.outcome(run.rowOf.get(trial));
  const about = h("figcaption", {}, own ? h("strong", {}, name) : h("a", { href: `#t=${trial}` }, name), " ", chip(outcome, tone(outcome)));
  const shown = picture.png
    ? h("img", { src: `data:image/png;base64,${picture.png}`, alt: `What the component of ${name} looks like`, decoding: "async" })
    : h("p", { class: "none" }, `No picture: ${picture.problem}`);
  return h("figure", { "aria-current": own && "true" }, about, shown);
}
function pictureBlock(run, trial, beside) {
  const title = beside.length > 1 ? "Pictures, side by side" : "Picture";
  return block(title, h("div", { class: "pictures" }, beside.map((each) => pictureFigure(run, each.trial, each.picture, each.trial === trial))));
}
/** The reason of a failure before its tests, unless a phase or a test tells it. */
function whyBlock(detail, why) {
  const told = (detail.phases || []).some((phase) => phase.failure) || (detail.tests || []).some((test) => test.message);
  return why && !told && block("Why", h("p", {}, why));
}
function trialBlocks(detail, asked, why, pictures) {
  const failures = (detail.phases || []).filter((phase) => phase.failure).map((phase) => failureBlock(phase.failure, phase.name));
  const facts = [
    ["Started", moment(detail.started)],
    ["Tries", count(detail.tries ?? 0)],
    ...(detail.phases || []).map((phase) => [`Phase: ${phase.name}`, duration(phase.seconds) + (phase.waited ? `, of these ${duration(phase.waited)} waiting` : "")]),
    ["Answers", ANSWERS[detail.answers]],
    ["Spent", usageWords(detail.spent)],
    ["On judging", usageWords(detail.judging)],
    ["Workspace", detail.workspace],
    ["Tags", Object.entries(asked.tags || {}).map(([key, value]) => `${key}: ${value}`).join(", ")],
    ["Hidden files", (asked.hidden || []).join(", ")],
  ].filter(([, value]) => value);
  return [
    failures.length && block("What went wrong", failures),
    whyBlock(detail, why),
    detail.tests && testBlock(detail.tests),
    pictures,
    detail.scores && block("Scores", scoreRows(detail.scores)),
    detail.stderr && block("Last lines of the agent’s stderr", longText(detail.stderr)),
    detail.files && answerBlock(detail.files, detail.changes),
    detail.output !== undefined && block("Output", longText(detail.output, "code")),
    detail.steps && block("Steps", detail.steps.map(stepBlock)),
    block("Task", folded("Prompt", longText(asked.prompt || "(empty prompt)")), asked.files && fileBlocks(asked.files, false)),
    detail.refused && block("Files that were refused", h("dl", { class: "facts" }, Object.entries(detail.refused).map(([name, why]) => [h("dt", {}, name), h("dd", {}, why)]))),
    block("About", h("dl", { class: "facts" }, facts.map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])), detail.about && folded("Metadata", longText(detail.about, "code"))),
  ].filter(Boolean);
}

class TrialSheet {
  constructor(run, table) {
    this.run = run;
    this.table = table;
    this.dialog = byId("trial");
    byId("trial-close").addEventListener("click", () => this.dialog.close());
    byId("trial-previous").addEventListener("click", () => this.step(-1));
    byId("trial-next").addEventListener("click", () => this.step(1));
    this.dialog.addEventListener("close", () => this.closed());
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.dialog.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "j") this.step(1);
      if (event.key === "k") this.step(-1);
    });
    addEventListener("hashchange", () => this.follow());
    this.follow();
  }
  /** The address says which trial is open, so a link to one can be passed on. */
  follow() {
    const found = /^#t=(\d+)$/.exec(location.hash);
    if (found && Number(found[1]) < this.run.size) this.open(Number(found[1]));
    else if (this.dialog.open) this.dialog.close();
  }
  closed() {
    this.trial = undefined;
    if (location.hash.startsWith("#t=")) history.replaceState(null, "", "#trials");
    if (this.opener && this.opener.isConnected) this.opener.focus({ preventScroll: true });
  }
  step(by) {
    const rows = this.table.rows;
    const place = rows.indexOf(this.run.rowOf.get(this.trial));
    const next = rows[place < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, place + by))];
    if (next !== undefined) history.replaceState(null, "", `#t=${this.run.trial[next]}`);
    this.follow();
  }
  async open(trial) {
    const run = this.run;
    this.trial = trial;
    if (!this.dialog.open) { this.opener = document.activeElement; this.dialog.showModal(); }
    const row = run.rowOf.get(trial);
    const place = this.table.rows.indexOf(row);
    byId("trial-title").textContent = run.cases[run.caseOf(trial)];
    byId("trial-sub").replaceChildren(...this.subtitle(trial, row));
    byId("trial-previous").disabled = place <= 0;
    byId("trial-next").disabled = place < 0 || place >= this.table.rows.length - 1;
    const body = byId("trial-body");
    body.replaceChildren(h("p", {}, "reading…"));
    const asked = await run.case(run.caseOf(trial));
    const detail = row === undefined ? null : await run.detail(row);
    const beside = row === undefined || !run.pictures.length ? [] : await run.picturesBeside(trial);
    if (this.trial !== trial) return; // another one was opened meanwhile
    body.replaceChildren(...(detail ? trialBlocks(detail, asked, run.why[row], beside.length > 0 && pictureBlock(run, trial, beside)) : [h("p", {}, "This trial was not run."), block("Task", longText(asked.prompt || ""))]));
    body.scrollTop = 0;
    byId("trial-title").focus();
  }
  subtitle(trial, row) {
    const run = this.run;
    const outcome = row === undefined ? "not run" : run.outcome(row);
    const said = [h("strong", {}, run.subjects[run.subjectOf(trial)]), chip(outcome, tone(outcome))];
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

async function setUpRun() {
  const run = new Run(await chunk("trials"));
  const table = setUpTrials(run);
  setUpMatrix(run);
  new TrialSheet(run, table);
  document.documentElement.dataset.ready = "yes";
}
setUpRun();
