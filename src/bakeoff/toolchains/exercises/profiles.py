"""What is particular to a track of exercises: which files are which, how its tests are run and un-skipped."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal, TypeAlias

from bakeoff.errors import UsageError

Runner: TypeAlias = Literal["jest", "pytest", "command"]


@dataclass(frozen=True, slots=True)
class TrackProfile:
    """One language's habits."""

    language: str
    runner: Runner
    test_patterns: tuple[str, ...]
    """Names of files with tests to run: a track may list helpers among its tests."""
    test_command: str
    """The track's own, for those who ask for it with `--test-command`."""
    skips: tuple[tuple[str, str], ...] = ()
    """Regular expressions of skipped tests, and what stands there when they are graded."""

    def is_test(self, path: str) -> bool:
        return _matches(path, self.test_patterns)

    def unskipped(self, source: str) -> str:
        """The same tests with none of them left out; only calls change, never an import."""
        for pattern, instead in self.skips:
            source = re.sub(pattern, instead, source)
        return source


def is_hidden(path: str) -> bool:
    """What no test may see, wherever it stands: `.meta`, `.git`, installed packages."""
    folders = PurePosixPath(path).parts[:-1]
    return any(part.startswith(".") or part in {"node_modules", "__pycache__"} for part in folders)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_CALLED = r"(?=\s*[.(`])"
TYPESCRIPT = TrackProfile(
    language="typescript",
    runner="jest",
    test_patterns=("*.test.*", "*.spec.*", "*_test.*", "*.tst.*", "test-*", "*.snap"),
    test_command="corepack yarn && corepack yarn test",
    skips=(
        (rf"(?<![\w.$'\"])x(it|test|describe){_CALLED}", r"\1"),
        (rf"(?<![\w.$'\"])((?:it|test|describe)(?:\.concurrent)?)\.skip{_CALLED}", r"\1"),
    ),
)
PYTHON = TrackProfile(
    language="python",
    runner="pytest",
    test_patterns=("test_*", "*_test.*", "*.test.*", "*.spec.*"),
    test_command="pytest",
)
PROFILES: Mapping[str, TrackProfile] = MappingProxyType({each.language: each for each in (TYPESCRIPT, PYTHON)})


def profile_of(language: str, test_command: str | None = None) -> TrackProfile:
    """By the `language` or `slug` of a track's config.json, in any case; any language at all if told how to test it."""
    name = language.strip().lower()
    found = PROFILES.get(name)
    if found is not None:
        return found
    if test_command is None:
        known = ", ".join(PROFILES)
        raise UsageError(f"there is no profile for exercises in {language!r}, only for {known}; pass --test-command")
    return TrackProfile(
        language=name,
        runner="command",
        test_patterns=("*.test.*", "*_test.*", "*.spec.*", "*_spec.*", "test_*", "test-*", "*Test.*", "*Tests.*"),
        test_command=test_command,
    )
