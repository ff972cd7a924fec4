"""A browser, an accessibility checker, and pages to look at."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bakeoff.plan import Case, Plan
from bakeoff.report.compare.comparison import CompareReport, CompareRequest, compare_sources
from bakeoff.report.compare.description import describe_comparison
from bakeoff.report.gates import GateRule
from bakeoff.report.leaderboard import describe_leaderboard, rank_sources
from bakeoff.report.readers import open_source
from bakeoff.report.render.html.index_page import read_entries, write_index
from bakeoff.report.render.html.render import write_report_page
from bakeoff.report.render.html.run_page import write_run_page
from bakeoff.storage.run_folder import RunFolder

from .browser import Chromium, axe_source
from .generator import START, plan_of, write_run


@pytest.fixture(scope="session")
def chromium(needs_program: Callable[[str], str]) -> Iterator[Chromium]:
    browser = Chromium(needs_program("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def axe(needs_program: Callable[[str], str]) -> str:
    return axe_source(lambda: needs_program("npm"))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with six runs of two plans, always the same to the byte."""
    folder = tmp_path_factory.mktemp("pages") / "results"
    for day in range(6):
        plan = plan_of(12, rounds=2, name=("parsers", "refactoring")[day % 2])
        write_run(
            folder / "runs" / f"2026-09-{21 + day}T12-00-00-{plan.name}", plan, seed=day, started=START + day * 86_400
        )
    return folder


@pytest.fixture(scope="session")
def run_page(results: Path) -> Path:
    (first, *_) = sorted((results / "runs").iterdir())
    return write_run_page(RunFolder(first), results.parent / "run.html")


@pytest.fixture(scope="session")
def index_page(results: Path, run_page: Path) -> Path:
    return write_index(results / "index.html", read_entries(results))


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A suite before and after it was edited: one case is gone, one was changed, one is new; the rounds differ too."""
    folder = tmp_path_factory.mktemp("compared")
    old, new = plan_of(16, rounds=2, name="parsers"), plan_of(17, rounds=3, name="parsers")
    cases = (Case(id="case-00001", prompt="Solve another task."), *new.cases[2:])
    before = write_run(folder / "2026-09-21T12-00-00-parsers", old, seed=1)
    after = write_run(folder / "2026-09-22T12-00-00-parsers", _with_cases(new, cases), seed=2, replays=24)
    write_run_page(after)
    return before.path, after.path


def _with_cases(plan: Plan, cases: tuple[Case, ...]) -> Plan:
    return plan.model_copy(update={"cases": cases})


@pytest.fixture(scope="session")
def one_comparison(two_runs: tuple[Path, Path]) -> CompareReport:
    before, after = map(open_source, two_runs)
    return compare_sources(
        before, after, CompareRequest(subjects=("haiku", "opus"), rule=GateRule("verdict", margin=0.05), most_details=1)
    )


@pytest.fixture(scope="session")
def compare_page(two_runs: tuple[Path, Path], one_comparison: CompareReport) -> Path:
    return write_report_page(two_runs[0].parent / "comparison.html", describe_comparison(one_comparison))


@pytest.fixture(scope="session")
def several_page(two_runs: tuple[Path, Path]) -> Path:
    """Every subject of both runs, compared with itself."""
    before, after = map(open_source, two_runs)
    report = compare_sources(before, after, CompareRequest(most_details=1))
    return write_report_page(two_runs[0].parent / "comparisons.html", describe_comparison(report))


@pytest.fixture(scope="session")
def leaderboard_page(two_runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Over two runs of the same cases, so that some subjects' numbers come from elsewhere; one has no page."""
    folder = tmp_path_factory.mktemp("board")
    wide = _with_cases(plan_of(16, rounds=2, subjects=7, name="wide"), RunFolder(two_runs[1]).read_plan().cases)
    wide = wide.model_copy(update={"subjects": wide.subjects[2:]})
    more = write_run(folder / "2026-09-23T12-00-00-wide", wide, seed=3)
    sources = [open_source(path) for path in (two_runs[1], more.path)]
    return write_report_page(folder / "leaderboard.html", describe_leaderboard(rank_sources(sources)))
