"""Ordinary tests that are evals: `run_eval` with asserts and judges, and what a test logs."""

import json

import pytest

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]

LOGS = """
from bakeoff import Score, UsageError, log_input, log_output, log_score

def answer():
    log_output(TaskResult(result="It is 4.", tool_calls=[ToolCall(name="add")]))

def test_scored():
    log_input("2 + 2", expected="4", name="sum")
    answer()
    log_score("right", 0.5, "half of it", seed=7)
    log_score("kind", True)

def test_held():
    log_input("no score")

def test_broken():
    log_score("right", 1.0)
    assert 1 == 2, "not equal"

def test_plain():
    pass

def test_left_out():
    log_input("x")
    pytest.skip("not today")

def test_out_of_range():
    with pytest.raises(Exception, match="between 0 and 1|0..1|not"):
        log_score("right", 2.0)
    log_score("right", None)
"""


def test_what_a_test_logs_is_an_eval_whose_verdict_is_that_of_its_asserts(project: SmallProject) -> None:
    project.write(LOGS)
    seen = project.run("--eval-json", "evals.json", "--eval-fail-under", "0.9")
    assert seen.counts() == {"passed": 4, "failed": 1, "skipped": 1}
    assert [(each.suite, each.case, each.score, each.passed) for each in seen.outcomes] == [
        ("test_scored", "sum", 0.75, True),
        ("test_held", "test_held", 1.0, True),
        ("test_broken", "test_broken", 0.0, False),
        ("test_left_out", "test_left_out", None, None),
        ("test_out_of_range", "test_out_of_range", None, None),
    ]
    scored = seen.outcomes[0].records[0]
    assert scored.transcript is not None
    assert (scored.transcript.output, scored.transcript.tool_calls[0].name) == ("It is 4.", "add")
    assert [(each.name, each.reason, each.metadata) for each in scored.scores] == [
        ("right", "half of it", {"seed": 7}),
        ("kind", "", {}),
    ]
    assert "mean score 0.583 over 3 cases, wanted 0.9" in seen.text
    assert "2 of 5 undecided (1 skipped, 1 lost to a grader)" in seen.text
    file = json.loads((project.path / "evals.json").read_text())
    assert [each["suite"] for each in file["suites"]] == [
        "test_scored",
        "test_held",
        "test_broken",
        "test_left_out",
        "test_out_of_range",
    ]
    assert file["suites"][0]["cases"][0]["expected"] == "4"


@pytest.mark.full
def test_workers_send_what_their_tests_log(project: SmallProject) -> None:
    project.write(LOGS)
    seen = project.run_apart("-n", "2", "-p", "xdist.plugin", "--eval-json", "evals.json")
    assert seen.counts() == {"passed": 4, "failed": 1, "skipped": 1}
    assert json.loads((project.path / "evals.json").read_text())["numbers"]["cases"] == 5


def test_a_case_of_a_suite_cannot_log_and_is_told_why(project: SmallProject) -> None:
    project.write("""
from bakeoff import log_score

@pytest.fixture
def needed():
    return 1

@eval_suite(data=rows("a"), scorers=[right])
def test_it(case, needed):
    log_score("x", 1.0)
""")
    seen = project.run()
    assert seen.counts() == {"failed": 1}
    assert "is a case of a suite, whose scorers score what it returns" in seen.text


def test_a_run_is_asserted_and_judged_without_calling_the_task_again(project: SmallProject) -> None:
    project.write("""
calls = []

async def agent(input, mood="plain"):
    calls.append(input)
    return TaskResult(result=f"{mood} {input}", tool_calls=[ToolCall(name="look", arguments={"for": input})])

async def test_judged(run_eval):
    result = await run_eval("tea", task=agent, mood="green", expected="green tea")
    assert result.output == "green tea"
    assert [call.name for call in result.tool_calls] == ["look"]
    outcome = await result.judge(right, Contains(), threshold=0.8)
    assert (outcome.score, outcome.passed) == (1.0, True)
    await result.judge(lambda given: 0.5, threshold=0.9)
    raise AssertionError("never reached")

def test_asserted(run_eval):
    assert run_eval.sync("cake", task=agent).output == "plain cake"

async def test_wrong(run_eval):
    result = await run_eval("soup", task=agent)
    assert result.output == "hot soup"

async def test_raised(run_eval):
    with pytest.raises(ZeroDivisionError):
        await run_eval(1, task=lambda input: input / 0)

def test_calls():
    assert calls == ["tea", "cake", "soup"]
""")
    seen = project.run()
    assert seen.counts() == {"passed": 3, "failed": 2}
    assert [(each.suite, each.score, each.passed) for each in seen.outcomes] == [
        ("test_judged", 1.0, True),
        ("test_judged", 0.5, False),
        ("test_asserted", 1.0, True),
        ("test_wrong", 0.0, False),
        ("test_raised", 1.0, True),
    ]
    assert "score 0.50, threshold 0.90" in seen.text
    asserted = seen.outcomes[2].records[0]
    assert asserted.transcript is not None
    assert (asserted.scores[0].name, asserted.transcript.output) == ("asserts", "plain cake")


def test_hooks_run_around_each_case_and_what_they_raise_is_undecided(project: SmallProject) -> None:
    project.write("""
seen = []

async def before(case):
    seen.append(f"before {case.name}")
    if case.name == "b":
        raise LookupError("no table")

def after(case, record):
    seen.append(f"after {case.name} {record.verdict}")

@eval_suite(data=rows("a", "b"), scorers=[right], before_case=before, after_case=after, concurrency=1)
def test_it(case):
    seen.append("task")
    return "<a>"

def test_seen():
    assert seen == ["before a", "task", "after a pass", "before b"]
""")
    observed = project.run()
    assert observed.counts() == {"passed": 2, "failed": 1}
    assert observed.outcome("b").problem == "before_case raised LookupError: no table"


def test_an_error_of_a_provider_is_tried_again_and_is_not_the_applications(project: SmallProject) -> None:
    project.write("""
import httpx2

tries = {}

def busy(input, status, times):
    tries[input] = tries.get(input, 0) + 1
    if tries[input] <= times:
        request = httpx2.Request("GET", "http://app.test")
        response = httpx2.Response(status, request=request, headers={"retry-after": "0"})
        raise httpx2.HTTPStatusError(f"status {status}", request=request, response=response)
    return f"<{input}>"

test_it = describe_eval("busy", task=busy, scorers=[right], retries=1, data=[
    {"name": "passes", "input": "a", "expected": "<a>", "status": 503, "times": 1},
    {"name": "stays", "input": "b", "expected": "<b>", "status": 429, "times": 9},
    {"name": "refused", "input": "c", "expected": "<c>", "status": 400, "times": 9},
])

async def test_once(run_eval):
    await run_eval("d", task=busy, status=503, times=1)

async def test_lost(run_eval):
    await run_eval("e", task=busy, status=503, times=9)

def test_tries():
    assert tries == {"a": 2, "b": 2, "c": 1, "d": 2, "e": 3}
""")
    seen = project.run()
    assert seen.counts() == {"passed": 3, "failed": 3}
    assert seen.outcome("passes").passed is True
    assert seen.outcome("test_once").passed is True
    assert seen.outcome("test_lost").problem == "HTTPStatusError: status 503"
    assert seen.outcome("stays").problem == "HTTPStatusError: status 429"
    assert (seen.outcome("refused").score, seen.outcome("refused").passed) == (0.0, False)
