"""Draw the test that must fail. It is new for each grading, so that no candidate can know it beforehand."""

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun, without_colours

_NAMES = re.compile(r"""\b(?:test|it)(?:\.\w+)*\(\s*(['"`])((?:(?!\1)[^\\\n$%])+)\1""")
_MOST_TRIES = 20
_UNSEEN = "the canary test, which must fail, was not seen failing: assertions do not work as they should"


class _Report(FrozenModel):
    """The result that our JavaScript runners write. Anything else does not come from them."""

    proof: str = ""
    tests: tuple[TestOutcome, ...]
    error: str
    changed: str | None = None


@dataclass(frozen=True, slots=True)
class Canary:
    """The name of the test, its place among the others (0 is first, below 1 is last), and the proof of a result."""

    name: str = field(default_factory=lambda: f"holds {secrets.token_hex(8)}")
    word: str = field(default_factory=lambda: secrets.token_hex(8))
    place: float = field(default_factory=lambda: secrets.randbelow(1 << 20) / (1 << 20))
    proof: str = field(default_factory=lambda: secrets.token_hex(16))

    def add_to(self, source: str, template: str, **more: str) -> str:
        """Write the test, from its one-line template, before or after the source. Imports are hoisted in both."""
        texts = {"name": self.name, "word": self.word, "other": f"{self.word}!"}
        test = template.format(id=self.word, **more, **{key: json.dumps(text) for key, text in texts.items()})
        return f"{test}\n{source}" if self.place < 0.5 else f"{source}\n{test}\n"

    def check(
        self,
        tests: Iterable[TestOutcome],
        *,
        error: str | None,
        seconds: float,
        stop: RunStop = "finished",
        tampered: str | None = None,
    ) -> TestRun:
        """Return the run without the canary. It is tampered with if tests were reached and the canary did not fail."""
        reported = tuple(tests)
        others = tuple(test for test in reported if test.name != self.name)
        seen = [test.state for test in reported if test.name == self.name] == ["failed"]
        if not seen and not tampered and stop == "finished" and (others or error is None):
            tampered = _UNSEEN
        return TestRun(tests=others, error=error, stop=stop, seconds=seconds, canary_seen=seen, tampered=tampered)

    def check_report(self, answer: str | bytes, seconds: float, *, proven: bool = False, source: str) -> TestRun:
        """Return the run that a JavaScript runner reports as JSON.

        Args:
            answer: The report.
            seconds: How long the run took.
            proven: True if the proof was found outside of the report already.
            source: The one who should have written it, for the message about a forged result.
        """
        forged = f"its result is not {source}'s"
        try:
            report = _Report.model_validate_json(replace_surrogates(answer))
        except ValidationError:
            return TestRun(error="the runner returned no result", seconds=seconds, tampered=forged)
        tampered = None if proven or report.proof == self.proof else forged
        if tampered is None and report.changed is not None:
            tampered = f"it replaced `{report.changed}`, which the tests are built on"
        tests = [test.model_copy(update={"message": without_colours(test.message)}) for test in report.tests]
        error = without_colours(report.error) or None
        return self.check(tests, error=error, seconds=seconds, tampered=tampered)


def name_like_tests_in(source: str) -> str:
    """Draw a name from the words of a suite's own tests that none of them has, so that it does not stand out."""
    names = [found[2].split() for found in _NAMES.finditer(source) if found[2].strip()] or [["works", "as", "told"]]
    for _ in range(_MOST_TRIES):
        first, second = secrets.choice(names), secrets.choice(names)
        name = " ".join([*first[: (len(first) + 1) // 2], *second[len(second) // 2 :]])
        if name not in source:
            return name
    return f"{' '.join(secrets.choice(names))} {secrets.token_hex(4)}"


def replace_surrogates(answer: str | bytes) -> bytes:
    """Replace lone surrogates in JSON. Return text that is not JSON as it is, for the parser to refuse."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return answer.encode() if isinstance(answer, str) else answer
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")
