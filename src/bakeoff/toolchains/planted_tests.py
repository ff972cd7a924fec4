"""Plant tests that must fail among those of a Python suite, named and placed like them, new for each grading."""

import ast
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_DRAW = secrets.SystemRandom()
_AFFECTS_ALL = re.compile(r"\b(?:pytestmark|autouse|setup_function|setup_module|setUpModule)\b")
_ASKS_NAMES = re.compile(
    r"\b(?:request|_testMethodName|__name__|__qualname__|co_name|inspect|PYTEST_CURRENT_TEST)\b|\.id\("
)
_DRAWN = re.compile(r"\btest_[0-9a-f]{12}\b")
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
    """The suite with the planted tests in it. `expected` says what the failure message of each must contain."""

    source: str
    expected: dict[str, str]
    outside: bool
    """True if they must run outside of the module, because it has a set-up or marks for all of its tests."""
    drawn: Mapping[str, str] = field(default_factory=dict)
    """The names of the suite's own tests, by the names that they have in this run alone."""

    def with_original_names(self, text: str) -> str:
        """Replace the names of this run by those of the suite."""
        return _DRAWN.sub(lambda found: self.drawn.get(found[0], found[0]), text) if self.drawn else text


def plant(source: str) -> Planted:
    """Return the suite with three tests in it that must fail, and with new names for its own tests."""
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Planted(text, {}, False)  # pytest reports it better
    text, drawn = _renamed(text, module)
    outside = _AFFECTS_ALL.search(text) is not None
    forms = [_DRAW.choice(_EQUALITIES), *_DRAW.sample(_OTHERS, 2)]
    prefix = "check_" if outside else "test_"
    names = [_drawn(prefix) for _ in forms] if drawn else _names(module, len(forms), prefix)
    lines = text.split("\n")
    places = sorted((_DRAW.choice(_places(module, len(lines))) for _ in forms), reverse=True)
    expected: dict[str, str] = {}
    for name, form, place in zip(names, forms, places, strict=True):
        body, expected[name] = form(secrets.token_hex(4), secrets.token_hex(4), 1000 + secrets.randbelow(100_000))
        lines[place:place] = ["", f"def {name}():", f"    {body}", ""]
    return Planted("\n".join(lines), expected, outside, drawn)


def _renamed(text: str, module: ast.Module) -> tuple[str, dict[str, str]]:
    """Draw new names for the suite's own tests, in the order of the old ones, by which unittest sorts.

    A candidate that has read the suite cannot tell from them which tests must fail. If a name is used anywhere else,
    all names stay as they are.
    """
    if _ASKS_NAMES.search(text):
        return text, {}
    lines = text.split("\n")
    places: dict[str, list[int]] = {}
    for node in _tests_in(module.body):
        places.setdefault(node.name, []).append(node.lineno - 1)
    words = Counter(re.findall(r"\w+", text))
    if any(words[name] != len(places[name]) for name in places):
        return text, {}
    drawn = dict(zip(sorted(_drawn("test_") for _ in places), sorted(places), strict=True))
    for instead, name in drawn.items():
        for place in places[name]:
            lines[place] = re.sub(rf"\b{name}\b", instead, lines[place], count=1)
    return "\n".join(lines), drawn


def _drawn(prefix: str) -> str:
    return f"{prefix}{secrets.token_hex(6)}"


def _tests_in(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests_in(node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def _places(module: ast.Module, end: int) -> list[int]:
    """Return the line indices before each top-level function or class, and at the end."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tops = [node for node in module.body if isinstance(node, kinds)]
    return [end, *(min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1 for node in tops)]


def _names(module: ast.Module, count: int, prefix: str) -> Sequence[str]:
    """Draw names made of the words in the suite's own names."""
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
