"""Describe one run of tests and one validation: what every grader returns."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from bakeoff._kernel.model import FrozenModel
from bakeoff.protocols import CommandResult

TestState: TypeAlias = Literal["passed", "failed", "skipped"]
RunStop: TypeAlias = Literal["finished", "timeout", "crashed", "memory", "output"]

_STOPS: dict[str, RunStop] = {"timeout": "timeout", "memory": "memory", "output": "output"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TAIL = 2000


class TestOutcome(FrozenModel):
    """One test. Its name is the full one: suites and test joined by ` > `."""

    __test__ = False  # keep pytest from collecting it

    name: str
    state: TestState
    message: str = ""
    seconds: float = 0.0


class TestRun(FrozenModel):
    """All tests of one candidate."""

    __test__ = False

    tests: tuple[TestOutcome, ...] = ()
    error: str | None = None
    """What kept the tests from running, or what went wrong outside of them."""
    stop: RunStop = "finished"
    seconds: float = 0.0
    tampered: str | None = None
    """Why this run cannot be trusted."""
    unconfirmed: str | None = None
    """The fault that our own runner, with twins, found in tests that passed in this run."""

    @property
    def ok(self) -> bool:
        """Return True if the run can be trusted, some test passed, and none failed. Skipped tests do not count."""
        trusted = self.stop == "finished" and self.error is None and self.tampered is None
        states = {test.state for test in self.tests}
        return trusted and "passed" in states and "failed" not in states


class Grader(Protocol):
    """Run hidden tests on a candidate. This is the interface that every grading backend implements."""

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the tests in a folder with these files.

        Args:
            files: The whole folder by relative path: pristine files with the candidate's answer over them.
            tests: The files that belong to the tests; every other file is the candidate's.
            seconds: The limit of the run.

        Returns:
            The outcome of each test, and in `tampered` why they cannot be trusted.
        """


class ValidationOutcome(FrozenModel):
    """The answer of a suite's own validator about a candidate's code."""

    valid: bool
    errors: tuple[str, ...] = ()


async def run_each(
    run_file: Callable[[str, float], Awaitable[TestRun]], tests: Iterable[str], seconds: float
) -> TestRun:
    """Run test files one after the other within one limit, and combine them. Stop at the first that does not finish."""
    runs: list[TestRun] = []
    for name in tests:
        runs.append(await run_file(name, max(seconds - sum(run.seconds for run in runs), 0.001)))
        if runs[-1].stop != "finished":
            break
    if len(runs) == 1:
        return runs[0]
    return TestRun(
        tests=tuple(test for run in runs for test in run.tests),
        error="\n".join(run.error for run in runs if run.error) or None,
        stop=runs[-1].stop,
        seconds=sum(run.seconds for run in runs),
        tampered=next((run.tampered for run in runs if run.tampered), None),
    )


def stopped_by_limit(done: CommandResult) -> TestRun:
    """Return the run of a command that the sandbox ended at a limit."""
    return TestRun(error=f"ended by the {done.stop} limit", stop=_STOPS.get(done.stop, "crashed"), seconds=done.seconds)


def last_output(done: CommandResult) -> str:
    """Return the end of what a command printed."""
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
    return text[-_TAIL:] or "no output"


def without_colours(text: str) -> str:
    """Remove the terminal colours that assertion libraries add."""
    return _COLOURS.sub("", text)
