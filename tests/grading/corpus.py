"""Honest solutions: references, other right ones, wrong ones, and mutants, of bundled and of made-up cases."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bakeoff.bundled import __file__ as bundled
from bakeoff.doors.agents.exercises import find_exercises
from bakeoff.doors.agents.plan import ExercisesRequest
from bakeoff.doors.agents.plan import case_of as case_of_exercise
from bakeoff.doors.components.plan import case_of as case_of_suite
from bakeoff.doors.components.suites import discover
from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.grading.mutants import choose_mutants, find_mutants
from bakeoff.plan import Case, Grading
from bakeoff.toolchains.tracks import missing_programs

Kind = Literal["reference", "alternative", "dressed", "wrong", "mutant", "rewritten"]
MATERIAL = Path(__file__).with_name("honest")
SECONDS = 12.0

# What honest code does beside its work. A right solution stays right with it.
_DRESS = {
    ".py": {
        "prints": "print('imported')\nimport sys\nprint('to the other stream', file=sys.stderr)\n",
        "threads": "import atexit, threading\n"
        "threading.Thread(target=sum, args=([],)).start()\natexit.register(list)\n",
    },
    ".ts": {
        "logs": "console.log('imported'); setTimeout(() => console.warn('later'), 1);\n",
        "extends": "// @ts-nocheck\nString.prototype.shout = function () { return `${this}!`; };"
        " Array.prototype.last = function () { return this[this.length - 1]; };\n"
        "setInterval(() => 'x'.shout(), 5).unref();\n",
    },
}
_DRESS_SVELTE = {
    "logs": "<script module>console.log('imported');</script>\n",
    "extends": "<script module>String.prototype.shout = function () { return `${this}!`; };"
    " const timer = setInterval(() => 'x'.shout(), 5); void timer;</script>\n",
}


@dataclass(frozen=True, slots=True)
class Solution:
    """An answer to a case."""

    case: GradedCase
    name: str
    kind: Kind
    files: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.case.name} {self.name}"


def bundled_cases() -> list[GradedCase]:
    """Return the bundled suites and exercises."""
    suites = discover(Path(bundled).parent / "components").suites
    exercises = find_exercises(None, [each.name for each in find_exercises(None).exercises]).exercises
    request = ExercisesRequest()
    cases = [case_of_suite(suite) for suite in suites]
    cases += [case_of_exercise(exercise, request) for exercise in exercises]
    return [graded_case(case) for case in cases]


def polyglot_cases() -> list[GradedCase]:
    """Return the bundled exercises in the further languages whose programs are installed."""
    found = find_exercises(Path(bundled).parent / "polyglot").exercises
    chosen = [exercise for exercise in found if not missing_programs(exercise.track)]
    return [graded_case(case_of_exercise(exercise, ExercisesRequest(test_timeout=120.0))) for exercise in chosen]


def made_up_cases() -> list[GradedCase]:
    """Return small cases in the style of published material."""
    return [_made_up(folder) for folder in sorted(MATERIAL.glob("*/*")) if any(folder.glob("reference.*"))]


def _made_up(folder: Path) -> GradedCase:
    language = folder.parent.name
    (test,) = [path.name for path in folder.iterdir() if "test" in path.name]
    (reference,) = folder.glob("reference.*")
    solution = "Component.svelte" if language == "svelte" else f"{folder.name}{reference.suffix}"
    runner: Literal["vitest", "pytest", "jest"] = "vitest" if language == "svelte" else "pytest"
    if language == "typescript":
        runner = "jest"
    grading = Grading(
        runner=runner,
        solution=(solution,),
        tests=(test,),
        seconds=SECONDS,
        track="" if language == "svelte" else language,
    )
    return graded_case(
        Case(
            id=f"{language} {folder.name}",
            prompt="",
            hidden={test: (folder / test).read_text(encoding="utf-8")},
            reference={solution: reference.read_text(encoding="utf-8")},
            grading=grading,
        )
    )


def solutions_of(case: GradedCase, mutants: int) -> Iterator[Solution]:
    """Yield the solutions of a case."""
    yield Solution(case, "reference", "reference", case.reference)
    yield from _written(case)
    yield from _replaced(case)
    first = case.settings.solution[0]
    suffix = Path(first).suffix
    for name, text in (_DRESS_SVELTE if suffix == ".svelte" else _DRESS.get(suffix, {})).items():
        source = case.reference[first]
        if "<script module" in source or "from __future__" in source:
            continue
        yield Solution(case, name, "dressed", {**case.reference, first: text + source})
    for number, mutant in enumerate(choose_mutants(find_mutants(case.reference), mutants, case.name)):
        name = f"mutant {number} ({mutant.place}: {mutant.before} → {mutant.after})"
        yield Solution(case, name, "mutant", mutant.apply(case.reference))


def _replaced(case: GradedCase) -> Iterator[Solution]:
    """Yield the solutions that are the reference with some words replaced."""
    with (MATERIAL / "polyglot.toml").open("rb") as file:
        written: dict[str, list[tuple[str, str]]] = tomllib.load(file).get(case.name, {})
    first = case.settings.solution[0]
    for name, replacements in written.items():
        text = case.reference[first]
        for old, new in replacements:
            assert old in text, f"{case.name} {name}: {old!r}"
            text = text.replace(old, new)
        yield Solution(case, name, "rewritten", {**case.reference, first: text})


def _written(case: GradedCase) -> Iterator[Solution]:
    language, _, name = case.name.partition(" ")
    folder = MATERIAL / language / name if name else MATERIAL / "bundled" / case.name
    for path in sorted(folder.glob("*")):
        text = path.read_text(encoding="utf-8")
        if path.stem == "reference" or "test" in path.name:
            continue
        kind: Kind = (
            "wrong" if text.lstrip('"/# ').startswith("Wrong") or path.stem in ("still", "silent") else "alternative"
        )
        yield Solution(case, path.stem, kind, {**case.reference, case.settings.solution[0]: text})
