"""Collect regular files with plain names from an untrusted folder, within limits.

Every folder is opened relative to its parent's descriptor, without following links. Every file is
checked again through its own descriptor after opening, so that renaming is useless.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff._kernel.files import name_problem, pattern_problem
from bakeoff._kernel.text import escaped
from bakeoff.errors import InfraError, SubjectError

PLACE_PREFIX = "bakeoff-place-"
"""The prefix of the folder that contains the private folders of a trial."""

MAX_FOLDERS_DEEP = 64
MAX_ENTRIES = 200_000
MAX_REFUSALS = 1_000  # so that a hostile folder cannot make the report endless
CHUNK = 1 << 20

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_ITS_OWN_DOING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM)

KINDS = (
    (stat.S_ISLNK, "is a symbolic link"),
    (stat.S_ISFIFO, "is a named pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISBLK, "is a block device"),
    (stat.S_ISCHR, "is a character device"),
    (stat.S_ISDIR, "is a folder"),
)


@dataclass(frozen=True, slots=True)
class TakenFiles:
    """The collected files, and the reasons for refused ones, by path with forward slashes."""

    files: dict[str, bytes]
    refused: dict[str, str]  # the paths are safe to print

    def texts(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the files as texts. Files that are not UTF-8 are also refused."""
        texts, refused = {}, dict(self.refused)
        for path, content in self.files.items():
            try:
                texts[path] = content.decode()
            except UnicodeDecodeError:
                refused[path] = "not UTF-8 text"
        return texts, refused


@dataclass
class _FileSearch:
    """One walk through an untrusted folder."""

    patterns: "_Patterns"
    device: int
    bytes_left: int
    files_left: int
    entries_left: int = MAX_ENTRIES
    refused: dict[str, str] = field(default_factory=dict)
    folded: dict[str, str] = field(default_factory=dict)  # case-folded path -> collected path

    def refuse(self, path: str, why: str) -> None:
        if len(self.refused) < MAX_REFUSALS:
            self.refused.setdefault(escaped(path)[:500], why)


def take(source_root: Path, patterns: Iterable[str], *, max_bytes: int, max_files: int) -> TakenFiles:
    """Read the matching files into memory.

    A pattern is a path or glob relative to the root; `**` matches any number of folders.
    `max_bytes` limits the total size of all files.
    """
    compiled = _Patterns([patterns] if isinstance(patterns, str) else patterns)
    with open_folder(source_root) as root:
        search = _FileSearch(compiled, os.fstat(root).st_dev, max_bytes, max_files)
        for pattern, why in compiled.bad:
            search.refuse(pattern, why)
        files = dict(_walk(search, root, "", 0))
        for path in sorted(set(compiled.literal) - files.keys()):
            search.refuse(path, "is not there")
    return TakenFiles(files, search.refused)


# --- patterns and names -------------------------------------------------------------------------------------------


class _Patterns:
    """Globs as regular expressions, and the folders in which they can match."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.bad: list[tuple[str, str]] = []
        self.literal: list[str] = []
        self.whole: list[re.Pattern[str]] = []
        self.folders: list[re.Pattern[str]] = []
        for pattern in dict.fromkeys(patterns):
            self.add(pattern)

    def add(self, pattern: str) -> None:
        parts = pattern.split("/")
        why = pattern_problem(pattern)
        if why:
            self.bad.append((pattern, why))
            return
        if not any(mark in pattern for mark in "*?["):
            self.literal.append(pattern)
        self.whole.append(re.compile(translate(parts)))
        reached = parts.index("**") + 1 if "**" in parts else len(parts) - 1
        for end in range(1, reached + 1):
            self.folders.append(re.compile(translate(parts[:end])))

    def match(self, path: str) -> bool:
        return any(expression.fullmatch(path) for expression in self.whole)

    def reach_into(self, path: str) -> bool:
        return any(expression.fullmatch(path) for expression in self.folders)


def matches_pattern(path: str, patterns: Iterable[str]) -> bool:
    """Return True if `take` would collect a file with this path."""
    return _Patterns(patterns).match(path)


def translate(parts: list[str]) -> str:
    """Translate a glob. `*` and `?` match in one component, `**` any number of components."""
    expression = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            expression += ".*" if last else "(?:[^/]+/)*"
        else:
            expression += translate_component(part) + ("" if last else "/")
    return f"(?s:{expression})"


def translate_component(part: str) -> str:
    """Translate one component of a glob, whose wildcards do not match slashes."""
    expression, index = "", 0
    while index < len(part):
        closing = part.find("]", index + 2) if part[index] == "[" else -1
        if closing > 0:
            inner = part[index + 1 : closing].replace("\\", "\\\\").replace("[", "\\[").replace("&", "\\&")
            negated, members = inner[0] in "!^", inner.lstrip("!^") or "\\^"
            expression += f"(?!/)[{'^' if negated else ''}{members}]"
            index = closing + 1
            continue
        expression += {"*": "[^/]*", "?": "[^/]"}.get(part[index], re.escape(part[index]))
        index += 1
    return expression


# --- the walk -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_folder(root: Path) -> Iterator[int]:
    """Open a folder. If a command locked, removed or replaced it, blame the subject."""
    descriptor = open_unlocked(root)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_unlocked(root: Path) -> int:
    """Return a folder's descriptor. If it belongs to a place, first make it accessible."""
    of_a_place = root.parent.name.startswith(PLACE_PREFIX)
    try:
        if of_a_place:
            unlock_folder(root)
        return os.open(root, FOLDER_FLAGS)
    except OSError as problem:
        kind = SubjectError if of_a_place and problem.errno in _ITS_OWN_DOING else InfraError
        raise kind(f"{root} is not a folder that can be opened: {problem.strerror}") from problem


def unlock_folder(root: Path) -> None:
    """Restore the original mode of a folder, without following a link in its place."""
    if sys.platform != "linux":
        return
    descriptor = os.open(root, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
            Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IRWXU)
    finally:
        os.close(descriptor)


def _walk(search: _FileSearch, folder: int, prefix: str, depth: int) -> Iterator[tuple[str, bytes]]:
    for name in _names(search, folder, prefix):
        path = prefix + name
        wanted, enter = search.patterns.match(path), search.patterns.reach_into(path)
        if not (wanted or enter):
            continue
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                yield from _enter(search, folder, name, path, depth, enter=enter)
            elif wanted or stat.S_ISLNK(found.st_mode):  # a link may replace a folder
                yield from _open(search, folder, name, path, found)
        except OSError as problem:
            search.refuse(path, f"cannot be read: {problem.strerror}")


def _names(search: _FileSearch, folder: int, prefix: str) -> list[str]:
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            search.entries_left -= 1
            if search.entries_left < 0:
                search.refuse(prefix or ".", f"holds more than {MAX_ENTRIES} entries; the rest was not looked at")
                break
            names.append(entry.name)
    return sorted(names)


def _enter(
    search: _FileSearch, parent: int, name: str, path: str, depth: int, *, enter: bool
) -> Iterator[tuple[str, bytes]]:
    why = name_problem(name)
    if why or not enter:
        search.refuse(path, why or "is a folder")
        return
    if depth >= MAX_FOLDERS_DEEP:
        search.refuse(path, f"lies more than {MAX_FOLDERS_DEEP} folders deep")
        return
    descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    try:
        if os.fstat(descriptor).st_dev != search.device:
            search.refuse(path, "is on another file system")
            return
        yield from _walk(search, descriptor, path + "/", depth + 1)
    finally:
        os.close(descriptor)


def _open(search: _FileSearch, folder: int, name: str, path: str, found: os.stat_result) -> Iterator[tuple[str, bytes]]:
    why = name_problem(name) or not_plain(found)  # devices must not even be opened
    if why:
        search.refuse(path, why)
        return
    descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        opened = os.fstat(descriptor)
        why = not_plain(opened) or _over_limits(search, path, opened)
        if why:
            search.refuse(path, why)
            return
        search.files_left -= 1
        search.folded[path.casefold()] = path
        if (content := _read(descriptor, opened.st_size)) is None:
            search.refuse(path, "grew while it was read")
            return
        search.bytes_left -= len(content)
        yield path, content
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_below(root: int, path: str) -> Iterator[int]:
    """Open one plain file below the descriptor `root`. Raise `OSError` for other files."""
    *folders, name = path.split("/")
    with contextlib.ExitStack() as opened:
        folder = root
        for part in folders:
            folder = os.open(part, FOLDER_FLAGS, dir_fd=folder)
            opened.callback(os.close, folder)
        _check_plain(path, os.stat(name, dir_fd=folder, follow_symlinks=False))  # devices must not even be opened
        descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
        opened.callback(os.close, descriptor)
        _check_plain(path, os.fstat(descriptor))
        yield descriptor


def _check_plain(path: str, found: os.stat_result) -> None:
    if why := not_plain(found):
        raise OSError(f"{path} {why}")


def not_plain(found: os.stat_result) -> str:
    """Return why a file cannot be collected, for example a link; empty if it can."""
    for is_kind, why in KINDS:
        if is_kind(found.st_mode):
            return why
    return "has a second hard link" if found.st_nlink > 1 else ""


def _over_limits(search: _FileSearch, path: str, opened: os.stat_result) -> str:
    if opened.st_dev != search.device:
        return "is on another file system"
    if search.files_left <= 0:
        return "is one file too many"
    if opened.st_size > search.bytes_left:
        return f"is too large: {opened.st_size} bytes, {search.bytes_left} are left"
    if path.casefold() in search.folded:
        return f"differs from {search.folded[path.casefold()]!r} in case only"
    return ""


def _read(descriptor: int, size: int) -> bytes | None:
    """Return the content of an open file; None if it has grown since the check."""
    content = bytearray()
    while len(content) <= size:
        chunk = os.read(descriptor, min(CHUNK, size + 1 - len(content)))
        if not chunk:
            return bytes(content)
        content += chunk
    return None


# --- writing ----------------------------------------------------------------------------------


def write_below(root: int, path: str, content: bytes, mode: int, owner: int | None = None) -> str:
    """Write a file and rename it over the target, so that a link there is replaced, not followed.

    `root` is the descriptor of an open folder; `owner` gets new files and folders. Return the
    problem, or an empty string.
    """
    *folders, name = path.split("/")
    with contextlib.ExitStack() as opened:
        folder = root
        try:
            for part in folders:
                made = True
                try:
                    os.mkdir(part, 0o755, dir_fd=folder)
                except FileExistsError:
                    made = False
                folder = os.open(part, FOLDER_FLAGS, dir_fd=folder)
                opened.callback(os.close, folder)
                if made and owner is not None:
                    os.fchown(folder, owner, owner)
            temporary = f".bakeoff-{secrets.token_hex(8)}"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    if owner is not None:
                        os.fchown(file.fileno(), owner, owner)
                    os.fchmod(file.fileno(), mode)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(temporary, dir_fd=folder)
                raise
        except OSError as problem:
            return f"cannot be written at its destination: {problem.strerror}"
    return ""
