// The index: search, filter, sort, history, and two rows side by side.

class Index {
  constructor(data) {
    Object.assign(this, data); // runs, rows, columns
    this.gone = new Set();
    this.live = Boolean(document.body.dataset.live);
    this.order();
  }
  order() {
    const rows = this.rows.run.map((_, row) => row);
    const shown = rows.filter((row) => !this.gone.has(this.run(row, "name"))); // newest run first, controls last in it
    this.all = shown.sort((one, other) => this.rows.run[other] - this.rows.run[one] || this.rows.control[one] - this.rows.control[other] || one - other);
  }
  /** What the server says of some runs: known ones in their places, new ones after the others. */
  take(news) {
    news.gone.forEach((name) => this.gone.add(name));
    news.runs.name.forEach((name, at) => {
      this.gone.delete(name);
      const known = this.runs.name.indexOf(name);
      const run = known < 0 ? this.runs.name.length : known;
      for (const field of Object.keys(this.runs)) this.runs[field][run] = news.runs[field][at];
      const before = this.rowsOf(this.rows, run);
      this.rowsOf(news.rows, at).forEach((from, place) => {
        const row = before[place] ?? this.rows.run.length;
        for (const field of Object.keys(this.rows)) this.rows[field][row] = field === "run" ? run : news.rows[field][from];
      });
    });
    this.order();
  }
  rowsOf(rows, run) { return rows.run.flatMap((one, row) => (one === run ? [row] : [])); }
  run(row, field) { return this.runs[field][this.rows.run[row]]; }
  when(row) { return this.run(row, "started"); }
  interval(row) {
    const [low, high] = [this.rows.low[row], this.rows.high[row]];
    return low === null ? "needs 2 cases" : `${(100 * low).toFixed(1)}–${(100 * high).toFixed(1)}`;
  }
}

// ---- the table ----
function runColumns(index, ticked, tick) {
  const { rows } = index;
  const name = (row) => index.run(row, "name");
  return [
    { title: "Compare", cell: (row) => h("input", { type: "checkbox", "aria-label": `Compare ${rows.subject[row]} of ${name(row)}`, checked: ticked.includes(row), onchange: (event) => tick(row, event.target) }) },
    { title: "Run", head: true, cell: (row) => (index.run(row, "page") ? h("a", { href: index.run(row, "page") }, name(row)) : name(row)), sort: name },
    { title: "Plan", cell: (row) => h("span", { title: index.run(row, "title") }, index.run(row, "title")), sort: (row) => index.run(row, "title") },
    { title: "Subject", cell: (row) => [subjectMark(rows.mark[row]), h("span", { title: rows.subject[row] }, rows.subject[row] + (rows.bound[row] ? " *" : ""))], sort: (row) => rows.subject[row] },
    { title: "Score", align: "end", cell: (row) => h("strong", {}, percent(rows.score[row])), sort: (row) => rows.score[row] },
    { title: "Lost", align: "end", cell: (row) => rows.lost[row] || "0", sort: (row) => rows.lost[row] || null },
    ...(rows.missing.some(Boolean) || index.live ? [{ title: "Not run", align: "end", cell: (row) => count(rows.missing[row]), sort: (row) => rows.missing[row] }] : []),
    { title: "State", cell: (row) => h("span", { class: `badge state-${index.run(row, "state")}` }, index.run(row, "state")), sort: (row) => index.run(row, "state") },
    { title: "95 % interval", track: true, cell: (row) => h("span", { title: rows.method[row] }, track(rows.score[row], rows.low[row], rows.high[row]), index.interval(row)), sort: (row) => rows.low[row] },
    { title: "Passed/scored", align: "end", cell: (row) => `${count(rows.passed[row])}/${count(rows.scored[row])}`, sort: (row) => rows.scored[row] },
    ...(rows.units.some((share) => share !== null) ? [{ title: "Unit tests", align: "end", cell: (row) => percent(rows.units[row]), sort: (row) => rows.units[row] }] : []),
    { title: "Cost", align: "end", cell: (row) => roughly(money(rows.cost[row]), rows.estimated[row]), sort: (row) => rows.cost[row] },
    { title: "Time", align: "end", cell: (row) => duration(rows.seconds[row]), sort: (row) => rows.seconds[row] },
    { title: "Started", cell: (row) => (index.when(row) === null ? UNKNOWN : moment(index.when(row))), sort: (row) => index.when(row) },
    ...index.columns.map((column) => ({
      title: column.title,
      align: column.align,
      cell: (row) => (Object.hasOwn(column.values, name(row)) ? datum(column.values[name(row)]) : UNKNOWN),
      sort: (row) => (Object.hasOwn(column.values, name(row)) ? column.values[name(row)].sort ?? column.values[name(row)].text : null),
    })),
  ];
}

function options(select, values) {
  const known = new Set([...select.options].map((option) => option.value));
  for (const value of [...new Set(values)].sort(collator.compare)) {
    if (!known.has(value)) select.append(h("option", { value }, value));
  }
}

/** A row by its run and subject, as the address names it. */
const rowName = (index, row) => `${index.run(row, "name")}\n${index.rows.subject[row]}`;

function setUpRuns(index) {
  const ticked = [];
  const compare = () => showComparison(index, ticked, () => { ticked.length = 0; keep(); table.show(table.given); });
  const keep = () => writePlace({ tick: ticked.map((row) => rowName(index, row)) }, true);
  const tick = (row, box) => {
    if (box.checked) ticked.push(row);
    else ticked.splice(ticked.indexOf(row), 1);
    if (ticked.length > 2) { ticked.shift(); table.show(table.given); }
    keep();
    compare();
  };
  const table = new WindowedTable(byId("run-table"), runColumns(index, ticked, tick), "Subjects of runs");
  const form = byId("run-filters");
  const { text, title, subject, state } = form.elements;
  let words = [];
  const filter = () => {
    const wanted = text.value.trim().toLowerCase().split(/\s+/);
    const rows = index.all.filter((row) =>
      (title.value === "" || index.run(row, "title") === title.value) &&
      (subject.value === "" || index.rows.subject[row] === subject.value) &&
      (state.value === "" || index.run(row, "state") === state.value) &&
      wanted.every((word) => words[row].includes(word)));
    const found = `${count(rows.length)} of ${countOf(index.all.length, "row")}`;
    if (byId("run-count").textContent !== found) byId("run-count").textContent = found; // it is read aloud
    table.show(rows);
  };
  const refresh = () => {
    options(title, index.runs.title);
    options(subject, index.rows.subject);
    options(state, index.runs.state);
    words = index.rows.run.map((_, row) => [index.run(row, "name"), index.run(row, "title"), index.rows.subject[row], index.rows.model[row]].join(" ").toLowerCase());
    filter();
  };
  const follow = () => {
    if (text.value.trim() !== (placeNow.get("q") ?? "")) text.value = placeNow.get("q") ?? "";
    for (const select of [title, subject, state]) {
      select.value = placeNow.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.value = "";
    }
    const wanted = placeNow.getAll("tick");
    ticked.splice(0, ticked.length, ...index.all.filter((row) => wanted.includes(rowName(index, row))).sort((one, other) => wanted.indexOf(rowName(index, one)) - wanted.indexOf(rowName(index, other))));
    filter();
    compare();
  };
  form.addEventListener("input", (event) => {
    writePlace({ q: text.value.trim(), title: title.value, subject: subject.value, state: state.value }, event.target !== text);
    filter();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  refresh();
  sortInPlace(table);
  onPlace(follow);
  follow();
  return () => table.staying(refresh);
}

// ---- two side by side ----
const points = (share) => `${(100 * share).toFixed(1)} points`;
/** The interval of the difference of two scores, from their own intervals (Zou and Donner's method). */
function scoreInterval(index, one, other) {
  const { score, low, high } = index.rows;
  if ([one, other].some((row) => score[row] === null || low[row] === null)) return "";
  const change = score[other] - score[one];
  const below = Math.hypot(score[other] - low[other], high[one] - score[one]);
  const above = Math.hypot(high[other] - score[other], score[one] - low[one]);
  const signed = (share) => `${share < 0 ? "−" : "+"}${Math.abs(100 * share).toFixed(1)}`;
  return `95 %: ${signed(Math.max(-1, change - below))} to ${signed(Math.min(1, change + above))}`;
}
const FIELDS = [
  ["Score", (index, row) => index.rows.score[row], percent, points, scoreInterval],
  ["95 % interval", (index, row) => index.interval(row)],
  ["Passed/scored", (index, row) => `${count(index.rows.passed[row])}/${count(index.rows.scored[row])}`],
  ["Lost", (index, row) => index.rows.lost[row] || "0"],
  ["Not run", (index, row) => index.rows.missing[row], count],
  ["Cost", (index, row) => index.rows.cost[row], money],
  ["Time of a trial", (index, row) => index.rows.seconds[row], duration],
  ["Tokens", (index, row) => index.rows.tokens[row], count],
  ["Cases × rounds", (index, row) => index.run(row, "size")],
  ["Model", (index, row) => index.rows.model[row] || UNKNOWN],
  ["Started", (index, row) => (index.when(row) === null ? UNKNOWN : moment(index.when(row)))],
];

function difference(one, other, write) {
  if (typeof one !== "number" || typeof other !== "number") return "";
  const change = other - one;
  return change === 0 ? "0" : `${change > 0 ? "+" : "−"}${write(Math.abs(change))}`;
}

function showComparison(index, ticked, clear) {
  const host = byId("compare");
  host.hidden = ticked.length === 0;
  if (ticked.length === 0) return;
  const clearButton = h("button", { type: "button", onclick: () => { clear(); host.hidden = true; } }, "Clear");
  if (ticked.length === 1) {
    host.replaceChildren(h("header", {}, h("span", {}, `${index.rows.subject[ticked[0]]} of ${index.run(ticked[0], "name")} is ticked. Tick one more to compare.`), clearButton));
    return;
  }
  const [one, other] = ticked;
  const heads = [one, other].map((row) => h("th", { scope: "col", class: "end" }, subjectMark(index.rows.mark[row]), index.rows.subject[row], h("br"), h("small", {}, index.run(row, "name"))));
  const rows = FIELDS.map(([title, read, write, writeChange, around]) => {
    const values = [read(index, one), read(index, other)];
    const written = values.map((value) => h("td", { class: "end" }, write && value !== null ? write(value) : value ?? UNKNOWN));
    return h("tr", {}, h("th", { scope: "row" }, title), written, h("td", { class: "end" }, write ? difference(...values, writeChange || write) : "", around && h("small", { class: "around" }, around(index, one, other))));
  });
  const table = h("table", {}, h("caption", {}, "Two subjects side by side"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "What"), heads, h("th", { scope: "col", class: "end" }, "Difference"))), h("tbody", {}, rows));
  const same = index.run(one, "cases") === index.run(other, "cases");
  const command = comparison(index, one, other);
  const copy = h("button", { type: "button", onclick: async () => { await navigator.clipboard.writeText(command); copy.textContent = "Copied"; } }, "Copy");
  host.replaceChildren(
    h("header", {}, h("h3", {}, "Side by side"), clearButton),
    same ? "" : h("p", { class: "text tone-lost" }, "These two were tried on different cases: their scores are not comparable."),
    h("div", { class: "scroll", role: "region", "aria-label": "Side by side", tabindex: "0" }, table),
    h("p", { class: "notes" }, "The interval of the difference takes the two as independent. Where both tried the same cases, the command below compares case by case, which is sharper."),
    h("p", { class: "command" }, "To test whether the difference is real: ", h("code", {}, command), navigator.clipboard ? copy : ""));
}

/** Names are quoted for a shell: they may hold anything. */
function comparison(index, one, other) {
  const quoted = (text) => (/^[\w.:@%+=,/][\w.:@%+=,/-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const runs = [...new Set([one, other].map((row) => index.run(row, "name")))];
  const subjects = [["--subject-a", one], ["--subject-b", other]].map(([option, row]) => `${option}=${quoted(index.rows.subject[row])}`);
  return ["bakeoff compare", ...runs.map(quoted), ...subjects].join(" ");
}

// ---- history ----
function histories(index) {
  const groups = new Map(), { rows } = index;
  for (const row of [...index.all].sort((one, other) => rows.run[one] - rows.run[other] || one - other)) { // oldest first
    if (index.rows.score[row] === null || index.when(row) === null) continue;
    const key = JSON.stringify([index.run(row, "title"), index.rows.subject[row]]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups.values()];
}

function setUpHistory(index) {
  const { rows } = index;
  const last = (group) => group[group.length - 1];
  const change = (group) => (group.length > 1 ? rows.score[last(group)] - rows.score[group[group.length - 2]] : null);
  const columns = [
    { title: "Subject", cell: (group) => [subjectMark(rows.mark[group[0]]), h("button", { type: "button", class: "link", onclick: () => showHistory(index, group) }, rows.subject[group[0]])], sort: (group) => rows.subject[group[0]] },
    { title: "Plan", cell: (group) => index.run(group[0], "title"), sort: (group) => index.run(group[0], "title") },
    { title: "Runs", align: "end", cell: (group) => count(group.length), sort: (group) => group.length },
    { title: "Over time", cell: (group) => spark(group.map((row) => index.rows.score[row])) },
    { title: "Latest score", align: "end", cell: (group) => percent(rows.score[last(group)]), sort: (group) => rows.score[last(group)] },
    { title: "95 % interval", cell: (group) => index.interval(last(group)) },
    { title: "Change", align: "end", help: "from the run before, in percentage points", cell: (group) => (change(group) === null ? UNKNOWN : `${change(group) > 0 ? "+" : change(group) < 0 ? "−" : ""}${Math.abs(100 * change(group)).toFixed(1)}`), sort: change },
    { title: "Latest run", cell: (group) => moment(index.when(last(group))), sort: (group) => index.when(last(group)) },
  ];
  const table = new WindowedTable(byId("history-table"), columns, "Subjects over time");
  const controls = (group) => rows.control[last(group)];
  const refresh = () => table.show(histories(index).sort((one, other) => controls(one) - controls(other) || index.when(last(other)) - index.when(last(one))));
  refresh();
  sortInPlace(table, "order");
  return () => table.staying(refresh);
}

function showHistory(index, rows) {
  const [width, height, left, right, top, bottom] = [640, 240, 44, 16, 12, 34];
  const times = rows.map((row) => index.when(row));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const x = (time) => (last > first ? left + 8 + ((width - left - right - 16) * (time - first)) / (last - first) : width / 2);
  const y = (share) => top + (height - top - bottom) * (1 - share);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Scores over time; the table below has the numbers" });
  const grid = svg("g", { class: "grid" });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const label = svg("text", { x: left - 7, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`);
    grid.append(svg("line", { x1: left, x2: width - right, y1: y(share), y2: y(share) }), label);
  }
  for (const [time, anchor] of first === last ? [[first, "middle"]] : [[first, "start"], [last, "end"]]) {
    grid.append(svg("text", { x: x(time), y: height - 10, "text-anchor": anchor }, moment(time)));
  }
  drawing.append(grid, svg("polyline", { class: "line", points: rows.map((row) => `${x(index.when(row))},${y(index.rows.score[row])}`).join(" ") }));
  for (const row of rows) {
    const at = x(index.when(row));
    const spot = svg("g", { class: `spot best series-${index.rows.mark[row][0]}` }, svg("title", {}, `${index.run(row, "name")}: ${percent(index.rows.score[row])} (${index.interval(row)})`));
    if (index.rows.low[row] !== null) spot.append(svg("line", { class: "whisker", x1: at, x2: at, y1: y(index.rows.low[row]), y2: y(index.rows.high[row]) }));
    const size = rows.length > 60 ? 6 : 14;
    spot.append(svg("use", { class: "mark", href: `#mark-${index.rows.mark[row][1]}`, x: at - size / 2, y: y(index.rows.score[row]) - size / 2, width: size, height: size }));
    drawing.append(spot);
  }
  const numbers = rows.map((row) => h("tr", {}, h("th", { scope: "row" }, index.run(row, "name")), h("td", { class: "end" }, percent(index.rows.score[row])), h("td", { class: "end" }, index.interval(row)), h("td", { class: "end" }, roughly(money(index.rows.cost[row]), index.rows.estimated[row]))));
  const head = h("tr", {}, ["Run", "Score", "95 % interval", "Cost"].map((title, place) => h("th", { scope: "col", class: place ? "end" : "" }, title)));
  const table = h("div", { class: "scroll", role: "region", "aria-label": "Scores over time: numbers", tabindex: "0" }, h("table", {}, h("thead", {}, head), h("tbody", {}, numbers)));
  const mixed = new Set(rows.map((row) => index.run(row, "cases"))).size > 1;
  byId("history-plot").replaceChildren(h("figure", { class: "plot" },
    h("figcaption", {}, `${index.rows.subject[rows[0]]} · ${index.run(rows[0], "title")}`),
    drawing,
    mixed ? h("p", { class: "notes" }, "The cases changed between these runs: not all of these scores are comparable.") : "",
    h("details", { class: "numbers" }, h("summary", {}, "The numbers"), table)));
}

/** Gives a function that takes in what the server tells later. */
async function setUpIndex() {
  const index = new Index(await chunk("index"));
  const views = [setUpRuns(index), setUpHistory(index)];
  document.documentElement.dataset.ready = "yes";
  return (news) => {
    index.take(news);
    views.forEach((refresh) => refresh());
    const runs = new Set(index.all.map((row) => index.rows.run[row])).size;
    document.querySelector(".headline").textContent = `${countOf(runs, "run")}, ${countOf(index.all.length, "score")}.`;
  };
}
const indexTakes = setUpIndex();
