"""Find the files that a program depends on: the modules that it imports, and the files that these read.

Where the source does not show it, more files are assumed. Data files belong to the module that reads them, as if they
were a part of its source: Python reports each file that it opens to an audit hook.
"""
# ruff: noqa: PTH100, PTH120, PTH206 - called for every file that is opened

import ast
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import bakeoff
from bakeoff._kernel.model import fingerprint
from bakeoff.engine.watch import ANYTHING, is_watched

ROWS = "rows"
"""A user of files that stands for all cases that are compared one by one."""

_LOADS_ANYTHING = frozenset(
    ("import_module", "__import__", "exec", "eval", "runpy", "subprocess", "multiprocessing", "entry_points")
) | {"create_subprocess_exec", "create_subprocess_shell", "spec_from_file_location", "iter_modules", "walk_packages"}
_LIBRARIES = frozenset(("site-packages", "dist-packages", "lib-dynload"))
_NOT_WATCHED = tuple(str(Path(file).parent) + os.sep for file in (os.__file__, bakeoff.__file__) if file)
_PLAIN_SOURCE = (".py", ".pyc", ".pyo")
_LISTINGS = ("os.listdir", "os.scandir")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def code_digest(source: str, suites: Container[str | None]) -> str:
    """Return a hash of the code of a file without the `data` of its suites: each row is compared separately.

    `suites` has the names of the functions that are called with data.

    Lists and tables that only this data uses are left out too. Raise SyntaxError or ValueError for text that is not
    Python.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if called in suites:
                node.keywords = [keyword for keyword in node.keywords if keyword.arg != "data"]
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    used.add("pytestmark")
    return fingerprint(*(ast.dump(statement) for statement in tree.body if not _is_unused_data(statement, used)))


def _is_unused_data(statement: ast.stmt, used: set[str]) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() | ast.Tuple() | ast.Dict()):
            return name not in used
    return False


def used_by(
    imports: Mapping[str, Iterable[str]], reads: Mapping[str, Iterable[str]]
) -> tuple[dict[str, set[str]], set[str]]:
    """Return the files that each user depends on, and all files to watch.

    Args:
        imports: The files that each user, itself a file, imports, directly or not.
        reads: The modules that read each data file, `ROWS` or `ANYTHING`. All users depend on a file whose reader is
            unknown.
    """
    sources = {user: {user, *files} for user, files in imports.items()}
    known = set[str]().union(*sources.values())
    uses = {user: {*files} for user, files in imports.items()}
    for path, readers in reads.items():
        modules = {*readers} - {ROWS}
        for user, files in uses.items():
            if not modules.isdisjoint(sources[user]) or not modules <= known - {ANYTHING}:
                files.add(path)
    return uses, known - {ANYTHING} | {*reads}


@cache
def _imports(path: str) -> frozenset[tuple[int, str]]:
    """Return the names that a file imports, with their number of leading dots, and `ANYTHING` if it may load more."""
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


def own_modules(is_ours: Callable[[str], bool]) -> dict[str, str]:
    """Return, by module name, the loaded files that belong to the project (`is_ours`) or are developed elsewhere."""
    files = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    return {
        name: file
        for name, file in files
        if isinstance(file, str)
        and (is_ours(file) or (_LIBRARIES.isdisjoint(Path(file).parts) and not file.startswith(_NOT_WATCHED)))
    }


def imported_files(path: str, loaded: Mapping[str, str]) -> set[str]:
    """Return the files that a file imports, directly or through others; with `ANYTHING` if there may be more.

    Args:
        path: The file to begin with. It is not in the result unless it is imported again.
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
    """Yield the modules that an import may load: each package of the path, and the imported name itself."""
    if level:
        package = (getattr(sys.modules.get(importer), "__package__", None) or "").split(".")
        name = ".".join([*package[: len(package) - level + 1], name])
    parts = name.split(".")
    yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


class ReadFiles:
    """The data files of a project that this process reads from now on, and does not write."""

    def __init__(self, roots: Sequence[Path], without: Path, read_rows: CodeType) -> None:
        self._read_rows = read_rows  # functions that it calls read cases
        self._roots = [f"{root}{os.sep}" for root in roots]
        self._written_by_us = {str(without), str(without.parent)}  # folders of runs, which are synced to disk
        self._without = f"{without}{os.sep}"
        self.is_ours = cache(self._is_ours)
        self._written: set[str] = set()
        self._found: dict[str, set[str]] = {}
        self._on = True
        sys.addaudithook(self._hear)

    def stop(self) -> None:
        """Stop for good: an audit hook cannot be removed."""
        self._on = False

    @property
    def found(self) -> dict[str, set[str]]:
        """Return the readers of each file: paths of modules, `ROWS` or `ANYTHING`. Files also written are left out."""
        written = self._written | {os.path.dirname(path) for path in self._written}
        return {path: readers for path, readers in self._found.items() if path not in written}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record an event. An error here would be raised where the file is opened."""
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
        mode, flags = arguments[1:3] if event == "open" else ("", 0)
        if any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITES):
            self._written.add(path)
        elif event == "open" or reader != ANYTHING:  # pytest lists every folder
            self._found.setdefault(path, set()).add(reader)

    def _is_ours(self, path: str) -> bool:
        """Return True if a file belongs to the project, outside of hidden folders, caches and libraries."""
        inside = next((path.removeprefix(root) for root in self._roots if path.startswith(root)), "")
        if not inside or path in self._written_by_us or path.startswith(self._without):
            return False
        return all(is_watched(part) for part in inside.split(os.sep) if part != ".env")

    def _reader(self, frame: FrameType | None) -> str:
        reader = ANYTHING
        while frame is not None:
            code = frame.f_code
            if code is self._read_rows:
                return ROWS
            if self.is_ours(code.co_filename):
                reader = code.co_filename if reader == ANYTHING else reader
                if code.co_name == "<module>":  # read once, however many modules import it
                    return reader
            frame = frame.f_back
        return reader
