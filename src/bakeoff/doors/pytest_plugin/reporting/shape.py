"""The file of `--eval-json`: what it holds, written and read. docs/pytest-reports.md describes it for its users.

Every number in it can be computed again from its rounds, and is whenever a file is read: a number that someone changed
by hand decides nothing.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue, ValidationError, field_serializer
from pydantic_core import to_json

from bakeoff._kernel.model import FrozenModel
from bakeoff._version import __version__
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.numbers import (
    Numbers,
    SuiteName,
    Tallies,
    Tally,
    suite_alone,
    suite_of,
)
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import Gate, PassRule
from bakeoff.record import NO_USAGE, Record, Usage, Verdict, round_value
from bakeoff.report.words import visible
from bakeoff.storage.journal import implausible_number

FORMAT = "bakeoff-evals"
VERSION = 1
_LARGEST = 512 * 1024**2


class Round(FrozenModel):
    """One try of a case. `record` is what a run's journal has; the others say what it means."""

    score: float | None
    verdict: Verdict
    record: Record

    @field_serializer("record")
    def _without_defaults(self, record: Record) -> dict[str, Any]:
        return record.model_dump(mode="json", exclude_defaults=True)


class CaseResult(FrozenModel):
    nodeid: str
    case: str
    input: str
    expected: JsonValue = None
    threshold: float | None
    gate: Gate | Literal["share"]
    null_as_zero: bool = False
    parameters: str = ""
    score: float | None = Field(ge=0, le=1)
    passed: bool | None
    problem: str | None = None
    seconds: float
    usage: Usage
    judging: Usage = NO_USAGE
    rounds: tuple[Round, ...]


class SuiteResult(FrozenModel):
    suite: str
    file: str
    numbers: Numbers
    cases: tuple[CaseResult, ...]


class GateResult(FrozenModel):
    """What one gate on the whole run said. `met` None: it cannot be decided, which fails nothing."""

    option: str
    met: bool | None
    sentence: str


class EvalFile(FrozenModel):
    """The evals of one run of pytest, or of the shards of one."""

    format: Literal["bakeoff-evals"]
    version: int
    bakeoff: str = ""
    created: float = 0.0
    complete: bool = True  # False: the run was stopped before each of its tests was reported
    shards: int = 1
    numbers: Numbers
    gates: tuple[GateResult, ...] = ()
    suites: tuple[SuiteResult, ...]

    @property
    def outcomes(self) -> list[EvalOutcome]:
        return [_outcome(suite, case) for suite in self.suites for case in suite.cases]


@dataclass(frozen=True, slots=True)
class Summary:
    """What there is to say of evals without naming each: the file's head."""

    tallies: Tallies
    suites: dict[SuiteName, Numbers]
    numbers: Numbers
    gates: tuple[GateResult, ...] = ()
    complete: bool = True
    shards: int = 1

    def tally(self, name: SuiteName) -> Tally:
        return self.tallies.suites[name]


def summary_of(
    tallies: Tallies, gates: Sequence[GateResult] = (), *, complete: bool = True, shards: int = 1
) -> Summary:
    numbers = {name: tally.numbers() for name, tally in tallies.suites.items()}
    total = next(iter(numbers.values())) if len(numbers) == 1 else tallies.whole().numbers()
    return Summary(tallies, numbers, total, tuple(gates), complete, shards)


def file_chunks(
    outcomes: Iterable[EvalOutcome], summary: Summary, fit: Callable[[EvalOutcome], EvalOutcome] = lambda given: given
) -> Iterator[bytes]:
    """The file's text, a line for each case, from one pass over the outcomes; `fit` makes each fit to be written."""
    cases: dict[SuiteName, list[bytes]] = {name: [] for name in summary.suites}
    names: dict[SuiteName, SuiteName] = {}
    for given in outcomes:
        name, outcome = suite_of(given), fit(given)
        names[name] = suite_of(outcome)
        cases[name].append(_case(outcome).model_dump_json().encode())
    head = {
        "format": FORMAT,
        "version": VERSION,
        "bakeoff": __version__,
        "created": time.time(),
        "complete": summary.complete,
        "shards": summary.shards,
        "numbers": summary.numbers,
        "gates": summary.gates,
    }
    yield to_json(head)[:-1] + b',\n"suites":['
    for place, (name, lines) in enumerate(cases.items()):
        shown = names[name]
        told = to_json({"suite": shown.suite, "file": shown.file, "numbers": summary.suites[name]})
        yield (b"," if place else b"") + b"\n" + told[:-1] + b',"cases":[\n'
        yield b",\n".join(lines)
        yield b"\n]}"
    yield b"]}\n"


def _case(outcome: EvalOutcome) -> CaseResult:
    return CaseResult(
        nodeid=outcome.nodeid,
        case=outcome.case,
        input=outcome.input,
        expected=outcome.expected,
        threshold=outcome.threshold,
        gate=outcome.rule.gate,
        null_as_zero=outcome.rule.null_as_zero,
        parameters=outcome.parameters,
        score=outcome.score,
        passed=outcome.passed,
        problem=outcome.problem,
        seconds=outcome.seconds,
        usage=outcome.used,
        judging=outcome.judging,
        rounds=tuple(
            Round(score=round_value(record, outcome.rule), verdict=record.verdict, record=record)
            for record in outcome.records
        ),
    )


def _outcome(suite: SuiteResult, case: CaseResult) -> EvalOutcome:
    records = tuple(each.record for each in case.rounds)
    rule = PassRule(threshold=case.threshold, gate=case.gate, null_as_zero=case.null_as_zero)
    outcome = EvalOutcome.judged(
        records,
        rule,
        nodeid=case.nodeid,
        suite=suite_alone(suite.suite, case.parameters),
        case=case.case,
        input=case.input,
        expected=case.expected,
        parameters=case.parameters,
    )
    return outcome if records else outcome.model_copy(update={"problem": case.problem})  # it was never tried


def read_eval_file(path: Path) -> EvalFile:
    """The file, or an error that says what is wrong with it and where."""
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise UsageError(f"{path} has {size / 1024**2:.0f} MiB; a file of evals has {_LARGEST // 1024**2} at most")
        return parse_eval_file(path.read_bytes(), visible(str(path), 300))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}: name a file of --eval-json") from error


def parse_eval_file(data: bytes, source: str) -> EvalFile:
    try:
        found = EvalFile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{visible(part, 60)}" for part in first["loc"])
        problem = visible(first["msg"].removeprefix("Value error, "), 300)
        at = f"{place.lstrip('.')}: " if place else ""
        raise RunFolderError(f"{source} is no file of --eval-json that can be read: {at}{problem}") from error
    if found.version != VERSION:
        raise RunFolderError(
            f"{source} is of version {found.version}, this bakeoff reads {VERSION}: update the older of the two"
        )
    for suite in found.suites:
        _refuse_implausible_number(suite, source)
    return found


def _refuse_implausible_number(suite: SuiteResult, source: str) -> None:
    for case in suite.cases:
        for each in case.rounds:
            if beyond := implausible_number(each.record):
                raise RunFolderError(f"{source}: {visible(case.nodeid)}: {beyond}")
