"""`bakeoff report`, `index` and `build`, as a user types them."""

import os
from pathlib import Path

import pytest

from ....warm_bakeoff import Bakeoff
from .generator import plan_of, write_lines, write_run

pytestmark = pytest.mark.full


@pytest.fixture(autouse=True)
def runs(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "runs" / "one", plan_of(2))
    write_run(tmp_path / "results" / "runs" / "two", plan_of(2), seed=1)


@pytest.fixture
def environment(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**environment, "BAKEOFF_CACHE": str(tmp_path / "cache")}


def test_report_writes_the_page_of_the_latest_run_and_says_where(bakeoff: Bakeoff, tmp_path: Path) -> None:
    done = bakeoff("report", "--no-open")
    assert (done.returncode, done.stdout) == (0, "results/runs/two/report.html\n")
    assert (tmp_path / "results/runs/two/report.html").is_file()


def test_report_takes_several_runs_or_one_file(bakeoff: Bakeoff, tmp_path: Path) -> None:
    assert bakeoff("report", "one", "two", "--no-open").stdout.count("report.html") == 2
    assert bakeoff("report", "one", "-o", "deep/page.html", "--no-open").stdout == "deep/page.html\n"
    assert (tmp_path / "deep/page.html").is_file()
    refused = bakeoff("report", "one", "two", "-o", "page.html")
    assert (refused.returncode, refused.stderr.count("names one file for 2 runs")) == (2, 1)


def test_build_makes_what_is_missing_and_leaves_the_rest(bakeoff: Bakeoff, tmp_path: Path) -> None:
    pages = [tmp_path / "results" / "runs" / name / "report.html" for name in ("one", "two")]
    assert bakeoff("build", "--no-open").returncode == 0
    assert (tmp_path / "results" / "index.html").is_file()
    before = [page.stat().st_mtime_ns for page in pages]
    pages[0].unlink()
    assert bakeoff("build", "--no-open").returncode == 0
    assert pages[0].stat().st_mtime_ns > before[0]
    assert pages[1].stat().st_mtime_ns == before[1]


@pytest.mark.parametrize("command", ["index", "build"])
def test_results_that_are_not_there_are_not_made(bakeoff: Bakeoff, tmp_path: Path, command: str) -> None:
    done = bakeoff(command, "--results", "resutls", "--no-open")
    assert done.returncode == 2
    assert "--results resutls is not a folder" in done.stderr
    assert not (tmp_path / "resutls").exists()


def test_build_makes_a_page_anew_when_the_plan_has_changed(bakeoff: Bakeoff, tmp_path: Path) -> None:
    assert bakeoff("build", "--no-open").returncode == 0
    run = tmp_path / "results" / "runs" / "one"
    plan = run / "plan.json"
    status = plan.stat()
    plan.write_text(plan.read_text().replace('"generated"', '"rechristened"'))
    os.utime(plan, ns=(status.st_atime_ns, status.st_mtime_ns))
    (run / "seal.json").unlink()  # it would refuse the plan
    assert bakeoff("build", "--no-open").returncode == 0
    assert "rechristened" in (run / "report.html").read_text()


def test_build_goes_on_past_a_run_that_cannot_be_shown(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_lines(tmp_path / "results" / "runs" / "bad", b"{}", [])
    done = bakeoff("build", "--no-open")
    assert done.returncode == 1
    assert "plan.json cannot be read" in done.stderr
    assert (tmp_path / "results" / "runs" / "two" / "report.html").is_file()


def test_a_page_that_cannot_be_written_is_told_in_a_sentence(bakeoff: Bakeoff, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = bakeoff("report", "one", "-o", "file/page.html", "--no-open")
    assert done.returncode == 2
    assert done.stderr == "error: file/page.html cannot be written: File exists\n"


def test_a_run_that_is_not_there_is_told_in_a_sentence(bakeoff: Bakeoff) -> None:
    done = bakeoff("report", "three", "--no-open")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no run")
