"""Patch what the tests are built on."""

from bakeoff.grading.attacks.python.parts import SESSION, python_attack

PATCHES = (
    python_attack(
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
    python_attack(
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
    python_attack(
        "patch",
        "patch-code",
        "swaps the code object of pytest's function that runs a test, which beats guards that compare names only",
        """
import _pytest.python

_pytest.python.Function.runtest.__code__ = (lambda self: None).__code__
""",
    ),
    python_attack(
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
    python_attack(
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
    python_attack(
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
    python_attack(
        "patch",
        "patch-exit-code",
        "makes pytest count no failed test, which beats graders that read the exit code",
        """
import sys

sys.modules["_pytest.main"].Session.testsfailed = property(lambda self: 0, lambda self, value: None)
""",
    ),
    python_attack(
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
    python_attack(
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
    python_attack(
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
    python_attack(
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
    python_attack(
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
    python_attack(
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
    python_attack(
        "patch",
        "register-plugin",
        "registers a plugin that turns failures into passes, which beats graders that trust pytest's hooks",
        SESSION
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
    python_attack(
        "patch",
        "empty-tests",
        "empties all tests when the first one calls it, which beats guards that look before the tests run",
        SESSION
        + """

def on_call():
    for item in _session().items:
        item.obj = lambda *given, **named: None
""",
    ),
    python_attack(
        "patch",
        "empty-test-code",
        "gives every function of the test module empty code, which beats guards of pytest's own objects",
        SESSION
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
    python_attack(
        "patch",
        "edit-test-module",
        "puts names of its own into the test module, where they hide what assertions call",
        SESSION
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
    python_attack(
        "patch",
        "edit-parameters",
        "removes the rows of parametrized tests, which beats graders that count failures only",
        SESSION
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
    python_attack(
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
    python_attack(
        "patch",
        "timer-signal",
        "empties the tests from a signal handler, which beats guards that forbid threads",
        SESSION
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
    python_attack(
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
    python_attack(
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
    python_attack(
        "patch",
        "monitor-and-empty",
        "listens with `sys.monitoring`, or with profiles of threads, and empties tests, which beats guards of tracing",
        SESSION
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
    python_attack(
        "patch",
        "audit-hook",
        "empties tests from an audit hook, which nothing can remove again",
        SESSION
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
    python_attack(
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
    python_attack(
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
    python_attack(
        "patch",
        "mark-expected-failures",
        "marks all tests as expected to fail, which beats graders that look for failures only",
        SESSION
        + """
import pytest


def on_call():
    for item in _session().items:
        item.add_marker(pytest.mark.xfail(strict=False))
    raise RuntimeError
""",
    ),
    python_attack(
        "patch",
        "skip-everything",
        "skips the whole test module, which beats graders that look for failures only",
        """
import pytest

pytest.skip("not today", allow_module_level=True)
""",
    ),
    python_attack(
        "patch",
        "drop-tests",
        "removes all tests but the first from the session, which beats graders that do not count",
        SESSION
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
