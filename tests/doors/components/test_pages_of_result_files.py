"""The pages of result files, and the index over them."""

import shutil
from pathlib import Path

import pytest

from bakeoff.doors.components.sections import components_sections
from bakeoff.plan import Case, Grading
from bakeoff.report.blocks import DoorParts
from bakeoff.report.render.html.index_page import IndexEntry, Unreadable, read_file_entries
from bakeoff.report.render.html.run_page import write_run_page

from ...report.runs import plan_of, record_of, write_run
from ...warm_bakeoff import Bakeoff

pytestmark = pytest.mark.full

DATA = Path(__file__).parent / "data"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    for file in DATA.glob("*.json"):
        shutil.copy(file, folder)
    return folder


def test_every_form_of_a_result_file_is_in_the_index(results: Path) -> None:
    entries = list(read_file_entries(results))
    assert [type(entry) for entry in entries] == [IndexEntry] * len(list(DATA.glob("*.json")))
    seed = next(entry for entry in entries if isinstance(entry, IndexEntry) and entry.run == "seed.json")
    assert [subject.score for subject in seed.summary.subjects] == [0.5]


def test_a_file_computed_from_a_run_that_is_here_is_not_there_twice(results: Path, bakeoff: Bakeoff) -> None:
    done = bakeoff("run", "--model", "oracle", "--suite", "python-intervals", "--results", str(results), "--no-open")
    assert done.returncode == 0, done.stderr
    made = sorted(path.name for path in results.glob("result-*"))
    assert [Path(name).suffix for name in made] == [".html", ".json"]
    assert (results / "index.html").is_file()
    assert not any(entry.run in made for entry in read_file_entries(results))
    shutil.rmtree(results / "runs")
    assert any(entry.run in made for entry in read_file_entries(results))


def test_files_that_are_no_results_are_passed_over_and_broken_ones_named(results: Path) -> None:
    (results / "package.json").write_text('{"name": "x"}')
    (results / "result-2026-01-01-00-00-00-x.json").write_text('{"tests": 3}')
    found = {entry.run: entry for entry in read_file_entries(results)}
    assert "package.json" not in found
    broken = found["result-2026-01-01-00-00-00-x.json"]
    assert isinstance(broken, Unreadable)
    assert "tests" in broken.reason


def test_build_makes_each_files_page_once_and_report_makes_it_anew(results: Path, bakeoff: Bakeoff) -> None:
    assert bakeoff("build", "--results", str(results), "--no-open").returncode == 0
    page = results / "seed.html"
    first = page.stat().st_mtime_ns
    assert bakeoff("build", "--results", str(results), "--no-open").returncode == 0
    assert page.stat().st_mtime_ns == first
    done = bakeoff("report", str(results / "seed.json"), "--no-open")
    assert done.stdout.strip() == str(page)
    assert page.stat().st_mtime_ns > first


def test_the_page_of_a_file_shows_its_own_totals(results: Path, bakeoff: Bakeoff) -> None:
    bakeoff("report", str(results / "seed.json"), "--no-open")
    html = (results / "seed.html").read_text()
    assert "Cost summary" in html
    for own in ("https://mcp.svelte.dev/mcp (HTTP)", "$3.00 / $15.00 / $0.30", "$0.0183"):
        assert own in html


def test_the_page_of_a_run_names_references_and_does_not_show_them(tmp_path: Path) -> None:
    case = Case(
        id="counter",
        prompt="Write a counter.",
        reference={"Component.svelte": "<p>only the author knows</p>"},
        grading=Grading(runner="vitest", solution=("Component.svelte",), tests=("test.ts",), seconds=5),
        tags={"runner": "vitest"},
    )
    plan = plan_of(1, ["a"], case_list=(case,))
    run = write_run(tmp_path / "run", plan, [record_of(plan.trial(0))])
    page = write_run_page(run, parts=lambda data: DoorParts(after=components_sections(data))).read_text()
    assert "only the author knows" not in page
    assert "Write a counter." in page
    assert "Component.svelte" in page
