"""Undo the marks by which tracks keep learners from seeing all tests at once. What is skipped on purpose stays so."""

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

_X_CALLS = re.compile(r"(?<![\w.$'\"])x(it|test|describe)(?=\s*[.(`])")
_DISABLED = re.compile(r"""@Disabled\("Remove to run test"\)""")
# `skipIf`, `skipif` and `xfail` say something about the machine or about the test.
_SKIPS = frozenset({"skip", "unittest.skip", "mark.skip", "pytest.mark.skip"})
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def undo_x_calls(source: str) -> str:
    """Call `it` for `xit` and the like. A `.skip` is nothing that tracks mark later tests with, so it stays."""
    return _X_CALLS.sub(r"\1", source)


def undo_disabled(source: str) -> str:
    """Remove the annotations of Java's later tests. One with another reason is skipped on purpose."""
    return _DISABLED.sub("", source)


def undo_later_skips(source: str) -> str:
    """Remove the skip decorators of Python's later tests: those of the last tests, with no active test after them.

    A skipped test between active ones is skipped on purpose. Lines keep their numbers.
    """
    try:
        tests = list(_tests(ast.parse(source), ()))
    except (SyntaxError, ValueError, RecursionError):
        return source
    later = {mark for marks in takewhile(bool, reversed(tests)) for mark in marks}
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", source)  # as Python counts lines: not at form feeds
    for mark in later:
        for number in range(mark.lineno - 1, mark.end_lineno or mark.lineno):
            lines[number] = "\n"
    return "".join(lines)


def _tests(node: ast.AST, around: tuple[ast.expr, ...]) -> Iterator[tuple[ast.expr, ...]]:
    """Yield the skip decorators of each test, its own and those of its class, in the order of the file."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Definition):
            continue
        marks = (*around, *(each for each in child.decorator_list if _is_skip(each)))
        if isinstance(child, ast.ClassDef):
            yield from _tests(child, marks)
        elif child.name.startswith("test"):
            yield marks


def _is_skip(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called) in _SKIPS
