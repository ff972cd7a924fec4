"""Check that suites measure something: the reference passes, and an empty or a wrong answer fails."""

from collections.abc import Callable, Iterator, Sequence

from bakeoff.doors.components.plan import case_of
from bakeoff.doors.components.suites import Suite
from bakeoff.engine.resources import open_resources
from bakeoff.grading.references import References
from bakeoff.grading.runners import toolchains_for
from bakeoff.grading.verify import Check, WrongAnswer, verify_cases
from bakeoff.protocols import Sandbox


async def verify_suites(suites: Sequence[Suite], sandbox: Callable[[], Sandbox], jobs: int) -> list[Check]:
    """Check suites, several at a time."""
    cases = [case_of(suite) for suite in suites]
    async with open_resources(
        [References("bakeoff verify --suite"), *toolchains_for(cases, sandbox, jobs)]
    ) as resources:
        return await verify_cases(
            list(zip(cases, map(list, map(_wrong_answers, suites)), strict=True)), resources, jobs
        )


def _wrong_answers(suite: Suite) -> Iterator[WrongAnswer]:
    file = suite.component_file
    yield WrongAnswer("empty", {file: ""}, "an empty answer passes: its tests measure nothing")
    if suite.wrong is not None:
        yield WrongAnswer("wrong", {file: suite.wrong}, "the wrong answer passes: no test finds what is wrong with it")
