"""Describe tracks: languages of exercises, how tests run, and file names of tests and tools.

Tracks mark later tests as skipped, so that learners do not see all failures at once. These marks
are removed here, but tests skipped on purpose stay skipped.
"""

import ast
import fnmatch
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Literal

from bakeoff.errors import UsageError

_X_CALLS = re.compile(r"(?<![\w.$'\"])x(it|test|describe)(?=\s*[.(`])")
_DISABLED = re.compile(r"""@Disabled\("Remove to run test"\)""")
# `skipIf`, `skipif` and `xfail` have other reasons: the machine or the test.
_SKIPS = frozenset({"skip", "unittest.skip", "mark.skip", "pytest.mark.skip"})
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_INSTALLS = re.compile(
    r"\s*((?:corepack\s+)?(?:yarn|pnpm|npm)(?:\s+(?:install|ci|i))?(?:\s+--?[\w=-]+)*"
    r"|(?:uv\s+sync|(?:uv\s+)?pip3?\s+install|g\+\+ -c)[^&;|]*)\s*&&\s*(.+)",
    re.DOTALL,
)
TEST_PATTERNS = ("*.test.*", "*_test.*", "*.spec.*", "*_spec.*", "test_*", "*Test.*", "*Tests.*", "*-test.*")
EXAMPLE_STEMS = ("proof.ci", "example", "exemplar", "reference", "proof")
"""Names of the known-good solution in `.meta`, for exercises whose configuration does not name it."""
RUNNER_FILES = (".meta/config.json", ".meta/test-runner.mjs")
"""Files in `.meta` that a track's own test command may read."""
_TOOL_NAMES = (
    *("package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock*", "*.config.*", "tsconfig*.json"),
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini", "tox.ini", "setup.cfg", "setup.py"),
    *("pyproject.toml", "*.pth", "jest.*", "vitest.*", "babel.*", "eslint*", "Makefile", "Cargo.toml", "go.mod"),
    *("jest-*", "vitest-*", "requirements*.txt", "Pipfile*", "*.d.ts", "*.snap", "noxfile.py", "manage.py", "*.lock"),
)
_TOOL_FOLDERS = frozenset(
    {"node_modules", "__mocks__", "__tests__", "__snapshots__", "test", "tests", ".git", ".meta", ".docs", ".yarn"}
)
_STARTS_PROCESSES = re.compile(
    r"\b(?:subprocess|multiprocessing|ProcessPoolExecutor|os\.(?:fork|popen|system|\w*spawn))"
)
_TEST_RUNNERS = frozenset({"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "jest", "vitest"})
_JUNIT = (
    *("junit-jupiter-api", "junit-jupiter-params", "junit-jupiter-engine", "junit-platform-commons"),
    *("junit-platform-engine", "junit-platform-launcher", "junit-platform-console", "junit-platform-reporting"),
    *("opentest4j", "apiguardian-api", "picocli", "univocity-parsers", "assertj-core"),
)


def undo_x_calls(source: str) -> str:
    """Replace calls such as `xit` by `it`. `.skip` stays, because tracks use it on purpose."""
    return _X_CALLS.sub(r"\1", source)


def undo_disabled(source: str) -> str:
    """Remove Java annotations that skip later tests. Skips with another reason stay."""
    return _DISABLED.sub("", source)


def undo_later_skips(source: str) -> str:
    """Remove the skip decorators of later Python tests, those after the last active test.

    A skipped test between active ones is skipped on purpose. Line numbers do not change.
    """
    try:
        tests = list(_tests(ast.parse(source), ()))
    except (SyntaxError, ValueError, RecursionError):
        return source
    later = {mark for marks in takewhile(bool, reversed(tests)) for mark in marks}
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", source)  # lines as in Python: not at form feeds
    for mark in later:
        for number in range(mark.lineno - 1, mark.end_lineno or mark.lineno):
            lines[number] = "\n"
    return "".join(lines)


def _tests(node: ast.AST, around: tuple[ast.expr, ...]) -> Iterator[tuple[ast.expr, ...]]:
    """Yield the skip decorators of each test, including those of its class, in file order."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Definition):
            continue
        skips = [each for each in child.decorator_list if ast.unparse(getattr(each, "func", each)) in _SKIPS]
        marks = (*around, *skips)
        if isinstance(child, ast.ClassDef):
            yield from _tests(child, marks)
        elif child.name.startswith("test"):
            yield marks


@dataclass(frozen=True, slots=True)
class Track:
    """The language of a group of exercises."""

    slug: str
    language: str
    suffixes: tuple[str, ...]
    runner: Literal["jest", "pytest", "command"] = "command"
    command: str | None = None
    """The command that agents type to run an exercise's tests; None if none is known."""
    type_command: str | None = None
    """The command that agents type to check types, in tracks where types are graded."""
    programs: tuple[str, ...] = ()
    """The programs that the command needs, for tracks without a test runner of Bakeoff."""
    get: str = ""
    """Instructions for installing these programs."""
    jars: tuple[str, ...] = ()
    """The libraries of Java that the command needs."""
    support: tuple[str, ...] = ()
    """Files that the tests of every exercise need, and that no exercise declares."""
    fence: str = ""
    node: bool = False
    test_patterns: tuple[str, ...] = (*TEST_PATTERNS, "test-*")
    """Names of the files with tests to run. A track may list helpers among its tests."""
    defines_test: str | None = None
    """A regular expression for a test's definition. Files without a match, such as `test_utils`, are helpers."""
    unskip: Callable[[str], str] = str
    """Removes the marks by which the track skips later tests."""

    def tests_among(self, trusted: Iterable[str], files: Mapping[str, str]) -> list[str]:
        """Return the test files in a list of tests and helpers; all of them if no name fits."""
        names = list(trusted)
        named = [name for name in names if matches(name, self.test_patterns)]
        pattern = self.defines_test
        defining = [name for name in named if pattern and re.search(pattern, files.get(name, ""), re.MULTILINE)]
        return defining or named or names


TYPESCRIPT = Track(
    slug="typescript",
    language="TypeScript",
    suffixes=(".ts", ".tsx"),
    runner="jest",
    command="node_modules/.bin/jest",  # unlike `npx jest`, uses no registry
    type_command="node_modules/.bin/tsc --noEmit",
    fence="ts",
    node=True,
    test_patterns=("*.test.*", "*.spec.*", "*_test.*", "test-*"),
    unskip=undo_x_calls,
)
PYTHON = Track(
    slug="python",
    language="Python",
    suffixes=(".py",),
    runner="pytest",
    command="pytest",
    fence="python",
    test_patterns=("test_*", "*_test.*", "*.test.*", "*.spec.*"),
    defines_test=r"^\s*(?:async\s+)?def\s+test|^\s*class\s+\w*Test|\bload_tests\b",
    unskip=undo_later_skips,
)
JAVASCRIPT = Track(
    "javascript",
    "JavaScript",
    (".js", ".jsx", ".mjs"),
    runner="jest",
    command=TYPESCRIPT.command,
    fence="js",
    node=True,
    test_patterns=TYPESCRIPT.test_patterns,
    unskip=undo_x_calls,
)
GO = Track(
    "go",
    "Go",
    (".go",),
    command="go test ./...",
    programs=("go",),
    get="`apt-get install golang-go`, or https://go.dev/dl",
    fence="go",
)
RUST = Track(
    "rust",
    "Rust",
    (".rs",),
    command="cargo test --offline -- --include-ignored",
    programs=("cargo", "rustc"),
    get="`apt-get install cargo`, or https://rustup.rs",
    fence="rust",
)
CPP = Track(
    "cpp",
    "C++",
    (".cpp", ".h", ".hpp"),
    # The settings of the track's CMakeLists.txt, which needs a folder of a certain name. Catch is
    # compiled once for all answers.
    command=(
        "g++ -c -std=c++17 test/tests-main.cpp -o catch-main.o && "
        "g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -DEXERCISM_RUN_ALL_TESTS -pthread "
        "./*.cpp catch-main.o -o run-tests && ./run-tests"
    ),
    programs=("g++",),
    get="`apt-get install g++`",
    support=("test/catch.hpp", "test/tests-main.cpp"),
    fence="cpp",
)
JAVA = Track(
    "java",
    "Java",
    (".java",),
    # The track's own Gradle would need a network for its packages.
    command=(
        "javac -d build $(find src -name '*.java') && "
        "java org.junit.platform.console.ConsoleLauncher --scan-classpath=build --fail-if-no-tests"
    ),
    programs=("java", "javac"),
    get="`apt-get install default-jdk-headless junit5 libassertj-core-java`, or pass a --test-command",
    jars=tuple(f"/usr/share/java/{name}.jar" for name in _JUNIT),
    fence="java",
    unskip=undo_disabled,
)
_ALL = (TYPESCRIPT, JAVASCRIPT, PYTHON, GO, RUST, CPP, JAVA)
TRACKS: Mapping[str, Track] = {track.slug: track for track in _ALL}
SUPPORT = tuple(name for track in _ALL for name in track.support)
GUARDED = tuple(track for track in TRACKS.values() if track.runner != "command")
"""The tracks for which Bakeoff has its own test runner."""


def track_of(slug: str | None, names: Iterable[str]) -> Track:
    """Return the track with this slug, or else one guessed from the suffixes of files."""
    if slug is not None and slug in TRACKS:
        return TRACKS[slug]
    suffixes = [PurePosixPath(name).suffix for name in names]
    for track in TRACKS.values():
        if slug is None and any(suffix in track.suffixes for suffix in suffixes):
            return track
    found = tuple(dict.fromkeys(suffix for suffix in suffixes if suffix and suffix not in (".json", ".md", ".toml")))
    return Track(slug or "unknown", (slug or "unknown").capitalize(), found)


def graded_track(language: str, command: str | None = None) -> Track:
    """Return a language's track by its slug, ignoring case. A test command allows any language."""
    name = language.strip().lower()
    track = TRACKS.get(name) or Track(name, language, ())
    if track in GUARDED:
        return track
    if command is None:
        known = ", ".join(each.slug for each in GUARDED)
        raise UsageError(f"exercises in {language!r} have no test runner here, only {known} do; pass --test-command")
    return replace(track, command=command)


def own_command(track: Track) -> str | None:
    """Return the test command of a track that Bakeoff has no runner for; otherwise None."""
    return track.command if track.runner == "command" else None


def missing_programs(track: Track) -> list[str]:
    """Return the missing programs and libraries for a track's command."""
    programs = [program for program in track.programs if shutil.which(program) is None]
    return programs + [PurePosixPath(jar).name for jar in track.jars if not Path(jar).exists()]


def split_command(command: str) -> tuple[str | None, str]:
    """Split a command into the part that installs, with a network, and the part that tests."""
    found = _INSTALLS.fullmatch(command)
    return (found[1].strip(), found[2].strip()) if found else (None, command.strip())


def starts_processes(*texts: str) -> bool:
    """Return True if Python tests or references start processes, as answers then may too."""
    return any(_STARTS_PROCESSES.search(text) for text in texts)


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Return True if the file name of a path matches one of the patterns."""
    name = PurePosixPath(path).name
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def is_test_name(path: str) -> bool:
    """Return True if a file has the name of a test in any track."""
    return matches(path, TEST_PATTERNS)


def is_outside_tests(path: str) -> bool:
    """Return True for files that tests must not see: in `.meta`, `.git`, installed packages."""
    folders = PurePosixPath(path).parts[:-1]
    return any(part.startswith(".") or part in {"node_modules", "__pycache__"} for part in folders)


def is_protected_name(path: str) -> bool:
    """Return True for names of files that tests, configuration or tools would read."""
    pure = PurePosixPath(path)
    hidden = any(part.startswith(".") for part in pure.parts)
    tool = matches(path, _TOOL_NAMES) or pure.stem in _TEST_RUNNERS
    # Beside the solution, it would shadow the standard library's module, even for the tests.
    standard = pure.suffix == ".py" and pure.stem in sys.stdlib_module_names
    # A folder with the name of a test file would prevent all tests.
    test = any("." in part and is_test_name(part) for part in pure.parts[:-1]) or is_test_name(path)
    return hidden or tool or standard or test or bool(_TOOL_FOLDERS & set(pure.parts[:-1]))
