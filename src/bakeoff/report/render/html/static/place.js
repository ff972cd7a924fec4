"use strict";
// What is searched, filtered, sorted and opened, kept in the address: it can be passed on, and the back button works.

let placeListeners = [];
/** The state in the address; null where the address names a section, which changes nothing. */
function readPlace() {
  const text = location.hash.slice(1);
  return text === "" || text.includes("=") ? new URLSearchParams(text) : null;
}
let placeNow = readPlace() ?? new URLSearchParams();

/** Change some of the state. A step that one may want to take back is pushed; letters typed in a row are not. */
function writePlace(changes, push) {
  const next = new URLSearchParams(placeNow);
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    for (const one of [value ?? []].flat()) if (one !== "") next.append(key, one);
  }
  if (String(next) === String(placeNow)) return;
  placeNow = next;
  history[push ? "pushState" : "replaceState"](null, "", `#${next}`);
}
/** Call a listener when the address changes, for as long as this element is on the page. */
function onPlace(listener, element = document.body) {
  placeListeners = [...placeListeners.filter((one) => one.element.isConnected), { listener, element }];
}
const tellPlace = () => placeListeners.forEach(({ listener }) => listener());

addEventListener("hashchange", () => {
  const found = readPlace();
  if (!found) return;
  placeNow = found;
  tellPlace();
});
// A link to a trial keeps the filters of the list.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#t="]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
  event.preventDefault();
  const wanted = new URLSearchParams(link.hash.slice(1));
  writePlace({ t: wanted.get("t"), with: wanted.get("with") }, true);
  tellPlace();
});

/** Keep the order of a table in the address, and take it from there. */
function sortInPlace(table, key = "sort") {
  const nameOf = (column) => column.name ?? column.title;
  const apply = () => {
    const [, sign, title] = /^(-?)(.*)$/s.exec(placeNow.get(key) ?? "");
    const column = table.columns.find((one) => one.sort && nameOf(one) === title) ?? null;
    if (column !== table.sorted || (column && Boolean(sign) !== table.descending)) table.orderBy(column, Boolean(sign));
  };
  table.onsort = (column, descending) => writePlace({ [key]: `${descending ? "-" : ""}${nameOf(column)}` }, true);
  onPlace(apply, table.window);
  apply();
}
