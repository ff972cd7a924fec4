"""Find out what a test depends on: the parts of its file, the modules it imports, the files that are read.

Where the source does not tell, a test depends on more. Data files belong to the module that reads them, as if they were
a part of its source: Python reports each file that it opens to an audit hook.
"""
# ruff: noqa: PTH100, PTH120, PTH206 - called for every file that is opened

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from bakeoff._kernel.model import fingerprint
from bakeoff.doors.pytest.rows import read_rows
from bakeoff.engine.watch import is_watched

ANYTHING = "*"
"""Stands for every file: what a module uses cannot be told from its imports."""

ROWS = "rows"
"""Stands for the rows of suites, which are compared one by one."""

_SUITES = frozenset(("eval_suite", "describe_eval"))
_LOADS_ANYTHING = frozenset(
    ("import_module", "__import__", "exec", "eval", "runpy", "subprocess", "multiprocessing", "entry_points")
) | {"create_subprocess_exec", "create_subprocess_shell", "spec_from_file_location", "iter_modules", "walk_packages"}
_PLAIN_SOURCE = (".py", ".pyc", ".pyo")
_LISTINGS = ("os.listdir", "os.scandir")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class TestParts:
    """The statements of a test file, and which of them a test uses."""

    __test__ = False  # not a test of pytest's

    def __init__(self, source: str) -> None:
        self._binding: dict[str, list[int]] = {}  # the statements that bind a name
        self._always: set[int] = set()
        self._texts: list[str] = []
        self._uses: list[set[str]] = []
        for place, statement in enumerate(ast.parse(source).body):
            _remove_data(statement)
            self._texts.append(ast.dump(statement))
            self._uses.append(set(_words(statement)))
            bound = _bound(statement)
            for name in bound or ():
                self._binding.setdefault(name, []).append(place)
            is_fixture = any("fixture" in ast.dump(each) for each in getattr(statement, "decorator_list", ()))
            if bound is None or is_fixture or any(map(_is_for_all, bound)):
                self._always.add(place)

    def digest(self, name: str) -> str:
        """Return a hash of all that the test or class of this name uses in the file, without the rows of suites."""
        used: set[int] = set()
        waiting = {*self._always, *self._binding.get(name, range(len(self._texts)))}
        while waiting:
            place = waiting.pop()
            used.add(place)
            waiting |= {other for word in self._uses[place] for other in self._binding.get(word, ())} - used
        return fingerprint(*(self._texts[place] for place in sorted(used)))


def _remove_data(statement: ast.stmt) -> None:
    """Remove `data=…` of suites: each row is compared for itself."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if called in _SUITES:
                node.keywords = [keyword for keyword in node.keywords if keyword.arg != "data"]


def _words(statement: ast.AST) -> Iterator[str]:
    """Yield every name, argument and text: fixtures are asked for by arguments and by texts."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.Constant(value=str(word)):
                yield word


def _bound(statement: ast.stmt) -> list[str] | None:
    """Return the names that a statement does nothing but bind; None if it may do anything else."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            bound = [(alias.asname or alias.name).partition(".")[0] for alias in names]
            return None if "*" in bound else bound
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Expr(value=ast.Constant()):
            return []  # a docstring
    return None


def _is_for_all(name: str) -> bool:
    return name.startswith(("pytest", "setup_", "teardown_", "setUp", "tearDown"))


@cache
def _imports(path: str) -> frozenset[tuple[int, str]]:
    """Return what a file imports as names with their number of leading dots, and `ANYTHING` if it may load more."""
    found: set[tuple[int, str]] = set()
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return frozenset({(0, ANYTHING)})
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {(0, alias.name) for alias in names}
            case ast.ImportFrom(module=module, names=names, level=level):
                found |= {(level, f"{module}.{alias.name}" if module else alias.name) for alias in names}
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word) if word in _LOADS_ANYTHING:
                found.add((0, ANYTHING))
            case ast.Constant(value=str(text)) if text.endswith(".py"):  # a program to be started
                found.add((0, ANYTHING))
    return frozenset(found)


def loaded_files() -> dict[str, str]:
    """Return the source files of all modules that are loaded, by the names of the modules."""
    found = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    return {name: file for name, file in found if isinstance(file, str)}


def imported_files(path: str, loaded: Mapping[str, str]) -> set[str]:
    """Return the files that a file imports, directly or through others; with `ANYTHING` if that is not all.

    Args:
        path: The file to begin with. It is not among those returned, unless it is imported again.
        loaded: The files of modules that count, by the names of the modules.
    """
    names = {file: name for name, file in loaded.items()}
    found: set[str] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        for level, name in _imports(file):
            if name == ANYTHING:
                found.add(ANYTHING)
                continue
            new = {loaded[each] for each in _modules(level, name, names.get(file, "")) if each in loaded} - found
            found |= new
            waiting += new
    return found


def _modules(level: int, name: str, importer: str) -> Iterator[str]:
    """Yield the modules that an import loads: each package on the way, and what may be a module at its end."""
    if level:
        package = (getattr(sys.modules.get(importer), "__package__", None) or "").split(".")
        name = ".".join([*package[: len(package) - level + 1], name])
    parts = name.split(".")
    yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


class Reads:
    """The data files of a project that this process reads and writes."""

    def __init__(self, roots: Sequence[Path], without: Path) -> None:
        self._roots = [str(root) for root in roots]
        self._written_by_us = {str(without), str(without.parent)}  # folders of runs, which are synced to disk
        self._without = f"{without}{os.sep}"
        self._ours: dict[str, bool] = {}
        self._written: set[str] = set()
        self._found: dict[str, set[str]] = {}
        self._on = True

    def start(self) -> None:
        """Listen from now on."""
        sys.addaudithook(self._hear)

    def stop(self) -> None:
        """Stop for good: a hook cannot be removed."""
        self._on = False

    @property
    def found(self) -> dict[str, set[str]]:
        """Return who has read each file: paths of modules, `ROWS` or `ANYTHING`. What was also written is left out."""
        folders = {os.path.dirname(path) for path in self._written}
        return {path: by for path, by in self._found.items() if path not in self._written and path not in folders}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event. An error here would be raised where the file is opened."""
        if not self._on or (event != "open" and event not in _LISTINGS):
            return
        given = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else None
        if not given or given.endswith(_PLAIN_SOURCE):
            return
        try:
            path = os.path.abspath(given)
        except OSError:  # the current folder was deleted
            return
        if not self.is_ours(path):
            return
        reader = self._reader(sys._getframe(1))
        if event == "open" and _is_write(arguments[1], arguments[2]):
            self._written.add(path)
        elif event == "open" or reader != ANYTHING:  # pytest lists every folder
            self._found.setdefault(path, set()).add(reader)

    def is_ours(self, path: str) -> bool:
        """Tell whether a file is one of the project, and not in a hidden folder, a cache or a library."""
        known = self._ours.get(path)
        if known is None:
            inside = next((path[len(root) + 1 :] for root in self._roots if path.startswith(root + os.sep)), "")
            parts = [part for part in inside.split(os.sep) if part != ".env"]
            known = bool(inside) and all(map(is_watched, parts))
            known = known and path not in self._written_by_us and not path.startswith(self._without)
            self._ours[path] = known
        return known

    def _reader(self, frame: FrameType | None) -> str:
        reader = ANYTHING
        while frame is not None:
            code = frame.f_code
            if code is read_rows.__code__:
                return ROWS
            if self.is_ours(code.co_filename):
                reader = code.co_filename if reader == ANYTHING else reader
                if code.co_name == "<module>":  # read once, whoever imports it
                    return reader
            frame = frame.f_back
        return reader


def _is_write(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)
