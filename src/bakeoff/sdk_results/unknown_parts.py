"""Find the parts of a returned value that are not plain data, such as unknown objects."""

import dataclasses
import inspect
import json
import sys
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel

from bakeoff._kernel.text import visible
from bakeoff.sdk_results.plain_data import fields_of, is_a

_MAX_DEPTH = 100  # levels of nesting
_MAX_COUNT = 1_000_000  # values that are searched
_SIMPLE = (str, bool, int, float, Decimal, date, time, timedelta, UUID, Enum, bytes, bytearray, PurePath)


class UnknownPart(NamedTuple):
    """A part of a value that is not plain data."""

    what: str
    place: str  # such as `['answers'][0]`; empty for the value itself


def unknown_part(value: Any) -> UnknownPart | None:
    """Return the first part in nested lists and dicts that is not plain data, or None."""
    waiting = [iter([("", value)])]
    for _ in range(_MAX_COUNT):
        if not waiting:
            return None
        place, one = next(waiting[-1], ("", _END))
        if one is _END:
            waiting.pop()
        elif (problem := _problem(one)) is not None:
            return UnknownPart(problem, place)
        elif (inside := _inside(place, one)) is not None:
            if len(waiting) > _MAX_DEPTH:
                return UnknownPart(
                    f"lists that are nested more than {_MAX_DEPTH} levels deep, or that hold themselves", ""
                )
            waiting.append(inside)
    return None


_END: Any = object()


def _problem(one: Any) -> str | None:
    if is_a(one, dict):
        texts: dict[str, Any] = {}
        for key in one:
            if key is not None and not is_a(key, *_SIMPLE, tuple):
                return f"a key of {type(key).__module__}.{type(key).__qualname__}"
            first = texts.setdefault(str(key), key)
            if first is not key:
                return f"the keys {visible(repr(first), 60)} and {visible(repr(key), 60)}, which are one in JSON,"
        return None
    simple = one is None or is_a(one, *_SIMPLE, list, tuple, set, frozenset, BaseModel)
    if simple or dataclasses.is_dataclass(type(one)):
        return None
    if inspect.iscoroutine(one):
        one.close()  # avoid a warning, since nobody awaits it
        return "a coroutine that was not awaited"
    kind = type(one)
    return f"an object of {kind.__module__}.{kind.__qualname__}"


def _inside(place: str, one: Any) -> Iterator[tuple[str, Any]] | None:
    if is_a(one, dict):
        return ((f"{place}[{visible(repr(key), 60)}]", item) for key, item in one.items())
    if is_a(one, list, tuple, set, frozenset):
        return ((f"{place}[{number}]", item) for number, item in enumerate(one))
    return None


_DEEPEST_FOREIGN = 6
_MAX_FOREIGN = 10_000  # values that are searched
_INSTALLED = ("site-packages", "dist-packages")  # names of folders


def foreign_class(value: Any) -> type | None:
    """Return the first class in a value that another package defines, or None."""
    waiting = [(value, 0)]
    for _ in range(_MAX_FOREIGN):
        if not waiting:
            break
        one, depth = waiting.pop()
        kind = type(one)
        own = dataclasses.is_dataclass(kind) or is_a(one, BaseModel)
        if own and _is_foreign(kind.__module__):
            return kind
        if depth < _DEEPEST_FOREIGN:
            inside = one.values() if kind is dict else one if kind in (list, tuple) else fields_of(one).values()
            waiting += [(each, depth + 1) for each in inside]
    return None


@lru_cache(maxsize=256)
def _is_foreign(module: str) -> bool:
    """Return True for modules of other installed packages, except editable installs."""
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if package == "bakeoff" or not file or not any(name in Path(file).parts for name in _INSTALLED):
        return False
    distributions = metadata.packages_distributions().get(package, ())
    origins = [metadata.distribution(name).read_text("direct_url.json") for name in distributions]
    return not any(origin is not None and "dir_info" in json.loads(origin) for origin in origins)
