// One answer after the other, labelled by keys. The server keeps each label before it sends the next answer.

const noteField = byId("label-note").querySelector("textarea");
let state = null;
let busy = true;

function fill(id, text) {
  byId(id).hidden = !text;
  byId(id).querySelector("pre").textContent = text;
}

function show(news) {
  state = news;
  const { progress, answer } = news;
  byId("label-bar").max = progress.count || 1;
  byId("label-bar").value = progress.done;
  byId("label-count").textContent = `${count(progress.done)} of ${count(progress.count)}: ${count(progress.pass)} pass, ${count(progress.fail)} fail, ${count(progress.skip)} skipped`;
  byId("label-work").hidden = answer === null;
  byId("label-end").hidden = answer !== null;
  for (const button of document.querySelectorAll(".label-undo")) button.disabled = progress.done === 0;
  closeNote();
  noteField.value = "";
  if (answer === null) { byId("end-title").focus(); return; }
  fill("label-question", answer.question);
  fill("label-reference", answer.reference);
  fill("label-material", answer.material);
  fill("label-criteria", answer.criteria);
  fill("label-answer", answer.text || (answer.files.length ? "" : "(an empty answer)"));
  byId("label-answer").hidden = false;
  byId("label-answer").querySelector("pre").hidden = !answer.text && answer.files.length > 0;
  byId("label-files").replaceChildren(...answer.files.map((file) => h("div", {}, h("h3", {}, file.name), h("pre", { tabindex: "0" }, file.text))));
  for (const box of document.querySelectorAll("#label-work pre")) box.scrollTop = 0;
  scrollTo(0, 0);
}

async function ask(path, body) {
  if (busy && state !== null) return;
  busy = true;
  try {
    const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(path, options);
    if (!response.ok) throw new Error((await response.text()).trim());
    const news = await response.json();
    byId("label-problem").hidden = true;
    if (news.progress) show(news);
    return news;
  } catch (error) {
    byId("label-problem").textContent = error instanceof TypeError ? "The server has stopped: start `bakeoff label` again. Nothing that you labelled is lost." : error.message;
    byId("label-problem").hidden = false;
  } finally {
    busy = false;
    document.documentElement.dataset.ready = "yes";
  }
}

function label(choice) {
  if (state && state.answer) ask("/label", { id: state.answer.id, label: choice, note: noteField.value });
}
const undo = () => ask("/undo", {});
async function finish() {
  if (!state || state.answer || !(await ask("/finish", {}))) return;
  byId("label-words").textContent = "The labels are kept. You can close this page; the terminal shows the agreement.";
  for (const button of document.querySelectorAll("#label-end button")) button.disabled = true;
  state = null;
}
function openNote() { byId("label-note").hidden = false; noteField.focus(); }
function closeNote() { if (!noteField.value) byId("label-note").hidden = true; noteField.blur(); }

const KEYS = { p: () => label("pass"), f: () => label("fail"), s: () => label("skip"), n: openNote, u: undo };
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target === noteField) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) { event.preventDefault(); closeNote(); }
    return;
  }
  const act = KEYS[event.key.toLowerCase()];
  if (act && state) { event.preventDefault(); act(); }
  else if (event.key === "Enter" && state && !state.answer && event.target.tagName !== "BUTTON") finish();
});
for (const button of document.querySelectorAll("[data-choice]")) button.addEventListener("click", () => label(button.dataset.choice));
for (const button of document.querySelectorAll(".label-undo")) button.addEventListener("click", undo);
byId("label-add-note").addEventListener("click", openNote);
byId("label-finish").addEventListener("click", finish);
ask("/answer");
