"""Solutions in Python that would rather forge a result than earn one."""

from collections.abc import AsyncIterator

import pytest

from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains import OpenPytest, PytestToolchain, TestRun

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
FORGED = '{"tests": [{"name": "test_adds", "state": "passed"}], "exit_code": null, "forged": false}'


@pytest.fixture
async def python() -> AsyncIterator[OpenPytest]:
    async with PytestToolchain(lambda: choose_sandbox("auto")).open() as opened:
        yield opened


async def run(python: OpenPytest, solution: str, test: str = TEST) -> TestRun:
    return await python.run({"solution.py": solution, "test_solution.py": test}, seconds=SECONDS)


ANY = "class Any:\n    __eq__ = lambda *a: True\n    __hash__ = None\n"
ATTACKS = {
    "walks the frames for the proof": """
import json, os, sys, __main__
frame = sys._getframe()
while frame:
    if 'proof' in frame.f_locals:
        os.write(__main__.answers, (frame.f_locals['proof'] + '{}').encode())
    frame = frame.f_back
os._exit(0)
""",
    "exits in a test": "import os\ndef add(a, b): os._exit(0)",
    "exits politely in a test": "import sys\ndef add(a, b): sys.exit(0)",
    "ends all that waits": "import os, signal\ndef add(a, b): os.kill(os.getppid(), signal.SIGKILL)",
    "replaces how a test is run": f"""
import sys
sys.modules['_pytest.python'].Function.runtest = lambda self: None
{WRONG}""",
    "replaces the code of how a test is run": f"""
import sys
sys.modules['_pytest.python'].Function.runtest.__code__ = (lambda self: None).__code__
{WRONG}""",
    "replaces how a report is made": f"""
import sys
reports = sys.modules['_pytest.reports']
reports.TestReport.failed = property(lambda self: False)
{WRONG}""",
    "replaces how a result is told": f"""
import __main__
say = __main__.say
__main__.say = lambda **what: say(**({{**what, 'state': 'passed'}} if 'state' in what else what))
{WRONG}""",
    "passes all that call it": f"""
import sys, __main__
told = __main__.Plugin.pytest_runtest_logreport
def tell(self, report):
    if 'add' in str(report.longrepr): report.outcome = 'passed'
    told(self, report)
for each in __import__('gc').get_objects():
    if type(each).__name__ == 'HookImpl' and each.function.__name__ == 'pytest_runtest_logreport':
        if 'Plugin' in repr(each.plugin): each.function = lambda report, p=each.plugin: tell(p, report)
{WRONG}""",
    "registers a plugin": f"""
import gc
class Evil:
    def pytest_runtest_logreport(self, report):
        if 'add' in str(report.longrepr): report.outcome = 'passed'
managers = [each for each in gc.get_objects() if type(each).__name__ == 'PytestPluginManager']
managers[0].register(Evil())
{WRONG}""",
    "passes the tests it has read of, by profiling": f"""
import sys
def profile(frame, event, arg):
    if event == 'call' and frame.f_code.co_name == 'pytest_runtestloop':
        sys.setprofile(None)
        for item in frame.f_locals['session'].items:
            if item.name in ('test_adds', 'test_adds_more'): item.obj = lambda: None
sys.setprofile(profile)
{WRONG}""",
    "passes the tests that are not planted": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame.f_code.co_name != 'pytest_runtestloop': frame = frame.f_back
    for item in frame.f_locals['session'].items:
        if 'add' in item.obj.__code__.co_names: item.obj = lambda: None
    return 3
""",
    "passes what is collected, from a thread": f"""
import sys, threading, time
frame = sys._getframe()
while 'session' not in frame.f_locals: frame = frame.f_back
session = frame.f_locals['session']
def wait():
    while not session.items: time.sleep(0)
    for item in session.items:
        if 'add' in item.obj.__code__.co_names: item.obj = lambda: None
threading.Thread(target=wait, daemon=True).start()
{WRONG}""",
    "brings what Python and pytest load by themselves": f"""
for name in ('conftest.py', 'sitecustomize.py', 'usercustomize.py', 'pytest.ini', 'pytest.py', 'json.py'):
    open(name, 'w').write('import os; os._exit(0)')
{WRONG}""",
    "writes at its exit": f"import atexit, os\natexit.register(lambda: os.write(1, {FORGED!r}.encode()))\n{WRONG}",
    "searches all objects for the proof": f"""
import gc, os
texts = [t for each in gc.get_objects() if isinstance(each, dict) for t in each.values() if isinstance(t, str)]
for text in texts:
    if len(text) == 32: os.write(1, (text + {FORGED!r}).encode())
os._exit(0)
""",
    "writes to every descriptor": f"""
import os
for name in os.listdir('/proc/self/fd'):
    try: os.write(int(name), {FORGED!r}.encode() + b'\\n')
    except OSError: pass
os._exit(0)
""",
    "writes to every descriptor and goes on": f"""
import os
for name in os.listdir('/proc/self/fd'):
    try: os.write(os.open('/proc/self/fd/' + name, os.O_WRONLY | os.O_NONBLOCK), {FORGED!r}.encode() + b'\\n')
    except OSError: pass
{WRONG}""",
    "tells results beforehand": f"""
import os, json
for name in os.listdir('/proc/self/fd'):
    result = {{'word': '', 'state': 'passed', 'message': '', 'seconds': 0.1}}
    for line in ({{'starts': 'test_adds'}}, result, {{'ends': 1}}):
        try: os.write(int(name), json.dumps(line).encode() + b'\\n')
        except OSError: pass
{WRONG}""",
    "returns what equals everything": f"{ANY}\ndef add(a, b): return Any()",
    "returns what equals every number": f"{ANY.replace('True', 'isinstance(a[1], int)')}\ndef add(a, b): return Any()",
    "returns what equals small numbers": f"{ANY.replace('True', 'a[1] in range(99)')}\ndef add(a, b): return Any()",
    "returns a number that equals everything": f"{ANY.replace('Any', 'Any(int)')}\ndef add(a, b): return Any()",
    "returns a text that equals what it is not": "class Any(str): __eq__ = str.__ne__\ndef add(a, b): return Any()",
    "returns the any of mocks": "from unittest.mock import ANY\ndef add(a, b): return ANY",
    "returns an approximation of everything": "import pytest\ndef add(a, b): return pytest.approx(0, abs=1e99)",
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_does_not_pass(python: OpenPytest, name: str) -> None:
    found = await run(python, ATTACKS[name])
    assert not found.ok, found
    assert found.tampered or found.error or any(test.state == "failed" for test in found.tests)


REFUSED = {
    "sys.setprofile": "import sys; sys.setprofile(print)",
    "sys.settrace": "import sys; sys.settrace(print)",
    "gc.get_objects": "import gc; gc.get_objects()",
    "gc.get_referrers": "import gc; gc.get_referrers(gc)",
    "sys._current_frames": "import sys; sys._current_frames()",
    "ctypes": "import ctypes",
    "code": "import json; json.dumps.__code__ = (lambda *a, **k: '{}').__code__",
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_takes_over_the_interpreter_is_refused(python: OpenPytest, name: str) -> None:
    found = await run(python, f"{REFUSED[name]}\n{RIGHT}")
    assert not found.ok
    assert name in (found.error or "")
    assert "while a solution is tested" in (found.error or "")


async def test_profiling_of_every_thread_and_monitoring_tell_a_solution_nothing(python: OpenPytest) -> None:
    solution = """
import sys, threading
told = []
def add(a, b):
    threading.setprofile(lambda *a: told.append(a))
    threading.Thread(target=sorted, args=([],)).start()
    return len(told) + a + b
if hasattr(sys, 'monitoring'):
    try:
        sys.monitoring.use_tool_id(3, 'x')
        sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, told.append)
    except RuntimeError: pass
    else: told.append(0)
"""
    found = await run(python, solution)
    assert [test.state for test in found.tests if test.state == "passed"] == [test.state for test in found.tests]


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


@pytest.mark.parametrize("more", ["", "    assert TestB.test_a is not test_named\n"])
async def test_a_suite_keeps_its_names_order_and_decorators(python: OpenPytest, more: str) -> None:
    found = await run(python, RIGHT, UNITTEST + more)
    names = [f"{group} > test_{each}" for group in ("TestB", "TestMore") for each in ("a", "b", "c", "d", "patched")]
    names.remove("TestB > test_d")
    assert [test.name for test in found.tests] == [*names, "test_named"]
    assert {test.name: test.message for test in found.tests if test.state != "passed"}.keys() == {"TestMore > test_c"}


async def test_a_failure_is_told_with_the_names_of_the_suite(python: OpenPytest) -> None:
    test = f"{TEST}\ndef test_error():\n    raise KeyError(__import__('sys')._getframe().f_code.co_filename)\n"
    found = await run(python, WRONG, test.replace("co_filename", "co_" + "name"))
    assert [test.name for test in found.tests] == ["test_adds", "test_adds_more", "test_error"]
    assert "'test_error'" in found.tests[-1].message


OTHER_ASSERTIONS = {
    "in": "def test_a():\n    assert add(1, 2) in [3]\n",
    "inside": "def test_a():\n    assert [add(1, 2), {'a': (add(1, 2),)}] == [3, {'a': (3,)}]\n",
    "unequal": "def test_a():\n    assert add(1, 2) != 4\n    assert add(1, 2) == 3\n",
    "unittest": """
import unittest

class TestA(unittest.TestCase):
    def test_a(self):
        self.assertEqual(add(1, 2), 3)
""",
}


@pytest.mark.parametrize("name", OTHER_ASSERTIONS)
async def test_what_equals_everything_is_seen_in_every_assertion(python: OpenPytest, name: str) -> None:
    test = f"from solution import add\n{OTHER_ASSERTIONS[name]}"
    assert (await run(python, RIGHT, test)).ok
    found = await run(python, f"{ANY}\ndef add(a, b): return Any()", test)
    assert found.tampered == "its result cannot be compared: a `Any` equals whatever it is compared with"


async def test_what_is_both_less_and_greater_is_seen(python: OpenPytest) -> None:
    test = "from solution import add\ndef test_a():\n    assert add(1, 2) < 4\n    assert add(1, 2) > 2\n"
    found = await run(
        python, "class A:\n    __lt__ = __gt__ = __le__ = __ge__ = lambda *a: True\ndef add(a, b): return A()", test
    )
    assert found.tampered == "its result cannot be compared: a `A` is both equal and not, or less and not"


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


async def test_honest_types_and_the_suites_own_matchers_are_left_alone(python: OpenPytest) -> None:
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


async def test_tests_that_must_fail_are_not_in_the_way_of_a_modules_set_up(python: OpenPytest) -> None:
    found = await run(python, RIGHT, SET_UP)
    assert found.ok, found
    assert [test.name for test in found.tests] == ["test_adds[1]", "test_adds[2]"]
    assert not (await run(python, WRONG, SET_UP)).ok


async def test_no_file_holds_the_test(python: OpenPytest) -> None:
    solution = """
import os
found = []
for top in ('/tmp', '/workspace', '/home', '/dev/shm', os.getcwd()):
    for folder, _, names in os.walk(top):
        for name in names:
            try: text = open(os.path.join(folder, name), errors='replace').read()
            except OSError: continue
            if 'from solution import' + ' add' in text: found.append(os.path.join(folder, name))
raise RuntimeError(f'found {found}')
"""
    found = await run(python, solution)
    assert found.error == "RuntimeError: found []"


async def test_the_parents_memory_and_descriptors_are_out_of_reach(python: OpenPytest) -> None:
    solution = """
import os
told = []
for what in ('mem', 'fd/1', 'fd/0', 'environ'):
    try: os.open(f'/proc/{os.getppid()}/{what}', os.O_RDONLY if what != 'fd/1' else os.O_WRONLY)
    except OSError as error: told.append(type(error).__name__)
    else: told.append('opened ' + what)
raise RuntimeError(' '.join(told))
"""
    found = await run(python, solution)
    assert found.error == "RuntimeError: PermissionError PermissionError PermissionError PermissionError"


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
