"""Solutions in Python that interfere with the run of their tests, and honest ones that look as if they did.

What a run claims is only shown to be true together with its twins: see `tests/grading/test_python_forgeries.py`.
"""

from collections.abc import AsyncIterator

import pytest

from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.pytest_runner import OpenPytest, PytestToolchain

pytestmark = pytest.mark.full

SECONDS = 60.0
TEST = """
from solution import add

def test_adds():
    assert add(1, 2) == 3

def test_adds_more():
    assert add(3, 5) == 8
"""
WRONG = "def add(a, b):\n    return 0\n"
RIGHT = "def add(a, b):\n    return a + b\n"


@pytest.fixture
async def python() -> AsyncIterator[OpenPytest]:
    async with PytestToolchain(lambda: choose_sandbox("auto")).open() as opened:
        yield opened


async def run(python: OpenPytest, solution: str, test: str = TEST, **more: str) -> TestRun:
    files = {"solution.py": solution, "test_solution.py": test} | {f"{name}.py": text for name, text in more.items()}
    return await python.run(files, seconds=SECONDS)


BEGINS = "import atexit, os, sys\n"
ATTACKS = {
    "exits in a test": "def add(a, b): os._exit(0)",
    "exits politely in a test": "def add(a, b): sys.exit(0)",
    "ends all that waits": "import signal\ndef add(a, b): os.kill(os.getppid(), signal.SIGKILL)",
    "writes at its exit": f"atexit.register(lambda: os.write(3, b'{{}}'))\n{WRONG}",
    "writes to every descriptor": """
for name in os.listdir('/proc/self/fd'):
    try: os.write(int(name), b'{"tests": []}\\n')
    except OSError: pass
""",
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_does_not_pass(python: OpenPytest, name: str) -> None:
    found = await run(python, f"{BEGINS}{ATTACKS[name]}")
    assert not found.ok, found
    assert found.tampered or found.error or any(test.state == "failed" for test in found.tests)


async def test_what_pytest_and_python_load_by_themselves_is_not_loaded(python: OpenPytest) -> None:
    ends = "import os; os._exit(0)"
    found = await run(python, RIGHT, conftest=ends, sitecustomize=ends, usercustomize=ends, pytest_cov=ends)
    assert found.ok, found


HONEST_LOOKALIKES = {
    "patches a built-in": "import builtins\nbuiltins.sum = lambda each: 7",
    "counts its calls": "import sys\nsys.setprofile(lambda *a: None)",
    "uses ctypes": "import ctypes\nctypes.c_int(3)",
    "looks at all objects": "import gc\ngc.get_objects()",
    "patches its own code": "def add(a, b): pass\nadd.__code__ = (lambda a, b: a + b).__code__\n_add = add",
    "leaves a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=[600]).start()",
}


@pytest.mark.parametrize("name", HONEST_LOOKALIKES)
async def test_an_honest_solution_passes_as_with_plain_pytest(python: OpenPytest, name: str) -> None:
    found = await run(python, f"{HONEST_LOOKALIKES[name]}\n{RIGHT}")
    assert found.ok, found


UNITTEST = """
import unittest
from unittest.mock import patch
import solution
from solution import add

class TestB(unittest.TestCase):
    seen = []
    def test_b(self):
        self.seen.append("b")
        self.assertEqual(add(1, 2), 3)
    def test_a(self):
        self.seen.append("a")
        self.assertEqual(add(1, 2), 3)
    def test_c(self):
        self.assertEqual(self.seen, ["a", "b"])
    @patch.object(solution, "add")
    def test_patched(self, add):
        solution.add(1)
        add.assert_called_once()

class TestMore(TestB):
    def test_d(self):
        pass

def test_named():
    pass
"""


async def test_a_suite_keeps_its_names_order_and_decorators(python: OpenPytest) -> None:
    found = await run(python, RIGHT, UNITTEST)
    names = [f"{group} > test_{each}" for group in ("TestB", "TestMore") for each in ("a", "b", "c", "d", "patched")]
    names.remove("TestB > test_d")
    assert [test.name for test in found.tests] == [*names, "test_named"]
    assert {test.name: test.message for test in found.tests if test.state != "passed"}.keys() == {"TestMore > test_c"}


HONEST = """
import enum
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

@dataclass(order=True)
class Point:
    x: int
    y: int = 0

class Mod:
    def __init__(self, n): self.n = n % 7
    def __eq__(self, other): return self.n == (other.n if isinstance(other, Mod) else other % 7)

class Colour(enum.Enum):
    RED = 1

Pair = namedtuple("Pair", "a b")

class Picky:
    def __eq__(self, other): return self.x == other.x
    def __init__(self): self.x = 1
"""
HONEST_TEST = """
import pytest
from decimal import Decimal
from fractions import Fraction
from unittest.mock import ANY
from solution import Colour, Mod, Pair, Picky, Point

class Everything:
    def __eq__(self, other): return True

def test_types():
    assert Point(1) == Point(1, 0) != Point(2)
    assert Point(1) < Point(2) and Point(1) <= Point(1)
    assert Mod(3) == 10 and Mod(3) == Mod(10)
    assert Colour.RED == Colour.RED and Pair(1, 2) == (1, 2) and Picky() == Picky()
    assert 0.1 + 0.2 == pytest.approx(0.3) and Fraction(1, 2) == 0.5 and Decimal("0.5") == Fraction(1, 2)
    assert {"a": Point(1)} == {"a": Point(1)} and {1, 2} < {1, 2, 3} and [1] not in ([2], [3])

def test_matchers():
    assert {"a": 1} == {"a": ANY}
    assert [Point(1)] == [Everything()]
"""


async def test_types_with_their_own_equality_and_the_suites_own_matchers_pass(python: OpenPytest) -> None:
    found = await run(python, HONEST, HONEST_TEST)
    assert found.ok, found


SET_UP = """
import pytest
from solution import add


pytestmark = pytest.mark.parametrize("number", [1, 2])

calls = []

@pytest.fixture(autouse=True)
def counted(number):
    calls.append(number)

def test_adds(number):
    assert add(number, number) == 2 * number
    assert len(calls) == number
"""


async def test_set_up_and_marks_of_a_module_are_kept(python: OpenPytest) -> None:
    found = await run(python, RIGHT, SET_UP)
    assert found.ok, found
    assert [test.name for test in found.tests] == ["test_adds[1]", "test_adds[2]"]
    assert not (await run(python, WRONG, SET_UP)).ok


async def test_a_test_finds_the_files_beside_it(python: OpenPytest) -> None:
    test = "from pathlib import Path\nfrom solution import add\n\n"
    test += "def test_a():\n    assert 'add' in Path(__file__).with_name('solution.py').read_text()\n"
    assert (await run(python, RIGHT, test)).ok


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "GeneratorExit"])
async def test_what_ends_python_is_told_as_what_it_is(python: OpenPytest, kind: str) -> None:
    at_once = await run(python, f"raise {kind}")
    assert (at_once.error, at_once.tampered) == (f"{kind} was raised while the solution was imported", None)


async def test_an_interruption_in_a_test_is_told_with_its_test(python: OpenPytest) -> None:
    found = await run(python, "def add(a, b): raise KeyboardInterrupt")
    assert (found.ok, found.stop, found.tampered) == (False, "crashed", None)
    assert found.error == "KeyboardInterrupt was raised in test_adds, which ended the run: no further test ran"


async def test_half_a_surrogate_pair_is_no_crash(python: OpenPytest) -> None:
    assert (await run(python, f"# \ud83d\n{RIGHT}", f"# \ud83d\n{TEST}")).ok
    found = await run(python, "def add(a, b): return chr(0xd83d)")
    assert [test.state for test in found.tests] == ["failed", "failed"]
    assert found.tampered is None


async def test_a_file_without_tests_is_said_to_have_none(python: OpenPytest) -> None:
    found = await run(python, RIGHT, "from solution import add\n")
    assert (found.ok, found.tests, found.error, found.tampered) == (False, (), "there is no test in it", None)


async def test_a_solution_that_exits_is_told_with_its_exit_code_and_nothing_of_ours(python: OpenPytest) -> None:
    found = await run(python, "import os\nos._exit(3)")
    assert found.stop == "crashed"
    assert found.error == "its process ended with exit code 3 before its tests did: no output"


STARTS = "import subprocess\ndef add(a, b):\n    return int(subprocess.check_output(['expr', str(a), '+', str(b)]))\n"


@pytest.mark.parametrize("processes", [True, False])
async def test_a_solution_starts_processes_only_where_the_suite_has_them(processes: bool) -> None:
    sandbox = choose_sandbox("auto")
    async with PytestToolchain(lambda: sandbox, processes).open() as opened:
        found = await run(opened, STARTS)
    assert found.ok is (processes or sandbox.name == "docker"), found
    if not found.ok:
        assert "PermissionError: [Errno 1] Operation not permitted" in found.tests[0].message
