"""Limits on what the evals of a session may spend."""

import json
from pathlib import Path

import pytest

from bakeoff import InfraError, RunOptions, Usage, Verdict, find_run, summarise
from bakeoff.engine.run_control import SharedBudget

from ...warm_bakeoff import Bakeoff
from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

PRICED = """
from bakeoff import Usage

@eval_suite(data=rows("a", "b", "c", "d"), scorers=[right], concurrency=1)
def test_it(case):
    with open("asked", "a") as file:
        file.write(case.input)
    return TaskResult(result=case.expected, usage=Usage(requests=1, input=10, output=5, cost=0.25))

def test_other(): pass
"""


def test_no_case_starts_once_the_evals_have_cost_the_limit(bakeoff: Bakeoff, project: SmallProject) -> None:
    project.write(PRICED)
    seen = project.run("--eval-max-cost", "0.5")
    assert seen.counts() == {"passed": 3, "failed": 2}
    assert (project.path / "asked").read_text() == "ab"
    reason = "max_cost $0.5 is reached: $0.5 spent"
    assert [(outcome.passed, outcome.problem) for outcome in seen.outcomes] == [
        (True, None),
        (True, None),
        (None, reason),
        (None, reason),
    ]
    assert f"could not be scored: {reason}" in seen.text
    assert f"evals: 2 cases are undecided (budget): {reason}" in seen.text
    folder = find_run(project.path / "results", "latest")
    plan = folder.read_plan()
    verdicts = {record.case[-2]: record.verdict for record in folder.latest_records(plan)}
    assert verdicts == {"a": Verdict.PASS, "b": Verdict.PASS, "c": Verdict.BUDGET, "d": Verdict.BUDGET}
    assert not summarise(plan, folder.latest_records(plan)).complete
    assert "budget" in bakeoff("runs", "show", "latest").stdout


def test_a_limit_on_tokens_counts_every_round(project: SmallProject) -> None:
    project.write(PRICED)
    seen = project.run("--eval-max-total-tokens", "40", "--eval-rounds", "2")
    assert (project.path / "asked").read_text() == "aab"
    assert [outcome.passed for outcome in seen.outcomes] == [True, None, None, None]
    assert "evals: 3 cases are undecided (budget): max_total_tokens 40 is reached: 45 used" in seen.text


def test_a_limit_that_is_not_reached_changes_nothing(project: SmallProject) -> None:
    project.write(PRICED)
    seen = project.run("--eval-max-cost", "1.01", "--eval-max-total-tokens", "61")
    assert seen.counts() == {"passed": 5}
    assert "undecided" not in seen.text


def test_what_judges_and_single_evals_cost_counts_too(project: SmallProject) -> None:
    verdict = json.dumps({"rationale": "it will do", "choice": "A"})
    reply = {"say": verdict, "usage": {"input": 100, "output": 10, "cost": 0.3}}
    (project.path / "judge.json").write_text(json.dumps({"replies": [reply]}))
    project.write("""
from bakeoff.scorers import Judge

JUDGE = Judge("good?", model="scripted:judge.json")

async def test_one(to_eval):
    await to_eval("x", output="y", scorer=JUDGE)

@eval_suite(data=rows("a", "b"), scorers=[JUDGE], concurrency=1)
def test_it(case):
    return "y"
""")
    seen = project.run("--eval-max-cost", "0.6")
    assert [outcome.passed for outcome in seen.outcomes][:1] == [True]
    assert "evals: 1 case is undecided (budget): max_cost $0.6 is reached: $0.6 spent" in seen.text or (
        "evals: 2 cases are undecided (budget): max_cost $0.6 is reached: $0.6 spent" in seen.text
    )
    assert seen.outcomes[-1].problem == "max_cost $0.6 is reached: $0.6 spent"


def test_the_workers_of_xdist_share_one_limit(project: SmallProject) -> None:
    project.write("""
from bakeoff import Usage

USAGE = Usage(requests=1, input=1, cost=0.1)

@pytest.mark.parametrize("number", range(40))
async def test_one(to_eval, number):
    await to_eval("x", output=TaskResult(result="y", usage=USAGE), scorer=lambda given: 1)
""")
    seen = project.run_apart("-p", "xdist", "-n", "2", "--eval-max-cost", "0.95")
    counts = seen.counts()
    assert counts["passed"] in (10, 11)  # the other worker may be in the middle of one
    assert counts["passed"] + counts["failed"] == 40
    assert f"evals: {counts['failed']} cases are undecided (budget): max_cost $0.95 is reached" in seen.text


def test_the_limit_holds_when_the_file_of_the_workers_is_deleted(project: SmallProject) -> None:
    project.write("""
from pathlib import Path
from bakeoff import Usage

USAGE = Usage(requests=1, input=1, cost=0.1)

@pytest.mark.parametrize("number", range(20))
async def test_one(to_eval, number, request):
    await to_eval("x", output=TaskResult(result="y", usage=USAGE), scorer=lambda given: 1)
    Path(request.config.workerinput["bakeoff_spending"]).unlink(missing_ok=True)
""")
    seen = project.run_apart("-p", "xdist", "-n", "1", "--eval-max-cost", "0.45")
    assert seen.counts() == {"passed": 5, "failed": 15}
    assert "evals: 15 cases are undecided (budget): max_cost $0.45 is reached" in seen.text
    assert "FileNotFoundError" not in seen.text + seen.result.stderr.str()


def test_workers_read_what_the_others_have_spent(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    one, other = (SharedBudget(RunOptions(max_total_tokens=20_000), ledger) for _ in range(2))
    ledger.unlink()
    for _ in range(9_999):
        one.add(Usage(input=2))
    assert (one.exceeded(), other.exceeded()) == (None, None)
    other.add(Usage(output=2))
    assert one.exceeded() == other.exceeded() == "max_total_tokens 20000 is reached: 20000 used"
    with pytest.raises(
        InfraError, match=r"ledger, in which workers of xdist count their spending, cannot be opened: No such file"
    ):
        SharedBudget(RunOptions(), ledger)


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--eval-max-cost", "0", "'0' is not a number above 0"),
        ("--eval-max-cost", "nan", "'nan' is not a number above 0"),
        ("--eval-max-cost", "much", "'much' is not a number above 0"),
        ("--eval-max-total-tokens", "0", "'0' is not a whole number above 0"),
    ],
)
def test_a_limit_that_is_none_is_refused(project: SmallProject, option: str, value: str, problem: str) -> None:
    project.write(PRICED)
    seen = project.run(option, value)
    assert seen.result.ret == pytest.ExitCode.USAGE_ERROR
    assert problem in seen.result.stderr.str()
