// What every page shares. Data becomes text nodes and nothing else: no innerHTML, no eval, no handlers from data.

/** An element with properties, attributes and children; strings become text. */
function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);

// ---- how numbers are written ----
const UNKNOWN = "–";
const count = (number) => (number === null || number === undefined ? UNKNOWN : number.toLocaleString("en"));
const countOf = (number, thing) => `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
const roughly = (text, estimated) => (estimated && text !== UNKNOWN ? `≈ ${text}` : text);
const percent = (share) => (share === null || share === undefined ? UNKNOWN : `${(100 * share).toFixed(1)} %`);
function money(dollars) {
  if (dollars === null || dollars === undefined) return UNKNOWN;
  if (dollars === 0) return "$0.00";
  const size = Math.abs(dollars);
  return `${dollars < 0 ? "-" : ""}$${size.toFixed(size < 0.01 ? 6 : size < 1 ? 4 : 2)}`;
}
function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const two = (number) => String(number).padStart(2, "0");
  if (minutes < 60) return `${minutes} min ${two(Math.round(seconds) % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}
function moment(seconds) {
  const date = new Date(1000 * seconds);
  return Number.isNaN(date.getTime()) ? "not a time" : date.toISOString().slice(0, 16).replace("T", " ");
}

// ---- compressed data ----
const decoded = new Map();
const MOST_DECODED = 24;

/** The JSON of a chunk of this page; the last few stay decoded. */
function chunk(name) {
  if (!decoded.has(name)) {
    if (decoded.size >= MOST_DECODED) decoded.delete(decoded.keys().next().value);
    decoded.set(name, decode(name));
  }
  return decoded.get(name);
}
const decode = async (name) => JSON.parse(await chunkText(name));
const parsed = new Promise((resolve) => { if (document.readyState === "loading") addEventListener("DOMContentLoaded", resolve); else resolve(); });
const chunkBlock = (name) => document.querySelector(`script[data-chunk="${name}"]`);

/** The text of a chunk, not kept. A page can be used while its last chunks are still being read. */
async function chunkText(name) {
  if (!chunkBlock(name)?.nextElementSibling) await parsed;
  const block = chunkBlock(name);
  const letters = atob(block.textContent);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// ---- windowed tables ----
const OVERSCAN = 12;
const WHOLE = 150; // as many rows as this are simply all there
const PRINTED = 500;
const PHONE = matchMedia("(max-width: 40rem)");

/** A table that draws only the rows in sight. Columns: {title, align, help, cell(row), sort(row), head, heading, beside}. */
class WindowedTable {
  constructor(host, columns, caption, tableClass = "") {
    this.given = this.rows = [];
    this.drawn = new Map();
    this.sorted = null;
    this.body = h("tbody");
    [this.above, this.below] = [0, 1].map(() => h("tr", { class: "gap", "aria-hidden": "true" }, h("td")));
    this.headRow = h("tr");
    this.useColumns(columns);
    this.cards = tableClass !== "matrix"; // on a phone
    this.table = h("table", { class: tableClass || "cards" }, h("caption", {}, caption), h("thead", {}, this.headRow), this.body);
    this.window = h("div", { class: "window", role: "region", "aria-label": `${caption}, table`, tabindex: "0" }, this.table);
    host.replaceChildren(this.window);
    this.window.addEventListener("scroll", () => this.later(), { passive: true });
    this.window.addEventListener("keydown", (event) => this.move(event));
    addEventListener("resize", () => this.later());
    addEventListener("beforeprint", () => this.draw(PRINTED));
    addEventListener("afterprint", () => this.draw());
  }
  useColumns(columns) {
    this.columns = columns;
    this.heads = columns.map((column) => this.head(column));
    this.headRow.replaceChildren(...this.heads);
    for (const gap of [this.above, this.below]) gap.firstChild.colSpan = columns.length || 1;
    if (this.sorted) this.sorted = columns.find((column) => (column.name ?? column.title) === (this.sorted.name ?? this.sorted.title)) ?? null;
    columns.forEach((column, place) => markSorted(this.heads[place], column === this.sorted, this.descending));
  }
  head(column) {
    const title = [column.mark && subjectMark(column.mark), column.track && trackEnds(), column.heading ?? column.title];
    const button = column.sort && h("button", { type: "button", class: "sort", onclick: () => sortBy(this, column) }, title);
    return h("th", { scope: "col", class: column.align || "start", title: column.help }, button || title, column.beside);
  }
  /** Show the rows in this order; without a column, in the order in which they were given. */
  orderBy(column, descending) {
    this.sorted = column;
    this.descending = descending;
    this.columns.forEach((other, place) => markSorted(this.heads[place], other === column, descending));
    this.show(this.given);
  }
  /** Let `change` show other data; who reads the rows stays where they are. */
  staying(change) {
    const top = this.window.scrollTop, link = this.window.contains(document.activeElement) && document.activeElement.getAttribute("href");
    change();
    this.window.scrollTop = top;
    this.draw();
    if (link) this.window.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
  }
  /** Show these rows, in the order that was asked for. */
  show(rows) {
    this.given = rows;
    this.rows = inOrder(rows, this.sorted, this.descending);
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.drawn.clear();
    this.body.replaceChildren(this.above, this.below);
    this.draw();
  }
  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }
  /** The height of a row: one line, or on a phone a line for each column. The style sheet has the same numbers. */
  get height() {
    const lines = this.cards && PHONE.matches ? 1.5 * this.columns.length + 1 : 2.125;
    return lines * parseFloat(getComputedStyle(document.documentElement).fontSize) + (lines > 3 ? 1 : 0);
  }
  range(most) {
    const total = this.rows.length;
    if (most) return [0, Math.min(total, most)];
    if (total <= WHOLE) return [0, total];
    const first = Math.max(0, Math.floor(this.window.scrollTop / this.height) - OVERSCAN);
    const seen = Math.ceil((this.window.clientHeight || 700) / this.height) + 2 * OVERSCAN;
    return [first, Math.min(total, first + seen)];
  }
  draw(most) {
    if (!this.rows.length) {
      this.body.replaceChildren(h("tr", {}, h("td", { class: "empty", colspan: this.columns.length }, "Nothing matches.")));
      return;
    }
    const [first, last] = this.range(most);
    for (const [place, row] of this.drawn) {
      if (place < first || place >= last) { row.remove(); this.drawn.delete(place); }
    }
    let next = this.above.nextSibling;
    for (let place = first; place < last; place++) {
      let row = this.drawn.get(place);
      if (!row) {
        row = this.row(place);
        this.drawn.set(place, row);
        this.body.insertBefore(row, next);
      }
      next = row.nextSibling;
    }
    this.above.firstChild.style.height = `${first * this.height}px`;
    this.below.firstChild.style.height = `${(this.rows.length - last) * this.height}px`;
    this.above.hidden = first === 0;
    this.below.hidden = last === this.rows.length;
  }
  row(place) {
    const data = this.rows[place];
    const cells = this.columns.map((column, number) => {
      const content = column.cell(data);
      const head = number === 0 || column.head;
      return h(head ? "th" : "td", { scope: head && "row", class: column.align || "start", "data-label": column.title, title: typeof content === "string" && content.length > 24 ? content : null }, typeof content === "string" ? h("span", {}, content) : content);
    });
    return h("tr", { "aria-rowindex": String(place + 2) }, cells);
  }
  /** Arrow keys walk from row to row, also to those that are not drawn yet. */
  move(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 };
    const row = event.target.closest("tbody tr");
    if (!row || !(event.key in steps) || event.target.matches("select, input[type=search]")) return;
    event.preventDefault();
    const column = [...row.children].indexOf(event.target.closest("td, th"));
    const place = Math.min(this.rows.length - 1, Math.max(0, Number(row.getAttribute("aria-rowindex")) - 2 + steps[event.key]));
    const top = place * this.height;
    const room = this.window.clientHeight - 2.5 * this.height;
    if (top < this.window.scrollTop) this.window.scrollTop = top;
    else if (top > this.window.scrollTop + room) this.window.scrollTop = top - room;
    this.draw();
    const target = this.drawn.get(place);
    const same = target && target.children[column] && target.children[column].querySelector("a, input, button");
    const any = same || (target && target.querySelector("a, input, button"));
    if (any) any.focus({ preventScroll: true });
  }
}

const collator = new Intl.Collator("en", { numeric: true });

/** Nothing goes last, whichever way. */
function compareKeys(one, other, sign) {
  const none = (key) => key === null || key === undefined;
  if (none(one) || none(other)) return none(one) - none(other);
  return sign * (typeof one === "string" ? collator.compare(one, other) : one - other);
}

// ---- plain tables can be sorted too ----
class PlainTable {
  constructor(table) {
    const heads = [...table.tHead.rows[0].cells], names = numbered(heads.map((head) => head.dataset.title ?? head.textContent.trim()));
    this.window = table;
    this.body = table.tBodies[0];
    this.given = [...this.body.rows];
    this.sorted = null;
    this.columns = heads.map((head, place) => ({ head, name: names[place], align: head.classList.contains("end") && "end", sort: (row) => sortKey(row.cells[place].dataset.sort) }));
    for (const column of this.columns) column.head.replaceChildren(h("button", { type: "button", class: "sort", onclick: () => sortBy(this, column) }, ...column.head.childNodes));
  }
  orderBy(column, descending) {
    this.sorted = column;
    this.descending = descending;
    for (const other of this.columns) markSorted(other.head, other === column, descending);
    this.body.append(...inOrder(this.given, column, descending));
  }
}
function makeSortable(table) {
  if (table.tBodies[0].rows.length > 1) sortInPlace(new PlainTable(table), orderKey(table.closest(".scroll")));
}
/** The name of a table's order in the address: its section, and its number if the section has several tables. */
function orderKey(host) {
  const section = host.closest("section"), place = [...section.querySelectorAll(".scroll, .virtual")].indexOf(host);
  return `sort.${section.id}${place ? `.${place + 1}` : ""}`;
}

/** Order a table by a column; once more, the other way round. */
function sortBy(table, column, descending = table.sorted === column ? !table.descending : column.align === "end") {
  table.orderBy(column, descending);
  table.onsort?.(column, descending);
}
function inOrder(rows, column, descending) {
  if (!column) return rows;
  const keys = new Map(rows.map((row) => [row, column.sort(row)]));
  return [...rows].sort((one, other) => compareKeys(keys.get(one), keys.get(other), descending ? -1 : 1));
}
function markSorted(head, sorted, descending) {
  if (sorted) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  else head.removeAttribute("aria-sort");
}
/** Names that differ: the second "Both sides" becomes "Both sides (2)". */
function numbered(names) {
  const seen = new Map();
  return names.map((name) => {
    const number = (seen.get(name) ?? 0) + 1;
    seen.set(name, number);
    return number > 1 ? `${name} (${number})` : name;
  });
}
function sortKey(text) {
  if (text === "") return null;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

// ---- long tables of sections ----
async function showLongTable(host) {
  const data = await chunk(host.dataset.table);
  const names = numbered(data.columns.map((column) => column.title));
  const columns = data.columns.map((column, place) => ({
    name: names[place],
    title: column.title,
    align: column.align,
    help: column.help,
    track: column.track,
    cell: (row) => datum(row[place]),
    sort: (row) => row[place].sort ?? row[place].text,
  }));
  const table = new WindowedTable(host, columns, host.dataset.caption);
  table.show(data.rows);
  sortInPlace(table, orderKey(host));
}
const CHIPS = ["pass", "partial", "fail", "timeout"];
function datum(value) {
  const drawn = (value.mark && subjectMark(value.mark)) || (value.span && track(value.span.value, value.span.low, value.span.high)) || (value.trail && spark(value.trail));
  if (value.href) return [drawn, h("a", { href: value.href }, value.text)];
  if (CHIPS.includes(value.tone)) return chip(value.text, value.tone);
  if (value.tone === "plain" && !value.note && !drawn) return value.text;
  return [drawn, h("span", { class: `tone-${value.tone}`, title: value.note }, value.text)];
}
/** Shares over time as a small line, the newest marked; only the newest fit. */
function spark(shares) {
  const some = shares.slice(-40);
  const last = some.length - 1;
  const x = (place) => (last ? 4 + (112 * place) / last : 60).toFixed(1);
  const y = (share) => (19 - 16 * share).toFixed(1);
  const points = some.map((share, place) => `${x(place)},${y(share)}`).join(" ");
  return svg("svg", { class: "spark", viewBox: "0 0 120 22", "aria-hidden": "true" }, svg("polyline", { points }), svg("circle", { cx: x(last), cy: y(some[last]), r: 2.5 }));
}
function track(value, low, high) {
  if (value === null) return null;
  const at = (share) => (4 + 100 * share).toFixed(1);
  const drawing = svg("svg", { class: "track", viewBox: "0 0 108 14", "aria-hidden": "true" }, svg("path", { class: "rail", d: "M4 7h100M4 3v8M104 3v8" }));
  if (low !== null && low !== undefined) drawing.append(svg("line", { class: "range", x1: at(low), y1: 7, x2: at(high), y2: 7 }));
  drawing.append(svg("circle", { class: "here", cx: at(value), cy: 7, r: 3.5 }));
  return drawing;
}
/** The ends of the axis that all tracks of a column share, for its head. */
const trackEnds = () => h("span", { class: "track-ends", "aria-hidden": "true" }, h("span", {}, "0"), h("span", {}, "100 %"));

const chip = (verdict, tone) => h("span", { class: `chip tone-${tone}` }, verdict);

/** The mark of a subject: the same on every page. */
function subjectMark([colour, shape]) {
  const drawn = svg("use", { href: `#mark-${shape}`, x: -8, y: -8, width: 16, height: 16 });
  return svg("svg", { class: `subject series-${colour}`, viewBox: "-8 -8 16 16", "aria-hidden": "true", focusable: "false" }, drawn);
}

// ---- light and dark ----
function remembered(key, value) {
  try { // storage may be forbidden for files
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key);
  } catch { return null; }
}
function setUpTheme() {
  const root = document.documentElement;
  const button = byId("theme");
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`);
  };
  const kept = remembered("bakeoff-theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered("bakeoff-theme", root.dataset.theme);
    label();
  });
  label();
  button.hidden = false;
}

// ---- chapters that can be closed ----
/** A link into a closed chapter opens it. */
function openTarget() {
  const found = /^#([\w-]+)$/.exec(location.hash), target = found && byId(found[1]);
  const closed = target && (target.querySelector(":scope > details.chapter:not([open])") || target.closest("details.chapter:not([open])"));
  if (!closed) return;
  closed.open = true;
  target.scrollIntoView();
}
function setUpChapters() {
  const chapters = () => [...document.querySelectorAll("details.chapter")], closed = () => chapters().some((one) => !one.open);
  addEventListener("hashchange", openTarget);
  openTarget();
  if (chapters().length < 2) return;
  const button = h("button", { type: "button", class: "all-chapters", onclick: () => {
    const open = closed();
    for (const one of chapters()) one.open = open;
  } });
  const label = () => { button.textContent = closed() ? "Open all" : "Close all"; };
  document.addEventListener("toggle", label, true); // pages that are brought up to date have other chapters
  label();
  chapters()[0].closest("section").before(button);
}

/** Landmarks are told apart by their names. */
function nameRegions(root = document) {
  const regions = [...root.querySelectorAll('[role="region"][aria-label]')];
  numbered(regions.map((region) => region.getAttribute("aria-label"))).forEach((name, place) => regions[place].setAttribute("aria-label", name));
}

function setUpPage() {
  setUpTheme();
  nameRegions();
  for (const line of document.querySelectorAll(".headline")) line.textContent = line.textContent.replace(/(\d) %/g, "$1\u00a0%").replace(/p (=|≤) /g, "p\u00a0$1\u00a0");
  setUpChapters();
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  addEventListener("beforeprint", () => document.querySelectorAll("details.numbers, details.chapter, details.how").forEach((one) => { one.open = true; }));
  return Promise.all([...document.querySelectorAll(".virtual[data-table]")].map(showLongTable));
}
const whole = setUpPage();
