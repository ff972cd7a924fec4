"""What a toolchain says of one run of tests, and of one validation."""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from bakeoff._kernel.model import FrozenModel

TestState: TypeAlias = Literal["passed", "failed", "skipped"]
RunStop: TypeAlias = Literal["finished", "timeout", "crashed", "memory", "output"]


class TestOutcome(FrozenModel):
    """One test; its name is the full one, suites joined by ` > `."""

    __test__ = False  # not a test of ours, whatever its name says to pytest

    name: str
    state: TestState
    message: str = ""
    seconds: float = 0.0


class TestRun(FrozenModel):
    """All tests of one candidate. The canary is not among them."""

    __test__ = False

    tests: tuple[TestOutcome, ...] = ()
    error: str | None = None
    """What kept the tests from running, or what went wrong outside of them."""
    stop: RunStop = "finished"
    seconds: float = 0.0
    canary_seen: bool = False
    """Whether the test that must fail was seen failing."""
    tampered: str | None = None
    """Why this run cannot be believed."""
    unconfirmed: str | None = None
    """What a second runner, one that candidates cannot reach, found wrong with tests that passed in this one."""

    @property
    def ok(self) -> bool:
        believable = self.stop == "finished" and self.error is None and self.canary_seen and self.tampered is None
        states = {test.state for test in self.tests}
        return believable and "passed" in states and "failed" not in states


class TestRunner(Protocol):
    """What an opened toolchain gives."""

    async def run(self, files: Mapping[str, str], *, seconds: float, test: str | None = None) -> TestRun:
        """Run the tests among these files, named by their relative paths; `test` is the one that holds them."""


class ValidationOutcome(FrozenModel):
    """What a suite's own validator says of a candidate's code."""

    valid: bool
    errors: tuple[str, ...] = ()
