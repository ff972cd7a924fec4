"""Find the files that a program depends on: the modules that it imports, and their data files.

If the source leaves it open, more files are assumed. A data file counts as part of the module that
reads it. An audit hook of Python reports each file that is opened.
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
    """Return a hash of a file's code without the `data` of its suites, whose rows count singly.

    `suites` names the functions that are called with data.

    Lists and tables that only this data uses are left out too. If the text is not Python, raise
    SyntaxError or ValueError.
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
        imports: For each user, which is a file, the files that it imports, directly or not.
        reads: For each data file, the modules that read it, `ROWS` or `ANYTHING`. If no reader
            is known, all users depend on the file.
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
    """Return the imported names with their leading dots, and `ANYTHING` if there may be more."""
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
    """Return loaded files by module name: those of the project and of editable installs."""
    files = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    return {
        name: file
        for name, file in files
        if isinstance(file, str)
        and (is_ours(file) or (_LIBRARIES.isdisjoint(Path(file).parts) and not file.startswith(_NOT_WATCHED)))
    }


def imported_files(path: str, loaded: Mapping[str, str]) -> set[str]:
    """Return the files that a file imports, directly or not, and `ANYTHING` if there may be more.

    Args:
        path: The first file. It is in the result only if another file imports it.
        loaded: The files to consider, by module name.
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
    """Yield the modules that an import may load: its parent packages and the imported name."""
    if level:
        package = (getattr(sys.modules.get(importer), "__package__", None) or "").split(".")
        name = ".".join([*package[: len(package) - level + 1], name])
    parts = name.split(".")
    yield from (".".join(parts[: end + 1]) for end in range(len(parts)))


class ReadFiles:
    """The project's data files that this process reads from now on, except those that it writes."""

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
        """Stop recording for good, since an audit hook cannot be removed."""
        self._on = False

    @property
    def found(self) -> dict[str, set[str]]:
        """Return the readers of each file: paths of modules, `ROWS` or `ANYTHING`."""
        written = self._written | {os.path.dirname(path) for path in self._written}
        return {path: readers for path, readers in self._found.items() if path not in written}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record an event, without raising errors into the code that opens the file."""
        if not self._on or (event != "open" and event not in _LISTINGS):
            return
        given = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else None
        if not given or given.endswith(_PLAIN_SOURCE):
            return
        try:
            path = os.path.abspath(given)
        except OSError:  # the current folder no longer exists
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
        """Return True for files of the project, except in hidden, cache and library folders."""
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
                if code.co_name == "<module>":  # read once for all modules that import it
                    return reader
            frame = frame.f_back
        return reader
