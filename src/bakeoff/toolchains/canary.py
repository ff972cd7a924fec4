"""The test that must fail: drawn anew for each grading, so that nothing written beforehand can know it."""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_UNSEEN = "the canary test, which must fail, was not seen failing: assertions do not work as they should"


def _place() -> float:
    return secrets.randbelow(1 << 20) / (1 << 20)


@dataclass(frozen=True, slots=True)
class Canary:
    """Its name, its place among the tests (0 is first, below 1 is last), and the proof that the result is ours."""

    name: str = field(default_factory=lambda: f"holds {secrets.token_hex(8)}")
    word: str = field(default_factory=lambda: secrets.token_hex(8))
    place: float = field(default_factory=_place)
    proof: str = field(default_factory=lambda: secrets.token_hex(16))

    def judge(
        self,
        tests: Iterable[TestOutcome],
        *,
        error: str | None,
        seconds: float,
        stop: RunStop = "finished",
        tampered: str | None = None,
    ) -> TestRun:
        """The run without the canary. Where no test was reached, there was none to see."""
        reported = tuple(tests)
        kept = tuple(test for test in reported if test.name != self.name)
        seen = [test.state for test in reported if test.name == self.name] == ["failed"]
        if not seen and not tampered and stop == "finished" and (kept or error is None):
            tampered = _UNSEEN
        return TestRun(tests=kept, error=error, stop=stop, seconds=seconds, canary_seen=seen, tampered=tampered)


def plain(text: str) -> str:
    """Without the colours that assertion libraries add."""
    return _ESCAPES.sub("", text)
