"""Choose the files of an exercise that a subject sees, and that its tests run beside: an allow-list.

Tracks keep published solutions beside their exercises: in `.meta`, `.approaches`, `.articles` and wherever else they
like. So nothing is shown because no rule hides it. Shown are the files that the exercise declares as solution, tests
or for the editor, its instructions and hints, and configuration in its root.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath

from bakeoff.subjects.folder_changes import PASSED_OVER
from bakeoff.toolchains.tracks import EXAMPLE_STEMS, SUPPORT, Track, is_protected_name, is_test_name, matches

DOCS = tuple(f".docs/{name}{end}.md" for name in ("introduction", "instructions", "hints") for end in ("", ".append"))
CONFIGURATION = (
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml"),
    *("bun.lock", "bunfig.toml", ".yarnrc", ".yarnrc.yml", ".npmrc", ".babelrc*", "babel.config.*", "jest.config.*"),
    *("vitest.config.*", "vite.config.*", "eslint.config.*", ".eslintrc*", ".prettierrc*", "tsconfig*.json"),
    *("tstyche.config.json", "jsconfig.json", "test-runner.mjs", ".editorconfig", "global.d.ts"),
    *("pyproject.toml", "setup.cfg", "pytest.ini", "tox.ini", "requirements*.txt", "conftest.py"),
    *("Makefile", "CMakeLists.txt", "Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "pom.xml", "build.gradle*"),
    *("settings.gradle*", "gradlew", "build.sbt", "Gemfile", "Gemfile.lock", "Rakefile", ".rubocop.yml", "mix.exs"),
    *("rebar.config", "stack.yaml", "package.yaml", "*.cabal", "*.csproj", "*.fsproj", "*.sln", "deps.edn"),
    *("project.clj", "composer.json", "phpunit.xml*", "Package.swift", "pubspec.yaml", "dune", "dune-project"),
)
"""Names of configuration files, which count in the root of an exercise only."""
SOURCE_FOLDERS = ("src", "lib")
TEST_FOLDERS = ("test", "tests", "__tests__", "__typetests__", "spec")
UNDECLARED = ("*", *(f"{folder}/**" for folder in (*SOURCE_FOLDERS, *TEST_FOLDERS)))
"""Patterns of the files that may be solution or tests where an exercise does not declare them."""


def shown_files(files: Mapping[str, str], declared: Collection[str]) -> dict[str, str]:
    """Return the files that a subject sees. `declared` are solution, test and editor files."""
    return {
        name: text
        for name, text in files.items()
        if name in DOCS or (name in declared and not is_private(name)) or is_configuration(name) or name in SUPPORT
    }


def is_private(name: str) -> bool:
    """Tell whether a file lies where a track or a tool keeps its own things, whatever the exercise declares."""
    folders = PurePosixPath(name).parts[:-1]
    return any(part.startswith(".") or part in PASSED_OVER for part in folders)


def is_configuration(name: str) -> bool:
    return "/" not in name and matches(name, CONFIGURATION)


def undeclared_tests(files: Collection[str]) -> list[str]:
    """Return the files with names of tests, for an exercise that declares none."""
    return [name for name in _in_folders(files, (*SOURCE_FOLDERS, *TEST_FOLDERS)) if is_test_name(name)]


def undeclared_solution(files: Collection[str], tests: Collection[str], track: Track) -> list[str]:
    """Return the stubs to fill in, for an exercise that declares none: sources that are neither tests nor tools'."""
    return [
        name
        for name in _in_folders(files, SOURCE_FOLDERS)
        if PurePosixPath(name).suffix in track.suffixes
        and PurePosixPath(name).stem not in EXAMPLE_STEMS
        and name not in tests
        and not is_protected_name(name)
    ]


def _in_folders(files: Collection[str], folders: Collection[str]) -> Iterator[str]:
    for name in files:
        parts = PurePosixPath(name).parts
        if not is_private(name) and (len(parts) == 1 or parts[0] in folders):
            yield name
