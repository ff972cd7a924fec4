"""Check that suites measure something: the reference passes, and an empty or a wrong answer fails."""

from collections.abc import Callable, Iterator, Sequence

from bakeoff._kernel.text import count_of
from bakeoff.doors.components.plan import case_of
from bakeoff.doors.components.suites import ComponentSuite
from bakeoff.engine.resources import open_resources
from bakeoff.errors import InfraError, UsageError
from bakeoff.grading.references import References
from bakeoff.grading.runners import toolchains_for
from bakeoff.grading.verify import VerificationCheck, WrongAnswer, verify_cases
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.browser import find_chromium
from bakeoff.toolchains.install import Say, install_vitest


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


async def gradable_suites(
    suites: Sequence[ComponentSuite], say: Say
) -> tuple[tuple[ComponentSuite, ...], tuple[str, ...]]:
    """Return the suites that can be graded here, and a sentence about those that need Node or a browser in vain.

    Raise `UsageError` if none can be graded. The first time takes a while, as packages are installed.
    """
    fit, warnings = list(suites), []
    if need_browser := [suite.name for suite in fit if suite.layout.browser]:
        try:
            find_chromium()
        except InfraError as error:
            warnings.append(f"left out: {', '.join(need_browser)}: {error}")
            fit = [suite for suite in fit if not suite.layout.browser]
    if need_node := [suite.name for suite in fit if suite.needs_node]:
        try:
            await install_vitest(say)
        except (InfraError, OSError) as error:
            needed = f"{count_of(len(need_node), 'suite')} for which Node is needed ({', '.join(need_node)})"
            warnings.append(f"left out: {needed}: {error}")
            fit = [suite for suite in fit if not suite.needs_node]
    if warnings and not fit:
        raise UsageError("\n".join(warnings))
    return tuple(fit), tuple(warnings)
