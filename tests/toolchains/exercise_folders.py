"""Bundled exercises as a grader has them: pristine files with a solution over them."""

import json
from dataclasses import dataclass
from pathlib import Path

import bakeoff
from bakeoff.toolchains.tracks import GUARDED

BUNDLED = Path(bakeoff.__file__).parent / "bundled" / "exercises"


@dataclass(frozen=True, slots=True)
class Exercise:
    """One of them."""

    language: str
    name: str
    stub: dict[str, str]
    reference: dict[str, str]
    tests: tuple[str, ...]


def exercise(language: str, name: str) -> Exercise:
    folder = BUNDLED / language / "exercises" / "practice" / name
    config = json.loads((folder / ".meta" / "config.json").read_text(encoding="utf-8"))["files"]
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    named = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
    stub = {path: text for path, text in named.items() if not path.startswith(".")}
    solved = {at: named[source] for at, source in zip(config["solution"], config["example"], strict=True)}
    return Exercise(language, name, stub, stub | solved, tuple(config["test"]))


def every_exercise() -> list[Exercise]:
    folders = [(track.slug, BUNDLED / track.slug / "exercises" / "practice") for track in GUARDED]
    return [exercise(each, path.name) for each, folder in folders for path in sorted(folder.glob("*"))]
