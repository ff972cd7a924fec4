// How a run goes on, told by the server as it happens.

function showProgress(news) {
  const bar = byId("live-bar");
  bar.max = news.planned || 1;
  bar.value = news.finished;
  bar.textContent = `${news.finished} of ${news.planned}`;
  const spent = news.cost === null ? "" : `, ${money(news.cost)} spent`;
  byId("live-words").textContent = `${count(news.finished)} of ${countOf(news.planned, "trial")}${spent}. ${news.words}`;
  const head = h("thead", {}, h("tr", {}, ["Subject", "Finished", "Passed", "Lost", "Score so far"].map((title, place) => h("th", { scope: "col", class: place ? "end" : "" }, title))));
  const rows = news.subjects.map((subject) => h("tr", {},
    h("th", { scope: "row" }, subject.name),
    [`${count(subject.finished)} / ${count(subject.planned)}`, count(subject.passed), count(subject.lost), percent(subject.score)].map((text) => h("td", { class: "end" }, text))));
  byId("live-table").replaceChildren(h("caption", {}, "Progress by subject"), head, h("tbody", {}, rows));
  const badge = document.querySelector(".title .badge");
  badge.textContent = news.state;
  badge.className = `badge state-${news.state}`;
}

// ---- everything else on the page ----
const LEAST_PAUSE = 2000; // milliseconds between two updates
const PAUSE_FACTOR = 4; // times as long as an update took, the next one waits: the server makes a large page slowly

/** Fetch the page again and put its new parts in place; what is searched, sorted and opened stays. */
async function refreshPage() {
  const answer = await fetch(location.pathname, { cache: "no-store" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html"); // its scripts do not run
  document.querySelectorAll("script[data-chunk]").forEach((one) => one.remove());
  document.body.append(...fresh.querySelectorAll("script[data-chunk]"));
  decoded.clear();
  for (const part of [".title", ".headline", ".whys", ".tiles", ".top nav"]) swap(document.querySelector(part), fresh.querySelector(part));
  swapSections(fresh);
  await (await runTakes)();
}
function swap(old, fresh) { if (old && fresh && old.textContent !== fresh.textContent) old.replaceWith(fresh); }
function swapSections(fresh) {
  const kept = ["live", "trials"], main = byId("main");
  const order = [...fresh.querySelectorAll("main > section")].filter((one) => !kept.includes(one.id));
  for (const section of order) {
    const old = byId(section.id);
    if (section.querySelector("#matrix-table") && old?.querySelector("#matrix-table .window")) continue; // drawn by its script
    carryOver(old, section);
    if (old) old.replaceWith(section);
    else main.insertBefore(section, byId("trials"));
    section.querySelectorAll("table.sortable").forEach(makeSortable);
    section.querySelectorAll(".virtual[data-table]").forEach(showLongTable);
  }
  const names = new Set(order.map((one) => one.id));
  for (const old of [...main.querySelectorAll(":scope > section")]) if (!kept.includes(old.id) && !names.has(old.id)) old.remove();
}
/** What a reader opened stays open. */
function carryOver(old, fresh) {
  const opened = old ? [...old.querySelectorAll("details")].map((one) => one.open) : [];
  fresh.querySelectorAll("details").forEach((one, place) => { if (opened[place]) one.open = true; });
}
/** Call this after each change; updates never overlap, and the last change is always shown. */
const updates = { due: false, running: false };
async function updatePage() {
  updates.due = true;
  if (updates.running) return;
  updates.running = true;
  while (updates.due) {
    updates.due = false;
    const began = performance.now();
    try { await refreshPage(); } catch { /* the server has stopped, or is making the page: the next change tries again */ }
    document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates ?? 0) + 1;
    const pause = Math.max(LEAST_PAUSE, PAUSE_FACTOR * (performance.now() - began));
    await new Promise((resolve) => { setTimeout(resolve, pause); });
  }
  updates.running = false;
}

function followRun(address) {
  const source = new EventSource(address);
  let wasRunning = document.querySelector(".title .badge").textContent === "running";
  source.addEventListener("progress", (event) => {
    const news = JSON.parse(event.data);
    wasRunning ||= news.state === "running";
    if (!wasRunning && document.body.dataset.page === "run") return; // the page already tells all of it
    byId("live").hidden = false;
    document.documentElement.dataset.live = news.state;
    showProgress(news);
    updatePage();
  });
}

function followIndex(address) {
  const source = new EventSource(address);
  source.addEventListener("runs", async (event) => (await indexTakes)(JSON.parse(event.data)));
}
if (document.body.dataset.live && document.body.dataset.page === "index") followIndex(document.body.dataset.live);
if (document.body.dataset.live && document.body.dataset.page === "run") followRun(document.body.dataset.live);
