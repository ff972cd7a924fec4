"""`--hidden-tests` for suites: the prompt and `TestComponent` know the visible tests only; grading runs all."""

import json
from pathlib import Path

import pytest

from bakeoff._kernel.json import CleanJson
from bakeoff.doors.components.plan import ComponentsRequest, case_of, command_line
from bakeoff.doors.components.results.steps import TEST_COMPONENT
from bakeoff.doors.components.suites import discover
from bakeoff.doors.components.tools import component_tools
from bakeoff.engine.resources import open_resources, sandbox_of
from bakeoff.grading.cases import graded_case, toolchains_for
from bakeoff.grading.grades import grade_answer
from bakeoff.grading.references import References
from bakeoff.options import RunOptions
from bakeoff.record import TestShares

from .small_suites import ADDER

pytestmark = pytest.mark.full

NUMBERS = range(1, 7)
TESTS = "from adder import add\n" + "".join(
    f"\n\ndef test_{number}():\n    assert add({number}, 10) == {number + 10}\n" for number in NUMBERS
)


async def test_a_model_sees_the_visible_tests_and_is_graded_by_all(tmp_path: Path) -> None:
    for name, text in {**ADDER, "test_adder.py": TESTS}.items():
        (tmp_path / "adder").mkdir(exist_ok=True)
        (tmp_path / "adder" / name).write_text(text)
    [suite] = discover(tmp_path).suites
    case = case_of(suite, ComponentsRequest(hidden_tests=0.5))
    visible = {number for number in NUMBERS if f"def test_{number}(" in case.prompt}
    assert len(visible) == 3
    assert "Further tests" in case.prompt
    assert case.hidden["test_adder.py"] == TESTS
    hard_coded = "def add(a, b):\n" + "".join(f"    if a == {each}: return {each + 10}\n" for each in visible)
    resources = (References("bakeoff verify --suite"), *toolchains_for([case], sandbox_of(RunOptions()), 1))
    async with open_resources(resources) as opened:
        grade = await grade_answer(graded_case(case), {"adder.py": hard_coded}, opened)
        tools = {tool.name: tool for tool in component_tools(case, opened, test_tool=True)}
        told: CleanJson = await tools[TEST_COMPONENT].call({"content": hard_coded})
        empty: CleanJson = await tools[TEST_COMPONENT].call({"content": "def add(a, b): ..."})
    assert grade.shares == TestShares(visible_passed=3, visible_total=3, hidden_passed=0, hidden_total=3)
    assert isinstance(told, dict)
    assert (told["success"], told["total"]) == (True, 3)
    hidden = set(NUMBERS) - visible
    assert not any(f"test_{number}" in json.dumps(empty) for number in hidden)


def test_the_wizard_names_the_share_in_its_command() -> None:
    words = command_line(ComponentsRequest(models=("nop",), hidden_tests=0.3))
    assert words[-2:] == ["--hidden-tests", "0.3"]
