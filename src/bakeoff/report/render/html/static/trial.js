// One trial as blocks: what went wrong, the answer beside what was expected, the time it took, and every step.

const OPEN_TESTS = 12; // failed tests that are not folded
const ANSWERS = {
  replayed: "replayed from recordings, at least in part: cost and time are those of the recording",
  recorded: "answered live, and recorded for replays",
};

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
  if (usage.input || usage.output) said.push(`${countOf(usage.input || 0, "token")} in, ${count(usage.output || 0)} out`);
  if (usage.cache_read) said.push(`${count(usage.cache_read)} from cache`);
  if (usage.reasoning) said.push(`${count(usage.reasoning)} reasoning`);
  if (usage.cost !== undefined) said.push(money(usage.cost));
  return said.join(", ");
}
function partBlock(part) {
  if (part.type !== "tool") {
    return h("div", { class: `part ${part.type}` }, part.type === "reasoning" && h("span", { class: "label" }, "reasoning"), prose(part.text));
  }
  return h("div", { class: "part tool" },
    h("span", { class: "label" }, "tool ", h("strong", {}, part.name), part.ms !== undefined && ` ${duration(part.ms / 1000)}`),
    part.arguments !== undefined && folded("Arguments", longText(part.arguments, isPatch(part.arguments) ? "patch" : "code"), part.arguments.length < 600),
    part.result !== undefined && folded("Result", longText(part.result, isPatch(part.result) ? "patch" : "code"), part.result.length < 600),
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
  const title = failed.length ? `${count(failed.length)} of ${countOf(tests.length, "test")} failed` : (tests.length === 1 ? "The test passed" : `All ${count(tests.length)} tests passed`);
  return block(passed.length || !failed.length ? title : `${countOf(failed.length, "failed test")}`,
    failed.length > 0 && list(failed.slice(0, OPEN_TESTS)),
    failed.length > OPEN_TESTS && folded(`${count(failed.length - OPEN_TESTS)} more failed`, list(failed.slice(OPEN_TESTS))),
    passed.length > 0 && (failed.length ? folded(`${count(passed.length)} passed`, list(passed)) : list(passed)));
}
function answerBlock(files, changes) {
  return block("Handed in", Object.entries(files).map(([name, text]) => {
    const patch = changes?.[name];
    return [
      patch && folded(`${name}, changes to the start`, longText(patch, "patch"), true),
      folded(patch === "" ? `${name}, as it was at the start` : name, longText(text, isPatch(text) ? "patch" : "code"), !patch),
    ];
  }));
}
/** What was said last, if nothing else is named as the output. */
function outputOf(detail) {
  if (detail.output !== undefined) return detail.output;
  const said = (detail.steps?.at(-1)?.parts || []).filter((part) => part.type === "text").map((part) => part.text).join("");
  return said || undefined;
}
const promptBlock = (asked) => h("div", { class: "asked" }, block("Prompt", prose(asked.prompt || "(empty prompt)")));
function outputBlock(detail, asked) {
  if (asked.expected === undefined) {
    const hidden = asked.expected_hidden && block("Expected", h("p", { class: "notes" }, "Not shown: this case has hidden files, and pages are passed on."));
    return [detail.output !== undefined && block("Output", prose(detail.output)), hidden];
  }
  const output = outputOf(detail);
  return h("div", { class: "sides" }, block("Expected", prose(asked.expected)), block("Output", output === undefined ? h("p", { class: "notes" }, "There is none.") : prose(output)));
}

// ---- the time of a trial ----
const TIMES = { prepare: "preparing", wait: "waiting", model: "model", tool: "tools", other: "other work", score: "grading" };

/** The pieces of time in their order. How long a subject waited is known, not when; the waiting comes first. */
function timePieces(detail) {
  const phase = (name) => (detail.phases || []).find((one) => one.name === name) || { seconds: 0 };
  const attempt = phase("attempt"), score = phase("score"), waited = Math.min(attempt.waited || 0, attempt.seconds);
  const steps = (detail.steps || []).map((step) => ({ whole: step.seconds || 0, tools: (step.parts || []).filter((part) => part.ms > 0).map((part) => ({ name: part.name, seconds: part.ms / 1000 })) }));
  const toolTime = (step) => step.tools.reduce((sum, tool) => sum + tool.seconds, 0);
  const work = attempt.seconds - waited;
  const inside = steps.reduce((sum, step) => sum + step.whole + toolTime(step), 0) > 1.02 * work; // an agent's steps contain its tools
  const pieces = [{ kind: "prepare", seconds: phase("prepare").seconds }, { kind: "wait", seconds: waited + (score.waited || 0) }];
  steps.forEach((step, place) => {
    pieces.push({ kind: "model", seconds: Math.max(0, step.whole - (inside ? toolTime(step) : 0)), name: `step ${place + 1}` });
    step.tools.forEach((tool) => pieces.push({ kind: "tool", ...tool }));
  });
  const told = pieces.slice(2).reduce((sum, piece) => sum + piece.seconds, 0);
  if (told > work) pieces.slice(2).forEach((piece) => { piece.seconds *= work / told; }); // tools that ran at one time
  pieces.push({ kind: "other", seconds: Math.max(0, work - told) }, { kind: "score", seconds: score.seconds - (score.waited || 0) });
  return pieces.filter((piece) => piece.seconds > 0);
}
function timelineBlock(detail, title = "Time") {
  const pieces = timePieces(detail), total = pieces.reduce((sum, piece) => sum + piece.seconds, 0);
  if (!(total > 0)) return null;
  const sums = Object.keys(TIMES).map((kind) => [kind, pieces.filter((piece) => piece.kind === kind).reduce((sum, piece) => sum + piece.seconds, 0)]).filter(([, sum]) => sum > 0);
  const words = sums.map(([kind, sum]) => `${TIMES[kind]} ${duration(sum)}`).join(", ");
  const drawing = svg("svg", { class: "timeline", viewBox: "0 0 1000 20", preserveAspectRatio: "none", role: "img", "aria-label": `Time: ${words}` });
  let at = 0;
  for (const piece of pieces) {
    const width = (1000 * piece.seconds) / total;
    const title = [TIMES[piece.kind], piece.name, duration(piece.seconds)].filter(Boolean).join(" · ");
    drawing.append(svg("rect", { class: `time-${piece.kind}`, x: at.toFixed(2), y: 0, width: Math.max(width - 1.2, 0.6).toFixed(2), height: 20 }, svg("title", {}, title)));
    at += width;
  }
  const key = sums.map(([kind, sum]) => h("li", {}, svg("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: `time-${kind}`, width: 10, height: 10 })), `${TIMES[kind]} ${duration(sum)}`));
  return block(title, drawing, h("ul", { class: "key" }, key));
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
    promptBlock(asked),
    outputBlock(detail, asked),
    detail.tests && testBlock(detail.tests),
    pictures,
    timelineBlock(detail),
    detail.scores && block("Scores", scoreRows(detail.scores)),
    detail.stderr && block("Last lines of the agent’s stderr", longText(detail.stderr)),
    detail.files && answerBlock(detail.files, detail.changes),
    detail.steps && block("Steps", detail.steps.map(stepBlock)),
    asked.files && block("Files at the start", fileBlocks(asked.files, false)),
    detail.refused && block("Files that were refused", h("dl", { class: "facts" }, Object.entries(detail.refused).map(([name, why]) => [h("dt", {}, name), h("dd", {}, why)]))),
    block("About", h("dl", { class: "facts" }, facts.map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])), detail.about && folded("Metadata", longText(detail.about, "code"))),
  ].flat().filter(Boolean);
}
