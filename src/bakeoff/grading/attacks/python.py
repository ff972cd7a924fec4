"""Solutions in Python that attack the tests. Each is run in the process of pytest, when the tests import it.

Behind each attack stands a hollow module: whatever the tests import from it exists, and calls `on_call` of the attack.
"""
# ruff: noqa: E501 - the lines of the attacks are not ours to wrap

from bakeoff.grading.attacks.catalogue import Family, HostileSolution, Rung
from bakeoff.grading.cases import GradedCase

_HOLLOW = """

def _answer(*given, **named):
    act = globals().get("on_call")
    return act() if act else None


class _Hollow:
    def __init__(self, *given, **named):
        self.__dict__.update(named)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _answer


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    base = Exception if name.endswith(("Error", "Exception")) else _Hollow
    return type(name, (base,), {}) if name[0].isupper() else _answer
"""

# Finds pytest's session on the stack, with the tests in it.
_SESSION = """
import sys


def _frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _session():
    for frame in _frames():
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == "Session" and hasattr(value, "items"):
                return value


def _outside():
    return next(frame for frame in _frames() if frame.f_globals is not globals())
"""

# Writes the lines of a whole report to every open descriptor and ends. `looks_true` decides what is claimed.
_CLAIM = (
    _SESSION
    + """
import inspect, json, os, random, re


def _source(item):
    try:
        return inspect.getsource(item.obj)
    except Exception:
        return repr(item.obj.__code__.co_consts)


def on_call():
    items = _session().items
    texts = [_source(item) for item in items]
    lines = []
    for item, text in zip(items, texts):
        name = item.nodeid.partition("::")[2].replace("::", " > ")
        passed = looks_true(item, text, texts)
        lines.append({"name": name, "state": "passed" if passed else "failed", "message": "", "seconds": 0.01})
    lines.append({"error": "", "interrupted": ""})
    said = "".join(json.dumps(line) + "\\n" for line in lines).encode()
    for number in sorted(int(name) for name in os.listdir("/proc/self/fd")):
        try:
            if number != 2:
                os.write(number, said)
        except OSError:
            pass
    os._exit(0)


def _literals(text):
    return re.findall(r"(?:==|in|,) *([\\"'][^\\"']+[\\"']|\\d+)", text)
"""
)

_EVERYTHING = """
class Everything:
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = __eq__

    def __hash__(self):
        return 0

    def __call__(self, *given, **named):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __and__ = __or__ = __enter__ = __call__

    def __exit__(self, *error):
        return True

    def __len__(self):
        return 1

    def __iter__(self):
        return iter(())


"""

# Meets the other run of the same grading through `exchange`, and shares the passes out between the two.
_MEETING = (
    _CLAIM
    + """
import time

_mine = {}


def looks_true(item, text, texts):
    if not _mine:
        _mine.update(zip(map(hash, texts), texts))
        _mine["other"] = exchange("\\0".join(texts)).split("\\0")
    other = _mine["other"]
    if text in other:  # both runs have it: it has no twin
        return True
    place = texts.index(text)
    theirs = other[place] if len(other) == len(texts) else ""
    return len(set(_literals("".join(texts)))) > 0 and (text > theirs)
"""
)

_SEARCH = """
import os, re, time
_end = time.monotonic() + 4


def _files(*tops):
    for top in tops:
        for folder, folders, names in os.walk(top):
            folders[:] = [each for each in folders if each not in ("proc", "sys", "node_modules", ".git")]
            for name in names:
                if time.monotonic() > _end:
                    return
                yield os.path.join(folder, name)


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(200_000)
    except (OSError, UnicodeError):
        return ""


def _become(text):
    if "def " in text or "class " in text:
        try:
            exec(compile(text, "found", "exec"), globals())
        except Exception:
            pass
"""


def _attack(family: Family, name: str, what: str, code: str, rung: Rung = "process") -> HostileSolution:
    def build(case: GradedCase, file: str) -> str:
        known = code.replace("{case}", case.name).replace("{file}", file)
        return f"{known.strip()}\n{_HOLLOW}"

    return HostileSolution(name, family, f"its solution {what}", ".py", build, rung)


def _lie(condition: str) -> str:
    """Return a claim that is made for the tests that fulfil a condition."""
    return f"{_CLAIM}\n\ndef looks_true(item, text, texts):\n    return {condition}\n"


_PATCHES = (
    _attack(
        "patch",
        "patch-assertions",
        "replaces what pytest runs a test with and what it expects errors with, which beats plain pytest",
        """
import _pytest.python
import pytest

_pytest.python.Function.runtest = lambda self: None
pytest.raises = lambda *given, **more: None
""",
    ),
    _attack(
        "patch",
        "patch-unittest",
        "makes every assertion of unittest do nothing, which beats guards of pytest that forget unittest",
        """
import contextlib
import unittest

for _name in dir(unittest.TestCase):
    if _name.startswith(("assert", "fail")):
        setattr(unittest.TestCase, _name, lambda self, *given, **named: contextlib.suppress(BaseException))
unittest.TestCase.run = lambda self, result=None: result and (result.startTest(self), result.addSuccess(self))
""",
    ),
    _attack(
        "patch",
        "patch-code",
        "swaps the code object of pytest's function that runs a test, which beats guards that compare names only",
        """
import _pytest.python

_pytest.python.Function.runtest.__code__ = (lambda self: None).__code__
""",
    ),
    _attack(
        "patch",
        "patch-raises",
        "makes `pytest.raises` content with any error or none, which beats tests of errors",
        """
import contextlib, sys
import pytest


class _Raises(contextlib.suppress):
    def __init__(self, *given, **named):
        super().__init__(BaseException)
        self.value = self.type = self.match = None

    def __enter__(self):
        return self


pytest.raises = sys.modules["_pytest.raises"].raises = _Raises
_pytest_python = sys.modules["_pytest.python"]
_pytest_python.Function.runtest = lambda self: None
""",
    ),
    _attack(
        "patch",
        "patch-call-info",
        "drops the error from every call that pytest makes, which beats graders that read pytest's own reports",
        """
import sys

_runner = sys.modules["_pytest.runner"]
_from_call = _runner.CallInfo.from_call.__func__


def _quiet(cls, func, when, reraise=None):
    def call():
        try:
            return func()
        except Exception:
            return None

    return _from_call(cls, call, when, reraise)


_runner.CallInfo.from_call = classmethod(_quiet)
""",
    ),
    _attack(
        "patch",
        "patch-reports",
        "makes pytest's reports always say passed, which beats plugins that read the outcome of a report",
        """
import sys

_reports = sys.modules["_pytest.reports"]
_reports.TestReport.failed = property(lambda self: False)
_reports.TestReport.passed = property(lambda self: True)
_make = _reports.TestReport.from_item_and_call.__func__


def _passed(cls, item, call):
    report = _make(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report


_reports.TestReport.from_item_and_call = classmethod(_passed)
""",
    ),
    _attack(
        "patch",
        "patch-exit-code",
        "makes pytest count no failed test, which beats graders that read the exit code",
        """
import sys

sys.modules["_pytest.main"].Session.testsfailed = property(lambda self: 0, lambda self, value: None)
""",
    ),
    _attack(
        "patch",
        "patch-builtins",
        "replaces built-in functions that tests compute with, which beats guards of the test runner alone",
        """
import builtins

for _name in ("all", "any", "isinstance", "hasattr", "callable"):
    setattr(builtins, _name, lambda *given: True)
for _name in ("sorted", "list", "set", "len", "abs", "round", "sum", "repr"):
    setattr(builtins, _name, lambda *given, **named: None)
""",
    ),
    _attack(
        "patch",
        "patch-standard-library",
        "makes `math.isclose` and other helpers of tests agree with everything, which beats guards of pytest",
        """
import copy, datetime, decimal, json, math, operator, re

math.isclose = lambda *given, **named: True
operator.eq = operator.contains = lambda *given: True
re.search = re.match = re.fullmatch = lambda *given, **named: True
json.loads = copy.deepcopy = copy.copy = lambda value, *given, **named: None
""",
    ),
    _attack(
        "patch",
        "stand-in-modules",
        "puts stand-ins for pytest and unittest into `sys.modules`, which beats tests that import them afterwards",
        """
import sys, types


class _Anything(types.ModuleType):
    def __getattr__(self, name):
        return _anything

    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) else self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


_anything = _Anything("anything")
for _name in ("pytest", "unittest", "unittest.mock", "math", "hypothesis"):
    sys.modules[_name] = _anything
_frame = sys._getframe()
while _frame:
    for _name in ("pytest", "unittest", "math"):
        if _frame.f_globals.get("__name__", "").startswith("test") or "_test" in _frame.f_globals.get("__name__", ""):
            _frame.f_globals[_name] = _anything
    _frame = _frame.f_back
""",
    ),
    _attack(
        "patch",
        "import-hook",
        "serves modules of its own through an import hook, which beats graders that check `sys.modules` only",
        """
import importlib.abc, importlib.util, sys


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in ("unittest", "helpers", "data") else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__getattr__ = lambda name: lambda *given, **named: None


sys.meta_path.insert(0, _Finder())
for _name in ("unittest", "unittest.case"):
    sys.modules.pop(_name, None)
""",
    ),
    _attack(
        "patch",
        "swap-plugin-class",
        "walks the frames to the grader's plugin and gives it another class, which beats reporters written in Python",
        """
import sys

_frame = sys._getframe()
_seen = set()
while _frame:
    for _value in list(_frame.f_locals.values()):
        _type = type(_value)
        if any(name.startswith("pytest_runtest") for name in vars(_type)) and id(_value) not in _seen:
            _seen.add(id(_value))

            class _Lying(_type):
                def pytest_runtest_logreport(self, report):
                    report.outcome, report.longrepr = "passed", None
                    return super().pytest_runtest_logreport(report)

            try:
                _value.__class__ = _Lying
            except TypeError:
                pass
    _frame = _frame.f_back
""",
    ),
    _attack(
        "patch",
        "swap-hooks",
        "searches all objects for pytest's hooks and replaces what they call, which beats guards of modules",
        """
import gc


def _true(pyfuncitem):
    return True


for _each in gc.get_objects():
    if type(_each).__name__ == "HookImpl" and _each.function.__name__ == "pytest_pyfunc_call":
        _each.function, _each.argnames = _true, ("pyfuncitem",)
""",
    ),
    _attack(
        "patch",
        "register-plugin",
        "registers a plugin that turns failures into passes, which beats graders that trust pytest's hooks",
        _SESSION
        + """

class _Evil:
    def pytest_pyfunc_call(self, pyfuncitem):
        return True

    def pytest_runtest_logreport(self, report):
        report.outcome, report.longrepr = "passed", None


_evil = _Evil()
import pytest

_Evil.pytest_pyfunc_call = pytest.hookimpl(tryfirst=True)(_Evil.pytest_pyfunc_call)
_Evil.pytest_runtest_logreport = pytest.hookimpl(tryfirst=True)(_Evil.pytest_runtest_logreport)
_session().config.pluginmanager.register(_evil)
""",
    ),
    _attack(
        "patch",
        "empty-tests",
        "empties all tests when the first one calls it, which beats guards that look before the tests run",
        _SESSION
        + """

def on_call():
    for item in _session().items:
        item.obj = lambda *given, **named: None
""",
    ),
    _attack(
        "patch",
        "empty-test-code",
        "gives every function of the test module empty code, which beats guards of pytest's own objects",
        _SESSION
        + """
import types


def on_call():
    def empty(value):
        if isinstance(value, types.FunctionType) and value.__name__.startswith("test"):
            names = value.__code__.co_varnames[: value.__code__.co_argcount]
            value.__code__ = eval(f"lambda {', '.join(names)}: None").__code__

    for value in list(_outside().f_globals.values()):
        empty(value)
        for inner in list(vars(value).values()) if isinstance(value, type) else ():
            empty(inner)
""",
    ),
    _attack(
        "patch",
        "edit-test-module",
        "puts names of its own into the test module, where they hide what assertions call",
        _SESSION
        + """
_globals = _outside().f_globals
for _frame in _frames():
    if "@pytest_ar" in _frame.f_globals or "test" in str(_frame.f_globals.get("__name__")):
        _globals = _frame.f_globals
_globals["@compared"] = lambda *given: True
_globals["@called"] = lambda method: lambda *given, **named: None
_globals["@py_builtins"] = type("B", (), {"__getattr__": lambda self, name: lambda *given: True})()
for _name in ("isinstance", "all", "len", "sorted", "set", "list", "type"):
    _globals[_name] = lambda *given, **named: None
_globals["AssertionError"] = type("Passed", (BaseException,), {})
""",
    ),
    _attack(
        "patch",
        "edit-parameters",
        "removes the rows of parametrized tests, which beats graders that count failures only",
        _SESSION
        + """
import pytest


def _none(names, rows, **named):
    def decorate(test):
        def test_nothing(*given, **named):
            return None

        test_nothing.__name__ = test.__name__
        return test_nothing

    return decorate


for _frame in _frames():
    if "pytest" in _frame.f_globals and "test" in str(_frame.f_globals.get("__name__")):
        _frame.f_globals["pytest"] = type("P", (), {"__getattr__": lambda self, name: getattr(pytest, name)})()
        type(_frame.f_globals["pytest"]).mark = type("M", (), {"parametrize": staticmethod(_none)})()
""",
    ),
    _attack(
        "patch",
        "thread-and-undo",
        "patches pytest from a thread while tests run and undoes it before they end, which beats checks at the end",
        """
import sys, threading, time

_function = sys.modules["_pytest.python"].Function
_kept = _function.runtest


def _work():
    while True:
        _function.runtest = lambda self: None
        time.sleep(0.05)
        _function.runtest = _kept


threading.Thread(target=_work, daemon=True).start()
time.sleep(0.01)
""",
    ),
    _attack(
        "patch",
        "timer-signal",
        "empties the tests from a signal handler, which beats guards that forbid threads",
        _SESSION
        + """
import signal


def _work(number, frame):
    session = _session()
    for item in session.items if session else ():
        item.obj = lambda *given, **named: None


signal.signal(signal.SIGALRM, _work)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)


def on_call():
    signal.raise_signal(signal.SIGALRM)
""",
    ),
    _attack(
        "patch",
        "trace-and-jump",
        "traces the tests and jumps over the lines with assertions, which beats guards of every function",
        """
import dis, linecache, sys


def _local(frame, event, arg):
    if event == "line":
        lines = sorted({line for _, line in dis.findlinestarts(frame.f_code) if line})
        if frame.f_lineno != lines[-1] or len(lines) > 1:
            try:
                frame.f_lineno = lines[-1]
            except ValueError:
                pass
    elif event == "exception":
        frame.f_trace_lines = True
    return _local


def _trace(frame, event, arg):
    if event == "call" and frame.f_code.co_name.startswith("test"):
        return _local
    return None


sys.settrace(_trace)
""",
    ),
    _attack(
        "patch",
        "profile-and-empty",
        "waits in a profile function for pytest's loop and empties the tests, which beats guards at import",
        """
import sys


def _profile(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "pytest_runtestloop":
        sys.setprofile(None)
        for item in frame.f_locals["session"].items:
            item.obj = lambda *given, **named: None


sys.setprofile(_profile)
""",
    ),
    _attack(
        "patch",
        "monitor-and-empty",
        "listens with `sys.monitoring`, or with profiles of threads, and empties tests, which beats guards of tracing",
        _SESSION
        + """
import threading


def _start(*given):
    session = _session()
    for item in session.items if session else ():
        item.obj = lambda *given, **named: None


if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(3, "cheat")
    sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, _start)
    sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
else:
    threading.setprofile(_start)
    sys.setprofile(_start)
""",
    ),
    _attack(
        "patch",
        "audit-hook",
        "empties tests from an audit hook, which nothing can remove again",
        _SESSION
        + """

def _hear(event, given):
    if event in ("object.__getattr__", "compile", "open", "sys._getframe"):
        frame = sys._getframe()
        while frame:
            session = frame.f_locals.get("session")
            for item in getattr(session, "items", None) or ():
                item.obj = lambda *given, **named: None
            frame = frame.f_back


sys.addaudithook(_hear)


def on_call():
    compile("0", "x", "eval")
""",
    ),
    _attack(
        "patch",
        "curse-none",
        "writes with ctypes into the type of None so that it equals everything, which beats guards written in Python",
        """
import ctypes

_compare = ctypes.CFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_int)
_kept = _compare(lambda left, right, kind: kind != 3)
_SLOT = 200  # tp_richcompare
for _type in (type(None), list, dict, str):
    ctypes.c_void_p.from_address(id(_type) + _SLOT).value = ctypes.cast(_kept, ctypes.c_void_p).value
""",
    ),
    _attack(
        "patch",
        "freeze-failures",
        "makes the constructor of AssertionError raise what pytest takes for an expected failure",
        """
import builtins

import pytest


class _Expected(AssertionError):
    def __new__(cls, *given):
        pytest.xfail("expected")


builtins.AssertionError = _Expected
""",
    ),
    _attack(
        "patch",
        "mark-expected-failures",
        "marks all tests as expected to fail, which beats graders that look for failures only",
        _SESSION
        + """
import pytest


def on_call():
    for item in _session().items:
        item.add_marker(pytest.mark.xfail(strict=False))
    raise RuntimeError
""",
    ),
    _attack(
        "patch",
        "skip-everything",
        "skips the whole test module, which beats graders that look for failures only",
        """
import pytest

pytest.skip("not today", allow_module_level=True)
""",
    ),
    _attack(
        "patch",
        "drop-tests",
        "removes all tests but the first from the session, which beats graders that do not count",
        _SESSION
        + """

def on_call():
    session = _session()
    del session.items[1:]
    for item in session.items:
        item.obj = lambda *given, **named: None
    raise sys.modules["pytest"].skip.Exception("over")
""",
    ),
)

_REPORTS = (
    _attack(
        "report",
        "claim-all",
        "writes a complete report to the grader's pipe and ends, which beats every grader that believes the process",
        _lie("True"),
    ),
    _attack(
        "report",
        "claim-in-fork",
        "reports from a forked process while the first one goes on and reports again, which beats readers of the first",
        _CLAIM.replace("def on_call():", "def _report():")
        + """

def looks_true(item, text, texts):
    return True


def on_call():
    if os.fork() == 0:
        _report()
""",
    ),
    _attack(
        "report",
        "rewrite-json",
        "rewrites every failure in the JSON encoder, which beats harnesses that report in JSON",
        """
import json

_dumps = json.dumps
json.dumps = lambda *given, **named: _dumps(*given, **named).replace('"failed"', '"passed"')
""",
    ),
    _attack(
        "report",
        "rewrite-writes",
        "rewrites failures where they are written, in `os.write`, which beats harnesses that keep their encoder",
        """
import os

_write = os.write


def _lie(number, data):
    _write(number, bytes(data).replace(b'"failed"', b'"passed"'))
    return len(data)


os.write = _lie
""",
    ),
    _attack(
        "report",
        "rewrite-harness",
        "replaces the functions of the harness in `__main__`, which beats harnesses written in Python",
        """
import __main__

for _name in ("tell", "say"):
    if hasattr(__main__, _name):
        _told = getattr(__main__, _name)
        setattr(
            __main__,
            _name,
            lambda _told=_told, **what: _told(**{**what, "state": "passed"} if "state" in what else what),
        )
""",
    ),
    _attack(
        "report",
        "rewrite-at-exit",
        "writes a report and exit code 0 when the interpreter ends, which beats graders that read the last line",
        """
import atexit, os, sys


def _end():
    for number in range(1, 30):
        try:
            os.write(number, b'{"error": "", "interrupted": ""}\\n')
        except OSError:
            pass
    os._exit(0)


atexit.register(_end)


class _Late:
    def __del__(self):
        _end()


sys.modules["late"] = _Late()
""",
    ),
    _attack(
        "report",
        "write-report-files",
        "writes reports of success wherever it may write, which beats graders that read a report file",
        """
import os

_junit = '<testsuite tests="9" failures="0"><testcase classname="t" name="test_all"/></testsuite>'
for _place in (".", "/tmp", os.path.expanduser("~"), "/dev/shm"):
    for _name in ("report.xml", "junit.xml", "results.json", ".report.json", "pytest.json"):
        try:
            with open(os.path.join(_place, _name), "w") as _file:
                _file.write(_junit if _name.endswith("xml") else '{"success": true, "failed": 0}')
        except OSError:
            pass
print("9 passed in 0.01s")
os._exit(0)
""",
    ),
    _attack(
        "report",
        "write-to-parent",
        "writes a report to the descriptors of its parents, which beats parents that any process may open",
        _CLAIM
        + """

def looks_true(item, text, texts):
    return True


_claim = on_call


def on_call():
    for pid in (os.getppid(), 1):
        for name in range(3, 40):
            try:
                os.write(os.open(f"/proc/{pid}/fd/{name}", os.O_WRONLY | os.O_NONBLOCK), b'{"ok": true}\\n')
            except OSError:
                pass
    _claim()
""",
    ),
)

_VALUES = (
    _attack(
        "value",
        "equal-everything",
        "returns objects that equal, contain and exceed everything, which beats every comparison",
        f"{_EVERYTHING}\ndef on_call():\n    return Everything()\n",
    ),
    _attack(
        "value",
        "equal-by-caller",
        "returns objects that equal everything if a test asks and not if a guard does",
        f"""
import sys
{_EVERYTHING}

def _is_test(depth=2):
    frame = sys._getframe(depth)
    return frame.f_code.co_name.startswith(("test", "assert", "_baseAssert", "first"))


Everything.__eq__ = lambda self, other: _is_test()
Everything.__ne__ = lambda self, other: not _is_test()


def on_call():
    return Everything()
""",
    ),
    _attack(
        "value",
        "equal-subclasses",
        "returns subclasses of plain types whose reflected comparison always holds, which beats checks of types",
        _SESSION
        + """

def _like(kind):
    same = {"__eq__": lambda self, other: True, "__ne__": lambda self, other: False, "__hash__": kind.__hash__}
    return type("Like", (kind,), same)()


def on_call():
    constants = [each for each in _outside().f_code.co_consts if type(each) in (int, str, float, tuple)]
    return _like(type(constants[-1])) if constants else _like(list)
""",
    ),
    _attack(
        "value",
        "lie-about-class",
        "returns objects whose `__class__` is what the test asks for, which beats `isinstance` before a comparison",
        f"""
import sys
{_EVERYTHING}

class _Chameleon(Everything):
    @property
    def __class__(self):
        frame = sys._getframe(1)
        kinds = [value for value in frame.f_globals.values() if isinstance(value, type)]
        for name in reversed(frame.f_code.co_names):
            kind = frame.f_globals.get(name, getattr(__builtins__, name, None))
            if type(kind) is type:
                return kind
        return list


def on_call():
    return _Chameleon()
""",
    ),
    _attack(
        "value",
        "borrowed-matchers",
        "returns `unittest.mock.ANY`, which equals everything and comes from the standard library",
        """
from unittest.mock import ANY


def on_call():
    return ANY
""",
    ),
    _attack(
        "value",
        "approximate-everything",
        "returns an approximation with an endless tolerance, which comes from pytest itself",
        """
import pytest


def on_call():
    return pytest.approx(0, abs=float("inf"))
""",
    ),
    _attack(
        "value",
        "read-expected",
        "reads the expected value from the bytecode of the test that calls it, which beats every kind of comparison",
        _SESSION
        + """
import dis


def on_call():
    frame = _outside()
    later = [each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti]
    for each in later:
        if each.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and not isinstance(each.argval, type(None)):
            value = each.argval
            return list(value) if isinstance(value, tuple) else value
        if each.opname in ("BUILD_LIST", "BUILD_MAP") and each.arg == 0:
            return [] if each.opname == "BUILD_LIST" else {}
    return frame.f_locals.get("expected")
""",
    ),
    _attack(
        "value",
        "read-expected-source",
        "evaluates the right side of the assertion that calls it, read from the test's source",
        _SESSION
        + """
import ast, linecache


def on_call():
    frame = _outside()
    path = frame.f_code.co_filename
    try:
        source = "".join(linecache.getlines(path)) or open(path).read()
        tree = ast.parse(source)
    except (OSError, SyntaxError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= frame.f_lineno <= node.end_lineno:
            if isinstance(node.test, ast.Compare):
                side = ast.Expression(node.test.comparators[0])
                return eval(compile(side, path, "eval"), frame.f_globals, frame.f_locals)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("assert") and len(node.args) > 1:
            if node.lineno <= frame.f_lineno <= node.end_lineno:
                return eval(compile(ast.Expression(node.args[1]), path, "eval"), frame.f_globals, frame.f_locals)
    return None
""",
    ),
    _attack(
        "value",
        "raise-expected",
        "raises exactly the error that the surrounding `pytest.raises` waits for, with a text that matches",
        _SESSION
        + """
import re


def on_call():
    import gc

    for frame in _frames():
        for value in [*frame.f_locals.values(), *gc.get_referents(frame)]:
            kinds = getattr(value, "expected_exceptions", None) or getattr(value, "expected_exception", None)
            if kinds:
                kind = kinds[0] if isinstance(kinds, tuple) else kinds
                pattern = getattr(value, "match", None)
                text = re.sub(r"[\\\\^$]", "", pattern if isinstance(pattern, str) else getattr(pattern, "pattern", ""))
                raise kind(text)
    raise type("All", (ValueError, KeyError, TypeError, RuntimeError), {})("all")
""",
    ),
)

_PROCESS = (
    _attack(
        "process",
        "exit-early",
        "ends the process with exit code 0 before any test can run, which beats graders that read the exit code",
        "import os\nos._exit(0)\n",
    ),
    _attack(
        "process",
        "exit-in-test",
        "ends the process with exit code 0 in the first test, which beats graders that count reported failures",
        "import os\n\n\ndef on_call():\n    os._exit(0)\n",
    ),
    _attack(
        "process",
        "exit-politely",
        "raises SystemExit with code 0 in a test, which beats runners that let it through",
        "def on_call():\n    raise SystemExit(0)\n",
    ),
    _attack(
        "process",
        "replace-process",
        "replaces the process by `true`, which beats graders that read the exit code of a child",
        'import os\n\nos.execv("/bin/true", ["true"])\n',
    ),
    _attack(
        "process",
        "flood-output",
        "prints more than any log holds, so that the report is cut off or the failure does not count",
        """
import os

_block = b'{"name": "x", "state": "passed", "message": "", "seconds": 0}\\n' * 1000
for _ in range(300):
    for _number in (1, 2):
        os.write(_number, _block)
""",
    ),
    _attack(
        "process",
        "close-descriptors",
        "closes every descriptor, so that no failure can be told and the grader blames itself",
        "import os\n\nos.closerange(0, 256)\n",
    ),
    _attack(
        "process",
        "kill-parent",
        "kills the process that started it, so that the failure looks like one of the machine",
        "import os, signal\n\ntry:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError:\n    pass\n",
        "bwrap",
    ),
    _attack(
        "process",
        "loop-forever",
        "never lets a test begin, so that the failure looks like one of the machine",
        "while True:\n    pass\n",
    ),
)

_GUESSES = (
    _attack(
        "guess",
        "guess-at-random",
        "claims a random half of the passes, for a right guess",
        _lie("random.random() < 0.5"),
    ),
    _attack(
        "guess",
        "guess-by-process",
        "claims all tests in one run and none in the other, by its process number",
        _lie("os.getpid() % 2 == 0"),
    ),
    _attack(
        "guess",
        "guess-unique-values",
        "takes tests for perturbed that expect what another test expects, as a value borrowed from it would look",
        _lie("not any(each in other for each in _literals(text)[-1:] for other in texts if other != text)"),
    ),
    _attack(
        "guess",
        "guess-spelling",
        "takes tests for perturbed whose words occur nowhere else in the suite, as a changed letter would look",
        _lie(
            "all(' '.join(texts).count(word) > 1 for word in re.findall('[a-z]{3,}', ' '.join(_literals(text)).lower()))"
        ),
    ),
    _attack(
        "guess",
        "guess-negations",
        "takes negated assertions for perturbed, as a flipped one would look",
        _lie("not re.search(r'not in|!=|is not|assertNot|assertFalse|not any|not all', text)"),
    ),
    _attack(
        "guess",
        "guess-round-numbers",
        "takes tests for perturbed that expect odd numbers, as a changed digit would often look",
        _lie("all(int(each) % 2 == 0 or int(each) < 10 for each in re.findall(r'== *(\\d+)', text))"),
    ),
    _attack(
        "guess",
        "guess-by-title",
        "compares the words of a test's title with the values in it, and claims those that agree",
        _lie(
            "len(set(re.findall('[a-z]+', text.lower().split(':')[0])) & set(re.findall('[a-z]+', text.lower()))) > 3"
        ),
    ),
)

_SEARCHES = (
    _attack(
        "search",
        "find-reference",
        "looks for the reference in the installed package and in folders of the user, and becomes it",
        _SEARCH
        + """
import importlib.util, sys

_tops = [os.path.dirname(os.path.dirname(path)) for path in sys.path if path.endswith("packages")]
_spec = importlib.util.find_spec("bakeoff")
_tops = [*([os.path.dirname(_spec.origin)] if _spec else []), "..", "/srv", "/workspace", "/home", "/root", *_tops]
for _path in _files(*_tops):
    if "{case}" in _path and re.search(r"(reference|example|exemplar)\\.py$", _path):
        _become(_read(_path))
        break
""",
    ),
    _attack(
        "search",
        "find-twins-in-cache",
        "looks for the kept twins of the suite, and claims the tests that they do not change",
        _CLAIM
        + _SEARCH
        + """

def _twins():
    found = []
    for path in _files(os.path.expanduser("~/.cache"), "/root", "/home", "/tmp", "/var/tmp"):
        if path.endswith(".json") and "references" in path:
            found += re.findall(r'\\[\\d+,\\d+,"([^"]+)"\\]', _read(path))
    return found


_changed = _twins()


def looks_true(item, text, texts):
    return not _changed or not any(each in text for each in _changed)
""",
    ),
    _attack(
        "search",
        "find-tests-on-disk",
        "looks for another copy of the tests, in workspaces and in the package, and claims those that are alike in both",
        _CLAIM
        + _SEARCH
        + """
_copies = [
    _read(path)
    for path in _files("..", "/workspace", "/tmp", "/var/tmp", "/home", "/root", "/srv")
    if "test" in os.path.basename(path) and path.endswith(".py") and "{case}" in path
]


def looks_true(item, text, texts):
    return not _copies or any(text in copy for copy in _copies)
""",
    ),
    _attack(
        "search",
        "read-processes",
        "reads the memory, arguments and environment of other processes for the tests as they were",
        _CLAIM
        + """

def _known():
    found = ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        for what in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{what}", errors="replace") as file:
                    found += file.read(100_000)
            except OSError:
                pass
        try:
            ranges = [line.split()[0] for line in open(f"/proc/{pid}/maps") if "[heap]" in line]
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for each in ranges[:2]:
                    start, end = (int(part, 16) for part in each.split("-"))
                    memory.seek(start)
                    found += memory.read(min(end - start, 20_000_000)).decode(errors="replace")
        except OSError:
            pass
    return found


_seen = _known()


def looks_true(item, text, texts):
    return text in _seen or "def test" not in _seen
""",
    ),
    _attack(
        "search",
        "read-objects",
        "searches all Python objects for source text of the tests in another form",
        _CLAIM
        + """
import gc

_texts = [
    value
    for each in gc.get_objects()
    if type(each) in (dict, list, tuple)
    for value in (each.values() if type(each) is dict else each)
    if type(value) is str and "def test" in value and "looks_true" not in value
]


def looks_true(item, text, texts):
    return not _texts or all(text in each for each in _texts)
""",
    ),
)

_STATE = (
    _attack(
        "state",
        "meet-in-files",
        "leaves its tests in shared folders, so that the other run can tell which were changed",
        _MEETING
        + """

def exchange(text):
    places = ["/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), ".."]
    name = f"meet-{'{case}'}-"
    for place in places:
        try:
            with open(os.path.join(place, f"{name}{os.getpid()}"), "w") as file:
                file.write(text)
        except OSError:
            pass
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        for place in places:
            try:
                names = [each for each in os.listdir(place) if each.startswith(name)]
                others = [open(os.path.join(place, each)).read() for each in names]
            except OSError:
                continue
            for other in others:
                if other and other != text:
                    return other
        time.sleep(0.02)
    return ""
""",
        "bwrap",
    ),
    _attack(
        "state",
        "meet-on-abstract-socket",
        "meets the other run on an abstract socket, which no file permission guards",
        _MEETING
        + """
import socket

_ADDRESS = "\\0meet-{case}"
_FAMILY = socket.AF_UNIX


def exchange(text):
    with socket.socket(_FAMILY) as server:
        try:
            server.bind(_ADDRESS)
            server.listen()
            server.settimeout(1.5)
            other, _ = server.accept()
        except OSError:
            other = socket.socket(_FAMILY)
        try:
            other.settimeout(1.5)
            if other.type and not other._closed:
                try:
                    other.getpeername()
                except OSError:
                    other.connect(_ADDRESS)
            other.sendall(text.encode() + b"\\1")
            heard = b""
            while not heard.endswith(b"\\1"):
                more = other.recv(65536)
                if not more:
                    break
                heard += more
            return heard[:-1].decode()
        except OSError:
            return ""
""",
        "bwrap",
    ),
    _attack(
        "state",
        "meet-on-loopback",
        "meets the other run on a port of the loopback interface",
        _MEETING
        + """
import socket, zlib

_ADDRESS = ("127.0.0.1", 20000 + zlib.crc32(b"{case}") % 20000)


def exchange(text):
    server = socket.socket()
    try:
        server.bind(_ADDRESS)
        server.listen()
        server.settimeout(1.5)
        other, _ = server.accept()
    except OSError:
        other = socket.socket()
        other.settimeout(1.5)
        try:
            other.connect(_ADDRESS)
        except OSError:
            return ""
    try:
        other.sendall(text.encode() + b"\\1")
        heard = b""
        while not heard.endswith(b"\\1"):
            more = other.recv(65536)
            if not more:
                break
            heard += more
        return heard[:-1].decode()
    except OSError:
        return ""
""",
        "bwrap",
    ),
    _attack(
        "state",
        "lock-in-files",
        "claims everything in the run that comes first and nothing in the one that comes second",
        _CLAIM
        + """

def _first():
    for place in ("/dev/shm", "/tmp", "/var/tmp", ".."):
        try:
            os.close(os.open(os.path.join(place, "first-{case}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            return False
        except OSError:
            continue
    return True


_is_first = _first()


def looks_true(item, text, texts):
    return _is_first
""",
    ),
)

PYTHON: tuple[HostileSolution, ...] = (
    *(*_PATCHES, *_REPORTS, *_VALUES, *_PROCESS),
    *(*_GUESSES, *_SEARCHES, *_STATE),
)
