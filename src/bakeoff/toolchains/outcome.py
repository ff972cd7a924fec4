"""The results of a run of tests and of a validation, which every grader returns."""

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
    """The reason why the tests could not run, or an error outside of them."""
    stop: RunStop = "finished"
    seconds: float = 0.0
    tampered: str | None = None
    """The reason why this run cannot be trusted."""
    unconfirmed: str | None = None
    """The fault that our own runner, with twins, found in tests that passed in this run."""

    @property
    def ok(self) -> bool:
        """Return True if the run can be trusted, some test passed, and none failed. Skipped tests do not count."""
        trusted = self.stop == "finished" and self.error is None and self.tampered is None
        states = {test.state for test in self.tests}
        return trusted and "passed" in states and "failed" not in states


class Grader(Protocol):
    """Runs hidden tests on a candidate. This is the interface that every grading backend implements."""

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the tests in a folder with these files.

        Args:
            files: The whole folder by relative path: pristine files with the candidate's answer over them.
            tests: The files that belong to the tests; every other file is the candidate's.
            seconds: The limit of the run.

        Returns:
            The outcome of each test; `tampered` is the reason why they cannot be trusted, if any.
        """


class ValidationOutcome(FrozenModel):
    """The result of a suite's own validator for a candidate's code."""

    valid: bool
    errors: tuple[str, ...] = ()


async def answered(running: Awaitable[TestRun]) -> TestRun:
    """Return the run of an answer. This is the one rule, for all graders, that decides whose failure a run is.

    In a sandbox with an answer, everything counts as the answer's doing: any exit code and signal, limits, floods, and
    reports that are missing, cut off, forged or unreadable. Only an `InfraError` or a `GraderError` is ours. A grader
    raises one only for causes outside of any answer's reach: the sandbox could not start a command, a runner did not
    write the line that precedes reading the answer, or a program is missing where no answer is (`check_program`).
    """
    try:
        run = await running
    except (ValueError, RecursionError, MemoryError) as problem:  # raised by reading the answer's output
        return TestRun(error=f"its result cannot be read: {type(problem).__name__}: {problem}"[:_TAIL], stop="crashed")
    if len(run.tests) <= MAX_TESTS:
        return run
    return TestRun(error=f"it reported {len(run.tests)} tests, and {MAX_TESTS} are the most", stop="crashed")


async def check_program(sandbox: Sandbox, command: Command, done: CommandResult, program: str) -> None:
    """Raise `GraderError` if a program is missing that a command needs and that its suite does not provide.

    Shells report that with the exit codes 126 and 127, but graded code can do the same. So look for the program in a
    place without graded code.
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
    """Return the result of a command that the sandbox ended at a limit."""
    return TestRun(error=f"ended by the {done.stop} limit", stop=_STOPS.get(done.stop, "crashed"), seconds=done.seconds)


def last_output(done: CommandResult) -> str:
    """Return the end of a command's output."""
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
    return text[-_TAIL:] or "no output"


def without_colours(text: str) -> str:
    """Remove the terminal colours that assertion libraries add."""
    return _COLOURS.sub("", text)
