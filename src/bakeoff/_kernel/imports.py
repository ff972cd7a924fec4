"""Import objects by the name `module:attribute`, and import the names of a package on first use.

The garbage collector is paused while modules are imported: they create hundreds of thousands of
lasting objects, and each search through them takes a tenth of a second.
"""

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
    """Return the object that `module:attribute` names, also from modules in the current folder.

    The current folder is added at the end of `sys.path`. If there is no such object, or if the
    import fails, raise `UsageError` with a message that begins with `who`.
    """
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
        from difflib import get_close_matches

        near = get_close_matches(error.name or "", [name for name in dir(found) if not name.startswith("_")], n=1)
        hint = f"did you mean {near[0]!r}?" if near else "a function made inside another cannot be named"
        raise UsageError(f"{who}: {module_name!r} has no {attribute!r}: {hint}") from error
    return found


def target_of(function: Callable[..., Any]) -> str:
    """Return the name of a function as `module:attribute`."""
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"


def revision_of(function: Callable[..., Any]) -> str:
    """Return a hash of the function's source, or of an empty string if the source is unknown."""
    import hashlib
    import inspect  # not at the top: every import of the package loads this module

    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = ""
    return hashlib.blake2b(source.encode(), digest_size=8).hexdigest()


_MAX_SCRIPT_SIZE = 16 * 1024 * 1024


def command_revision(argv: Sequence[str], folder: Path) -> str:
    """Return a hash of the files in a folder that a command names: an edited script counts as another subject."""
    import hashlib

    from bakeoff._kernel.files import read_file

    hashed, found = hashlib.blake2b(digest_size=8), False
    for word in argv:
        with suppress(OSError, ValueError):  # a word that no disk can have as a path
            path = folder / word
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                hashed.update(read_file(path, _MAX_SCRIPT_SIZE))
                found = True
    return hashed.hexdigest() if found else ""


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Make the modules in a configuration's folder importable, as if a script ran there."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


_THRESHOLDS = (10_000, 10, 50)  # of `gc.set_threshold`, for generations 0, 1 and 2


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection while modules are imported or many lasting objects are created."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def existing_objects_frozen() -> Iterator[None]:
    """Exclude existing objects from garbage collection inside the block, and collect less often.

    By default, Python searches all objects when a quarter are new, which is often early on.
    """
    if gc.get_freeze_count():  # an outer block has already frozen them
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    if thresholds[0]:  # 0 turns the collector off
        gc.set_threshold(*map(max, thresholds, _THRESHOLDS))
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def lazy_imports(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package. `homes` maps each name to its module.

    Each module is imported when one of its names is first used, so that commands start fast.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with collection_paused():
            return getattr(importlib.import_module(homes[name]), name)

    def names() -> list[str]:
        listed: list[str] = sys.modules[package].__all__
        return listed

    return get, names
