"""The runs of every door lie in one place, and are found from below it; older places are still read."""

import json
import shutil
from pathlib import Path

import pytest

from bakeoff.report.render.html.index_page import IndexEntry, read_entries
from bakeoff.storage.run_folder import find_run, nearest_results, run_folders

from ..report.runs import plan_of, record_of, write_run
from ..warm_bakeoff import Bakeoff


def write(results: Path, name: str) -> None:
    plan = plan_of(2, ["s"])
    write_run(results / "runs" / name, plan, [record_of(trial, 1.0) for trial in plan.trials()])


OLD, NEW, NEWEST = "2026-01-01T00-00-00-evals", "2026-01-02T00-00-00-demo", "2026-01-03T00-00-00-evals"


def test_runs_that_older_versions_of_the_plugin_kept_are_found_beside_the_others(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    write(tmp_path / ".bakeoff", OLD)
    write(tmp_path / "results", NEW)
    assert [row["run"] for row in json.loads(bakeoff("runs", "list", "--json").stdout)] == [NEW, OLD]
    assert bakeoff("runs", "show", OLD).stdout.startswith(OLD)
    write(tmp_path / ".bakeoff", NEWEST)
    assert bakeoff("runs", "show", "latest").stdout.startswith(NEWEST), "wherever it is"
    assert bakeoff("build", "--no-open").returncode == 0
    links = [entry.page for entry in read_entries(tmp_path / "results") if isinstance(entry, IndexEntry)]
    assert links[0] == f"../.bakeoff/runs/{OLD}/report.html"
    assert all((tmp_path / "results" / str(link)).is_file() for link in links), "from the index"
    assert bakeoff("runs", "delete", OLD, "--yes").returncode == 0
    assert not (tmp_path / ".bakeoff" / "runs" / OLD).exists()


def test_another_folder_of_results_has_only_its_own_runs(tmp_path: Path) -> None:
    write(tmp_path / ".bakeoff", OLD)
    write(tmp_path / "kept", NEW)
    assert [run.name for run in run_folders(tmp_path / "kept")] == [NEW]
    assert find_run(tmp_path / ".bakeoff", "latest").name == OLD


def test_runs_are_found_from_a_folder_below_but_not_from_outside_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "results", NEW)
    below = tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert nearest_results() == Path("results"), "nothing says that this belongs to a project"
    (tmp_path / "pyproject.toml").touch()
    assert nearest_results() == tmp_path / "results"
    (tmp_path / "project" / "pyproject.toml").touch()
    assert nearest_results() == Path("results"), "another project begins here"
    write(tmp_path / "project" / "results", NEWEST)
    assert nearest_results() == tmp_path / "project" / "results"
    shutil.copytree(tmp_path / "results", below / "results")
    assert nearest_results() == Path("results"), "the nearest one"


def test_a_folder_that_is_named_is_taken_as_it_is(
    bakeoff: Bakeoff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "results", NEW)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert bakeoff("runs", "show").stdout.startswith(NEW)
    named = bakeoff("runs", "show", "--results", "results")
    assert named.returncode == 2
    assert "there are no runs under results/runs yet" in named.stderr
