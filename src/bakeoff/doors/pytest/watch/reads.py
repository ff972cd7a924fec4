"""Note which files are read while tests are collected and run, and by which module.

Python reports each file that it opens to an audit hook. A data file belongs to the module that reads it, as if it were
a part of its source.
"""
# ruff: noqa: PTH109, PTH117, PTH118, PTH120, PTH206 - called for every file that is opened

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from bakeoff._kernel.watch import is_watched
from bakeoff.doors.pytest.rows import read_rows
from bakeoff.doors.pytest.watch.source import ANYTHING

ROWS = "rows"
"""Stands for the rows of suites, which are compared one by one."""

_PLAIN_SOURCE = (".py", ".pyc", ".pyo")
_LISTINGS = ("os.listdir", "os.scandir")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


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

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what is read within."""
        self._on = False
        yield
        self._on = True

    @property
    def found(self) -> dict[str, set[str]]:
        """Return who has read each file: paths of modules, `ROWS` or `ANYTHING`. What was also written is left out."""
        folders = {os.path.dirname(path) for path in self._written}
        return {path: by for path, by in self._found.items() if path not in self._written and path not in folders}

    def of_rows(self) -> list[str]:
        """Return the files that rows were read from."""
        return sorted(path for path, by in self._found.items() if ROWS in by)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event. An error here would be raised where the file is opened."""
        if not self._on or (event != "open" and event not in _LISTINGS):
            return
        given = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else None
        if not given or given.endswith(_PLAIN_SOURCE):
            return
        path = os.path.normpath(given if os.path.isabs(given) else os.path.join(_folder(), given))
        if not self.is_ours(path):
            return
        reader = self._reader(sys._getframe(1))
        if event != "open":
            if reader != ANYTHING:  # pytest looks into every folder
                self._found.setdefault(path, set()).add(reader)
        elif _is_write(arguments[1], arguments[2]):
            self._written.add(path)
        else:
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


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return os.sep


def _is_write(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)
