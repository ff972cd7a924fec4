"""The file of `--eval-json`: write it, read it, and merge the files of the shards of one run.

docs/how-to/pytest-reports.md describes the format. Every number in the file is computed again from its rounds when the
file is read: a number that someone edited by hand decides nothing.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, StrictBool, ValidationError, field_serializer, model_validator
from pydantic_core import to_json

from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, expectation, visible
from bakeoff._version import __version__
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.reporting.numbers import Numbers, SuiteName, suite_of
from bakeoff.doors.pytest.reporting.session_summary import GateResult, SessionSummary
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import Gate, PassRule
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.report.summary import Comparisons
from bakeoff.storage.journal import implausible_number
from bakeoff.verdict import Verdict

FORMAT = "bakeoff-evals"
VERSION = 1
_LARGEST = 512 * 1024**2  # bytes


class EvalRound(FrozenModel):
    """One round of a case. `record` is what a run's journal holds; the other fields are derived from it."""

    score: float | None
    verdict: Verdict
    record: Record

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.verdict != self.record.verdict:
            raise ValueError(f"the verdict is {self.verdict.value}, and that of its record {self.record.verdict.value}")
        return self

    @field_serializer("record")
    def _without_defaults(self, record: Record) -> dict[str, Any]:
        return record.model_dump(mode="json", exclude_defaults=True)


class EvalCaseResult(FrozenModel):
    """One case of a suite."""

    nodeid: str
    case: str
    input: str
    expected: JsonValue = None
    threshold: float | None
    gate: Gate | Literal["share"]
    null_as_zero: bool = False
    parameters: str = ""
    score: float | None = Field(ge=0, le=1)
    passed: StrictBool | None
    problem: str | None = None
    seconds: float
    usage: Usage
    judging: Usage = NO_USAGE
    rounds: tuple[EvalRound, ...]


class EvalSuiteResult(FrozenModel):
    """One suite, with one set of its parameters."""

    suite: str
    file: str
    numbers: Numbers
    cases: tuple[EvalCaseResult, ...]


class EvalFile(FrozenModel):
    """The evals of one pytest run, or of its shards."""

    format: Literal["bakeoff-evals"]
    version: int
    bakeoff: str = ""
    created: float = 0.0
    complete: StrictBool  # False: the run was stopped, or not all of it could be collected and read
    shards: int = 1
    numbers: Numbers
    gates: tuple[GateResult, ...] = ()
    comparisons: Comparisons | None = None  # of a run that ended when they were decided
    suites: tuple[EvalSuiteResult, ...]

    @property
    def outcomes(self) -> list[EvalOutcome]:
        """Return all cases, each judged again from its records."""
        return [_outcome(suite, case) for suite in self.suites for case in suite.cases]


def file_chunks(
    outcomes: Iterable[EvalOutcome],
    summary: SessionSummary,
    redact: Callable[[EvalOutcome], EvalOutcome] = lambda given: given,
) -> Iterator[bytes]:
    """Yield the text of the file, a line for each case, from one pass over the outcomes."""
    cases: dict[SuiteName, list[bytes]] = {name: [] for name in summary.suites}
    names: dict[SuiteName, SuiteName] = {}
    for given in outcomes:
        name, outcome = suite_of(given), redact(given)
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
        **({} if summary.comparisons is None else {"comparisons": summary.comparisons}),
    }
    yield to_json(head)[:-1] + b',\n"suites":['
    for place, (name, lines) in enumerate(cases.items()):
        shown = names[name]
        suite = to_json({"suite": shown.suite, "file": shown.file, "numbers": summary.suites[name]})
        yield (b"," if place else b"") + b"\n" + suite[:-1] + b',"cases":[\n'
        yield b",\n".join(lines)
        yield b"\n]}"
    yield b"]}\n"


_SHARED = ("nodeid", "case", "input", "expected", "parameters", "problem")  # fields of a case and of its outcome


def _case(outcome: EvalOutcome) -> EvalCaseResult:
    return EvalCaseResult(
        **{name: getattr(outcome, name) for name in (*_SHARED, "score", "passed", "seconds", "judging")},
        **outcome.rule.model_dump(include={"threshold", "gate", "null_as_zero"}),
        usage=outcome.used,
        rounds=tuple(EvalRound(score=each.value, verdict=each.verdict, record=each) for each in outcome.records),
    )


def _outcome(suite: EvalSuiteResult, case: EvalCaseResult) -> EvalOutcome:
    rule = PassRule(threshold=case.threshold, gate=case.gate, null_as_zero=case.null_as_zero)
    shared = {name: getattr(case, name) for name in _SHARED}
    name = suite.suite.removesuffix(f"[{case.parameters}]") if case.parameters else suite.suite
    outcome = EvalOutcome(suite=name, rule=rule, **shared)
    return outcome.judged([each.record for each in case.rounds]) if case.rounds else outcome  # it was never tried


def read_eval_file(path: Path) -> EvalFile:
    """Read a file, or raise an error that says what is wrong with it and where."""
    try:
        size = path.stat().st_size
        if size > _LARGEST:
            raise UsageError(f"{path} has {size / 1024**2:.0f} MiB; the limit is {_LARGEST // 1024**2} MiB")
        return parse_eval_file(read_file(path, _LARGEST), visible(str(path), 300))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}: name a file of --eval-json") from error


def parse_eval_file(data: bytes, source: str) -> EvalFile:
    """Parse the text of a file; `source` names it in errors."""
    try:
        found = EvalFile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{visible(part, 60)}" for part in first["loc"])
        problem = visible(expectation(first), 300)
        at = f"{place.lstrip('.')}: " if place else ""
        raise RunFolderError(f"{source} is not a valid --eval-json file: {at}{problem}") from error
    if found.version != VERSION:
        raise RunFolderError(
            f"{source} has format version {found.version}, this bakeoff reads version {VERSION}: update the older one"
        )
    for case in (case for suite in found.suites for case in suite.cases):
        for each in case.rounds:
            if beyond := implausible_number(each.record):
                raise RunFolderError(f"{source}: {visible(case.nodeid)}: {beyond}")
    return found


@dataclass(frozen=True, slots=True)
class MergedEvals:
    """All evals of several files, and remarks about the merge."""

    outcomes: list[EvalOutcome]
    complete: bool
    shards: int
    notes: tuple[str, ...] = ()


def merge_files(paths: Sequence[Path]) -> MergedEvals:
    """Merge the shards of one run as if they had been one.

    A test that is in two files counts once if both have the same result, and is refused otherwise: nobody could tell
    which result is right.
    """
    whole: dict[str, list[EvalOutcome]] = {}
    origin: dict[str, Path] = {}
    twice, shards, stopped, decided, empty = 0, 0, [], [], []
    for path in paths:
        file = read_eval_file(path)
        shards += file.shards
        stopped += [] if file.complete else [path]
        decided += [] if file.comparisons is None else [path]
        empty += [] if file.suites else [path]
        by_test: dict[str, list[EvalOutcome]] = {}  # a test may hold several evals
        for outcome in file.outcomes:
            by_test.setdefault(outcome.nodeid, []).append(outcome)
        for nodeid, outcomes in by_test.items():
            if nodeid not in whole:
                whole[nodeid], origin[nodeid] = outcomes, path
            elif whole[nodeid] == outcomes:
                twice += 1
            else:
                raise UsageError(
                    f"{visible(nodeid)} has one result in {origin[nodeid]} and another in {path}: "
                    "shards of one run have no test in common; leave one of the files out"
                )
    notes = (
        [f"{count_of(twice, 'test is', 'tests are')} in more than one file, with the same result: each counts once"]
        if twice
        else []
    )
    notes += [f"{path}: this run was stopped before its end, or not all of it could be read" for path in stopped]
    notes += [f"{path}: this run has no evals" for path in empty]
    notes += [f"{path}: this run ended when it was decided; intervals assume a fixed number" for path in decided]
    outcomes = [outcome for found in whole.values() for outcome in found]
    return MergedEvals(outcomes, complete=not stopped, shards=shards, notes=tuple(notes))
