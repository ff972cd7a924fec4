"""`bakeoff history` through the command line, over runs of the scripted subject and over files of pytest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..report.runs import plan_of, record_of, write_run
from ..report.suites.evals import file_bytes, suite
from ..warm_bakeoff import Bakeoff

START = 1_700_000_000.0


def write_nights(results: Path, *failing: int, name: str = "nightly") -> None:
    """Runs of 30 cases, the first of which fail."""
    plan = plan_of(30, ["app"], name=name)
    for night, count in enumerate(failing):
        records = [
            record_of(trial, float(trial.index >= count), started=START + 86_400 * night + trial.index)
            for trial in plan.trials()
        ]
        write_run(results / "runs" / f"2023-11-{14 + night}T22-13-20-{name}", plan, records)


def test_the_gate_exits_with_what_the_series_shows(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_nights(tmp_path / "results", 1, 1, 1, 1, 12, 12)
    done = bakeoff("history", "--gate", "--github", GITHUB_OUTPUT=str(tmp_path / "outputs"))
    assert done.returncode == 1
    assert (tmp_path / "outputs").read_text().startswith("gate=Gate failed: worse since 2023-11-18")
    assert " ".join(done.stdout.split()).startswith(
        "Gate failed: worse since 2023-11-18T22-13-20-nightly, 2023-11-18 22:13: -36.7 points"
    )
    assert "\nHistory since 2023-11-14T22-13-20-nightly\n" in done.stdout
    assert bakeoff("history").returncode == 0, "without --gate it only tells"
    first = [f"2023-11-{14 + night}T22-13-20-nightly" for night in range(4)]
    unchanged = bakeoff("history", *reversed(first), "--gate", "--json")
    assert unchanged.returncode == 0
    told = json.loads(unchanged.stdout)
    assert [run["run"] for run in told["subjects"][0]["runs"]] == first
    pinned = bakeoff("history", "--baseline", "2023-11-18T22-13-20-nightly", "--gate", "--markdown")
    assert pinned.returncode == 0
    assert bakeoff("history", first[0], "--gate").returncode == 3
    twice = bakeoff("history", first[0], str(tmp_path / "results" / "runs" / first[0]), "--gate")
    assert twice.returncode == 2
    assert "started at the same time" in twice.stderr


def test_without_names_only_runs_of_the_latest_plan_are_judged(bakeoff: Bakeoff, tmp_path: Path) -> None:
    write_nights(tmp_path / "results", 12, 12, name="aaa")
    write_nights(tmp_path / "results", 1, 1, 1, name="nightly")
    done = bakeoff("history", "--json", "--last", "1")
    assert len(json.loads(done.stdout)["subjects"][0]["runs"]) == 3
    assert bakeoff("history", "--allow-undecided", "many").returncode == 2


def test_files_of_pytest_are_a_history_too(bakeoff: Bakeoff, tmp_path: Path) -> None:
    for night, failing in enumerate((0, 0, 0, 20)):
        cases = suite([float(place >= failing) for place in range(40)], started=START + 86_400 * night)
        (tmp_path / f"{night}.json").write_bytes(file_bytes(cases, complete=night != 1))
    assert bakeoff("history", "0.json", "2.json", "3.json", "--gate").returncode == 1
    assert bakeoff("history", "0.json", "2.json", "--gate").returncode == 0
    stopped = bakeoff("history", "0.json", "1.json", "2.json", "--gate")
    assert stopped.returncode == 3
    assert "1.json: the run was stopped before its end" in " ".join(stopped.stdout.split())
    assert bakeoff("compare", "0.json", "1.json").returncode == 3


PLAN_OF_A_NIGHT = """\
import sys
from bakeoff.cli.flags import EndingFlags
from bakeoff.cli.run_plan import carry_out, check_plan
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec

answers = {f"c{place}": "no" if place < int(sys.argv[1]) else "yes" for place in range(30)}
plan = Plan(
    name="nightly",
    cases=tuple(Case(id=case, prompt=f"Say yes to {case}.", expected="yes") for case in answers),
    subjects=(SubjectSpec(kind="scripted", name="app", options={"answers": answers}),),
    scorers=(ScorerSpec(kind=sys.argv[2]),),
    threshold=1.0,
)
carry_out(check_plan(plan, RunOptions()), EndingFlags())
"""


@pytest.mark.journey
def test_runs_of_the_scripted_subject_make_a_history(bakeoff: Bakeoff, tmp_path: Path) -> None:
    def night(wrong: int, scorer: str = "exact") -> None:
        words = [sys.executable, "-c", PLAN_OF_A_NIGHT, str(wrong), scorer]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)

    for wrong in (0, 0, 0):
        night(wrong)
    assert bakeoff("history", "--gate").returncode == 0
    night(15)
    worse = bakeoff("history", "--gate", "--html", "history.html")
    assert worse.returncode == 1
    assert "-50.0 points" in worse.stdout
    assert (tmp_path / "history.html").is_file()
    night(15, "contains")
    assert bakeoff("history", "--gate").returncode == 1, "the loss is still shown by the runs before"
    folders = sorted(path.name for path in (tmp_path / "results" / "runs").iterdir())
    other = bakeoff("history", *folders[:3], folders[4], "--gate")
    assert other.returncode == 3
    assert "scorers: 'exact" in " ".join(other.stdout.split())
    (tmp_path / "results" / "runs" / folders[4] / "plan.json").unlink()
    lost = bakeoff("history", "--gate")
    assert lost.returncode == 2
    assert "its plan.json is gone" in lost.stderr
