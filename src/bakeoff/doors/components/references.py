"""What each suite's reference does in its own tests, which is what components are compared with."""

import json
from collections.abc import Mapping
from typing import Any

from bakeoff._kernel.model import fingerprint
from bakeoff.doors.components.cases import Grading
from bakeoff.doors.components.runners import run_tests, toolchain_of
from bakeoff.errors import GraderError
from bakeoff.toolchains.references import (
    OpenReferences,
    ReferenceRun,
    References,
    as_reference,
    reference_problem,
    toolchains_digest,
)

REFERENCES = References("components:references", "references")


async def reference_of(grading: Grading, resources: Mapping[str, Any]) -> ReferenceRun:
    """Run a reference unless that was done before. One that fails its own tests says nothing about a subject."""

    async def run() -> ReferenceRun:
        found = await run_tests(grading.reference, grading, resources)
        if (why := reference_problem(found, canary=grading.has_canary)) is not None:
            raise GraderError(
                f"suite {grading.suite!r}: its reference does not pass its own tests ({why}): "
                f"`bakeoff verify --suite {grading.suite}` tells more"
            )
        return as_reference(found)

    references: OpenReferences = resources[REFERENCES.key]
    return await references.of(reference_key(grading, toolchain_of(grading, resources)), run)


def reference_key(grading: Grading, toolchain: str) -> str:
    """Of all that decides which tests a reference runs, and under which names."""
    graded = json.dumps(
        [grading.runner, grading.command, grading.report, grading.canary, grading.component, grading.test_file],
        sort_keys=True,
    )
    return fingerprint(toolchains_digest(), toolchain, graded, grading.files, grading.reference)
