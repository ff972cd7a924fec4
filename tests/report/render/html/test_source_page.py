"""Pages of result files that other programs wrote, and what counts in a run that is being scored anew."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page

from bakeoff.doors.components.results.read import ResultFileReader
from bakeoff.errors import RunFolderError
from bakeoff.plan import Plan, ScorerSpec
from bakeoff.record import Record
from bakeoff.report.blocks import DoorParts, Facts, Section
from bakeoff.report.readers import Circumstances, Description, Source, open_source
from bakeoff.report.render.html.render import write_cycle
from bakeoff.report.render.html.run_data import MAX_TRIALS, RunData, read_run
from bakeoff.report.render.html.run_page import write_run_page, write_source_page
from bakeoff.report.summary import summarise
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder

from ...runs import plan_of, record_of, run_of, write_run
from .browser import Chromium, opened

pytestmark = pytest.mark.full

RESULTS = Path(__file__).parents[3] / "doors" / "components" / "data"


class MarksReader:
    """A file of marks: `{"case": 1, …}`, all by one subject."""

    what = "a file of marks"

    def recognises(self, path: Path) -> bool:
        return path.suffix == ".marks"

    def describe(self, path: Path) -> Description:
        return Description(name=path.name, plan=self._plan(path), content_known=False)

    def circumstances(self, path: Path) -> Circumstances:
        return Circumstances(damaged=int("broken" in path.name))

    def read(self, path: Path) -> Iterator[Record]:
        marks = json.loads(path.read_text())
        return (record_of(trial, marks[trial.case.id]) for trial in self._plan(path).trials() if marks[trial.case.id])

    def _plan(self, path: Path) -> Plan:
        marks = json.loads(path.read_text())
        plan = plan_of(len(marks), ["pupil"], rounds=MAX_TRIALS if "endless" in path.name else 1)
        names = {"case-0": "sums", "case-1": "spelling"}
        cases = tuple(case.model_copy(update={"id": names[case.id]}) for case in plan.cases)
        return plan.model_copy(update={"cases": cases})


def marks(path: Path, sums: float, spelling: float | None) -> Source:
    path.write_text(json.dumps({"sums": sums, "spelling": spelling}))
    return open_source(path, (MarksReader(),))


def test_a_page_that_is_watched_loads_itself_again_after_the_next_cycle(chromium: Chromium, tmp_path: Path) -> None:
    source, path = marks(tmp_path / "a.marks", 1, 0), tmp_path / "page #1.html"

    def write(cycle: int) -> None:
        write_source_page(source, path, cycle=cycle)
        write_cycle(path, cycle)

    async def look(page: Page) -> list[str]:
        loads: list[str] = []
        page.on("load", lambda _: loads.append("load"))
        await opened(page, path)
        await page.wait_for_timeout(2500)  # it looks twice, and there is nothing new
        before = len(loads)
        write(10)
        await page.wait_for_selector("body[data-cycle='10']", state="attached")
        write_cycle(path, None)
        return [str(before), await page.inner_text("h1")]

    write(9)
    assert chromium(look) == ["1", "suite"]
    assert [file.name for file in tmp_path.glob("*.svg")] == []
    policy = path.read_text().partition("Content-Security-Policy")[2].partition(">")[0]
    assert "img-src data: &#39;self&#39; file:" in policy
    write_source_page(source, path)
    assert "file:" not in path.read_text().partition("Content-Security-Policy")[2].partition(">")[0]


def test_a_file_of_any_reader_is_shown_as_a_run_is(chromium: Chromium, tmp_path: Path) -> None:
    def more(run: RunData) -> DoorParts:
        return DoorParts(after=(Section(id="more", title="More", blocks=(Facts(pairs=(("state", run.state),)),)),))

    made = write_source_page(marks(tmp_path / "my.marks", 1.0, 0.5), tmp_path / "page.html", parts=more)

    async def look(page: Page) -> tuple[str, list[str], str, str]:
        await opened(page, made, "#t=1")
        await page.locator("#trial-body h3").first.wait_for()
        trial = await page.locator("#trial").inner_text()
        await page.locator("#trial-close").click()
        return (
            await page.title(),
            await page.locator("#overview tbody th, #overview tbody td").all_inner_texts(),
            await page.locator("#more").text_content() or "",
            trial,
        )

    title, row, section, trial = chromium(look)
    assert "my.marks" in title
    assert row[:2] == ["pupil", "75.0 %"]
    assert "failed" in section
    assert "spelling" in trial
    assert "answer 0.5" in trial


def test_a_file_that_lacks_something_says_so(tmp_path: Path) -> None:
    seen: list[RunData] = []

    def more(run: RunData) -> DoorParts:
        seen.append(run)
        return DoorParts()

    page = write_source_page(marks(tmp_path / "broken.marks", 1.0, None), tmp_path / "page.html", parts=more)
    [run] = seen
    assert (run.state, run.summary.planned, run.summary.finished, run.marks) == ("incomplete", 2, 1, [])
    assert "1 line of the file cannot be read" in page.read_text()


def test_a_file_that_plans_more_than_a_page_shows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"endless\.marks plans 20,000,000 trials: a page shows at most"):
        write_source_page(marks(tmp_path / "endless.marks", 1.0, 1.0), tmp_path / "page.html")


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_result_files_of_the_component_benchmark_are_shown(file: Path, tmp_path: Path) -> None:
    seen: list[RunData] = []

    def more(run: RunData) -> DoorParts:
        seen.append(run)
        return DoorParts()

    source = open_source(file, (ResultFileReader(),))
    html = write_source_page(source, tmp_path / "page.html", parts=more).read_text()
    [run] = seen
    assert run.summary == summarise(source.plan, source.records())
    assert source.plan.subjects[0].name in html


def rescoring(folder: Path, done: int) -> RunFolder:
    """A run of five cases of which some have been scored by the plan's new scorer."""
    old = plan_of(5, ["s"])
    new = old.model_copy(update={"scorers": (ScorerSpec(kind="contains"),)})
    first = [record_of(trial, 1.0) for trial in old.trials()]
    again = [record_of(trial, 0.0) for trial in list(new.trials())[:done]]
    run = write_run(folder, old, [*first, *again])
    run.write_plan(new, Redactor({}))
    return run


def test_marks_of_an_earlier_scorer_are_not_mixed_with_those_of_the_present_one(tmp_path: Path) -> None:
    run = rescoring(tmp_path / "run", done=2)
    data = read_run(run, lambda trial, record, case: None)
    plan = run.read_plan()
    assert data.summary == summarise(plan, run.latest_records(plan))
    assert (data.summary.subjects[0].score, data.summary.subjects[0].missing, data.unscored) == (0.0, 3, 3)
    html = write_run_page(run, tmp_path / "page.html").read_text()
    assert "3 trials were attempted but not yet scored by the plan&#39;s current scorers" in html


def test_controls_are_not_among_those_who_passed(tmp_path: Path) -> None:
    plan = plan_of(4, ["s", "nop", "oracle"])
    passing = {"s": 1.0, "nop": 0.0, "oracle": 1.0}
    records = [
        record_of(trial, passing[trial.subject.name], bound=trial.subject.name == "oracle") for trial in plan.trials()
    ]
    html = write_run_page(write_run(tmp_path / "run", plan, records)).read_text()
    assert "<dt>Passed</dt><dd>4 <small>of 4 scored, without controls</small>" in html
    only = run_of(tmp_path / "only", plan_of(4, ["nop"]), {"nop": lambda case, round_: 0.0})
    assert "<dt>Passed</dt><dd>0 <small>of 4 scored</small>" in write_run_page(only).read_text()
