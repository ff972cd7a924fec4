"""Tests that must fail, planted among a Python suite's own: named and placed like them, and drawn for each grading."""

import ast
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_DRAW = secrets.SystemRandom()
_AFFECTS_ALL = re.compile(r"\b(?:pytestmark|autouse|setup_function|setup_module|setUpModule)\b")
_WORDS = ("again", "case", "empty", "first", "given", "large", "last", "more", "one", "other", "same", "several", "two")

_Form = Callable[[str, str, int], tuple[str, str]]
_EQUALITIES: tuple[_Form, ...] = (
    lambda word, other, _: (f'assert "{word}" == "{other}"', word),
    lambda word, other, _: (f'assert ["{word}", 1] == ["{other}", 1]', word),
    lambda _, __, number: (f"assert {number} == {number + 1}", str(number)),
)
_OTHERS: tuple[_Form, ...] = (
    lambda word, other, _: (f'assert "{word}" in ("{other}", 1)', word),
    lambda _, __, number: (f"assert {number} < {number - 1}", str(number)),
    lambda _, __, number: (f"assert {number} != {number}", str(number)),
    lambda word, _, __: (f'assert not "{word}"', word),
    lambda word, _, __: (f'raise AssertionError("{word}")', word),
    lambda word, _, __: (f'import pytest\n    pytest.fail("{word}")', word),
    lambda word, _, __: (f'import pytest\n    with pytest.raises(KeyError):\n        str("{word}")', "DID NOT RAISE"),
)


@dataclass(frozen=True, slots=True)
class Planted:
    """The suite with those tests in it; `expected` is what the failure of each must speak of."""

    source: str
    expected: dict[str, str]
    outside: bool
    """They are to be run outside of the module, as it has set-up or marks for all of its tests."""


def plant(source: str) -> Planted:
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Planted(text, {}, False)  # pytest will say it better
    outside = _AFFECTS_ALL.search(text) is not None
    forms = [_DRAW.choice(_EQUALITIES), *_DRAW.sample(_OTHERS, 2)]
    names = _names(module, len(forms), "check_" if outside else "test_")
    lines = text.split("\n")
    places = sorted((_DRAW.choice(_places(module, len(lines))) for _ in forms), reverse=True)
    expected: dict[str, str] = {}
    for name, form, place in zip(names, forms, places, strict=True):
        body, expected[name] = form(secrets.token_hex(4), secrets.token_hex(4), 1000 + secrets.randbelow(100_000))
        lines[place:place] = ["", f"def {name}():", f"    {body}", ""]
    return Planted("\n".join(lines), expected, outside)


def _places(module: ast.Module, end: int) -> list[int]:
    """Before any function or class at the top, and at the end; as indices of lines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tops = [node for node in module.body if isinstance(node, kinds)]
    return [end, *(min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1 for node in tops)]


def _names(module: ast.Module, count: int, prefix: str) -> Sequence[str]:
    """Of words that the suite's own names have."""
    taken = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    taken |= {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    tests = [name for name in taken if name.startswith("test")]
    words = sorted({word for name in tests for word in name.split("_")[1:] if word} | set(_WORDS))
    names: dict[str, None] = {}
    while len(names) < count:
        name = prefix + "_".join(_DRAW.sample(words, _DRAW.randint(2, 4)))
        if name not in taken:
            names[name] = None
    return list(names)
