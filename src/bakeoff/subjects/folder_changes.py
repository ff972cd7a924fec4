"""Read the texts in a folder, compare two states, and find files that an agent has opened.

A file counts as opened if the kernel has changed its access time. Without access times (`noatime`),
the result is unknown. Agents may replace files by links or pipes, so all files are untrusted.
"""

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from bakeoff._kernel.files import pattern_problem
from bakeoff.sandbox.untrusted_files import TakenFiles, open_below, open_folder, take

PASSED_OVER = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv"}
)
"""Folders of version control and tools: their names are noted, their contents are never read."""

_NO_FILE = ("is not there", "is a folder")  # reasons that mean that a file no longer exists
MAX_FILES = 500
MAX_BYTES = 8 * 1024 * 1024
_MAX_PATCH_LENGTH = 200_000  # characters
_MAX_DIFF_LENGTH = 50_000  # characters for one file

_STEERING = (
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
    *("package.json", "tsconfig.json", "babel.config.js", "babel.config.cjs", "babel.config.json"),
    *(f"{runner}.config.{suffix}" for runner in ("jest", "vitest") for suffix in ("js", "cjs", "mjs", "ts", "json")),
    *("junit.xml", "report.xml", "results.json", "result.json", "test-results.xml", "test-results.json"),
)
"""Names of files that test runners, and readers of their reports, look for."""
_ALIKE = re.compile(r"\.pth$|\.config\.|test|spec|(^|/)\.")

_LONG_AGO = 1  # seconds; so old that even `relatime` records the next read


@dataclass(frozen=True, slots=True)
class Tree:
    """The texts in a folder, refused files with reasons, and folders that were not read."""

    files: Mapping[str, str]
    refused: Mapping[str, str]
    passed_over: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between two states of a folder."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    patch: str = ""
    known: frozenset[str] = frozenset()  # names of earlier files

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(sorted({*self.added, *self.changed, *self.removed, *self.refused}))

    def weightiest(self, most: int) -> tuple[str, ...]:
        """Return at most this many changed names, the most important first."""
        return tuple(sorted(sorted(self.touched, key=partial(_weight, self.known))[:most]))


def _weight(known: Collection[str], name: str) -> tuple[bool, bool, bool, int, str]:
    """Return a sort key: existing files first, then files that affect tests, then short paths."""
    steers = PurePosixPath(name).name in _STEERING
    return name not in known, not steers, not _ALIKE.search(name), name.count("/"), name


def read_tree(folder: Path, known: Collection[str] = ()) -> Tree:
    """Read everything in an untrusted folder. Links and special files are refused.

    `known` files, and files that affect tests, are read even if there are too many files.
    """
    with open_folder(folder) as opened, os.scandir(opened) as entries:
        found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    # One pattern per top-level folder, so that huge folders of tools are skipped.
    wanted = [name for name, is_folder in found if is_folder and name not in PASSED_OVER and not _special(name)]
    folders = sorted({parent for name in known for parent in PurePosixPath(name).parents})
    beside = [str(parent / name) for parent in folders for name in _STEERING]
    known = [name for name in (*known, *beside) if not _special(name)]
    first = read_matching(folder, known) if known else Tree({}, {})
    rest = read_matching(folder, ["*", *(f"{name}/**" for name in wanted)])
    refused = {name: why for name, why in rest.refused.items() if name not in first.files}
    refused |= {name: why for name, why in first.refused.items() if why not in _NO_FILE and name not in rest.files}
    passed_over = frozenset(name for name, _ in found if name in PASSED_OVER)
    return Tree({**rest.files, **first.files}, refused, passed_over)


def read_matching(folder: Path, patterns: Iterable[str]) -> Tree:
    """Read matching files of an untrusted folder. Skip those of version control and tools."""
    taken = take(folder, patterns, max_bytes=MAX_BYTES, max_files=MAX_FILES)
    wanted = {name: data for name, data in taken.files.items() if not PASSED_OVER & set(name.split("/")[:-1])}
    return Tree(*TakenFiles(wanted, taken.refused).texts())


def _special(name: str) -> bool:
    return bool(pattern_problem(name)) or bool(set(name) & set("*?["))


def changes_between(before: Tree, after: Tree) -> Changes:
    """Return the changes between two states of a folder, with a patch of the texts.

    New refused files, such as links, are listed separately. New unread folders count as added.
    """
    added = sorted(after.files.keys() - before.files.keys())
    removed = sorted(before.files.keys() - after.files.keys() - after.refused.keys())
    changed = sorted(
        name for name in before.files.keys() & after.files.keys() if before.files[name] != after.files[name]
    )
    folders = sorted(f"{name}/" for name in after.passed_over - before.passed_over)
    known = frozenset((*before.files, *before.refused))
    refused = sorted(
        (name for name in after.refused.keys() - before.refused.keys() if after.refused[name] != "is a folder"),
        key=partial(_weight, known),
    )
    names = sorted({*added, *removed, *changed}, key=partial(_weight, known))
    patch = "".join(_diff(name, before.files.get(name), after.files.get(name)) for name in names)
    return Changes((*added, *folders), tuple(changed), tuple(removed), tuple(refused), cut_patch(patch), known)


def cut_patch(patch: str) -> str:
    """Return a patch. If it is too long for a record, cut it and add a note."""
    return patch if len(patch) <= _MAX_PATCH_LENGTH else f"{patch[:_MAX_PATCH_LENGTH]}\n… (the rest is left out)\n"


def _diff(name: str, before: str | None, after: str | None) -> str:
    old, new = f"a/{name}" if before is not None else "/dev/null", f"b/{name}" if after is not None else "/dev/null"
    lines = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), old, new, lineterm="")
    patch = "".join(f"{line}\n" for line in lines)
    if len(patch) <= _MAX_DIFF_LENGTH:
        return patch
    # Removed lines come first, so that many additions do not hide them.
    written = patch.splitlines(keepends=True)
    ordered = [line for mark in "-+" for line in written[2:] if line[0] == mark]
    return f"{''.join((*written[:2], *ordered))[:_MAX_DIFF_LENGTH]}\n… (the rest of this file is left out)\n"


def patch_of(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return a patch of the files that are in `after`."""
    differing = [name for name in sorted(after) if before.get(name) != after[name]]
    return cut_patch("".join(_diff(name, before.get(name), after[name]) for name in differing))


def mark_unread(folder: Path, names: Iterable[str]) -> bool:
    """Mark files as unread. Return True if the file system will record when they are read."""
    marked = [name for name in names if _forget(folder, name)]
    noticed = any(_is_read(folder, name, now=True) for name in marked)
    for name in marked:
        _forget(folder, name)
    return noticed


def files_read(folder: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return the existing files that were read after they were marked."""
    return tuple(name for name in names if _is_read(folder, name))


@contextmanager
def _opened(folder: Path, name: str) -> Iterator[int]:
    with open_folder(folder) as root, open_below(root, name) as file:
        yield file


def _forget(folder: Path, name: str) -> bool:
    """Reset a file's access time. Return True if the file exists."""
    with suppress(OSError), _opened(folder, name) as file:
        os.utime(file, ns=(_LONG_AGO * 10**9, os.fstat(file).st_mtime_ns))
        return True
    return False


def _is_read(folder: Path, name: str, *, now: bool = False) -> bool:
    """Return True if a file was read after it was marked. With `now`, read it first."""
    with suppress(OSError), _opened(folder, name) as file:
        return (not now or bool(os.read(file, 1))) and os.fstat(file).st_atime > _LONG_AGO
    return False
