"""The evals of a session as a run that the other commands read."""

import shutil
import subprocess
import sys
from typing import Any

import pytest

from bakeoff.report.suites.eval_file import EvalFileReader
from bakeoff.report.summary import summarise
from bakeoff.storage.run_folder import find_run, run_folders

from ...report.runs import plan_of, write_run
from ...warm_bakeoff import Bakeoff
from .small_project import PLUGIN, SmallProject, project

pytestmark = pytest.mark.journey

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


def test_a_session_is_a_run_that_other_commands_show_and_compare(bakeoff: Bakeoff, project: SmallProject) -> None:
    project.write(EVALS)
    assert project.run("-v").text.count("evals: this run is kept in") == 1
    project.run()
    folder = find_run(project.path / "results", "latest")
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
    shown = bakeoff("runs", "show", "latest")
    assert "test_it[b]" in shown.stdout
    resumed = bakeoff("resume", "latest")
    assert resumed.returncode == 2
    assert "run pytest there to run them again" in resumed.stderr


MODELS = """
@pytest.mark.parametrize("model", ["small", "large"])
@eval_suite(data=rows("a", "b", "c"), scorers=[right])
async def test_models(case, model):
    return "<a>" if model == "small" else f"<{case.input}>"

@pytest.mark.parametrize("model", ["small", "large"])
@eval_suite(data=rows("d"), scorers=[right], rounds=2)
def test_others(case, model):
    return "<d>"

test_plain = describe_eval("plain", data=rows("e"), task=lambda input: f"<{input}>", scorers=[right])

def test_one(to_eval):
    to_eval.sync("x", output="y", scorer=lambda given: 1)
"""


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_parameters_are_the_subjects_of_the_run_and_so_the_columns_of_its_matrix(
    bakeoff: Bakeoff, project: SmallProject, workers: tuple[str, ...]
) -> None:
    project.write(MODELS)
    project.run_apart(*workers, record=("--eval-json", "evals.json"))
    folder = find_run(project.path / "results", "latest")
    plan = folder.read_plan()
    assert {subject.name for subject in plan.subjects} == {"small", "large", "evals"}
    assert sorted(case.id.partition("::")[2] for case in plan.cases) == [
        "test_models[a]",
        "test_models[b]",
        "test_models[c]",
        "test_one",
        "test_others[d]",
        "test_plain[e]",
    ]
    functions: Any = next(each for each in plan.subjects if each.name == "large").options["functions"]
    assert functions["test_it.py::test_models"]["name"] == "test_models"
    assert functions["test_it.py::test_models"]["module"] == "test_it"
    assert len(functions["test_it.py::test_models"]["source"]) == 16
    summary = summarise(plan, folder.latest_records(plan))
    assert summary.complete  # not every subject was to have every case
    assert {each.subject: (each.scored, each.score) for each in summary.subjects} == {
        "small": (5, 0.5),
        "large": (5, 1.0),
        "evals": (2, 1.0),
    }
    arms = ("--subject-a", "small", "--subject-b", "large")
    compared = bakeoff("compare", "latest", *arms).stdout
    assert "4 cases in pairs: 2 better, 2 the same, 0 worse" in compared
    assert "test_plain" not in compared  # which neither of them had
    described = EvalFileReader().describe(project.path / "evals.json")
    assert {subject.name for subject in described.plan.subjects} == {"small", "large", "evals"}
    assert {case.id for case in described.plan.cases} == {case.id for case in plan.cases}


def test_an_edited_function_is_another_subject(project: SmallProject) -> None:
    keys = []
    for answer in ("<a>", "<a>", "<b>"):
        project.write(f"""
@eval_suite(data=rows("a"), scorers=[right])
def test_it(case):
    return "{answer}"
""")
        project.run("--eval-results", "runs")
        folder = find_run(project.path / "runs", "latest")
        [record] = folder.latest_records(folder.read_plan())
        keys.append(record.attempt_key)
    assert keys[0] == keys[1] != keys[2]


def test_where_parameters_are_rather_cases_they_are_cases(project: SmallProject) -> None:
    project.write("""
@pytest.mark.parametrize("number", range(21))
@eval_suite(data=rows("a"), scorers=[right])
def test_it(case, number):
    return "<a>"
""")
    project.run()
    plan = find_run(project.path / "results", "latest").read_plan()
    assert [subject.name for subject in plan.subjects] == ["evals"]
    assert plan.cases[20].id.endswith("test_it[20-a]")


def test_nothing_is_kept_where_that_is_not_wanted_or_there_are_no_evals(project: SmallProject) -> None:
    project.write(EVALS)
    project.write("def test_plain(): pass", "test_plain.py")
    project.run("--eval-no-record")
    project.run("test_plain.py")
    assert not (project.path / "results").exists()


def test_only_the_last_twenty_stay_in_the_folder_that_nobody_chose(project: SmallProject) -> None:
    project.write(EVALS)
    project.run()
    for results in ("results", "chosen"):
        for day in range(1, 26):
            shutil.copytree(
                find_run(project.path / "results", "latest").path,
                project.path / results / "runs" / f"2020-01-{day:02}T00-00-00-evals",
            )
    mine = project.path / "results" / "runs" / "2020-01-01T00-00-00-mine"
    shutil.copytree(project.path / "chosen" / "runs" / "2020-01-01T00-00-00-evals", mine)
    project.run()
    project.run("--eval-results", "chosen")
    assert len(run_folders(project.path / "results")) == 21  # ours, and what is not ours to remove
    assert mine.is_dir()
    assert len(run_folders(project.path / "chosen")) == 26


def test_a_folder_that_cannot_be_written_is_told_and_fails_nothing(project: SmallProject) -> None:
    project.write(EVALS)
    (project.path / "taken").write_text("a file")
    seen = project.run("--eval-results", "taken", "-k", "test_one")
    assert seen.counts() == {"passed": 1, "deselected": 3}
    assert "evals: this run is not kept: " in seen.text


def test_an_address_is_refused_as_the_folder_of_results(project: SmallProject) -> None:
    project.write(EVALS)
    told = project.run("--eval-results", "s3://bucket/results").result.stderr.str()
    assert "'s3://bucket/results' is an address: runs of evals are kept in a folder on this machine" in told
    assert not (project.path / "s3:").exists()


def test_a_run_that_was_cut_short_says_so(project: SmallProject) -> None:
    project.write(EVALS)
    project.run("-x")
    folder = find_run(project.path / "results", "latest")
    assert '"reason":"interrupted"' in folder.journal_file.read_text().splitlines()[-1]


def test_secrets_do_not_reach_the_run(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value-0123456789")
    project.write("""
data = [{"input": f"use {os.environ['OPENAI_API_KEY']}", "name": name} for name in "ab"]
test_it = describe_eval("s", data=data, task=lambda input: f"said {input}", scorers=[lambda given: 1])
""")
    project.run()
    kept = find_run(project.path / "results", "latest")
    for path in kept.path.rglob("*"):
        assert path.is_dir() or b"very-secret" not in path.read_bytes()
    assert [record.value for record in kept.latest_records(kept.read_plan())] == [1.0, 1.0]


def test_a_session_leaves_nothing_that_git_would_show_but_hides_nothing_of_others(project: SmallProject) -> None:
    def untracked() -> str:
        words = ["git", "-C", str(project.path), "status", "--porcelain", "--untracked-files=all", "results"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    subprocess.run(["git", "init", "-q", str(project.path)], check=True)
    project.write(EVALS)
    project.run()
    assert len(run_folders(project.path / "results")) == 1
    assert untracked() == ""
    mine = project.path / "results" / "runs" / "2026-01-01T00-00-00-counter"
    mine.mkdir()
    (mine / "plan.json").touch()
    (project.path / "results" / "latest.json").touch()
    assert untracked().split() == ["??", "results/latest.json", "??", f"results/runs/{mine.name}/plan.json"]


def test_tests_without_evals_write_no_run_and_no_folder(project: SmallProject) -> None:
    project.write("def test_plain():\n    assert 1 + 1 == 2\n")
    project.run()
    assert not (project.path / "results").exists()
    assert not (project.path / ".bakeoff").exists()


def test_a_run_of_another_door_with_the_same_name_is_never_deleted(project: SmallProject) -> None:
    project.write(EVALS)
    project.run()
    mine = write_run(project.path / "results" / "runs" / "2019-01-01T00-00-00-evals", plan_of(1, ["s"]), [])
    damaged = project.path / "results" / "runs" / "2019-01-02T00-00-00-evals"
    damaged.mkdir()
    (damaged / "plan.json").write_text("{")
    for day in range(1, 24):
        latest = find_run(project.path / "results", "latest").path
        shutil.copytree(latest, latest.parent / f"2020-01-{day:02}T00-00-00-evals")
    assert "this run is not kept" not in project.run().text
    assert mine.path.is_dir()
    assert damaged.is_dir()
    assert len(run_folders(project.path / "results")) == 22


def test_sessions_at_the_same_time_keep_a_run_each(project: SmallProject) -> None:
    project.write(EVALS)
    words = [sys.executable, "-m", "pytest", "-q", *PLUGIN]
    sessions = [subprocess.Popen(words, cwd=project.path, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for session in sessions:
        told, _ = session.communicate(timeout=120)
        assert "not kept" not in told
    runs = run_folders(project.path / "results")
    assert len(runs) == 3
    for run in runs:
        plan = run.read_plan()
        assert len(list(run.latest_records(plan))) == 6
