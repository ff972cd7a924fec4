"""Check that suites measure something: the reference passes, and an empty or a wrong answer fails."""

from collections.abc import Callable, Iterator, Sequence

from bakeoff.doors.components.plan import case_of
from bakeoff.doors.components.suites import ComponentSuite
from bakeoff.engine.resources import open_resources
from bakeoff.grading.audit import VerificationCheck, WrongAnswer, verify_cases
from bakeoff.grading.references import References
from bakeoff.grading.runners import toolchains_for
from bakeoff.protocols import Sandbox


async def verify_suites(
    suites: Sequence[ComponentSuite], sandbox: Callable[[], Sandbox], jobs: int
) -> list[VerificationCheck]:
    """Check suites, several at a time."""
    cases = [case_of(suite) for suite in suites]
    async with open_resources(
        [References("bakeoff verify --suite"), *toolchains_for(cases, sandbox, jobs)]
    ) as resources:
        return await verify_cases(
            list(zip(cases, map(list, map(_wrong_answers, suites)), strict=True)), resources, jobs
        )


def _wrong_answers(suite: ComponentSuite) -> Iterator[WrongAnswer]:
    file = suite.component_file
    yield WrongAnswer("empty", {file: ""}, "an empty answer passes: its tests measure nothing")
    if suite.wrong is not None:
        yield WrongAnswer("wrong", {file: suite.wrong}, "the wrong answer passes: no test finds what is wrong with it")
