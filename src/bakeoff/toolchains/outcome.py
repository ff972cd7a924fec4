"""The results of test runs and validations, in the form that all graders return."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol, TypeAlias

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError
from bakeoff.protocols import Command, CommandResult, Sandbox
from bakeoff.sandbox import open_place

MAX_TESTS = 20_000
"""The most tests that are read from a report. No suite has more."""

TestState: TypeAlias = Literal["passed", "failed", "skipped"]
RunStop: TypeAlias = Literal["finished", "timeout", "crashed", "memory", "output"]

_STOPS: dict[str, RunStop] = {"timeout": "timeout", "memory": "memory", "output": "output"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TAIL = 2000
_LOOK_SECONDS = 30.0


class TestOutcome(FrozenModel):
    """One test. Its full name joins suites and test by ` > `."""

    __test__ = False  # keep pytest from collecting it

    name: str
    state: TestState
    message: str = ""
    seconds: float = 0.0


class TestRun(FrozenModel):
    """One run of all tests on a candidate."""

    __test__ = False

    tests: tuple[TestOutcome, ...] = ()
    error: str | None = None
    """The reason why the tests could not run, or an error outside of them."""
    stop: RunStop = "finished"
    seconds: float = 0.0
    tampered: str | None = None
    """The reason why this run cannot be trusted."""
    unconfirmed: str | None = None
    """The fault that our own runner, with twins, found in tests that passed in this run."""

    @property
    def ok(self) -> bool:
        """Return True if the run is trusted, at least one test passed, and none failed."""
        trusted = self.stop == "finished" and self.error is None and self.tampered is None
        states = {test.state for test in self.tests}
        return trusted and "passed" in states and "failed" not in states


class Grader(Protocol):
    """Runs hidden tests on a candidate. Every grading backend implements this interface."""

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the tests in a folder with these files.

        Args:
            files: All files by relative path: the original files, and the answer in place of some.
            tests: The test files. All other files belong to the candidate.
            seconds: The time limit.

        Returns:
            The outcome of each test, with the reason in `tampered` if they cannot be trusted.
        """


class ValidationOutcome(FrozenModel):
    """The result of a suite's own validator on an answer."""

    valid: bool
    errors: tuple[str, ...] = ()


async def answered(running: Awaitable[TestRun]) -> TestRun:
    """Return the run of an answer, blaming the answer for failures. All graders use this rule.

    In a sandbox with an answer, the answer is to blame for everything: exit codes, signals, limits,
    floods, and missing, incomplete, forged or unreadable reports. Only an `InfraError` or
    `GraderError` is ours. Graders raise these only for causes that no answer can influence: the
    sandbox could not start a command, a runner failed before it read the answer, or a program is
    missing even without an answer (`check_program`).
    """
    try:
        run = await running
    except (ValueError, RecursionError, MemoryError) as problem:  # from reading the answer's output
        return TestRun(error=f"its result cannot be read: {type(problem).__name__}: {problem}"[:_TAIL], stop="crashed")
    if len(run.tests) <= MAX_TESTS:
        return run
    return TestRun(error=f"it reported {len(run.tests)} tests, and {MAX_TESTS} are the most", stop="crashed")


async def check_program(sandbox: Sandbox, command: Command, done: CommandResult, program: str) -> None:
    """Raise `GraderError` if a program that a command needs is missing.

    Shells then exit with 126 or 127, but graded code can do that too. So search for the program in
    a place without graded code.
    """
    is_brought = "/" in program and not program.startswith("/")
    if done.stop != "exited" or done.exit_code not in {126, 127} or is_brought:
        return
    async with open_place() as place:
        look = ("/bin/sh", "-c", 'command -v "$1"', "sh", program)
        found = await sandbox.run(replace(command, argv=look, place=place, seconds=_LOOK_SECONDS))
    if not found.ok:
        raise GraderError(f"{program!r} cannot be run here: {last_output(done)}")


async def run_each(
    run_file: Callable[[str, float], Awaitable[TestRun]], tests: Iterable[str], seconds: float
) -> TestRun:
    """Run test files in turn, within one time limit for all, and combine their results."""
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
    """Return the run for a command that the sandbox ended at a limit."""
    return TestRun(error=f"ended by the {done.stop} limit", stop=_STOPS.get(done.stop, "crashed"), seconds=done.seconds)


def last_output(done: CommandResult) -> str:
    """Return the end of a command's output."""
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
    return text[-_TAIL:] or "no output"


def without_colours(text: str) -> str:
    """Remove the terminal colours that assertion libraries add."""
    return _COLOURS.sub("", text)
