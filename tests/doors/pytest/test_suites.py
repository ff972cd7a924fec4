"""Writing suites, and how their cases are scored and fail."""

import re
from typing import Any

import pytest

from bakeoff import describe_eval, eval_suite

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]


SPEC = """
from bakeoff import TaskResult, ToolCall, describe_eval, eval_suite
from bakeoff.scorers import Contains, ToolCalls

async def ask(input, **row):                       # the application under test
    return TaskResult(result="4", tool_calls=[ToolCall(name="add", arguments={"a": 2, "b": 2})])

@eval_suite(data=[{"input": "Capital of France?", "expected": "Paris"}], scorers=[Contains()], threshold=0.8)
async def test_capitals(case):                     # one pytest item per row; its return value is what is scored
    return f"It is {'Paris' if 'France' in case.input else '?'}."   # str | TaskResult | a result object of a known SDK

SUMS = [{"input": "2+2", "expected_tools": ["add"]}]
test_sums = describe_eval("sums", data=SUMS, task=ask, scorers=[ToolCalls()], threshold=None)

async def test_one(to_eval):
    await to_eval("What is 2+2?", expected="4", task=ask, scorer=Contains(), threshold=1.0)
    await to_eval("What is 2+2?", output="4", expected="4", scorer=Contains())      # a ready-made output
"""


def test_the_first_example_runs_as_it_is_written(project: SmallProject) -> None:
    project.write(SPEC, head="")
    seen = project.run()
    assert seen.counts() == {"passed": 3}
    assert [(each.suite, each.case, each.score, each.passed) for each in seen.outcomes] == [
        ("test_capitals", "Capital-of-France", 1.0, True),
        ("sums", "2+2", 1.0, None),
        ("test_one", "test_one", 1.0, True),
        ("test_one", "test_one", 1.0, True),
    ]


WRONG = {
    "scorers=[]": "`scorers` is empty, so no output could be scored",
    "scorers=[Contains]": "scorer Contains is a class: make an object of it, `Contains(...)`",
    "scorers=['exact']": "scorer 'exact' cannot be called: give a function",
    "scorers=[right], threshold=7": "threshold 7 is not between 0 and 1, or None",
    "scorers=[right], threshold=True": "threshold True is not between 0 and 1, or None",
    "scorers=[right], gate='median'": "gate 'median' is not one of mean, pass@k, pass^k",
    "scorers=[right], rounds=0": "rounds 0 is not a number from 1 up",
    "scorers=[right], timeout=-1": "timeout -1 is not a number of seconds above 0, or None",
    "scorers=[right], concurrency=0": "concurrency 0 is not a number from 1 up",
}


@pytest.mark.parametrize(("wrong", "problem"), WRONG.items(), ids=WRONG)
def test_wrong_use_is_an_error_of_the_module(project: SmallProject, wrong: str, problem: str) -> None:
    project.write(f"@eval_suite(data=rows('a'), {wrong})\ndef test_wrong(case): ...\n")
    seen = project.run()
    assert seen.counts() == {"errors": 1}
    assert f"UsageError: test_wrong: {problem}" in seen.text


def test_a_function_without_a_case_is_told_to_take_one(project: SmallProject) -> None:
    project.write("@eval_suite(data=rows('a'), scorers=[right])\ndef test_wrong(row): ...\n")
    assert "given its case as 'case': add that parameter" in project.run().text


def test_a_unittest_class_cannot_hold_a_suite_and_says_so(project: SmallProject) -> None:
    project.write("""
import unittest
class Old(unittest.TestCase):
    @eval_suite(data=rows('a'), scorers=[right])
    def test_wrong(self, case): ...
""")
    assert "a unittest.TestCase cannot hold an eval suite" in project.run().text


def test_thresholds(project: SmallProject) -> None:
    project.write("""
def half(given): return 0.5
def zero(given): return 0

def suite(**options):
    return describe_eval("s", data=rows("a"), task=str, **options)

test_default = suite(scorers=[half])
test_half = suite(scorers=[half], threshold=0.5)
test_recorded = suite(scorers=[zero], threshold=None)
test_zero = suite(scorers=[zero], threshold=0)
test_mean = suite(scorers=[half, zero], threshold=0.25)
test_mean_missed = suite(scorers=[half, zero], threshold=0.26)
""")
    seen = project.run("-rA")
    assert seen.counts() == {"passed": 4, "failed": 2}
    assert [(each.score, each.passed) for each in seen.outcomes] == [
        (0.5, False),
        (0.5, True),
        (0.0, None),
        (0.0, True),
        (0.25, True),
        (0.25, False),
    ]


def test_scorers_may_be_anything_and_one_that_breaks_stops_no_other(project: SmallProject) -> None:
    project.write("""
from bakeoff import Score

def raises(given): raise ZeroDivisionError("by zero")
def leaves(given): raise SystemExit(3)
def interrupts(given): raise KeyboardInterrupt
async def interrupts_async(given): raise KeyboardInterrupt
def seven(given): return 7
def words(given): return "fine"
def silent(given): return None
async def later(given):
    await asyncio.sleep(0)
    return True
def hangs(given): time.sleep(30)

class Object:
    name = "object"
    async def __call__(self, given): return Score(name="", value=0.5, reason="half way", metadata={"rationale": "x"})

def suite(*scorers, **options):
    return describe_eval("s", data=rows("a"), task=str, scorers=scorers, **{"threshold": 0.75, **options})

test_fine = suite(later, Object(), silent)
test_raises = suite(raises, later)
test_leaves = suite(leaves, later)
test_interrupts = suite(interrupts, interrupts_async, later)
test_seven = suite(seven, later)
test_words = suite(words, later)
test_hangs = suite(hangs, later, timeout=0.2)
test_silent = suite(silent)
test_silent_recorded = suite(silent, threshold=None)
test_zero = suite(silent, later, null_as_zero=True)
test_raises_recorded = suite(raises, threshold=None)
def test_other(): pass
""")
    seen = project.run()
    assert seen.counts() == {"passed": 3, "failed": 9}
    for problem in (
        "scorer 'raises': ZeroDivisionError: by zero",
        "scorer 'leaves': the scorer raised SystemExit: 3",
        "scorer 'interrupts': RuntimeError: KeyboardInterrupt",
        "scorer 'interrupts_async': the scorer raised KeyboardInterrupt",
        "could not be scored: scorer 'seven' returned 7, which is not between 0 and 1",
        "scorer 'words' returned 'fine': return a Score, a number, a bool or None",
        "scorer 'hangs': TimeoutError: not finished after 0.2 s",
        "no scorer gave a score: silent: unscored",
    ):
        assert problem in seen.text
    assert re.search(r"  raises    failed  ZeroDivisionError: by zero \(test_it.py:\d+, in raises\)\n", seen.text)
    assert "  interrupts_async failed  the scorer raised KeyboardInterrupt" in seen.text
    fine = seen.outcomes[0]
    assert [(score.name, score.value) for score in fine.records[0].scores] == [
        ("later", 1.0),
        ("object", 0.5),
        ("silent", None),
    ]
    assert fine.score == 0.75
    broken = seen.outcomes[1]
    assert [(score.name, score.value) for score in broken.records[0].scores] == [("raises", None), ("later", 1.0)]
    assert (broken.score, broken.passed) == (None, None)
    zeroed = next(each for each in seen.outcomes if each.rule.null_as_zero)
    assert (zeroed.score, zeroed.passed) == (0.5, False)
    (zero,) = zeroed.records
    assert (zero.value, zero.scores[0].value, zero.scores[0].reason) == (0.5, 0.0, "unscored, counted as 0")


def test_scorers_of_one_name_are_told_apart(project: SmallProject) -> None:
    project.write(
        "test_s = describe_eval('s', data=rows('a'), task=str, scorers=[right, right, lambda g: 1, Contains()])"
    )
    names = [score.name for score in project.run().outcomes[0].records[0].scores]
    assert names == ["right", "right-2", "scorer", "contains"]


def test_a_failure_says_score_input_output_and_scorers_worst_first(project: SmallProject) -> None:
    project.write("""
from bakeoff import Score

def best(given): return Score(name="", value=0.9, reason="nearly")
def worst(given): return Score(name="", value=0.1, reason="far \\x1b[31m off")
def silent(given): return None

data = [{"input": "question " * 30, "name": "q", "expected": {"a": 1}}]

@eval_suite(data=data, scorers=[best, silent, worst], threshold=0.8)
def test_it(case):
    return "answer " * 40 + "\\n\\x1b[2J the end"
""")
    seen = project.run()
    seen.result.stdout.fnmatch_lines(
        [
            "score 0.50, threshold 0.80",
            "  input     question question*",
            "            question*",
            "  output    answer answer*",
            "            answer*",
            "            \\x1b[[]2J the end",
            "  expected  {",
            "  worst     0.10  far \\x1b[[]31m off",
            "  best      0.90  nearly",
            "  silent    unscored",
        ]
    )
    assert max(len(line) for line in seen.text.splitlines() if "question" in line or "answer" in line) <= 100
    assert "Traceback" not in seen.text
    assert "trial.py" not in seen.text
    seen.result.stdout.fnmatch_lines(["FAILED test_it.py::test_it[[]q] - score 0.50 < 0.80: worst: far *"])


def test_what_a_task_raises_keeps_its_own_traceback(project: SmallProject) -> None:
    project.write("""
def deep(value):
    local = f"seen {value}"
    raise ValueError(local)

@eval_suite(data=rows("sync", "other"), scorers=[right])
def test_sync(case):
    return deep(case.input) if case.input == "sync" else "<other>"

@eval_suite(data=rows("async"), scorers=[right], threshold=None)
async def test_async(case):
    await asyncio.sleep(0)
    assert case.input == "nothing"

async def task(input):
    return deep(input)

test_task = describe_eval("task", data=rows("task"), task=task, scorers=[right], threshold=0)
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 3}
    for shown in ("ValueError: seen sync", "AssertionError: assert 'async' == 'nothing'", "ValueError: seen task"):
        assert f"E       {shown}" in seen.text
    for hidden in ("calls.py", "trial.py", "tasks.py", "items.py", "runner.py", "threading.py"):
        assert hidden not in seen.text
    assert seen.outcome("async").records[0].failure is not None


ANSWERS = {
    "object()": "returned an object of builtins.object, which is unknown",
    "None": "the task returned None: return the output to score",
    "sys.exit(3)": "the task raised SystemExit: 3",
    "interrupt()": "the task raised KeyboardInterrupt",
}


@pytest.mark.parametrize(("answer", "problem"), ANSWERS.items(), ids=ANSWERS)
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_answer_that_is_none_is_the_tasks_failure(
    project: SmallProject, kind: str, answer: str, problem: str
) -> None:
    project.write(f"""
import sys
def interrupt(): raise KeyboardInterrupt

@eval_suite(data=rows("odd", "good"), scorers=[right])
{kind} test_it(case):
    return {answer} if case.input == "odd" else "<good>"
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert problem in seen.text
    assert seen.outcome("odd").score == 0.0


def test_answers_may_be_text_data_results_and_result_objects(project: SmallProject) -> None:
    project.write("""
import dataclasses

@dataclasses.dataclass
class Point:
    x: int

completion = {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "hello"}}]}
answers = {"text": "a", "data": {"a": [1]}, "object": Point(3), "sdk": completion,
           "result": TaskResult(result="r", tool_calls=[ToolCall(name="t")])}

@eval_suite(data=[{"input": name, "name": name} for name in answers], scorers=[lambda given: True])
def test_it(case):
    return answers[case.input]
""")
    seen = project.run()
    outputs = {each.case: each.records[0].transcript.output for each in seen.outcomes if each.records[0].transcript}
    assert outputs == {"text": "a", "data": {"a": [1]}, "object": {"x": 3}, "sdk": "hello", "result": "r"}
    transcript = seen.outcome("result").records[0].transcript
    assert transcript is not None
    assert [call.name for call in transcript.tool_calls] == ["t"]


GATES = {
    # the scores of three rounds, gate and threshold: the score, and whether it passed
    "mean-met": ([1, 0, 0.5], "mean", 0.5, 0.5, True),
    "mean-missed": ([1, 0, 0], "mean", 0.5, 1 / 3, False),
    "one-of": ([0, 0, 1], "pass@k", 1.0, 1.0, True),
    "none-of": ([0, 0, 0.9], "pass@k", 1.0, 0.0, False),
    "one-of-by-threshold": ([0, 0, 0.8], "pass@k", 0.8, 1.0, True),
    "all-of": ([1, 1, 1], "pass^k", 1.0, 1.0, True),
    "not-all-of": ([1, 1, 0], "pass^k", 1.0, 0.0, False),
    "recorded": ([1, 1, 0], "pass^k", None, 0.0, None),
}


@pytest.mark.parametrize(("scores", "gate", "threshold", "score", "passed"), GATES.values(), ids=GATES)
def test_rounds_and_gates(
    project: SmallProject, scores: list[float], gate: str, threshold: float | None, score: float, passed: bool | None
) -> None:
    project.write(f"""
left = {scores}
lock = threading.Lock()

@eval_suite(data=[{{"input": "x", "name": "x"}}], scorers=[lambda given: float(given.output)], rounds=3, gate={gate!r},
            threshold={threshold})
def test_it(case):
    with lock:
        return str(left.pop())
""")
    seen = project.run()
    (outcome,) = seen.outcomes
    assert outcome.score == pytest.approx(score)
    assert outcome.passed is passed
    assert [record.round for record in outcome.records] == [0, 1, 2]
    assert seen.counts() == ({"failed": 1} if passed is False else {"passed": 1})
    if passed is False:
        assert "3 rounds)" in seen.text
        assert "(the worst is shown)" in seen.text


def test_rounds_of_the_command_line_count(project: SmallProject) -> None:
    project.write("test_it = describe_eval('s', data=rows('a'), task=lambda input: '<a>', scorers=[right], rounds=2)")
    assert len(project.run("--eval-rounds", "4").outcomes[0].records) == 4
    assert "'0' is not a whole number above 0" in project.run("--eval-rounds", "0").result.stderr.str()


def test_a_round_that_raises_counts_as_zero_where_others_meet_the_gate(project: SmallProject) -> None:
    project.write("""
left = {"some": [1, 0], "all": [1, 1]}

@eval_suite(data=rows("some", "all"), scorers=[lambda given: 1], rounds=2, gate="pass@k", concurrency=1)
async def test_it(case):
    if left[case.input].pop():
        raise OSError(f"gone for {case.input}")
    return "fine"
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert "OSError: gone for all" in seen.text
    assert seen.outcome("some").score == 1.0


def test_scores_that_only_rounding_keeps_below_the_threshold_reach_it(project: SmallProject) -> None:
    project.write("""
def most(given): return 0.7

test_mean = describe_eval("mean", data=rows("a"), task=str, scorers=[most, most, most], threshold=0.7)
test_rounds = describe_eval("rounds", data=rows("a"), task=str, scorers=[most], threshold=0.7, rounds=3)
test_each = describe_eval("each", data=rows("a"), task=str, scorers=[most] * 3, threshold=0.7, rounds=2, gate="pass^k")
test_cases = describe_eval("cases", data=rows(*"abc"), task=str, scorers=[most], threshold=0.7)
""")
    seen = project.run("--eval-fail-under", "0.7")
    assert seen.counts() == {"passed": 6}
    assert [each.passed for each in seen.outcomes] == [True] * 6
    alone = project.run("--eval-fail-under", "0.7", "test_it.py::test_mean")
    assert alone.outcomes[0].score == sum([0.7] * 3) / 3 < 0.7
    assert (seen.result.ret, alone.result.ret) == (0, 0)
    assert "--eval-fail-under passed" in alone.text


def test_a_task_that_raises_does_not_pass_where_nothing_has_to_be_reached(project: SmallProject) -> None:
    project.write("""
def task(input):
    return {}["key"] if input == "broken" else "nothing right"

test_it = describe_eval("s", data=rows("broken", "wrong"), task=task, scorers=[right], threshold=0)
""")
    seen = project.run("--eval-min-pass-rate", "1")
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert [(each.case, each.score, each.passed) for each in seen.outcomes] == [
        ("broken", 0.0, False),
        ("wrong", 0.0, True),
    ]


def test_suites_of_one_name_in_two_classes_are_two(project: SmallProject) -> None:
    project.write("""
class TestOne:
    test_it = describe_eval("same", data=rows("a"), task=lambda input: "<a>", scorers=[right])

class TestTwo:
    test_it = describe_eval("same", data=rows("a"), task=lambda input: "<a>", scorers=[right])

test_it = describe_eval("same", data=rows("a"), task=lambda input: "<a>", scorers=[right])
""")
    seen = project.run()
    assert seen.counts() == {"passed": 3}
    assert len({each.suite for each in seen.outcomes}) == 3
    assert seen.outcomes[-1].suite == "same"


def test_options_that_are_unknown_or_missing_are_named_with_the_suite_and_all_options() -> None:
    options = (
        "Its options are threshold, gate, rounds, timeout, concurrency, null_as_zero, retries, before_case, "
        "after_case, data, scorers, skip_if"
    )
    wrong: dict[str, Any] = {"data": [], "scorer": [str]}
    with pytest.raises(TypeError) as described:
        describe_eval("sums", task=str, **wrong)
    assert str(described.value) == f"sums: 'scorer' is no option; the option 'scorers' is missing. {options}"
    with pytest.raises(TypeError, match="test_it: the option 'data' is missing; the option 'scorers' is missing"):

        @eval_suite()  # type: ignore[call-arg]
        def test_it(case: object) -> str:
            return str(case)
