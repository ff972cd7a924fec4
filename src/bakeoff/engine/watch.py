"""Run a cycle, wait for files to change, and run the next cycle, until Ctrl-C.

`bakeoff eval`, `bakeoff mcp evaluate` and `pytest` share these steps: `WatchLoop` finds the changes, `stale_users`
returns the configurations or test files that they affect, and `engine.reuse` carries over the other results.

`watchfiles` wakes the loop after events in the folders of watched files. Changes are found by
comparing contents, so that saving without changes starts no cycle, and no change during a cycle is
missed. All files are also checked every two seconds, for file systems that report no events.
"""
# ruff: noqa: PTH110, PTH112, PTH113, PTH116, PTH118, PTH119, PTH120, PTH208 - texts take a fraction of the time of paths

import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bakeoff._kernel.files import read_file
from bakeoff._kernel.text import visible
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.record import Usage

GONE = ""
"""The state of a file that does not exist."""

CODE_SUFFIXES = (
    *(".py", ".toml", ".yaml", ".yml"),
    *(".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"),
    *(".go", ".rs", ".java", ".kt", ".rb", ".php", ".cs", ".swift", ".ex", ".lua", ".sh"),
)
"""Suffixes of files that usually only people write. Programs may write any other file."""

ANYTHING = "*"
"""A name that stands for all files in the list of files that a user depends on: the real ones are unknown."""

UNDECIDED, WRONG_CONFIGURATION = 3, 2

_WAITING = "Waiting for changes; Ctrl-C ends."
_QUIET_MILLISECONDS = 200  # without a change, after which a burst of saves is over
_LOOK_MILLISECONDS = 2_000
_MAX_NAMED = 3
_MAX_RESTLESS = 3  # cycles in a row that may change a data file before it is ignored
_CHANGE_OTHERS = ("conftest.py", "__init__.py")  # new files with these names change how others are imported
_NOT_OURS = frozenset(("__pycache__", "node_modules", "site-packages", "dist-packages"))

Changes = Mapping[str, str | None]
"""The paths that changed, each with its state before: a hash, `GONE`, or None if it was not watched yet."""


class WatchLoop:
    """Runs cycles until Ctrl-C.

    Args:
        sources: Returns the paths to watch. It is called after every cycle, because a
            configuration may name new files. The state of a folder is its list of names.
        cycle: Runs one cycle and returns its exit code. It gets the changes, none at first.
            If it raises a `BakeoffError`, the error is printed and watching continues.
        say: Prints a line.
        pages: Returns the pages to name while the loop waits.
    """

    def __init__(
        self,
        sources: Callable[[], Collection[str]],
        cycle: Callable[[Changes], int],
        say: Callable[[str], None],
        pages: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        self._sources, self._cycle, self._say, self._pages = sources, cycle, say, pages
        self._states = FileStates()
        self._known = self._states(sources())
        self._restless: Counter[str] = Counter()  # data files -> cycles in a row that changed them
        self.code = 0
        self.ended = False  # set by a cycle that is to be the last

    def run(self) -> int:
        """Run a cycle now and after every change. Return the exit code of the last cycle."""
        changed: Changes = {}
        with suppress(KeyboardInterrupt):
            while True:
                began = time.time()
                try:
                    self.code = self._cycle(changed)
                except BakeoffError as error:
                    self.code = report_error(error, self._say)
                if self.ended:
                    break
                self._settle(began)
                pages = ", ".join(visible(os.path.relpath(page), 200) for page in self._pages() if page.exists())
                self._say(f"{_WAITING} Page: {pages}" if pages else _WAITING)
                changed = self.wait()
                names = [visible(os.path.relpath(path), 100) for path in sorted(changed)]
                more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
                self._say("")
                self._say(f"Changed: {', '.join(names[:_MAX_NAMED])}{more}")
        return self.code

    def wait(self) -> Changes:
        """Wait for changes of watched files, and return them. Saves close together count as one."""
        folders, events = set[str](), _events(())
        before: Mapping[str, str] = {}
        while True:
            now = self._states(path for path in self._sources() if self._restless[path] < _MAX_RESTLESS)
            changed = {path: self._known.get(path) for path, state in now.items() if self._known.get(path) != state}
            # An editor may be replacing a file that is missing now.
            if changed and (now == before or GONE not in map(now.get, changed)):
                self._known.update(now)
                return changed
            before = now
            if (current := {folder for path in now if os.path.isdir(folder := os.path.dirname(path))}) != folders:
                folders, events = current, _events(current)
            next(events)

    def _settle(self, began: float) -> None:
        """Watch the files that the cycle used, and ignore data files that change in every cycle."""
        for path, state in self._states(self._sources()).items():
            changed = False
            with suppress(OSError):
                changed = os.path.isfile(path) and os.stat(path).st_mtime > began
            before = self._known.setdefault(path, GONE if changed else state)
            if path.endswith(CODE_SUFFIXES):
                continue
            self._restless[path] = self._restless[path] + 1 if state != before else 0
            if self._restless[path] >= _MAX_RESTLESS:
                self._known[path] = state
            if self._restless[path] == _MAX_RESTLESS:
                self._say(f"{visible(path, 200)} changes in every cycle: it is not watched while it does")


def _events(folders: Iterable[str]) -> Iterator[object]:
    """Yield after each event in the folders, and at least every two seconds."""
    import watchfiles

    try:
        yield from watchfiles.watch(
            *folders,
            watch_filter=None,
            step=_QUIET_MILLISECONDS,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            recursive=False,
        )
    except OSError:  # a folder is gone, or the system can watch no more
        while True:
            time.sleep(_LOOK_MILLISECONDS / 1000)
            yield ()


def stale_users(changes: Changes, uses: Mapping[str, Collection[str]]) -> set[str] | None:
    """Return the users of changed files; None if every user may be affected.

    `uses` maps each user to the files that it depends on. A user need not depend on itself: test
    files compare their own tests one by one.
    """
    stale: set[str] = set()
    for path, before in changes.items():
        users = {user for user, files in uses.items() if path in files}
        is_code, is_new = path.endswith(".py"), before in (None, GONE)
        if is_code and is_new and os.path.basename(path) in _CHANGE_OTHERS:
            return None
        if is_code and not is_new and not users and path not in uses:  # may be started as a program
            return None
        if is_code or users:
            stale |= users | {user for user, files in uses.items() if ANYTHING in files and user != path}
    return stale


def report_error(error: BakeoffError, say: Callable[[str], None]) -> int:
    """Print an error that ended a cycle, and return its exit code."""
    for line in str(error).splitlines():
        say(f"error: {line}")
    return UNDECIDED if isinstance(error, InfraError) else WRONG_CONFIGURATION


def remaining_limits(options: RunOptions, spent: Usage) -> RunOptions:
    """Return the options with the limits that remain. Raise UsageError if one is used up."""
    cost, tokens = options.max_cost, options.max_total_tokens
    cost = None if cost is None else cost - (spent.cost or 0.0)
    tokens = None if tokens is None else tokens - spent.tokens
    if (cost is not None and cost <= 0) or (tokens is not None and tokens <= 0):
        raise UsageError("--max-cost or --max-total-tokens is used up: start again with a higher limit")
    return replace(options, max_cost=cost, max_total_tokens=tokens)


class FileStates:
    """The content of files and folders as hashes. Files are reread if size or time changed."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, int, int], str]] = {}

    def __call__(self, paths: Iterable[str]) -> dict[str, str]:
        return {path: self._state(path) for path in paths}

    def _state(self, path: str) -> str:
        try:
            if os.path.isdir(path):
                return _hash("\n".join(sorted(filter(is_watched, os.listdir(path)))).encode())
            found = os.stat(path)
            stamp = found.st_mtime_ns, found.st_size, found.st_ino
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                known = self._read[path] = stamp, _hash(read_file(Path(path)))
        except OSError:
            return GONE
        return known[1]


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def is_watched(name: str) -> bool:
    """Return False for the names of hidden files, backups, caches and libraries."""
    return not name.startswith((".", "#")) and not name.endswith("~") and name not in _NOT_OURS


def source_files(root: Path, suffix: str | tuple[str, ...] = ".py", without: Container[str] = ()) -> Iterator[str]:
    """Yield the source files in a folder, except in hidden, cache and library folders.

    `without` lists more folders to leave out, as paths that begin with `root`.
    """
    for folder, folders, files in os.walk(root):
        folders[:] = [
            name
            for name in folders
            if is_watched(name)
            and os.path.join(folder, name) not in without
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(folder, name) for name in files if name.endswith(suffix) and is_watched(name))


def forget_modules(changed: Iterable[str], sources: Collection[str]) -> bool:
    """Unload the modules of these source files if one has changed. Return True if one has."""
    ours = {
        name: file
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and name.partition(".")[0] != "bakeoff"
        and (file := os.path.realpath(getattr(module, "__file__", None) or "")) in sources
    }
    if set(ours.values()).isdisjoint(changed):
        return False
    for name in ours:
        del sys.modules[name]
    return True
