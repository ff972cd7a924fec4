// How a run goes on, told by the server as it happens.

function showProgress(news) {
  const bar = byId("live-bar");
  bar.max = news.planned || 1;
  bar.value = news.finished;
  bar.textContent = `${news.finished} of ${news.planned}`;
  const spent = news.cost === null ? "" : `, ${money(news.cost)} spent`;
  byId("live-words").textContent = `${count(news.finished)} of ${count(news.planned)} trials${spent}. ${news.words}`;
  const head = h("thead", {}, h("tr", {}, ["Subject", "Finished", "Passed", "Lost", "Score so far"].map((title, place) => h("th", { scope: "col", class: place ? "end" : "" }, title))));
  const rows = news.subjects.map((subject) => h("tr", {},
    h("th", { scope: "row" }, subject.name),
    [`${count(subject.finished)} / ${count(subject.planned)}`, count(subject.passed), count(subject.lost), percent(subject.score)].map((text) => h("td", { class: "end" }, text))));
  byId("live-table").replaceChildren(h("caption", {}, "Progress by subject"), head, h("tbody", {}, rows));
  const badge = document.querySelector(".title .badge");
  badge.textContent = news.state;
  badge.className = `badge state-${news.state}`;
}

function followRun(address) {
  const source = new EventSource(address);
  let wasRunning = false;
  source.addEventListener("progress", (event) => {
    const news = JSON.parse(event.data);
    wasRunning ||= news.state === "running";
    if (!wasRunning && document.body.dataset.page === "run") return; // the page already tells all of it
    byId("live").hidden = false;
    document.documentElement.dataset.live = news.state;
    showProgress(news);
    if (news.state !== "running") {
      const again = h("button", { type: "button", onclick: () => location.reload() }, "Show the new numbers");
      byId("live-words").append(" ", again);
    }
  });
}

function followIndex(address) {
  const source = new EventSource(address);
  source.addEventListener("runs", async (event) => (await indexTakes)(JSON.parse(event.data)));
}
if (document.body.dataset.live && document.body.dataset.page === "index") followIndex(document.body.dataset.live);
if (document.body.dataset.live && document.body.dataset.page === "run") followRun(document.body.dataset.live);
