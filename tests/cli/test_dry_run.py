"""`--dry-run`: what a run is likely to use and to find, told before anything is spent."""

import json
from pathlib import Path

import pytest

from bakeoff.engine.run import run
from bakeoff.models.estimate import usage_before
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Usage

from ..warm_bakeoff import Bakeoff

SCRIPT = '{"replies": [{"say": "yes", "usage": {"input": 30, "output": 3}}]}'


def plan_of(folder: Path, model: str = "script.json") -> Plan:
    (folder / model).write_text(SCRIPT)
    return Plan(
        name="p",
        cases=tuple(Case(id=str(number), prompt="?", expected="yes") for number in range(3)),
        subjects=(SubjectSpec(kind="model", name="m", options={"model": f"scripted:{folder / model}"}),),
        scorers=(ScorerSpec(kind="exact"),),
    )


async def carry_out(plan: Plan, results: Path) -> None:
    assert [record.verdict async for record in run(plan, RunOptions(results=results))] == ["pass"] * 3


async def test_what_a_trial_used_before_is_the_mean_of_the_latest_run_that_had_the_subject(tmp_path: Path) -> None:
    await carry_out(plan_of(tmp_path), tmp_path)
    broken = tmp_path / "runs" / "9999-broken"
    broken.mkdir()
    (broken / "plan.json").write_text("{")
    assert usage_before(tmp_path, plan_of(tmp_path)) == {"m": Usage(requests=1, input=30, output=3)}
    assert usage_before(tmp_path, plan_of(tmp_path, "other.json")) == {}, "another model is another subject"
    assert usage_before(tmp_path / "nowhere", plan_of(tmp_path)) == {}


async def test_a_dry_resume_tells_what_is_left_and_what_it_would_use_and_changes_nothing(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    await carry_out(plan_of(tmp_path), tmp_path / "results")
    (journal,) = (tmp_path / "results" / "runs").glob("*/journal.jsonl")
    before = journal.read_bytes()
    done = bakeoff("resume", "--dry-run", "--trust")
    assert done.returncode == 0, done.stderr
    assert "0 of 3 trials are left to do" in done.stdout
    assert "m: 90 tokens in, 9 out" in done.stdout
    assert "the mean of earlier trials" in done.stdout
    assert journal.read_bytes() == before


async def test_a_dry_run_is_there_for_programs_and_a_result_file_is_shown_as_a_run_is(
    bakeoff: Bakeoff, tmp_path: Path
) -> None:
    await carry_out(plan_of(tmp_path), tmp_path / "results")
    told = json.loads(bakeoff("resume", "--dry-run", "--json", "--no-open", "--trust").stdout)
    assert (told["left"], told["trials"], told["ran"]) == (0, 3, False)
    assert [case["id"] for case in told["cases"]] == ["0", "1", "2"]
    assert told["estimates"][0]["input"] == 90
    (journal,) = (tmp_path / "results" / "runs").glob("*/journal.jsonl")
    shown = bakeoff("runs", "show", str(journal))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].endswith("journal.jsonl: passed")
    assert json.loads(bakeoff("runs", "show", str(journal), "--json").stdout)["outcome"] == "passed"
    assert "nothing.json does not exist" in bakeoff("runs", "show", "nothing.json").stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("demo", "--nothing"), "error: no such option: --nothing"),
        (("demo", "--jobs", "0"), "error: invalid value for '--jobs'"),
        (("nothing",), "error: no such command 'nothing'"),
        (("compare",), "error: missing argument"),
    ],
)
def test_a_mistake_in_the_command_line_is_told_in_one_line(bakeoff: Bakeoff, words: tuple[str, ...], told: str) -> None:
    done = bakeoff(*words)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(told)
    assert line.endswith("--help`")


def test_a_dry_run_tells_the_least_difference_it_could_find(bakeoff: Bakeoff) -> None:
    done = bakeoff("demo", "--quick", "--dry-run")
    assert "find a difference of" in done.stdout.replace("\n", " ")
    assert "10 cases × 2 rounds" in done.stdout.replace("\n", " ")
