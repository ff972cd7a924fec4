"""Find objects of other packages in what an application returned. Data of its own may have any class."""

import dataclasses
import json
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bakeoff.sdk_results.plain_data import fields_of, is_a

_DEEPEST = 6
_MOST = 10_000  # values that are looked at
_INSTALLED = ("site-packages", "dist-packages")  # names of folders


def foreign_class(value: Any) -> type | None:
    """Return the class of the first model or dataclass in a value that an installed package defines, or None."""
    left = _MOST
    waiting = [(value, 0)]
    while waiting and left > 0:
        left -= 1
        one, depth = waiting.pop()
        kind = type(one)
        own = dataclasses.is_dataclass(kind) or is_a(one, BaseModel)
        if own and _is_foreign(kind.__module__):
            return kind
        if depth < _DEEPEST:
            inside = one.values() if kind is dict else one if kind in (list, tuple) else fields_of(one).values()
            waiting += [(each, depth + 1) for each in inside]
    return None


@lru_cache(maxsize=256)
def _is_foreign(module: str) -> bool:
    """Tell whether a module is of an installed package other than bakeoff, and not installed from a local folder."""
    package = module.partition(".")[0]
    file = getattr(sys.modules.get(module), "__file__", None)
    if package == "bakeoff" or not file or not any(name in Path(file).parts for name in _INSTALLED):
        return False
    return not any(map(_is_local, metadata.packages_distributions().get(package, ())))


def _is_local(distribution: str) -> bool:
    """Tell whether a distribution was installed from a folder, as projects install themselves."""
    origin = metadata.distribution(distribution).read_text("direct_url.json")
    return origin is not None and "dir_info" in json.loads(origin)
