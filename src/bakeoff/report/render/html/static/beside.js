// Two trials beside each other: numbers, what differs in the answers, and the steps in pairs.

const MOST_LINES = 1500; // of a text that is compared line by line: the time grows with their square
const MOST_STEPS = 300;

/** The pairs of a longest common subsequence: places in one and in the other, in order. */
function commonPlaces(one, other) {
  const width = other.length + 1, table = new Uint16Array((one.length + 1) * width);
  for (let a = one.length - 1; a >= 0; a--) {
    for (let b = other.length - 1; b >= 0; b--) {
      table[a * width + b] = one[a] === other[b] ? table[(a + 1) * width + b + 1] + 1 : Math.max(table[(a + 1) * width + b], table[a * width + b + 1]);
    }
  }
  const pairs = [];
  for (let a = 0, b = 0; a < one.length && b < other.length;) {
    if (one[a] === other[b]) pairs.push([a++, b++]);
    else if (table[(a + 1) * width + b] >= table[a * width + b + 1]) a++;
    else b++;
  }
  return pairs;
}
/** Rows of [one, other]: common ones side by side, what lies between them in pairs too. */
function aligned(one, other) {
  const rows = [], pairs = [...commonPlaces(one, other), [one.length, other.length]];
  let a = 0, b = 0;
  for (const [nextA, nextB] of pairs) {
    while (a < nextA || b < nextB) rows.push([a < nextA ? a++ : null, b < nextB ? b++ : null]);
    if (nextA < one.length) rows.push([a++, b++]);
  }
  return rows;
}
/** The lines of two texts as a patch of all of them; null where they are too long to compare. */
function lineDiff(one, other) {
  const [before, after] = [one.split("\n"), other.split("\n")];
  if (Math.max(before.length, after.length) > MOST_LINES) return null;
  const lines = [], pairs = [...commonPlaces(before, after), [before.length, after.length]];
  let a = 0, b = 0;
  for (const [nextA, nextB] of pairs) {
    while (a < nextA) lines.push(h("span", { class: "remove" }, `- ${before[a++]}\n`));
    while (b < nextB) lines.push(h("span", { class: "add" }, `+ ${after[b++]}\n`));
    if (nextA < before.length) { lines.push(`  ${before[a]}\n`); a++; b++; }
  }
  return h("pre", { tabindex: "0" }, h("code", {}, lines));
}
/** One text of each side: the same, or what differs. */
function diffBlock(title, one, other, names) {
  if (one === undefined && other === undefined) return null;
  if (one === other) return block(title, h("p", { class: "notes" }, "The same on both sides."), folded("Show it", prose(one)));
  const different = one !== undefined && other !== undefined && lineDiff(one, other);
  const sides = h("div", { class: "sides" }, [one, other].map((text, side) => h("div", {}, h("h4", {}, names[side]), text === undefined ? h("p", { class: "notes" }, "There is none.") : prose(text))));
  return block(title, sides, different && folded(`Line by line: − ${names[0]}, + ${names[1]}`, different, true));
}
const stepKey = (step) => (step.parts || []).map((part) => (part.type === "tool" ? `tool ${part.name}` : part.type)).join(",");

function stepPairs(one, other) {
  const [mine, theirs] = [one.steps || [], other.steps || []];
  if (!mine.length && !theirs.length) return null;
  const short = Math.max(mine.length, theirs.length) <= MOST_STEPS;
  const rows = short ? aligned(mine.map(stepKey), theirs.map(stepKey)) : Array.from({ length: Math.max(mine.length, theirs.length) }, (_, at) => [at < mine.length ? at : null, at < theirs.length ? at : null]);
  const cell = (steps, at) => (at === null ? h("div", { class: "step none" }, h("p", { class: "notes" }, "no such step")) : stepBlock(steps[at], at));
  return block("Steps, those that do the same beside each other", rows.map(([a, b]) => h("div", { class: "sides pair" }, cell(mine, a), cell(theirs, b))));
}
function numberRows(run, trials, details) {
  const rows = trials.map((trial) => run.rowOf.get(trial));
  const tools = (detail) => (detail.steps || []).flatMap((step) => step.parts || []).filter((part) => part.type === "tool").length;
  const told = [
    ["Outcome", (row) => chip(run.outcome(row), tone(run.outcome(row)))],
    ["Score", (row) => percent(run.score[row])],
    ["Time", (row) => duration(run.seconds[row])],
    ["Cost", (row) => roughly(money(run.cost[row]), run.estimated[row])],
    ["Tokens", (row) => roughly(count(run.tokens[row]), run.estimated[row])],
    ["Steps", (row, detail) => count((detail.steps || []).length)],
    ["Tool calls", (row, detail) => count(tools(detail))],
    ["Why", (row) => run.why[row] || UNKNOWN],
  ];
  const names = trials.map((trial) => h("th", { scope: "col" }, h("a", { href: `#t=${trial}` }, subjectMark(run.marks[run.subjectOf(trial)]), sideName(run, trial))));
  const body = told.map(([title, read]) => h("tr", {}, h("th", { scope: "row" }, title), rows.map((row, side) => h("td", {}, read(row, details[side])))));
  return h("div", { class: "scroll", role: "region", "aria-label": "Both trials", tabindex: "0" }, h("table", { class: "both" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "What"), names)), h("tbody", {}, body)));
}
const sideName = (run, trial) => run.subjects[run.subjectOf(trial)] + (run.rounds > 1 ? `, round ${count(run.roundOf(trial) + 1)}` : "");

async function besideBlocks(run, ...trials) {
  const rows = trials.map((trial) => run.rowOf.get(trial));
  if (rows.includes(undefined)) return [h("p", {}, "One of these trials was not run, or is not listed on this page.")];
  const [one, other] = await Promise.all(rows.map((row) => run.detail(row)));
  const asked = await run.case(run.caseOf(trials[0])), names = trials.map((trial) => sideName(run, trial));
  const files = [...new Set([one, other].flatMap((detail) => Object.keys(detail.files || {})))];
  return [
    numberRows(run, trials, [one, other]),
    run.caseOf(trials[0]) === run.caseOf(trials[1]) && promptBlock(asked),
    asked.expected !== undefined && block("Expected", prose(asked.expected)),
    h("div", { class: "sides" }, [one, other].map((detail, side) => timelineBlock(detail, `Time: ${names[side]}`))),
    diffBlock("Output", outputOf(one), outputOf(other), names),
    ...files.map((name) => diffBlock(name, one.files?.[name], other.files?.[name], names)),
    stepPairs(one, other),
  ].filter(Boolean);
}
