"""From an exercise to the case that a plan holds, and from the case back to how it is graded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from bakeoff.doors.exercises.exercises import Exercise
from bakeoff.doors.exercises.prompt import build_prompt
from bakeoff.doors.exercises.request import ExercisesRequest
from bakeoff.doors.exercises.tracks import is_protected_name
from bakeoff.errors import GraderError
from bakeoff.plan import Case, Files, Limits
from bakeoff.subjects.command_agent import GRACE_SECONDS

_LIMITS = Limits(score_seconds=900.0, processes=512, disk_mb=2048, output_kb=16 * 1024)
"""Of a trial: agents talk a lot. Scoring waits for a free worker, and perhaps for the example; tests have their own."""
_MOST_RUNS = 6
"""Of the tests, in one scoring: by a command, again with a test that must fail, and guarded; the example's as well."""
_SOURCE_FOLDERS = ("src", "lib")


@dataclass(frozen=True, slots=True)
class Grading:
    """How what agents left of one exercise is graded."""

    exercise: str
    track: str
    files: Files  # as they were before anyone touched them, tests included
    solution: tuple[str, ...]
    tests: tuple[str, ...]
    reference: Files
    seconds: float
    command: str | None = None  # the user's own, instead of the track's
    unskip: bool = True

    @property
    def has_canary(self) -> bool:
        """Whether a test that must fail was among the tests; with a command of the user's own it comes afterwards."""
        return self.command is None

    def with_answer(self, answer: Mapping[str, str]) -> dict[str, str]:
        """The second pristine copy."""
        return {**self.files, **answer}

    def taken(self, artefacts: Mapping[str, str]) -> dict[str, str]:
        """Of all that was left behind, what goes across: declared files, and new sources of harmless names."""
        return {name: text for name, text in artefacts.items() if name in self.solution or self._is_new_source(name)}

    def _is_new_source(self, name: str) -> bool:
        if name in self.files or is_protected_name(name):
            return False
        path = PurePosixPath(name)
        in_the_way = {str(parent) for parent in path.parents} & self.files.keys()
        sources = {PurePosixPath(known).suffix for known in self.solution}
        return path.suffix in sources and not in_the_way and not self._stands_for_another(path)

    def _stands_for_another(self, path: PurePosixPath) -> bool:
        """Whether an import could mean it and has meant a pristine file or folder: `cases.ts` before `cases.json`."""
        pristine = [PurePosixPath(name) for name in self.files]
        modules = {each.with_suffix("") for each in pristine}
        folders = {parent for each in pristine for parent in each.parents}
        if path.with_suffix("") in modules | folders or modules & set(path.parents):
            return True
        # Of a folder with files that are not the agent's it would be the first to run.
        beside = {str(each) for each in pristine if each.parent == path.parent}
        return path.stem in ("__init__", "index") and bool(beside) and not beside & set(self.solution)

    def unchanged(self, artefacts: Mapping[str, str]) -> bool:
        return all(self.files.get(name) == text for name, text in self.taken(artefacts).items())


def case_of(exercise: Exercise, request: ExercisesRequest) -> Case:
    tags = {
        "track": exercise.track.slug,
        "language": exercise.track.fence,
        "solution": json.dumps(exercise.solution),
        "tests": json.dumps(exercise.tests),
        "seconds": f"{request.test_timeout:g}",
        "command": request.test_command or "",
        "skips": "" if request.unskip else "kept",
    }
    seconds = {
        "attempt_seconds": request.timeout + GRACE_SECONDS,
        "score_seconds": _LIMITS.score_seconds + _MOST_RUNS * request.test_timeout,
    }
    return Case(
        id=exercise.name,
        prompt=build_prompt(exercise, request.custom_instruction, request.test_command),
        files=dict(exercise.files),
        collect=_collected(exercise),
        hidden={name: exercise.files[name] for name in exercise.tests},
        reference=dict(exercise.example),
        tags={key: value for key, value in tags.items() if value},
        limits=_LIMITS.model_copy(update=seconds),
    )


def _collected(exercise: Exercise) -> tuple[str, ...]:
    """Solution files, and all that could be a new source beside them. What tools fill is not walked."""
    beside: dict[str, None] = {}
    for name in exercise.solution:
        path = PurePosixPath(name)
        here = "" if str(path.parent) == "." else f"{path.parent}/"
        beside[f"{here}*{path.suffix}"] = None
        beside.update((f"{here}{folder}/**/*{path.suffix}", None) for folder in _SOURCE_FOLDERS)
    return (*exercise.solution, *beside)


def grading_of(case: Case) -> Grading:
    """How a case of this door is graded."""
    try:
        return Grading(
            exercise=case.id,
            track=case.tags["track"],
            files={**case.files, **case.hidden},
            solution=tuple(json.loads(case.tags["solution"])),
            tests=tuple(json.loads(case.tags["tests"])),
            reference=case.reference,
            seconds=float(case.tags["seconds"]),
            command=case.tags.get("command"),
            unskip="skips" not in case.tags,
        )
    except (KeyError, ValueError) as error:
        raise GraderError(f"case {case.id!r} was not made from an exercise: {error}; start a new run") from error
