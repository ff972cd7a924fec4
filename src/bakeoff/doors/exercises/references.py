"""What each exercise's example solution does in its tests, which is what agents' solutions are compared with."""

from collections.abc import Mapping
from typing import Any

from bakeoff._kernel.model import fingerprint
from bakeoff.doors.exercises.cases import Grading
from bakeoff.doors.exercises.runners import run_tests
from bakeoff.errors import GraderError
from bakeoff.toolchains.references import (
    OpenReferences,
    ReferenceRun,
    References,
    as_reference,
    reference_problem,
    toolchains_digest,
)

REFERENCES = References("exercises:references", "exercise-references")


async def reference_of(grading: Grading, resources: Mapping[str, Any]) -> ReferenceRun | None:
    """What the example ran; None where an exercise has none. One that fails its tests says nothing of agents."""
    if not grading.reference:
        return None

    async def run() -> ReferenceRun:
        found = await run_tests(grading.reference, grading, resources)
        if (why := reference_problem(found, canary=grading.has_canary)) is not None:
            raise GraderError(
                f"exercise {grading.exercise!r}: its own example does not pass its tests ({why}): "
                f"`bakeoff agents verify --exercise {grading.exercise}` tells more"
            )
        return as_reference(found)

    references: OpenReferences = resources[REFERENCES.key]
    return await references.of(_key(grading), run)


async def skipped_by_all(grading: Grading, resources: Mapping[str, Any]) -> frozenset[str]:
    """Where there is no example: the tests that what an agent starts from does not run either."""

    async def run() -> ReferenceRun:
        return as_reference(await run_tests({}, grading, resources))

    references: OpenReferences = resources[REFERENCES.key]
    return frozenset((await references.of(_key(grading), run)).skipped)


def _key(grading: Grading) -> str:
    graded = (grading.track, grading.command, grading.tests, grading.files, grading.reference, grading.solution)
    return fingerprint(toolchains_digest(), *graded, grading.unskip)
