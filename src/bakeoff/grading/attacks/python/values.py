"""Return values that compare as whatever is expected."""

from bakeoff.grading.attacks.python.parts import EVERYTHING, SESSION, python_attack

VALUES = (
    python_attack(
        "value",
        "equal-everything",
        "returns objects that equal, contain and exceed everything, which beats every comparison",
        f"{EVERYTHING}\ndef on_call():\n    return Everything()\n",
    ),
    python_attack(
        "value",
        "equal-by-caller",
        "returns objects that equal everything if a test asks and not if a guard does",
        f"""
import sys
{EVERYTHING}

def _is_test(depth=2):
    frame = sys._getframe(depth)
    return frame.f_code.co_name.startswith(("test", "assert", "_baseAssert", "first"))


Everything.__eq__ = lambda self, other: _is_test()
Everything.__ne__ = lambda self, other: not _is_test()


def on_call():
    return Everything()
""",
    ),
    python_attack(
        "value",
        "equal-subclasses",
        "returns subclasses of plain types whose reflected comparison always holds, which beats checks of types",
        SESSION
        + """

def _like(kind):
    same = {"__eq__": lambda self, other: True, "__ne__": lambda self, other: False, "__hash__": kind.__hash__}
    return type("Like", (kind,), same)()


def on_call():
    constants = [each for each in _outside().f_code.co_consts if type(each) in (int, str, float, tuple)]
    return _like(type(constants[-1])) if constants else _like(list)
""",
    ),
    python_attack(
        "value",
        "lie-about-class",
        "returns objects whose `__class__` is what the test asks for, which beats `isinstance` before a comparison",
        f"""
import sys
{EVERYTHING}

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
    python_attack(
        "value",
        "borrowed-matchers",
        "returns `unittest.mock.ANY`, which equals everything and comes from the standard library",
        """
from unittest.mock import ANY


def on_call():
    return ANY
""",
    ),
    python_attack(
        "value",
        "approximate-everything",
        "returns an approximation with an endless tolerance, which comes from pytest itself",
        """
import pytest


def on_call():
    return pytest.approx(0, abs=float("inf"))
""",
    ),
    python_attack(
        "value",
        "read-expected",
        "reads the expected value from the bytecode of the test that calls it, which beats every kind of comparison",
        SESSION
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
    python_attack(
        "value",
        "read-expected-source",
        "evaluates the right side of the assertion that calls it, read from the test's source",
        SESSION
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
    python_attack(
        "value",
        "raise-expected",
        "raises exactly the error that the surrounding `pytest.raises` waits for, with a text that matches",
        SESSION
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
