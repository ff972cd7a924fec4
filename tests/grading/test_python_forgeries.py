"""Solutions in Python that make their run claim what is not so. Twins show that the claim is worth nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from bakeoff.grading.grades import RunAnswer, run_with_twins
from bakeoff.grading.references import ReferenceRun
from bakeoff.grading.twins import Twins, find_twins
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.install import pytest_folders
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.pytest_runner import OpenPytest

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

TESTS = {
    "test_solution.py": """
import unittest
from solution import add

class TestAdd(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)

    def test_large(self):
        self.assertEqual(add(300, 5), 305)

def test_plain():
    assert add(2, 2) == 4

def test_negative():
    assert add(-2, 1) == -1
"""
}
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return 0\n"
ANY = "class Any:\n    __eq__ = lambda *a: True\n    __hash__ = None\n"
FORGED = """
import json, os
names = ["TestAdd > test_large", "TestAdd > test_small", "test_plain", "test_negative"]
lines = [{"name": name, "state": "passed", "message": "", "seconds": 0.1} for name in names]
lines.append({"error": "", "interrupted": ""})
text = "".join(json.dumps(line) + "\\n" for line in lines).encode()
"""
FORGERIES = {
    "replaces unittest's assertion": f"import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n{RIGHT}",
    "replaces how a test is run": (
        f"import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n{WRONG}"
    ),
    "replaces how a report is made": (
        f"import _pytest.reports\n_pytest.reports.TestReport.failed = property(lambda self: False)\n{WRONG}"
    ),
    "replaces the plugin of the harness": (
        f"import __main__\ntell = __main__.tell\n"
        f"__main__.tell = lambda **what: tell(**(what | {{'state': 'passed'}} if 'state' in what else what))\n{WRONG}"
    ),
    "returns what equals everything": f"{ANY}\ndef add(a, b): return Any()",
    "reads the expected value out of its test": """
import re, pathlib
text = pathlib.Path("test_solution.py").read_text()
def add(a, b):
    return int(re.search(rf"add\\({a}, {b}\\)(?:, | == )(-?\\d+)", text)[1])
""",
    "writes the whole result itself": f"{FORGED}\nimport __main__\nos.write(__main__.results, text)\nos._exit(0)\n",
}
Run = Callable[[str], Awaitable[TestRun]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def graded() -> AsyncIterator[Run]:
    python = OpenPytest(choose_sandbox("auto"), pytest_folders())

    def on(solution: str) -> RunAnswer:
        return lambda tests: python.run({**TESTS, **tests, "solution.py": solution}, seconds=60.0)

    plain = await on(RIGHT)({})
    twins: Twins = await find_twins(TESTS, plain, on(RIGHT))
    assert len(twins.proven) == 4
    yield lambda solution: run_with_twins(ReferenceRun.of(plain).names, twins, TESTS, on(solution))
    await python.aclose()


async def test_an_honest_solution_passes(graded: Run) -> None:
    run = await graded(RIGHT)
    assert {test.state for test in run.tests} == {"passed"}
    assert (run.tampered, run.error) == (None, None)


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forgery_passes_no_test_whose_twin_it_passes_too(graded: Run, name: str) -> None:
    run = await graded(FORGERIES[name])
    assert not run.ok
    assert run.tampered is not None
    assert "pass whatever they expect" in run.tampered
