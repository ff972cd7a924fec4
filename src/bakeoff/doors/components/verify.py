"""Whether suites measure what they should: the reference passes, and an empty or a wrong answer fails."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff.doors.components.cases import Grading, case_of, grading_of
from bakeoff.doors.components.results.model import Verification
from bakeoff.doors.components.runners import run_tests, run_validator, toolchains_for
from bakeoff.doors.components.suites import Suite
from bakeoff.doors.components.verification import judge, summary
from bakeoff.engine.resources import open_resources
from bakeoff.errors import GraderError, InfraError
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.references import as_reference, reference_problem


@dataclass(frozen=True, slots=True)
class Check:
    """What one suite's answers came to. `problems` is empty where the suite is fit for use."""

    suite: Suite
    tests: int = 0
    reference: Verification | None = None  # None where it could not be graded
    empty: Verification | None = None
    wrong: Verification | None = None  # None where the suite has no wrong answer either
    seconds: float = 0.0
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


async def verify_suites(suites: Sequence[Suite], sandbox: Callable[[], Sandbox], jobs: int) -> list[Check]:
    """Check suites, several at a time."""
    gradings = [grading_of(case_of(suite, hide_tests=False)) for suite in suites]
    free = asyncio.Semaphore(jobs)
    async with open_resources(toolchains_for(gradings, sandbox, jobs)) as resources:

        async def checked(suite: Suite, grading: Grading) -> Check:
            async with free:
                return await _check(suite, grading, resources)

        return await asyncio.gather(*map(checked, suites, gradings))


async def _check(suite: Suite, grading: Grading, resources: Mapping[str, Any]) -> Check:
    started = asyncio.get_running_loop().time()
    try:
        run = await run_tests(suite.reference, grading, resources)
        if (why := reference_problem(run, canary=grading.has_canary)) is not None:
            return Check(suite, problems=(f"the reference does not pass: {why}",), seconds=run.seconds)
        reference = as_reference(run)

        async def graded(content: str) -> Verification:
            validation = await run_validator(content, grading, resources)
            return judge(grading, reference, await run_tests(content, grading, resources), validation)

        own = judge(grading, reference, run, await run_validator(suite.reference, grading, resources))
        empty = await graded("")
        wrong = None if suite.wrong is None else await graded(suite.wrong)
    except (GraderError, InfraError) as error:
        return Check(suite, problems=(str(error),))
    seconds = asyncio.get_running_loop().time() - started
    return Check(suite, own.num_tests, own, empty, wrong, seconds, tuple(_problems(own, empty, wrong)))


def _problems(reference: Verification, empty: Verification, wrong: Verification | None) -> list[str]:
    found = [] if reference.passed else [f"the reference does not pass: {summary(reference)}"]
    found += ["an empty answer passes: its tests measure nothing"] if empty.passed else []
    return found + (["the wrong answer passes: no test finds what is wrong"] if wrong and wrong.passed else [])
