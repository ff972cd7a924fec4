"""The evals of a session as a run that the other commands read."""

import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff.rundir import find_run, run_folders

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

EVALS = """
@eval_suite(data=rows("a", "b"), scorers=[right], threshold=0.5, timeout=7)
async def test_it(case):
    return "<a>"

def long(input): return "x" * 20_000

test_more = describe_eval("more", data=rows("c"), task=long, scorers=[Contains()], rounds=2, threshold=None)

async def test_one(to_eval):
    await to_eval("first", output="x", expected="x", scorer=right)
    await to_eval("second", output="x", expected="x", scorer=right)
"""


def bakeoff(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bakeoff", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_session_is_a_run_that_other_commands_show_and_compare(project: SmallProject) -> None:
    project.write(EVALS)
    assert project.run("-v").text.count("evals: this run is kept in") == 1
    project.run()
    folder = find_run(project.path / ".bakeoff", "latest")
    plan = folder.read_plan()
    records = list(folder.latest_records(plan))
    assert sorted((record.case.partition("::")[2], record.round, record.value) for record in records) == [
        ("test_it[a]", 0, 1.0),
        ("test_it[b]", 0, 0.0),
        ("test_more[c]", 0, 0.0),
        ("test_more[c]", 1, 0.0),
        ("test_one", 0, 1.0),
        ("test_one #2", 0, 1.0),
    ]
    assert plan.cases[0].tags == {"suite": "test_it"}
    assert (project.path / ".bakeoff" / "runs" / ".gitignore").read_text() == "*\n"
    shown = bakeoff(project.path, "runs", "show", "latest", "--results", ".bakeoff")
    assert "test_it[b]" in shown.stdout
    resumed = bakeoff(project.path, "resume", "latest", "--results", ".bakeoff")
    assert resumed.returncode == 2
    assert "run pytest there to carry them out again" in resumed.stderr


def test_nothing_is_kept_where_that_is_not_wanted_or_there_are_no_evals(project: SmallProject) -> None:
    project.write(EVALS)
    project.write("def test_plain(): pass", "test_plain.py")
    project.run("--eval-no-record")
    project.run("test_plain.py")
    assert not (project.path / ".bakeoff").exists()


def test_only_the_last_twenty_stay_in_the_folder_that_nobody_chose(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bakeoff.doors.pytest_plugin.keeping.KEPT", 2)
    project.write(EVALS)
    others = project.path / ".bakeoff" / "runs" / "2020-01-01T00-00-00-mine"
    others.mkdir(parents=True)
    for _ in range(4):
        project.run()
        project.run("--eval-results", "chosen")
    (others / "plan.json").write_text("{}")
    assert len(run_folders(project.path / ".bakeoff")) == 3  # ours, and what is not ours to remove
    assert len(run_folders(project.path / "chosen")) == 4


def test_a_folder_that_cannot_be_written_is_told_and_fails_nothing(project: SmallProject) -> None:
    project.write(EVALS)
    (project.path / "taken").write_text("a file")
    seen = project.run("--eval-results", "taken", "-k", "test_one")
    assert seen.counts() == {"passed": 1, "deselected": 3}
    assert "evals: this run is not kept: " in seen.text


def test_a_run_that_was_cut_short_says_so(project: SmallProject) -> None:
    project.write(EVALS)
    project.run("-x")
    folder = find_run(project.path / ".bakeoff", "latest")
    assert '"reason":"interrupted"' in folder.journal_file.read_text().splitlines()[-1]


def test_secrets_do_not_reach_the_run(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value-0123456789")
    project.write("""
data = [{"input": f"use {os.environ['OPENAI_API_KEY']}", "name": "a"}]
test_it = describe_eval("s", data=data, task=lambda input: f"said {input}", scorers=[lambda given: 1])
""")
    project.run()
    for path in find_run(project.path / ".bakeoff", "latest").path.rglob("*"):
        assert path.is_dir() or b"very-secret" not in path.read_bytes()
