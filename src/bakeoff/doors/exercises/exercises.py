"""Find and read exercises: folders in Exercism's layout. A checkout is never written to."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ValidationError

from bakeoff import bundled
from bakeoff.errors import InfraError, UsageError
from bakeoff.subjects.folder_changes import PASSED_OVER, read_tree
from bakeoff.toolchains.tracks import EXAMPLE_STEMS, Track, is_protected_name, is_test_name, track_of

STANDARD = (
    *("acronym", "anagram", "bank-account", "binary-search", "binary-search-tree", "bowling", "complex-numbers"),
    *("connect", "crypto-square", "diamond", "dnd-character", "flatten-array", "food-chain", "house"),
    *("pascals-triangle", "rational-numbers", "react", "rectangles", "relative-distance", "robot-name"),
    *("spiral-matrix", "transpose", "two-bucket", "variable-length-quantity", "wordy"),
)
"""The default selection from the published TypeScript track."""

_PRACTICE = Path("exercises", "practice")
_CONFIG = ".meta/config.json"
_LARGEST_CONFIG = 4 * 1024 * 1024
_NOTES = ("CLAUDE.md", "AGENTS.md")
_TEXTS = ("introduction.md", "introduction.append.md", "instructions.md", "instructions.append.md")


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


@dataclass(frozen=True, slots=True)
class FoundExercises:
    """Exercises in the order of their tracks, and a warning about each that is left out."""

    exercises: tuple[Exercise, ...]
    warnings: tuple[str, ...] = ()


class _Unusable(Exception):
    """A folder cannot be used as an exercise, for this reason."""


class _Files(BaseModel):
    solution: list[str] = []
    test: list[str] = []
    example: list[str] = []
    exemplar: list[str] = []


class _Config(BaseModel):
    """The part of `.meta/config.json` that is read."""

    files: _Files = _Files()


def find_exercises(root: Path | None, wanted: Sequence[str] = ()) -> FoundExercises:
    """Find exercises.

    Args:
        root: The checkout of a track, or one exercise in it; None for the bundled tracks.
        wanted: What `--exercise` says: names, names joined by commas, or how many; the default selection if empty.
    """
    if root is None:
        tracks = [_discover(folder) for folder in sorted(bundled_folder().iterdir()) if (folder / _PRACTICE).is_dir()]
        known = [entry for track in tracks for entry in track]
        return _read(known, _chosen(known, wanted, standard=False))
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
    return _read(known, _chosen(known, wanted, standard=True))


@dataclass(frozen=True, slots=True)
class _Entry:
    """An exercise that exists and is not read yet."""

    name: str
    folder: Path
    root: Path | None  # of its track
    slug: str | None


def _discover(root: Path) -> list[_Entry]:
    practice = root / _PRACTICE if (root / _PRACTICE).is_dir() else root
    if practice is root and _is_exercise(root):
        above = root.resolve().parents
        track = above[2] if len(above) > 2 and root.resolve().parent == above[2] / _PRACTICE else None
        return [_Entry(root.resolve().name, root, track, _slug(track))]
    track = root if practice is not root else None
    slug = _slug(track)
    folders = {folder.name: folder for folder in sorted(practice.iterdir()) if folder.is_dir() and _is_exercise(folder)}
    order = [name for name in _order(track) if name in folders]
    names = [*order, *(name for name in folders if name not in order)]
    return [_Entry(name, folders[name], track, slug) for name in names]


def _is_exercise(folder: Path) -> bool:
    return (folder / ".docs" / "instructions.md").is_file() or (folder / _CONFIG).is_file()


def _track_config(track: Path | None) -> dict[str, object]:
    """Read the track's own `config.json`. An unreadable one only means that the track's order is unknown."""
    if track is None:
        return {}
    path = track / "config.json"
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            return {}
        found = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _slug(track: Path | None) -> str | None:
    found = _track_config(track).get("slug")
    if isinstance(found, str) and re.fullmatch(r"[a-z0-9-]{1,40}", found):
        return found
    return None


def _order(track: Path | None) -> list[str]:
    exercises = _track_config(track).get("exercises")
    practice = exercises.get("practice") if isinstance(exercises, dict) else None
    items = practice if isinstance(practice, list) else []
    return [item["slug"] for item in items if isinstance(item, dict) and isinstance(item.get("slug"), str)]


def _chosen(known: Sequence[_Entry], wanted: Sequence[str], *, standard: bool) -> list[_Entry]:
    """Return the exercises that `--exercise` asks for."""
    names = {entry.name for entry in known}
    usual = [*known]
    if standard and known and known[0].slug == "typescript" and len(known) > 1 and names & set(STANDARD):
        usual = [entry for name in STANDARD for entry in known if entry.name == name]
    asked = [part.strip() for text in wanted for part in text.split(",") if part.strip()]
    if not wanted:
        return usual
    if not asked:
        raise UsageError(
            f"--exercise {wanted[0]!r} names no exercise: pass a name or a number, or leave it out to try all"
        )
    if len(asked) == 1 and asked[0].isdecimal() and asked[0] not in names:
        most = int(asked[0].lstrip("0")[:9] or 0)  # no track has more than nine digits can count
        if most == 0:
            raise UsageError("--exercise 0 asks for none: pass a name, or a number above 0")
        return usual[:most]
    for name in asked:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(names)[:30])}"
            raise UsageError(f"--exercise {name!r} does not exist: {hint}")
    return [entry for name in dict.fromkeys(asked) for entry in known if entry.name == name]


def _read(known: Sequence[_Entry], chosen: Sequence[_Entry]) -> FoundExercises:
    exercises, warnings = [], []
    twice = {entry.name for entry in known if sum(other.name == entry.name for other in known) > 1}
    for entry in chosen:
        try:
            exercise = _read_exercise(entry)
        except (_Unusable, InfraError) as why:
            warnings.append(f"exercise {entry.name!r} is left out: {why}")
            continue
        unique = f"{exercise.track.slug}/{exercise.name}" if entry.name in twice else exercise.name
        exercises.append(replace(exercise, name=unique))
    if not exercises:
        raise UsageError("\n".join(["no exercise can be used:", *warnings]) if warnings else "no exercise was chosen")
    return FoundExercises(tuple(exercises), tuple(warnings))


def _read_exercise(entry: _Entry) -> Exercise:
    """Read one exercise. Raise an error that says what is missing."""
    if not entry.name.isprintable():
        raise _Unusable(f"its name {entry.name!r} has characters that cannot be printed")
    tree = read_tree(entry.folder)
    config = _config(tree.files, tree.refused)
    visible = {name: text for name, text in tree.files.items() if not _is_hidden(name)}
    track = track_of(entry.slug, visible)
    tests = _declared(config.files.test, visible, "test") or [name for name in visible if is_test_name(name)]
    solution = _declared(config.files.solution, visible, "solution") or _stubs(visible, tests, track)
    if not tests:
        raise _Unusable(f"it has no tests: {_CONFIG} names none, and no file has the name of a test (such as *.test.*)")
    if not solution:
        raise _Unusable(
            f"it has no solution file: {_CONFIG} names none, and there is no {track.language} file besides the tests"
        )
    if both := set(tests) & set(solution):
        raise _Unusable(f"{_CONFIG} has {sorted(both)[0]!r} both as a test and as a solution")
    return Exercise(
        name=entry.name,
        folder=entry.folder,
        track=track,
        instructions=_instructions(tree.files),
        files=visible,
        solution=tuple(solution),
        tests=tuple(tests),
        example=_example(tree.files, config.files, solution),
        notes=_notes(entry.root),
    )


def _is_hidden(name: str) -> bool:
    """Tell whether agents must not see a file: the example, the history, and what tools left behind."""
    parts = PurePosixPath(name).parts
    return parts[0] == ".meta" or bool(PASSED_OVER & set(parts))


def _config(files: Mapping[str, str], refused: Mapping[str, str]) -> _Config:
    if _CONFIG in refused:
        raise _Unusable(f"{_CONFIG} {refused[_CONFIG]}")
    if _CONFIG not in files:
        return _Config()
    try:
        return _Config.model_validate_json(files[_CONFIG].removeprefix("\ufeff"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _Unusable(f"{_CONFIG}: {place + ': ' if place else ''}{first['msg']}") from error


def _declared(names: Iterable[str], visible: Mapping[str, str], what: str) -> list[str]:
    found = [str(PurePosixPath(name)) for name in names]
    for name in found:
        if name not in visible:
            raise _Unusable(f"{_CONFIG} names {name!r} as a {what} file, which is missing or not a plain text file")
    return found


def _stubs(visible: Mapping[str, str], tests: Sequence[str], track: Track) -> list[str]:
    names = [name for name in visible if name not in tests and not is_protected_name(name)]
    return [name for name in names if PurePosixPath(name).suffix in track.suffixes]


def _instructions(files: Mapping[str, str]) -> str:
    """Join the instructions as the site shows them: introduction first, and after each part what the track appends."""
    texts = [files[f".docs/{name}"].strip() for name in _TEXTS if f".docs/{name}" in files]
    if not any(texts):
        raise _Unusable("it has no instructions: .docs/instructions.md is missing or empty")
    return "\n\n".join(text for text in texts if text)


def _example(files: Mapping[str, str], declared: _Files, solution: Sequence[str]) -> dict[str, str]:
    """Return the known-good solution by the paths that it is written to; empty if there is none."""
    names = [str(PurePosixPath(name)) for name in [*declared.example, *declared.exemplar]]
    names = [name for name in names if name in files] or _examples(files)
    if len(names) == len(solution):
        return {path: files[name] for path, name in zip(solution, names, strict=True)}
    by_base = {PurePosixPath(name).name: name for name in names}
    matched = {path: files[by_base[base]] for path in solution if (base := PurePosixPath(path).name) in by_base}
    return matched or ({solution[0]: files[names[0]]} if names else {})


def _examples(files: Mapping[str, str]) -> list[str]:
    inside = [name for name in files if name.startswith(".meta/")]
    for stem in EXAMPLE_STEMS:
        found = [name for name in inside if name.startswith((f".meta/{stem}.", f".meta/{stem}/"))]
        if found:
            return sorted(found)
    return []


def _notes(track: Path | None) -> dict[str, str]:
    """Return the track's notes to agents. One file may be a copy of the other."""
    notes: dict[str, str] = {}
    for path in [track / name for name in _NOTES] if track else []:
        try:
            if not path.is_file() or path.stat().st_size > 256 * 1024:
                continue
            text = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text and text not in notes.values():
            notes[path.name] = text
    return notes
