"""Identify scorers across runs by their options and, for the user's own scorers, by their code."""

import dis
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from inspect import signature
from types import CodeType, FunctionType, MethodType
from typing import Any

from bakeoff._kernel.model import fingerprint

_OTHERS = sys.stdlib_module_names | {"bakeoff", "pydantic"}  # their code is known by its name
_CONSTANTS = (bool, int, float, str, bytes, tuple, frozenset, re.Pattern, FunctionType)
_MAX_DEPTH = 30
_MIN_SECRET_LENGTH = 8  # characters; a shorter text is not taken for a value of the environment


def scorer_digest(scorer: Any) -> str:
    """Return a digest of what a scorer does. Comments, formatting and docstrings do not change it.

    Our scorers and those of libraries count by name and options; the user's functions and classes by
    compiled code, with all that it uses by name. Minor versions of Python compile different code.
    """
    return fingerprint(_described(scorer, frozenset()))[:16]


def _described(value: Any, inside: frozenset[int]) -> Any:
    """Return a description of a value as JSON. `inside` has the ids of the objects that contain the value."""
    if isinstance(value, str):
        is_machines = len(value) >= _MIN_SECRET_LENGTH and value in os.environ.values()
        return "" if is_machines else value.replace(os.getcwd(), ".")  # noqa: PTH109 - a part of a text
    if value is None or isinstance(value, bool | int | float | complex | bytes):
        return [repr(value)]
    if id(value) in inside or len(inside) > _MAX_DEPTH:
        return "again"
    inside |= {id(value)}
    if isinstance(value, type):
        return _name(value)
    match value:
        case list() | tuple():
            return ["list", *_all(value, inside)]
        case set() | frozenset():
            return ["set", *sorted(_all(value, inside), key=fingerprint)]
        case Mapping():
            return ["map", *sorted(_all(value.items(), inside), key=fingerprint)]
        case re.Pattern():
            return ["pattern", repr(value.pattern), value.flags]
    return _described_code(value, inside)


def _described_code(value: Any, inside: frozenset[int]) -> Any:
    match value:
        case CodeType():
            return [[each.opname, _described(each.argval, inside)] for each in dis.get_instructions(value)]
        case FunctionType():
            return _name(value) if _is_of_others(value) else ["function", *_all(_parts(value), inside)]
        case MethodType():
            return ["method", *_all((value.__func__, value.__self__), inside)]
        case partial():
            return ["partial", *_all((value.func, value.args, value.keywords), inside)]
        case staticmethod() | classmethod():
            return _described(value.__func__, inside)
        case property():
            return _described(value.fget, inside)
    classes = (each if _is_of_others(each) else _members(each) for each in type(value).__mro__)
    return [_name(type(value)), *_all(classes, inside), _described(_options(value), inside)]


def _all(values: Iterable[Any], inside: frozenset[int]) -> list[Any]:
    return [_described(each, inside) for each in values]


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _is_of_others(value: Any) -> bool:
    module = str(value.__module__)
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return module.partition(".")[0] in _OTHERS or "site-packages" in file


def _parts(function: FunctionType) -> Iterator[Any]:
    """Yield the code of a function and the values that it uses: defaults, variables of outer functions, globals.

    Globals that can change do not count: scorers keep their state there.
    """
    yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not set yet
            yield None
    found = {name: function.__globals__.get(name) for name in _names(function.__code__) if not name.startswith("_" * 2)}
    yield {name: value for name, value in found.items() if isinstance(value, _CONSTANTS)}


def _names(code: CodeType) -> set[str]:
    """Return the names of globals that a function, or a function inside it, reads."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    own = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_names, inner))


def _members(kind: type) -> dict[str, Any]:
    """Return the methods and constants of a class."""
    kept = (*_CONSTANTS, staticmethod, classmethod, property)
    found = {name: value for name, value in vars(kind).items() if isinstance(value, kept)}
    return {name: value for name, value in found.items() if name not in ("__doc__", "__module__", "__qualname__")}


def _options(value: Any) -> dict[str, Any]:
    """Return the attributes that an object was made with: the fields of a dataclass or model, or of `__init__`."""
    if not callable(value) and not hasattr(value, "__dataclass_fields__") and _is_of_others(type(value)):
        return {}
    try:
        names = {*signature(type(value)).parameters}
    except (TypeError, ValueError):  # some builtins have none
        names = set()
    return {name: getattr(value, name, None) for name in names if not name.startswith("__")}
