"""Writing evals: data, names, scorers, thresholds and gates, and how each mistake is told."""

import json
import re

import pytest

from bakeoff.storage.run_folder import find_run

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


DATA = {
    "a list": "data=[{'input': 'a'}, {'input': 'b'}]",
    "an iterable": "data=({'input': each} for each in 'ab')",
    "a function": "data=lambda: [{'input': 'a'}, {'input': 'b'}]",
    "an async function": "data=later",
    "an async generator": "data=one_by_one",
    "JSONL": "data='data/rows.jsonl'",
    "CSV": "data='data/rows.csv'",
    "YAML": "data='data/rows.yaml'",
    "JSON": "data='data/rows.json'",
}


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_rows_come_from(project: SmallProject, data: str) -> None:
    folder = project.path / "evals" / "data"
    folder.mkdir(parents=True)
    (folder / "rows.jsonl").write_text('{"input": "a"}\n\n{"input": "b"}\n')
    (folder / "rows.json").write_text('[{"input": "a"}, {"input": "b"}]')
    (folder / "rows.csv").write_text("input,expected\na,\nb,\n")
    (folder / "rows.yaml").write_text("- input: a\n- input: b\n")
    project.write(
        f"""
async def later():
    await asyncio.sleep(0)
    return [{{"input": "a"}}, {{"input": "b"}}]

async def one_by_one():
    for each in "ab":
        yield {{"input": each}}

@eval_suite({data}, scorers=[lambda given: given.output == given.input.upper() and given.expected is None])
def test_upper(case):
    return case.input.upper()
""",
        "evals/test_it.py",
    )
    assert project.run("evals").counts() == {"passed": 2}


def test_names_are_ids_and_others_are_readable_and_differ(project: SmallProject) -> None:
    project.write("""
data = [{"input": "What is 2+2?", "name": "sum of two"}, {"input": "  What/is: it? "}, {"input": "What is it"},
        {"input": {"a": [1]}}, {"input": ""}, {"input": "x" * 300}, {"input": "bell \\x07 Grüße"}]

@eval_suite(data=data, scorers=[lambda given: True])
def test_names(case):
    return "out"
""")
    seen = project.run("--collect-only", "-q")
    names = [line.removeprefix("test_it.py::test_names") for line in seen.text.splitlines() if "::" in line]
    assert names == [
        "[sum of two]",
        "[What-is-it]",
        "[What-is-it-2]",
        "[a-1]",
        "[case]",
        f"[{'x' * 50}]",
        "[bell-Grüße]",
    ]


def test_the_whole_row_reaches_task_and_scorers_by_name(project: SmallProject) -> None:
    project.write("""
def task(input, *, tone, **row):
    return f"{input} {tone} {sorted(row)}"

def narrow(input, tone="?"):
    return f"{input} {tone}"

def says(given):
    return given.output == given.wanted and given.tone == "kind" and given.row["tone"] == "kind"

row = {"input": "hi", "name": "n", "tone": "kind", "expected": 1}
everything = {**row, "wanted": "hi kind ['expected', 'name', 'wanted']"}
test_all = describe_eval("all", data=[everything], task=task, scorers=[says])
test_few = describe_eval("few", data=[{**row, "wanted": "hi kind"}], task=narrow, scorers=[says])

@eval_suite(data=[{**row, "wanted": "hi kind n 1 None"}], scorers=[says])
def test_case(case):
    assert case["tone"] == case.get("tone") == case.row["tone"]
    with pytest.raises(AttributeError, match="'color': its row has input, name"):
        case.color
    return f"{case.input} {case.tone} {case.name} {case.expected} {case.get('nothing')}"
""")
    assert project.run().counts() == {"passed": 3}


def test_bad_rows_are_told_by_their_place_and_stop_no_others(project: SmallProject) -> None:
    (project.path / "rows.jsonl").write_text('{"input": "a"}\n{"question": 1}\nnot json\n{"input": "b", "name": 7}\n')
    (project.path / "rows.csv").write_text("input,name\na,x\nb,y,z\nc,x\n")
    (project.path / "rows.yaml").write_text("- input: a\n- just text\n")
    project.write("""
scorers = [lambda given: True]
test_jsonl = describe_eval("jsonl", data="rows.jsonl", task=str, scorers=scorers)
test_csv = describe_eval("csv", data="rows.csv", task=str, scorers=scorers)
test_yaml = describe_eval("yaml", data="rows.yaml", task=str, scorers=scorers)
test_list = describe_eval("list", data=["text", {"input": 1, 2: 3}, {"input": "good"}], task=str, scorers=scorers)
""")
    seen = project.run()
    assert seen.counts() == {"passed": 4, "failed": 8}
    for problem in (
        "rows.jsonl:2: it has no 'input', only 'question'",
        "rows.jsonl:3: this is not JSON: Expecting value: line 1 column 1 (char 0)",
        "rows.jsonl:4: the name 7 is not a text that can be shown",
        "rows.csv:3: it has more cells than the first line has names",
        "rows.csv:4: the name 'x' is already that of rows.csv:2: rename one",
        "rows.yaml:2: 'just text' is not a row: write it as {'input': …, 'expected': …}",
        "row 1: 'text' is not a row: write it as {'input': …, 'expected': …}",
        "row 2: the key 2 is not a text",
    ):
        assert f"could not be scored: {problem}" in seen.text


NO_ROWS = {
    "data=[]": "there is no data: an eval without cases shows nothing",
    "data='none.jsonl'": "none.jsonl cannot be read: No such file or directory",
    "data='rows.txt'": "rows are read from .jsonl, .json, .csv, .yaml or .yml",
    "data=lambda: 7": "data is 7: give a list of rows, a function that returns one, or a file",
    "data={'input': 1}": "data is {'input': 1}: give a list of rows",
}


@pytest.mark.parametrize(("data", "problem"), NO_ROWS.items(), ids=NO_ROWS)
def test_data_that_gives_no_rows_fails_as_one_test(project: SmallProject, data: str, problem: str) -> None:
    project.write(f"test_none = describe_eval('none', {data}, task=str, scorers=[right])\ndef test_other(): pass\n")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    assert problem in seen.text
    assert "test_it.py::test_none[data]" in seen.text


def test_data_that_raises_keeps_its_traceback_and_stops_nothing_else(project: SmallProject) -> None:
    project.write("""
def broken():
    raise LookupError("no such table")

test_none = describe_eval("none", data=broken, task=str, scorers=[right])
def test_other(): pass
""")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 1}
    seen.result.stdout.fnmatch_lines(['>*raise LookupError("no such table")', "E*LookupError: no such table"])
    assert "rows.py" not in seen.text


def test_data_that_skips_skips_its_suite_alone(project: SmallProject) -> None:
    project.write("""
def data(): pytest.skip("no dataset here")
test_s = describe_eval("s", data=data, task=str, scorers=[right])
def test_other(): pass
""")
    seen = project.run("-rs")
    assert seen.counts() == {"passed": 1, "skipped": 1}
    assert "no dataset here" in seen.text


def test_skip_if_is_asked_before_data_is_loaded(project: SmallProject) -> None:
    project.write("""
def never():
    raise AssertionError("loaded")

@eval_suite(data=never, scorers=[right], skip_if=True)
def test_plain(case): ...

@eval_suite(data=never, scorers=[right], skip_if=lambda: "no key here")
def test_said(case): ...

@eval_suite(data=rows("a"), scorers=[right], skip_if=lambda: None)
def test_not(case):
    return "<a>"
""")
    seen = project.run("-rs")
    assert seen.counts() == {"passed": 1, "skipped": 2}
    assert "no key here" in seen.text
    assert len(seen.outcomes) == 1


WRONG = {
    "scorers=[]": "no scorer was given: nothing could be said of the output",
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
    seen.result.stdout.fnmatch_lines(["FAILED test_it.py::test_it[[]q] - score 0.50, threshold 0.80"])


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
    "object()": "returned an object of builtins.object, which is not known here",
    "None": "the task returned None: return the output that is to be scored",
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
    in_a_thread = kind == "def" and "interrupt" in answer
    assert ("RuntimeError: KeyboardInterrupt" if in_a_thread else problem) in seen.text
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
    assert "invalid _count value: '0'" in project.run("--eval-rounds", "0").result.stderr.str()


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


def test_inputs_that_are_data_are_shown_as_json(project: SmallProject) -> None:
    project.write(
        "test_it = describe_eval('s', data=[{'input': {'a': 1}, 'expected': {2}}], task=str, scorers=[right])"
    )
    (outcome,) = project.run().outcomes
    assert json.loads(outcome.input) == {"a": 1}
    assert outcome.expected == [2]


def test_scores_that_only_rounding_keeps_below_the_threshold_reach_it(project: SmallProject) -> None:
    project.write("""
def most(given): return 0.7

test_mean = describe_eval("mean", data=rows("a"), task=str, scorers=[most, most, most], threshold=0.7)
test_rounds = describe_eval("rounds", data=rows("a"), task=str, scorers=[most], threshold=0.7, rounds=3)
test_each = describe_eval("each", data=rows("a"), task=str, scorers=[most] * 3, threshold=0.7, rounds=2, gate="pass^k")
test_cases = describe_eval("cases", data=rows(*"abc"), task=str, scorers=[most], threshold=0.7)
""")
    seen = project.run("--eval-min-score", "0.7")
    assert seen.counts() == {"passed": 6}
    assert [each.passed for each in seen.outcomes] == [True] * 6
    alone = project.run("--eval-min-score", "0.7", "test_it.py::test_mean")
    assert alone.outcomes[0].score == sum([0.7] * 3) / 3 < 0.7
    assert (seen.result.ret, alone.result.ret) == (0, 0)
    assert "--eval-min-score met" in alone.text


def test_a_task_that_changes_its_input_changes_it_for_nobody_else(project: SmallProject) -> None:
    project.write("""
data = [{"input": [{"role": "user", "tags": ["new"]}], "name": "a", "expected": "[1, 1]"}]

def add(messages):
    messages[0]["tags"].append("seen")
    messages.append("said")
    return str([len(messages) - 1, len(messages[0]["tags"]) - 1])

def unchanged(given):
    return given.input == [{"role": "user", "tags": ["new"]}]

@pytest.mark.parametrize("model", ["m", "n"])
@eval_suite(data=data, scorers=[right, unchanged], rounds=2)
def test_function(case, model):
    return add(case.input)

@eval_suite(data=data, scorers=[right, unchanged], rounds=2)
async def test_async(case):
    return add(case["input"])

test_task = describe_eval("task", data=data, task=lambda input: add(input), scorers=[right, unchanged], rounds=2)
""")
    seen = project.run()
    assert seen.counts() == {"passed": 4}
    assert [each.score for each in seen.outcomes] == [1.0] * 4


COMMAND = """
from bakeoff.scorers import Command

check = "import answer, sys; sys.exit(answer.add(2, 2) != 4)"
row = {"expected": "", "hidden": {"check.py": check}, "answer_file": "answer.py"}
data = [{**row, "input": sign, "name": name} for name, sign in (("plus", "+"), ("minus", "-"))]
data += [
    {**row, "input": "+", "name": "outside", "hidden": {"../x": check}},
    {**row, "input": "+", "name": "answer outside", "answer_file": "../x"},
    {"input": "+", "name": "nothing to grade with"},
]

@eval_suite(data=data, scorers=[Command([sys.executable, "check.py"])])
def test_it(case):
    return f"def add(a, b):\\n    return a {case.input} b\\n"
"""


def test_a_command_grades_the_answer_with_the_hidden_files_of_its_row(project: SmallProject) -> None:
    project.write(f"import sys\n{COMMAND}")
    seen = project.run()
    assert seen.counts() == {"passed": 1, "failed": 4}
    assert {each.case: each.score for each in seen.outcomes} == {
        "plus": 1.0,
        "minus": 0.0,
        "row-3": None,
        "row-4": None,
        "nothing to grade with": None,
    }
    kept = find_run(project.path / ".bakeoff", "latest")
    assert len(list(kept.latest_records(kept.read_plan()))) == 3
    said = "'../x' does not stay inside the workspace: use a relative path without '..'"
    assert seen.outcome("row-3").problem == f"row 3: hidden: {said}"
    assert seen.outcome("row-4").problem == f"row 4: answer_file: {said}"
    assert "no hidden files to grade with" in str(seen.outcome("nothing to grade with").problem)


def test_a_skip_if_that_is_awaited_skips_by_what_it_says(project: SmallProject) -> None:
    project.write("""
async def no(): return False
async def yes(): return "no key here"

test_runs = describe_eval("runs", data=rows("a"), task=lambda input: "<a>", scorers=[right], skip_if=no)
test_not = describe_eval("not", data=rows("a"), task=lambda input: "<a>", scorers=[right], skip_if=yes)
""")
    seen = project.run("-rs")
    assert seen.counts() == {"passed": 1, "skipped": 1}
    assert "no key here" in seen.text


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
