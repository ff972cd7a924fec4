"""Rows, results and scores in the many forms that users give them: understood, or refused with the way out."""

import pytest

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]


def test_a_row_has_its_own_threshold_marks_and_skip_and_may_be_a_param(project: SmallProject) -> None:
    project.path.joinpath("cells.csv").write_text(
        "input,threshold,skip,marks\na,0.4,,slow\nb,0.6,no,\nc,0.4,not yet,\n"
    )
    project.path.joinpath("tox.ini").write_text("[pytest]\nmarkers = slow\naddopts = --strict-markers\n")
    project.write("""
def half(given): return 0.5

test_fields = describe_eval("fields", task=str, scorers=[half], data=[
    {"input": "lower", "threshold": 0.4},
    {"input": "higher", "threshold": 0.6},
    {"input": "recorded", "threshold": None},
    {"input": "skipped", "skip": "no key"},
    {"input": "expected", "marks": [pytest.mark.xfail, "slow"]},
    {"input": "wrong", "threshold": 2},
    {"input": "unknown", "marks": "fast"},
    {"input": "odd", "marks": 3},
])
test_params = describe_eval("params", task=str, scorers=[half], threshold=0.5, data=[
    pytest.param({"input": "x"}, id="first", marks=pytest.mark.slow),
    pytest.param({"input": "y"}, marks=pytest.mark.skip(reason="later")),
    pytest.param("z", 1),
])
test_cells = describe_eval("cells", task=str, scorers=[half], data="cells.csv")
""")
    seen = project.run("-rs")
    passed = {outcome.case: outcome.passed for outcome in seen.outcomes}
    assert passed["lower"] is passed["first"] is passed["a"] is True
    assert passed["higher"] is passed["b"] is False
    assert passed["recorded"] is None
    assert seen.outcome("lower").records[0].threshold == 0.4
    assert seen.counts() == {"passed": 4, "failed": 6, "skipped": 3, "xfailed": 1}
    for expected in (
        "row 6: threshold 2 is not between 0 and 1, or None",
        "row 7: the mark 'fast': 'fast' not found in `markers` configuration option",
        "row 8: 3 is not a mark: give `pytest.mark.slow`, or its name as a text",
        "row 3: ('z', 1) is not a row",
        "no key",
        "not yet",
    ):
        assert expected in seen.text, expected
    assert project.run("-m", "slow").counts() == {"passed": 2, "xfailed": 1, "deselected": 11}


def test_generators_are_joined_and_scores_may_be_any_real_number(project: SmallProject) -> None:
    project.write("""
import decimal, fractions
import numpy
from bakeoff import Score

def words(input):
    yield from ("<", "a", ">")

async def async_words(input):
    for word in words(input):
        await asyncio.sleep(0)
        yield word

def numbers(input):
    yield 1

test_words = describe_eval("words", data=rows("a"), task=words, scorers=[right])
test_async = describe_eval("async", data=rows("a"), task=async_words, scorers=[right])
test_numbers = describe_eval("numbers", data=rows("a"), task=numbers, scorers=[right])

def decimals(given): return decimal.Decimal("0.5")
def fraction(given): return fractions.Fraction(1, 2)
def single(given): return numpy.float32(0.5)
def double(given): return numpy.float64(0.5)
def flag(given): return numpy.bool_(True)
def whole(given): return numpy.int64(1)
def named(given): return Score(name="tone", value=0.5)
def also_named(given): return Score(name="tone", value=0.25)
def unnamed(given): return Score(name="", value=1)

@eval_suite(data=rows("a"), threshold=0.5,
            scorers=[decimals, fraction, single, double, flag, whole, named, also_named, unnamed, Contains()])
def test_scores(case):
    return "<a>"

async def test_ready(to_eval):
    await to_eval("a", output=async_words("a"), expected="<a>", scorer=right)
""")
    seen = project.run()
    assert seen.counts() == {"passed": 4, "failed": 1}
    assert "the task yielded an object of builtins.int: yield texts, which are joined" in seen.text
    scores = {score.name: score.value for score in seen.outcome("a").records[0].scores} and {
        score.name: score.value
        for outcome in seen.outcomes
        if outcome.suite == "test_scores"
        for score in outcome.records[0].scores
    }
    assert scores == {
        "decimals": 0.5,
        "fraction": 0.5,
        "single": 0.5,
        "double": 0.5,
        "flag": 1.0,
        "whole": 1.0,
        "tone": 0.5,
        "tone-2": 0.25,
        "unnamed": 1.0,
        "contains": 1.0,
    }


def test_static_methods_may_be_suites(project: SmallProject) -> None:
    project.write("""
class TestIt:
    @staticmethod
    @eval_suite(data=rows("a"), scorers=[right])
    def test_outside(case):
        return f"<{case.input}>"

    @eval_suite(data=rows("a"), scorers=[right])
    @staticmethod
    async def test_inside(case):
        return f"<{case.input}>"
""")
    assert project.run().counts() == {"passed": 2}


def test_ids_have_no_addresses_so_that_workers_collect_the_same(project: SmallProject) -> None:
    project.write("""
class Question:
    pass

ROWS = [{"input": Question()}, {"input": Question()}, {"input": [Question()]}, {"input": {"b", "a", "c"}},
        {"input": lambda: 1}]

@eval_suite(data=ROWS, scorers=[lambda given: 1])
def test_it(case):
    return "x"
""")
    seen = project.run()
    assert [outcome.case for outcome in seen.outcomes] == [
        "test_it.Question-object",
        "test_it.Question-object-2",
        "test_it.Question-object-3",
        "a-b-c",
        "function-lambda",
    ]
    assert not [outcome.input for outcome in seen.outcomes if "0x" in outcome.input]
    assert project.run_apart("-p", "xdist", "-n", "2").counts() == {"passed": 5}


def test_an_eval_that_nobody_awaits_fails_its_test(project: SmallProject) -> None:
    project.write("""
def test_sync(to_eval):
    to_eval("a", output="a", expected="a", scorer=right)

async def test_async(to_eval):
    await to_eval("a", output="a", expected="a", scorer=right)
    to_eval("b", output="b", expected="b", scorer=right)

async def test_gathered(to_eval):
    both = [to_eval(text, output=text, expected=text, scorer=right) for text in "ab"]
    await asyncio.gather(*both, asyncio.create_task(to_eval("c", output="c", expected="c", scorer=right)))

async def test_run(run_eval):
    run_eval("q", task=lambda input: "wrong")

async def test_judge(run_eval):
    result = await run_eval("q", task=lambda input: "wrong", expected="right")
    result.judge(Contains(), threshold=0.8)

async def test_awaited(run_eval):
    result = await run_eval("q", task=lambda input: "right", expected="right")
    await result.judge(Contains())
    run_eval.sync("q", task=lambda input: "right", expected="right").judge_sync(Contains())
""")
    seen = project.run("--eval-fail-under", "0.5")
    assert seen.counts() == {"passed": 2, "failed": 4}
    assert "test_it.py:25: this eval was called and never awaited: write `await run_eval(…)`" in seen.text
    assert "test_it.py:29: this eval was called and never awaited: write `await result.judge(…)`" in seen.text
    undecided = {(each.suite, each.score) for each in seen.outcomes if each.problem}
    assert undecided == {("test_sync", None), ("test_async", None), ("test_run", None), ("test_judge", None)}
    assert "test_it.py:14: this eval was called and never awaited: write `await to_eval(…)`" in seen.text
    assert "test_it.py:18: this eval was called and never awaited" in seen.text
    assert "RuntimeWarning" not in seen.text
    assert seen.result.ret == 1
    assert "--eval-fail-under UNDECIDED: 4 of 10 undecided (4 not run)" in seen.text  # what was forgotten is undecided


UNCOLLECTED = """
@eval_suite(data=rows("a"), scorers=[right])
def capitals(case):
    return "x"

describe_eval("two words", data=rows("a"), task=str, scorers=[right])

@eval_suite(data=rows("a"), scorers=[right])
def meant_so(case):
    return "x"
meant_so.__test__ = False

def test_plain():
    pass
"""


def test_a_suite_that_is_never_collected_warns(project: SmallProject) -> None:
    project.write(UNCOLLECTED)
    seen = project.run_apart("-p", "xdist", "-n", "2", "-W", "default")
    assert seen.counts() == {"passed": 1}
    assert seen.text.count("PytestCollectionWarning: the eval suite") == 2
    assert "'capitals' is not collected, so it tests nothing: rename its function to `test_capitals`" in seen.text
    assert "'two words' is not collected, so it tests nothing: bind it: `test_two_words = …`" in seen.text
    strict = project.run()  # a warning is an error there
    assert strict.result.ret == pytest.ExitCode.USAGE_ERROR
    strict.result.stderr.fnmatch_lines(["ERROR: *test_it.py:13: the eval suite 'capitals' is not collected*"])


ENDS = """
def ends(how):
    raise {
        "stop": StopIteration("s"), "cancel": asyncio.CancelledError(), "interrupt": KeyboardInterrupt(),
        "exit": SystemExit(3), "close": GeneratorExit(),
    }[how]  # the user's line

@eval_suite(data=rows("stop", "cancel", "interrupt", "exit", "close"), scorers=[right])
def test_sync(case):
    ends(case.input)

@eval_suite(data=rows("stop", "cancel", "interrupt", "exit", "close"), scorers=[right])
async def test_async(case):
    await asyncio.sleep(0)
    ends(case.input)
"""


def test_errors_that_end_loops_show_the_line_that_raised_them(project: SmallProject) -> None:
    project.write(ENDS)
    seen = project.run("--tb=short")
    assert seen.counts() == {"failed": 10}
    assert seen.text.count("test_it.py:14: in ends") == 10
    assert "bakeoff/doors" not in seen.text.partition("short test summary")[0]
    for expected in ("StopIteration: s", "SystemExit: 3", "RuntimeError: the task raised KeyboardInterrupt"):
        assert seen.text.count(f"E   {expected}") == 2, expected


def test_objects_of_other_packages_are_refused_and_data_of_the_project_is_taken(project: SmallProject) -> None:
    project.path.joinpath("venv/site-packages").mkdir(parents=True)
    project.path.joinpath("venv/site-packages/sdk.py").write_text(
        "import dataclasses\nimport pydantic\n"
        "@dataclasses.dataclass\nclass Run:\n    instructions: str = 'say Paris'\n"
        "class Answer(pydantic.BaseModel):\n    text: str = 'Paris'\n"
    )
    project.write("""
import dataclasses, sys
sys.path.append(os.path.join(os.path.dirname(__file__), "venv", "site-packages"))
import sdk

@dataclasses.dataclass
class Mine:
    city: str = "Paris"

@dataclasses.dataclass
class Holder:
    run: sdk.Run = dataclasses.field(default_factory=sdk.Run)

GIVEN = {"mine": Mine(), "run": sdk.Run(), "answer": sdk.Answer(), "list": [{"a": sdk.Run()}], "holder": Holder(),
         "by hand": TaskResult(result=sdk.Run()), "object": object()}

@eval_suite(data=[{"input": name, "expected": "Paris"} for name in GIVEN], scorers=[Contains()])
def test_it(case):
    return GIVEN[case.input]
""")
    seen = project.run("-p", "no:warnings")
    assert [outcome.case for outcome in seen.outcomes if outcome.passed] == ["mine", "by-hand"]
    text = " ".join(seen.text.split())
    assert "the task returned an object of sdk.Run, which is unknown: return its text" in text
    assert "the task returned an object of sdk.Answer, which is unknown" in text
    assert "the task returned a list with an object of sdk.Run, which is unknown" in text
    assert "the task returned a Holder with an object of sdk.Run, which is unknown" in text
    assert "the task returned an object of builtins.object, which is unknown" in text


AGENTS = """
import dataclasses

@dataclasses.dataclass
class RunResultBase:
    new_items: list
    raw_responses: list
    final_output: object
    instructions: str = "always say Lima"

@dataclasses.dataclass
class RunResult(RunResultBase):
    def to_input_list(self):
        return [{"role": "user", "content": "Which city?"}, *(item.raw_item for item in self.new_items)]

@dataclasses.dataclass
class RunItem:
    raw_item: dict
"""  # the fields that are read of a run of openai-agents 0.24


def test_a_run_of_the_agents_sdk_and_its_items_are_read_and_instructions_are_no_output(project: SmallProject) -> None:
    package = project.path / "venv" / "site-packages" / "agents"
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text("")
    package.joinpath("result.py").write_text(AGENTS)
    project.write("""
import sys
sys.path.append(os.path.join(os.path.dirname(__file__), "venv", "site-packages"))
from agents.result import RunItem, RunResult
from bakeoff.scorers import ToolCalls

ITEMS = [{"type": "function_call", "call_id": "1", "name": "find", "arguments": '{"a": 2}'},
         {"type": "function_call_output", "call_id": "1", "output": "4"},
         {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is Paris."}]}]
RUN = RunResult([RunItem(item) for item in ITEMS], [], "It is Paris.")
GIVEN = {"run": RUN, "items": RUN.to_input_list()}

@eval_suite(data=[{"input": how, "expected": city, "name": f"{how}-{city}", "expected_tools": ["find"]}
                  for how in GIVEN for city in ("Paris", "Lima")], scorers=[Contains(), ToolCalls()], threshold=0.9)
def test_it(case):
    return GIVEN[case.input]
""")
    seen = project.run()
    assert [outcome.case for outcome in seen.outcomes if outcome.passed] == ["run-Paris", "items-Paris"]
    assert {outcome.score for outcome in seen.outcomes} == {1.0, 0.5}  # the calls are found in all four


NO_DATA = """
import httpx

class Mine:
    pass

async def later():
    return "Paris"

ITSELF = ["Paris"]
ITSELF.append(ITSELF)
DEEP = "Paris"
for _ in range(5000):
    DEEP = [DEEP]

MADE = {
    "response": lambda: {"r": httpx.Response(200, text="Paris")},
    "coroutine": lambda: {"a": [later()]},
    "mine": lambda: {"a": Mine()},
    "error": lambda: [ValueError("Paris")],
    "keys": lambda: {1: "Paris", "1": "Paris"},
    "itself": lambda: ITSELF,
    "deep": lambda: DEEP,
    "data": lambda: {"a": [1, 2.5, None, True, {"b": ("Paris", b"x", {3})}], 2: "y"},
}

@eval_suite(data=[{"input": name, "name": name, "expected": "Paris"} for name in MADE], scorers=[Contains()])
async def test_it(case):
    return MADE[case.input]()
"""


def test_what_is_no_data_inside_of_lists_and_dicts_is_refused_with_its_place(project: SmallProject) -> None:
    project.write(NO_DATA)
    seen = project.run("--tb=short")
    assert {each.case for each in seen.outcomes if each.passed} == {"data"}
    text = " ".join(seen.text.split())
    for said in (
        "a dict with an object of httpx.Response, which is unknown (at ['r'])",
        "a dict with a coroutine that was not awaited, which is unknown (at ['a'][0])",
        "a dict with an object of test_it.Mine, which is unknown (at ['a'])",
        "a list with an object of builtins.ValueError, which is unknown (at [0])",
        "the keys 1 and '1', which are one in JSON",
        "lists that are nested more than 100 levels deep, or that hold themselves",
    ):
        assert said in text, said
    assert " at 0x" not in text


def test_a_suite_without_parentheses_and_a_misspelt_option_say_what_to_write(project: SmallProject) -> None:
    project.write("""
import pytest
from bakeoff import UsageError, eval_suite


def test_bare():
    with pytest.raises(UsageError, match="write `@eval_suite.*above test_it"):
        @eval_suite
        def test_it(case): ...

async def test_misspelt(to_eval):
    with pytest.raises(UsageError, match="'treshold' is no option: did you mean 'threshold'"):
        await to_eval("q", output="a", expected="a", scorer=Contains(), treshold=0.2)
    await to_eval("q", output="a", expected="a", scorer=Contains(), context="a row field")
""")
    assert project.run().counts() == {"passed": 2}
