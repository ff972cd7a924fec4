"""Grade by running a program in a fresh workspace: by its exit code, or by the JUnit XML that it writes."""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from pydantic import Field, PositiveFloat

from bakeoff.errors import GraderError
from bakeoff.plan import Case, TakenPath
from bakeoff.protocols import CommandResult, ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ConfigurableScorer, checked_as
from bakeoff.scorers.registry import scorer
from bakeoff.storage.redaction import CUT
from bakeoff.toolchains.command_reports import read_junit

_TAIL = 2000  # characters of output that are kept
_LINE = 500  # characters of the last line, which is the reason


@scorer("command", main="argv")
@dataclass(frozen=True, slots=True)
class Command(ConfigurableScorer):
    """Scores 1 when the program succeeds; with JUnit XML, the share of tests that passed."""

    argv: Annotated[Sequence[str], checked_as(Annotated[tuple[str, ...], Field(min_length=1)])]
    _: KW_ONLY
    seconds: PositiveFloat = 60.0
    junit: TakenPath | None = None  # where the program writes JUnit XML
    proof: bool = False  # the program first reads a line from its standard input, and prints it at its end
    tests: Annotated[Sequence[str] | None, checked_as(tuple[str, ...] | None)] = None  # all must be reported, no others
    name: str = "command"

    def can_score(self, case: Case) -> bool:
        """Return True if the case has hidden files to grade with."""
        return bool(case.hidden)

    def accepts_reference(self, case: Case) -> bool:
        """Return True if the case has reference files, which are a whole solution."""
        return bool(case.reference)

    async def __call__(self, given: ScoreInput) -> Score:
        if not self.can_score(given.case):
            return self.scored(None, "the case has no hidden files to grade with")
        proof = secrets.token_hex(16)
        async with given.pristine() as workspace:
            done = await workspace.run(tuple(self.argv), seconds=self.seconds, stdin=f"{proof}\n".encode())
            reports, _ = await workspace.collect((self.junit,) if self.junit else ())
        if done.exit_code == 127 and done.stop == "exited" and await self._is_missing(given):
            raise GraderError(f"{self.argv[0]!r} was not found: {_last_line(done)}")
        value, reason = self._judged(done, reports, proof)
        output = _shortened(_output(done), _TAIL)
        return self.scored(value, reason, exit_code=done.exit_code, stop=done.stop, output=output)

    def _judged(self, done: CommandResult, reports: dict[str, str], proof: str) -> tuple[float, str]:
        if done.stop == "killed":
            why = "which a program with your user id can do; its processes may still be running"
            return 0.0, f"its supervisor was killed, {why}"
        if done.stop != "exited":
            return 0.0, f"ended by the {done.stop} limit"
        if self.proof and proof.encode() not in done.stdout.splitlines():
            return 0.0, f"the program ended without printing the proof that it ran to its end: {_last_line(done)}"
        if self.junit is not None:
            return self._by_report(done, reports)
        return float(done.ok), "" if done.ok else f"exit code {done.exit_code}: {_last_line(done)}"

    async def _is_missing(self, given: ScoreInput) -> bool:
        """Tell whether the program itself is missing, as a solution may also exit with 127."""
        program = self.argv[0]
        if "/" in program and not program.startswith("/"):
            return program in given.case.hidden  # otherwise the subject had to hand it in
        async with given.pristine() as workspace:
            look = ("sh", "-c", 'command -v "$0"', program)
            return not (await workspace.run(look, seconds=self.seconds)).ok

    def _by_report(self, done: CommandResult, reports: dict[str, str]) -> tuple[float, str]:
        report = next(iter(reports.values()), None)
        if report is None:
            return 0.0, f"no {self.junit} was written; exit code {done.exit_code}: {_last_line(done)}"
        try:
            outcomes = [(test.name, test.state) for test in read_junit(report, "::")]
        except ValueError as error:
            return 0.0, f"{self.junit} is not a JUnit report: {error}"
        if self.tests is not None and sorted(self.tests) != sorted(name for name, _ in outcomes):
            return 0.0, f"other tests were reported than {', '.join(self.tests)}"
        counts = Counter(outcome for _, outcome in outcomes)
        if not outcomes:
            return 0.0, "no test ran"
        if done.exit_code != 0 and counts["passed"] == len(outcomes):
            return 0.0, f"every test is reported as passed, but the exit code is {done.exit_code}"
        failed = [name for name, outcome in outcomes if outcome != "passed"]
        return counts["passed"] / len(outcomes), f"not passed: {', '.join(failed)}" if failed else ""


def _last_line(done: CommandResult) -> str:
    lines = [line for line in _output(done).splitlines() if line.strip()]
    return _shortened(lines[-1].strip(), _LINE) if lines else "no output"


def _output(done: CommandResult) -> str:
    """Return both streams, with marks where they were cut, so that cut keys are redacted, too."""
    cut = CUT if done.stop == "output" else ""
    texts = [stream.decode(errors="replace") for stream in (done.stdout, done.stderr) if stream]
    return "".join(text + cut for text in texts)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else CUT + text[1 - most :]
