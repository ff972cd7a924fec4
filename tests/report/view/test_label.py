"""Labelling in a real browser, by keyboard, without learning who gave an answer or how it was judged."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.record import Transcript
from bakeoff.report.judges.labelling import draw
from bakeoff.report.view.label import Labelling
from bakeoff.storage.labels import read_labels
from bakeoff.storage.run_folder import RunFolder, find_run
from bakeoff.subjects.function import function_subject

from ...warm_bakeoff import PROGRAM
from ..judged import judged_run, label_all
from ..render.html.browser import LOOKS, Chromium, until, violations
from .conftest import Answer, Viewer

pytestmark = pytest.mark.full


@contextmanager
def labelling(run: RunFolder, *words: str) -> Iterator[tuple[Viewer, Callable[[], tuple[int, str]]]]:
    """`bakeoff label`, and a function that waits for its end and returns its exit code and output."""
    command = [str(PROGRAM), "label", run.name, "--no-open", "--results", str(run.path.parents[1]), *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        viewer = Viewer(process.stdout.readline().strip(), run.path.parents[1])
        try:
            yield viewer, lambda: (process.wait(30), process.stdout.read() if process.stdout else "")
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(30)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return judged_run(tmp_path / "results" / "runs" / "judged")


async def labelled(page: Page, done: int) -> None:
    await until(page, f'document.getElementById("label-count").textContent.startsWith("{done} of ")')


def test_sixty_trials_are_labelled_by_keyboard(run: RunFolder, chromium: Chromium) -> None:
    with labelling(run, "--labeller", "ann") as (viewer, ended):

        async def look(page: Page) -> str:
            await page.goto(viewer.address)
            for done in range(60):
                await labelled(page, done)
                answer = await page.inner_text("#label-answer pre")
                assert "sum" in answer
                seen = await page.content()
                assert "verbose" not in seen
                assert "terse" not in seen
                await page.keyboard.press("p" if "good" in answer else "f")
            await until(page, '!document.getElementById("label-end").hidden')
            await page.keyboard.press("Enter")
            await until(page, 'document.getElementById("label-words").textContent.includes("labels are kept")')
            return await page.inner_text("#label-count")

        told = chromium(look)
        code, printed = ended()
    assert code == 0
    assert "ann           60" in printed
    given = read_labels(run.labels_file).by_labeller["ann"]
    records = {record.attempt_key: record for record in run.latest_records(run.read_plan())}
    assert len(given) == 60
    for label in given.values():
        record = records[label.attempt_key]
        assert record.transcript is not None
        assert (label.label == "pass") == ("good" in str(record.transcript.output))
        assert (label.subject, label.case, label.judged) == (record.subject, record.case, record.scores[0].value)
    passes = sum(label.label == "pass" for label in given.values())
    assert told == f"60 of 60: {passes} pass, {60 - passes} fail, 0 skipped"


def test_notes_skips_and_undo_by_keyboard_and_a_session_that_continues(run: RunFolder, chromium: Chromium) -> None:
    with labelling(run, "--labeller", "ann", "--count", "4") as (viewer, _):

        async def look(page: Page) -> list[str]:
            await page.goto(viewer.address)
            await labelled(page, 0)
            first = await page.inner_text("#label-question pre")
            await page.keyboard.press("n")
            await page.keyboard.type("pass or fail? unsure")  # these letters are no labels
            await page.keyboard.press("Enter")
            await page.keyboard.press("s")
            await labelled(page, 1)
            await page.keyboard.press("p")
            await labelled(page, 2)
            await page.keyboard.press("u")
            await labelled(page, 1)
            second = await page.inner_text("#label-question pre")
            await page.keyboard.press("f")
            await labelled(page, 2)
            return [first, second]

        shown = chromium(look)
    assert len(set(shown)) == 2
    given = list(read_labels(run.labels_file).by_labeller["ann"].values())
    assert [(label.label, label.note) for label in given] == [("skip", "pass or fail? unsure"), ("fail", "")]
    assert [json.loads(line)["label"] for line in run.labels_file.read_text().splitlines()] == [
        "skip",
        "pass",
        None,
        "fail",
    ]
    with labelling(run, "--labeller", "ann", "--count", "4") as (viewer, _):
        state = json.loads(viewer.ask("/answer", Cookie=viewer.cookie()).body)
    assert state["progress"] == {"done": 2, "count": 4, "pass": 0, "fail": 1, "skip": 1}
    assert state["answer"]["question"] not in shown


@pytest.mark.parametrize("name", LOOKS)
def test_nobody_is_kept_out_of_labelling(name: str, run: RunFolder, chromium: Chromium, axe: str) -> None:
    width, dark = LOOKS[name]
    with labelling(run, "--count", "1") as (viewer, _):

        async def look(page: Page) -> dict[str, list[str]]:
            await page.goto(viewer.address)
            await labelled(page, 0)
            found = {"an answer": await violations(page, axe)}
            await page.keyboard.press("n")
            found["a note"] = await violations(page, axe)
            await page.keyboard.press("Escape")
            await page.keyboard.press("p")
            await labelled(page, 1)
            found["the end"] = await violations(page, axe)
            wider: int = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wider <= 0, "the page scrolls sideways"
            return found

        assert chromium(look, width=width, dark=dark) == {"an answer": [], "a note": [], "the end": []}


def test_only_this_page_can_label_and_it_learns_nothing_but_the_answer(run: RunFolder) -> None:
    with labelling(run) as (viewer, _):
        cookie, own = viewer.cookie(), f"http://{viewer.host}"
        state = json.loads(viewer.ask("/answer", Cookie=cookie).body)
        assert state["answer"].keys() == {
            "id",
            "question",
            "reference",
            "material",
            "criteria",
            "text",
            "files",
        }
        assert state["answer"]["criteria"] == "Is the sum right?"
        body = json.dumps({"id": 0, "label": "pass"})
        for headers in (
            {"Cookie": cookie, "Content-Type": "application/json"},
            {"Cookie": cookie, "Content-Type": "application/json", "Origin": "https://evil.example"},
            {"Cookie": cookie, "Content-Type": "text/plain", "Origin": own},
            {"Content-Type": "application/json", "Origin": own},
            {"Cookie": cookie, "Content-Type": "application/json", "Origin": own, "Sec-Fetch-Site": "cross-site"},
        ):
            assert post(viewer, "/label", body, **headers).status == 403
        assert not run.labels_file.exists()
        ours = {"Cookie": cookie, "Content-Type": "application/json", "Origin": own}
        for wrong in (
            "",
            "{}",
            '{"id": 0, "label": "good"}',
            '{"id": 0, "label": "pass", "note": "' + "x" * 99_999 + '"}',
        ):
            assert post(viewer, "/label", wrong, **ours).status == 400
        assert post(viewer, "/label", body, **ours).status == 200
        again = post(viewer, "/label", body, **ours)  # sent twice: the next answer keeps waiting for its own
        assert json.loads(again.body)["progress"]["done"] == 1
        assert viewer.ask("/answer").status == 403
        assert viewer.ask("/label", Cookie=cookie).status == 405
    assert len(read_labels(run.labels_file).by_labeller) == 1


def test_hostile_answers_stay_text(tmp_path: Path, chromium: Chromium) -> None:
    from ..judged import lenient, plan_of

    hostile = "<img src=x onerror=alert(1)></pre><script>alert(2)</script>\x1b[31m\u202e"
    plan = plan_of(3)
    cases = tuple(case.model_copy(update={"prompt": hostile, "expected": hostile}) for case in plan.cases)
    plan = plan.with_changes(cases=cases)
    run = judged_run(tmp_path / "results" / "runs" / "hostile", plan, judging=lenient)
    with labelling(run, "--labeller", "<b>ann</b>") as (viewer, _):

        async def look(page: Page) -> tuple[str, str, str]:
            await page.goto(viewer.address)
            await labelled(page, 0)
            question = await page.inner_text("#label-question pre")
            return question, await page.inner_text("h1"), await page.inner_text("#label-reference pre")

        question, title, reference = chromium(look)
    assert question == reference == "<img src=x onerror=alert(1)></pre><script>alert(2)</script>␛[31m\\u202e"
    assert title == "Labels by <b>ann</b>"


def test_a_second_labeller_gets_the_same_answers_and_the_agreement_is_printed(run: RunFolder) -> None:
    drawn = draw(run, run.read_plan(), None, 20)
    label_all(run, drawn, "ann")
    label_all(run, drawn[:10], "bob", lambda record: "pass" if "good" in str(record.transcript) else "fail")
    command = [str(PROGRAM), "label", run.name, "--results", str(run.path.parents[1]), "--count", "20"]
    done = subprocess.run([*command, "--labeller", "ann"], capture_output=True, text=True, check=True, timeout=60)
    assert "ann and bob       10" in done.stdout
    assert "Krippendorff's alpha over all labellers: 1.00" in done.stdout
    assert "ann has labelled 20 of 20 answers: draw more with --count" in done.stderr


def post(viewer: Viewer, path: str, body: str, **headers: str) -> Answer:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=60)
    try:
        connection.request("POST", path, body.encode(), {"Host": viewer.host, **headers})
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())
    finally:
        connection.close()


async def test_people_see_what_other_judges_looked_at(tmp_path: Path, carry_out: Callable[..., Any]) -> None:
    """A judge of retrieved passages is drawn, shown with its question and the passages, and can be labelled."""
    script = tmp_path / "judge.json"
    said = json.dumps({"claims": [{"claim": "It opens at 9.", "supported": True}]})
    script.write_text(json.dumps({"replies": [{"say": said}]}))
    criteria = [{"name": "kind", "text": "It greets."}]
    plan = Plan(
        name="rag",
        cases=(Case(id="c", prompt="When?"),),
        subjects=(function_subject(retrieved),),
        scorers=(
            ScorerSpec(kind="faithfulness", options={"model": f"scripted:{script}"}),
            ScorerSpec(kind="rubric", options={"model": f"scripted:{script}", "criteria": criteria}),
        ),
        threshold=None,
    )
    await carry_out(plan)
    run = find_run(tmp_path / "results", "latest")
    [drawn] = draw(run, plan, "faithfulness", None)
    assert drawn.judged == 1.0
    answer = Labelling([drawn], plan, run.labels_file, "ann").state()["answer"]
    assert answer["material"] == "We open at 9.\n\nuser: When?"
    assert answer["criteria"].startswith("List every factual claim that the answer makes")
    told = drawn.record.scores[0].model_copy(update={"metadata": {"judge": "x", "shown": {"passage 1": "Open at 9."}}})
    of_row = replace(drawn, record=drawn.record.model_copy(update={"scores": (told,)}))
    shown = Labelling([of_row], plan, run.labels_file, "ann").state()["answer"]["material"]
    assert shown.endswith("passage 1: Open at 9.")
    asked = Labelling([replace(drawn, scorer="rubric")], plan, run.labels_file, "ann").state()["answer"]
    assert asked["criteria"] == "kind: It greets."


def retrieved(prompt: str) -> Transcript:
    messages = [{"role": "user", "content": prompt}]
    return Transcript(output="It opens at 9.", metadata={"context": ["We open at 9."], "messages": messages})
