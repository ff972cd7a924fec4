"""What runs the tests of an exercise, whichever way."""

from collections.abc import Collection, Mapping
from typing import Protocol

from bakeoff.toolchains.outcome import TestRun


class Runner(Protocol):
    """Runs tests: of `tests`, those files that hold some; `trusted` are these and the helpers among a track's tests."""

    async def run_files(
        self, files: Mapping[str, str], *, tests: Collection[str], trusted: Collection[str], seconds: float
    ) -> list[TestRun]: ...
