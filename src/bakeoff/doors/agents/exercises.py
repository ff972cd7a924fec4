"""Find and read exercises: folders in Exercism's layout. A checkout is never changed."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, JsonValue, ValidationError

from bakeoff import bundled
from bakeoff._kernel.files import read_file
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.model import first_problem
from bakeoff._kernel.text import near_names
from bakeoff.errors import InfraError, UsageError
from bakeoff.subjects.folder_changes import PASSED_OVER, read_matching
from bakeoff.toolchains.tracks import (
    EXAMPLE_STEMS,
    SUPPORT,
    TRACKS,
    Track,
    is_protected_name,
    is_test_name,
    matches,
    track_of,
)

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
"""Names of configuration files, which count only in the root of an exercise."""
SOURCE_FOLDERS = ("src", "lib")
TEST_FOLDERS = ("test", "tests", "__tests__", "__typetests__", "spec")
UNDECLARED = ("*", *(f"{folder}/**" for folder in (*SOURCE_FOLDERS, *TEST_FOLDERS)))
"""Patterns of files that may be solution or tests if an exercise does not declare them."""


def is_shown(name: str, declared: Collection[str]) -> bool:
    """Tell whether a subject sees a file. `declared` are the solution, test and editor files.

    Configuration files are shown only if they are in the root of an exercise.
    """
    configures = "/" not in name and matches(name, CONFIGURATION)
    return name in DOCS or (name in declared and not is_private(name)) or configures or name in SUPPORT


def is_private(name: str) -> bool:
    """Tell whether a file is in a folder that belongs to the track or to a tool, whatever the exercise declares."""
    folders = PurePosixPath(name).parts[:-1]
    return any(part.startswith(".") or part in PASSED_OVER for part in folders)


def undeclared_solution(files: Collection[str], tests: Collection[str], track: Track) -> list[str]:
    """Return the stubs of an exercise that declares none: sources that belong neither to tests nor to tools."""
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


_ALL = "all"
STANDARD = (
    *("acronym", "anagram", "bank-account", "binary-search", "binary-search-tree", "bowling", "complex-numbers"),
    *("connect", "crypto-square", "diamond", "dnd-character", "flatten-array", "food-chain", "house"),
    *("pascals-triangle", "rational-numbers", "react", "rectangles", "relative-distance", "robot-name"),
    *("spiral-matrix", "transpose", "two-bucket", "variable-length-quantity", "wordy"),
)
"""The default selection from the published TypeScript track."""

_PRACTICE = Path("exercises", "practice")
_CONFIG = ".meta/config.json"
_RUNNER = ".meta/test-runner.mjs"
_MAX_CONFIG_SIZE = 4 * 1024 * 1024
_NOTES = ("CLAUDE.md", "AGENTS.md")
_TEXTS = [name for name in DOCS if "hints" not in name]


def bundled_folder() -> Path:
    """Return the folder of the bundled exercises, with a track for each language."""
    return Path(bundled.__file__).parent / "exercises"


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise, read completely, so that nothing is read again once a run has begun."""

    name: str
    folder: Path
    track: Track
    instructions: str
    files: Mapping[str, str]  # what an agent may see, including the tests
    solution: tuple[str, ...]
    tests: tuple[str, ...]
    example: Mapping[str, str]  # by solution path
    notes: Mapping[str, str] = field(default_factory=dict)  # the track's notes to agents
    runner_files: Mapping[str, str] = field(default_factory=dict)  # what the track's own command reads in `.meta`


@dataclass(frozen=True, slots=True)
class FoundExercises:
    """Exercises in the order of their tracks, and a warning about each that is left out."""

    exercises: tuple[Exercise, ...]
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # the warnings about exercises that are not part of the run


class _UnusableExercise(Exception):
    """Raised for a folder that cannot be used as an exercise; the message says why."""


class _Files(BaseModel):
    solution: list[str] = []
    test: list[str] = []
    editor: list[str] = []
    example: list[str] = []
    exemplar: list[str] = []


class _ExerciseConfig(BaseModel):
    """The part of `.meta/config.json` that is read."""

    files: _Files = _Files()
    custom: dict[str, JsonValue] = {}  # flags of the track's test command


def find_exercises(root: Path | None, wanted: Sequence[str] = ()) -> FoundExercises:
    """Find exercises.

    Args:
        root: The checkout of a track, or one exercise in it; None for the bundled tracks. Bundled
            exercises in compiled languages and in JavaScript are found only by name.
        wanted: The values of `--exercise`: names, also joined by commas, a number, or `all`; empty for the usual ones.
    """
    if root is None:
        known, asked = _discover(bundled_folder()), {part.strip() for text in wanted for part in text.split(",")}
        known += [entry for entry in _discover(bundled_folder().parent / "polyglot") if asked & set(entry.names)]
        return _read(known, *_chosen(known, wanted, standard=False))
    if not root.is_dir():
        raise UsageError(
            f"--exercises {str(root)!r} is not a folder: pass the checkout of a track, or one exercise in it"
        )
    known = _discover(root)
    if not known:
        raise UsageError(
            f"--exercises {str(root)!r} holds no exercise: a track has them in {_PRACTICE}/, "
            "and an exercise has .docs/instructions.md"
        )
    return _read(known, *_chosen(known, wanted, standard=True))


@dataclass(frozen=True, slots=True)
class _TrackEntry:
    """An exercise that was found, but not read yet."""

    name: str
    folder: Path
    root: Path | None  # of its track
    slug: str | None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that `--exercise` accepts: with the track, and without."""
        return (self.name, f"{self.slug}/{self.name}") if self.slug else (self.name,)


def _discover(root: Path) -> list[_TrackEntry]:
    practice = root / _PRACTICE if (root / _PRACTICE).is_dir() else root
    if practice is root and not _is_exercise(root):  # a folder of tracks, as Aider's polyglot benchmark has it
        tracks = [folder for folder in sorted(root.iterdir()) if (folder / _PRACTICE).is_dir()]
        if tracks:
            return [entry for track in tracks for entry in _discover(track)]
    if practice is root and _is_exercise(root):
        above = root.resolve().parents
        track = above[2] if len(above) > 2 and root.resolve().parent == above[2] / _PRACTICE else None
        return [_TrackEntry(root.resolve().name, root, track, _slug(track))]
    track = root if practice is not root else None
    slug = _slug(track)
    folders = {folder.name: folder for folder in sorted(practice.iterdir()) if folder.is_dir() and _is_exercise(folder)}
    order = [name for name in _order(track) if name in folders]
    names = [*order, *(name for name in folders if name not in order)]
    return [_TrackEntry(name, folders[name], track, slug) for name in names]


def _is_exercise(folder: Path) -> bool:
    return (folder / ".docs" / "instructions.md").is_file() or (folder / _CONFIG).is_file()


def _track_config(track: Path | None) -> dict[str, object]:
    """Read the track's own `config.json`. If that fails, only the order of the track is unknown."""
    with suppress(OSError, ValueError):
        found = track and parse_json(read_file(track / "config.json", _MAX_CONFIG_SIZE).decode("utf-8-sig"))
        return found if isinstance(found, dict) else {}
    return {}


def _slug(track: Path | None) -> str | None:
    found = _track_config(track).get("slug")
    if isinstance(found, str) and re.fullmatch(r"[a-z0-9-]{1,40}", found):
        return found
    return track.name if track is not None and track.name in TRACKS else None


def _order(track: Path | None) -> list[str]:
    exercises = _track_config(track).get("exercises")
    practice = exercises.get("practice") if isinstance(exercises, dict) else None
    items = practice if isinstance(practice, list) else []
    return [item["slug"] for item in items if isinstance(item, dict) and isinstance(item.get("slug"), str)]


def _chosen(
    known: Sequence[_TrackEntry], wanted: Sequence[str], *, standard: bool
) -> tuple[list[_TrackEntry], int | None]:
    """Return the exercises that `--exercise` selects and, if it is a number, how many to use."""
    names = {name for entry in known for name in entry.names}
    usual = [*known]
    if standard and known and known[0].slug == "typescript" and len(known) > 1 and names & set(STANDARD):
        usual = [entry for name in STANDARD for entry in known if entry.name == name]
    asked = [part.strip() for text in wanted for part in text.split(",") if part.strip()]
    if not wanted:
        return usual, None
    if asked == [_ALL] and _ALL not in names:
        return [*known], None
    if not asked:
        raise UsageError(f"--exercise {wanted[0]!r} names no exercise: pass a name, a number or `all`, or leave it out")
    if len(asked) == 1 and asked[0].isdecimal() and asked[0] not in names:
        most = int(asked[0].lstrip("0")[:9] or 0)  # no track has more than nine digits can count
        if most == 0:
            raise UsageError("--exercise 0 asks for none: pass a name, or a number above 0")
        return [*usual, *(entry for entry in known if entry not in usual)], most
    for name in asked:
        if name not in names:
            raise UsageError(f"--exercise {name!r} does not exist{near_names(name, sorted(names))}")
    return [entry for name in dict.fromkeys(asked) for entry in known if name in entry.names], None


def _read(known: Sequence[_TrackEntry], chosen: Sequence[_TrackEntry], enough: int | None = None) -> FoundExercises:
    """Read exercises until there are enough, and warn of those that cannot be used."""
    exercises, warnings, left_out = list[Exercise](), list[str](), list[str]()
    twice = {entry.name for entry in known if sum(other.name == entry.name for other in known) > 1}
    for entry in chosen:
        if len(exercises) == enough:
            break
        try:
            exercise = _read_exercise(entry)
        except (_UnusableExercise, InfraError) as why:
            left_out.append(f"exercise {entry.name!r} is left out: {why}")
            warnings.append(left_out[-1])
            continue
        unique = f"{exercise.track.slug}/{exercise.name}" if entry.name in twice else exercise.name
        exercises.append(replace(exercise, name=unique))
    if enough is not None and 0 < len(exercises) < enough:
        warnings.append(f"--exercise {enough} asks for more than there are: {len(exercises):,} can be used")
    if not exercises:
        raise UsageError("\n".join(["no exercise can be used:", *warnings]) if warnings else "no exercise was chosen")
    return FoundExercises(tuple(exercises), tuple(warnings), tuple(left_out))


def _read_exercise(entry: _TrackEntry) -> Exercise:
    """Read one exercise. Raise an error that says what is missing."""
    if not entry.name.isprintable():
        raise _UnusableExercise(f"its name {entry.name!r} has characters that cannot be printed")
    folder, config = entry.folder, _config(entry.folder)
    declared = config.files
    examples = {*_plain(declared.example), *_plain(declared.exemplar)}
    editor = set(_plain(declared.editor))
    # Only what may be shown is read: a track can hold any number of files.
    undeclared = () if declared.solution and declared.test else UNDECLARED
    named = [*_plain(declared.solution), *_plain(declared.test), *editor]
    read = [(*CONFIGURATION, *undeclared), (*named, *DOCS, *SUPPORT)]
    files = {name: text for part in read for name, text in read_matching(folder, part).files.items()}
    files = {name: text for name, text in files.items() if name not in examples}
    track = track_of(entry.slug, files)
    tests = _declared(declared.test, files, "test")
    tests = tests or [name for name in _in_folders(files, (*SOURCE_FOLDERS, *TEST_FOLDERS)) if is_test_name(name)]
    solution = _declared(declared.solution, files, "solution") or undeclared_solution(files, tests, track)
    if not tests:
        raise _UnusableExercise(
            f"it has no tests: {_CONFIG} names none, and no file has the name of a test (such as *.test.*)"
        )
    if not solution:
        raise _UnusableExercise(
            f"it has no solution file: {_CONFIG} names none, and there is no {track.language} file besides the tests"
        )
    if both := set(tests) & set(solution):
        raise _UnusableExercise(f"{_CONFIG} has {sorted(both)[0]!r} both as a test and as a solution")
    # In the order of the site: introduction first; each part is followed by the track's additions.
    texts = [files[name].strip() for name in _TEXTS if name in files]
    if not any(texts):
        raise _UnusableExercise("it has no instructions: .docs/instructions.md is missing or empty")
    script = read_matching(folder, [_RUNNER]).files if _RUNNER in files.get("package.json", "") else {}
    return Exercise(
        name=entry.name,
        folder=folder,
        track=track,
        instructions="\n\n".join(text for text in texts if text),
        files={name: text for name, text in files.items() if is_shown(name, {*tests, *solution, *editor})},
        solution=tuple(solution),
        tests=tuple(tests),
        example=_example(read_matching(folder, (".meta/**", *examples)).files, declared, solution),
        notes=_notes(entry.root),
        # What the published TypeScript track's test script reads in `.meta`: its flags, and nothing else of it.
        runner_files={**script, **({_CONFIG: json.dumps({"custom": config.custom})} if config.custom else {})},
    )


def _plain(names: Iterable[str]) -> list[str]:
    return [str(PurePosixPath(name)) for name in names]


def _config(folder: Path) -> _ExerciseConfig:
    read = read_matching(folder, [_CONFIG])
    if _CONFIG not in read.files:
        if (why := read.refused.get(_CONFIG)) not in (None, "is not there"):
            raise _UnusableExercise(f"{_CONFIG} {why}")
        return _ExerciseConfig()
    try:
        return _ExerciseConfig.model_validate_json(read.files[_CONFIG].removeprefix("\ufeff"))
    except ValidationError as error:
        raise _UnusableExercise(f"{_CONFIG}: {first_problem(error)}") from error


def _declared(names: Iterable[str], files: Mapping[str, str], what: str) -> list[str]:
    found = _plain(names)
    for name in found:
        if is_private(name) or name not in files:
            why = "lies where tracks keep solutions" if is_private(name) else "is missing or not a plain text file"
            raise _UnusableExercise(f"{_CONFIG} names {name!r} as a {what} file, which {why}")
    return found


def _example(files: Mapping[str, str], declared: _Files, solution: Sequence[str]) -> dict[str, str]:
    """Return the known-good solution by the paths of its files; empty if there is none."""
    named = [*_plain(declared.example), *_plain(declared.exemplar)]
    names = [name for name in named if name in files] or _examples(files)
    by_base = {PurePosixPath(name).name: name for name in names}
    matched = {path: files[by_base[base]] for path in solution if (base := PurePosixPath(path).name) in by_base}
    if len(matched) < len(solution) == len(names):
        return {path: files[name] for path, name in zip(solution, names, strict=True)}
    if not matched:
        return {solution[0]: files[names[0]]} if names else {}
    own = {PurePosixPath(path).name for path in solution}
    beside = {
        str(PurePosixPath(solution[0]).with_name(base)): files[by_base[base]] for base in by_base if base not in own
    }
    return {**matched, **beside}


def _examples(files: Mapping[str, str]) -> list[str]:
    inside = [name for name in files if name.startswith(".meta/")]
    for stem in EXAMPLE_STEMS:
        found = [name for name in inside if name.startswith((f".meta/{stem}.", f".meta/{stem}/"))]
        if found:
            return sorted(found)
    return []


def _notes(track: Path | None) -> dict[str, str]:
    """Return the track's notes to agents. A file with the same text as another is left out."""
    notes: dict[str, str] = {}
    for path in [track / name for name in _NOTES] if track else []:
        try:
            text = read_file(path, 256 * 1024).decode().replace("\r\n", "\n").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text and text not in notes.values():
            notes[path.name] = text
    return notes
