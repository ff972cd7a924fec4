"""Import objects by their name `module:attribute`, and name them that way."""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bakeoff.errors import UsageError


def import_target(target: str, who: str) -> Any:
    """Return the callable that `module:attribute` names."""
    found = import_object(target, who)
    if not callable(found):
        raise UsageError(f"{who}: {target!r} is not callable")
    return found


def import_object(target: str, who: str) -> Any:
    """Return the object that `module:attribute` names; modules are also looked for in the current folder."""
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute or module_name.startswith("."):
        raise UsageError(f"{who}: {target!r} does not name a function: write it as `module:function`")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a console script does not look there; installed modules come first
    try:
        found: Any = importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        raise UsageError(f"{who}: module {module_name!r} cannot be imported: {error}") from error
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise UsageError(f"{who}: module {module_name!r} cannot be imported: it raised {said}") from error
    try:
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        near = get_close_matches(error.name or "", [name for name in dir(found) if not name.startswith("_")], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "a function made inside another cannot be named"
        raise UsageError(f"{who}: {module_name!r} has no {attribute!r}: {hint}") from error
    return found


def target_of(function: Callable[..., Any]) -> str:
    """Return the name of a function as `module:attribute`."""
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def revision_of(function: Callable[..., Any]) -> str:
    """Return a hash of the function's source."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = ""
    return hashlib.blake2b(source.encode(), digest_size=8).hexdigest()


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Make modules beside a configuration importable, as they are beside a script."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)
