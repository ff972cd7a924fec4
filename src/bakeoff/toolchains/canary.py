"""The test that must fail: drawn anew for each grading, so that nothing written beforehand can know it."""

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_NAMES = re.compile(r"""\b(?:test|it)(?:\.\w+)*\(\s*(['"`])((?:(?!\1)[^\\\n$%])+)\1""")
_MOST_TRIES = 20
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


def named_like(source: str) -> str:
    """A name that could stand among those of a suite's tests, and does not: nothing in it tells that it is a canary."""
    names = [found[2].split() for found in _NAMES.finditer(source) if found[2].strip()] or [["works", "as", "told"]]
    for _ in range(_MOST_TRIES):
        first, second = secrets.choice(names), secrets.choice(names)
        name = " ".join([*first[: (len(first) + 1) // 2], *second[len(second) // 2 :]])
        if name not in source:
            return name
    return f"{' '.join(secrets.choice(names))} {secrets.token_hex(4)}"


def well_formed(answer: str | bytes) -> bytes:
    """The same JSON with every half of a character replaced; what is no JSON is left for the reader to refuse."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return answer.encode() if isinstance(answer, str) else answer
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def plain(text: str) -> str:
    """Without the colours that assertion libraries add."""
    return _ESCAPES.sub("", text)
