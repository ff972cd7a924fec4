"""Write files of `--eval-json`, read them as outcomes or as runs, and merge the files of shards.

docs/how-to/pytest-reports.md describes the format. Every number in the file is computed again from its rounds when the
file is read: numbers that were edited by hand have no effect.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, StrictBool, ValidationError, field_serializer, model_validator
from pydantic_core import to_json

from bakeoff._kernel.files import open_file, os_errors_explained, read_file
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import count_of, expectation, visible
from bakeoff._version import __version__
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import Case, Gate, PassRule, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.report.gates import GateResult
from bakeoff.report.readers import Circumstances, Description, RecordsInMemory, Source
from bakeoff.report.suites.numbers import (
    Redact,
    SuiteName,
    SuiteNumbers,
    SuitesSummary,
    SuiteTallies,
    file_part,
    suite_of,
    summary_of,
)
from bakeoff.report.suites.outcomes import SUBJECT, EvalOutcome, subject_name
from bakeoff.report.summary import Comparisons
from bakeoff.storage.journal import implausible_number
from bakeoff.storage.ledger import Ledger, ShardsHere
from bakeoff.verdict import Verdict

FORMAT = "bakeoff-evals"
VERSION = 1
_MAX_SIZE = 512 * 1024**2  # bytes
_SHARED = ("nodeid", "case", "input", "expected", "parameters", "problem", "scorers")  # with the outcome of a case

_STOPPED = "this run was stopped before its end, or not all of it could be read"
_COUNTS = ("cases", "scored", "passed", "failed", "recorded", "undecided", "rounds")


class EvalRound(FrozenModel):
    """One round of a case: a `record` as in a run's journal, and fields derived from it."""

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
    scorers: dict[str, str] = sparse_field({})  # digests by name; older versions did not write them
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
    numbers: SuiteNumbers
    cases: tuple[EvalCaseResult, ...]


class EvalFile(FrozenModel):
    """The evals of one pytest run, or of its shards."""

    format: Literal["bakeoff-evals"]
    version: int
    bakeoff: str = ""
    created: float = 0.0
    complete: StrictBool  # False: the run was stopped, or not all of it could be collected and read
    ledger: Ledger | None = None  # None in files of older versions
    numbers: SuiteNumbers
    gates: tuple[GateResult, ...] = ()
    comparisons: Comparisons | None = None  # of a run that ended when they were decided
    suites: tuple[EvalSuiteResult, ...]

    @property
    def planned(self) -> Ledger:
        """Count the ledger from the cases; it is incomplete if the file has another or none."""
        outcomes, said = self.outcomes, self.ledger
        shards = said.shards if said else None
        found = summary_of(SuiteTallies.of(outcomes), complete=self.complete, shards=shards)
        problem = self._contradiction(outcomes, found)
        return found.ledger.without_end(problem) if problem or said is None else found.ledger

    def _contradiction(self, outcomes: Sequence[EvalOutcome], counted: SuitesSummary) -> str:
        """Say which part of the file disagrees with the rounds of its cases; empty if none does."""
        for case, outcome in zip((case for suite in self.suites for case in suite.cases), outcomes, strict=True):
            derived = [each.record.value for each in case.rounds] == [each.score for each in case.rounds]
            if not derived or (case.passed, case.score) != (outcome.passed, outcome.score):
                return (
                    f"the file contradicts itself: the result of {visible(case.nodeid, 200)} is not that of its rounds"
                )
        pairs = [(each.numbers, counted.suites.get(SuiteName(each.file, each.suite))) for each in self.suites]
        for said, found in [(self.numbers, counted.numbers), *pairs]:
            if found is None or any(getattr(said, key) != getattr(found, key) for key in _COUNTS):
                return "the file contradicts itself: its numbers and its cases do not add up"
        uncounted = {"named": (), **({"silent": self.ledger.silent} if self.ledger else {})}  # not in older versions
        if self.ledger not in (None, counted.ledger.model_copy(update=uncounted)):
            return "the file contradicts itself: its ledger and its cases do not add up"
        return ""

    @property
    def outcomes(self) -> list[EvalOutcome]:
        """Return all cases, each judged again from its records."""
        found: list[EvalOutcome] = []
        for suite in self.suites:
            for case in suite.cases:
                rule = PassRule(threshold=case.threshold, gate=case.gate, null_as_zero=case.null_as_zero)
                shared = {name: getattr(case, name) for name in _SHARED}
                name = suite.suite.removesuffix(f"[{case.parameters}]") if case.parameters else suite.suite
                outcome = EvalOutcome(suite=name, rule=rule, **shared)
                found.append(outcome.judged([each.record for each in case.rounds]) if case.rounds else outcome)
        return found


def file_chunks(
    outcomes: Iterable[EvalOutcome], summary: SuitesSummary, redact: Redact = lambda given: given
) -> Iterator[bytes]:
    """Yield the text of the file, a line for each case, from one pass over the outcomes."""
    cases: dict[SuiteName, list[bytes]] = {name: [] for name in summary.suites}
    names: dict[SuiteName, SuiteName] = {}
    for given in outcomes:
        name, outcome = suite_of(given), redact(given)
        names[name] = suite_of(outcome)
        case = EvalCaseResult(
            **{name: getattr(outcome, name) for name in (*_SHARED, "score", "passed", "seconds", "judging")},
            **outcome.rule.model_dump(include={"threshold", "gate", "null_as_zero"}),
            usage=outcome.used,
            rounds=tuple(EvalRound(score=each.value, verdict=each.verdict, record=each) for each in outcome.records),
        )
        cases[name].append(case.model_dump_json().encode())
    head = {
        "format": FORMAT,
        "version": VERSION,
        "bakeoff": __version__,
        "created": time.time(),
        "complete": summary.complete,
        "ledger": summary.ledger.model_copy(update={"named": ()}),  # the cases have the texts, redacted
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


def read_eval_file(path: Path) -> EvalFile:
    """Read a file, or raise an error that says what is wrong with it and where."""
    with os_errors_explained(path, "read", hint="name a file of --eval-json", kind=UsageError):
        data = read_file(path, _MAX_SIZE)
    return parse_eval_file(data, visible(str(path), 300))


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
    files: int  # the number of files that add a test
    shards: ShardsHere | None  # as the files say; None: they were not made with --eval-shard
    notes: tuple[str, ...] = ()


def merge_files(paths: Sequence[Path]) -> MergedEvals:
    """Merge the shards of one run as if they had been one.

    A test that is in two files counts once if both have the same result, and is refused otherwise. Shards of different
    evals, such as those of another `-k`, are refused too.
    """
    whole: dict[str, list[EvalOutcome]] = {}
    origin: dict[str, Path] = {}
    twice, stopped, decided, empty = 0, dict[Path, str](), [], []
    shards: dict[Path, ShardsHere] = {}
    files = 0  # the number of files that add a test
    for path in paths:
        file = read_eval_file(path)
        shards |= {path: file.ledger.shards} if file.ledger is not None and file.ledger.shards is not None else {}
        stopped |= {} if (planned := file.planned).ended else {path: planned.problem or _STOPPED}
        known = len(whole)
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
        files += len(whole) > known or not file.suites
    first, *others = {shard.collection: path for path, shard in shards.items() if shard.collection}.values() or [None]
    if others:
        raise UsageError(
            f"{first} and {others[0]} are shards of different evals: "
            "run all with the same paths, -k, -m, data, scorers, thresholds and rounds"
        )
    both = f"{count_of(twice, 'test is', 'tests are')} in more than one file, with the same result: each counts once"
    notes = [both] if twice else []
    notes += [f"{path}: {problem}" for path, problem in stopped.items()]
    notes += [f"{path}: this run has no evals" for path in empty]
    notes += [f"{path}: this run ended when it was decided; intervals assume a fixed number" for path in decided]
    outcomes = [outcome for found in whole.values() for outcome in found]
    return MergedEvals(outcomes, not stopped, files, ShardsHere.joined([*shards.values()]), tuple(notes))


_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"bakeoff-evals"')
_MAX_NAME_LENGTH = 300


class EvalFileReader:
    """The reader of files that `--eval-json` or `bakeoff merge` wrote."""

    what = "an eval file (.json, from pytest --eval-json)"

    def recognises(self, path: Path) -> bool:
        """Tell whether a file begins like a file of `--eval-json`."""
        if path.suffix != ".json" or not path.is_file():
            return False
        with open_file(path) as file:
            return bool(_BEGINNING.match(file.read(200)))

    def describe(self, path: Path) -> Description:
        """Return the evals as a plan that is named after the file."""
        return _description(path, read_eval_file(path).outcomes)

    def circumstances(self, path: Path) -> Circumstances:
        """Return the version of bakeoff that wrote the file, what was planned, and the gates."""
        file = read_eval_file(path)
        versions = (file.bakeoff,) if re.fullmatch(r"\d[\w.+-]{0,30}", file.bakeoff) else ()
        return Circumstances(versions=versions, ledger=file.planned, gates=file.gates)

    def read(self, path: Path) -> Iterator[Record]:
        """Yield the records of all rounds, with the names of cases and subjects in the plan."""
        return _records(read_eval_file(path).outcomes)


def source_of(outcomes: Sequence[EvalOutcome], path: Path, **known: Any) -> Source:
    """Return outcomes as a source, as if read from `path`; `known` may have a ledger and gates."""
    found = Circumstances(versions=(__version__,), **known)
    return Source(path, RecordsInMemory(_description(path, outcomes), lambda: _records(outcomes), found))


def _description(path: Path, outcomes: Sequence[EvalOutcome]) -> Description:
    name = path.stem if path.stem.strip() and path.stem.isprintable() else SUBJECT
    return Description(name=visible(path.name), plan=plan_of(outcomes, name))


def _records(outcomes: Sequence[EvalOutcome]) -> Iterator[Record]:
    for (subject, case), outcome in zip(_places(outcomes), outcomes, strict=True):
        for round_, record in enumerate(outcome.records):
            yield record.model_copy(update={"case": case, "subject": subject, "round": round_})


def plan_of(outcomes: Sequence[EvalOutcome], name: str = SUBJECT) -> Plan:
    """Make a plan from outcomes, with a subject for each set of parameters.

    The plan has the most rounds of any suite; each case has the pass rule of its suite.
    """
    places = _places(outcomes)
    cases: dict[str, EvalOutcome] = {}
    for (_, case), outcome in zip(places, outcomes, strict=True):
        cases.setdefault(case, outcome)
    names = dict.fromkeys(score.name for outcome in outcomes for record in outcome.records for score in record.scores)
    scorers = tuple(ScorerSpec(kind="recorded", name=visible(each)) for each in names if each.strip())
    subjects = dict.fromkeys(subject for subject, _ in places) or (SUBJECT,)
    thresholds = {outcome.threshold for outcome in outcomes if outcome.threshold is not None}
    return Plan(
        name=name,
        cases=tuple(
            Case(
                id=case,
                prompt=outcome.input,
                expected=outcome.expected,
                tags={"suite": visible(outcome.suite), "file": visible(file_part(outcome.nodeid))},
                pass_rule=outcome.rule,
                scorers=_scorers(outcome),
            )
            for case, outcome in cases.items()
        ),
        subjects=tuple(SubjectSpec(kind="recorded", name=name) for name in subjects),
        scorers=scorers or (ScorerSpec(kind="recorded"),),
        rounds=max([1, *(len(outcome.records) for outcome in outcomes)]),
        threshold=max(thresholds, default=None),
        sparse=True,
    )


def _scorers(outcome: EvalOutcome) -> tuple[ScorerSpec, ...] | None:
    known = ((visible(name), digest) for name, digest in outcome.scorers.items())
    return tuple(ScorerSpec(kind="recorded", name=name, revision=digest) for name, digest in known) or None


def _places(outcomes: Sequence[EvalOutcome]) -> list[tuple[str, str]]:
    """Return the names of subject and case for each outcome; no two pairs are the same."""
    by_subject: dict[str, list[int]] = {}
    for place, outcome in enumerate(outcomes):
        name = visible(subject_name(outcome.parameters), _MAX_NAME_LENGTH).strip() or SUBJECT
        by_subject.setdefault(name, []).append(place)
    found = [("", "")] * len(outcomes)
    for name, places in by_subject.items():
        for place, case in zip(places, case_ids([outcomes[place] for place in places], common=True), strict=True):
            found[place] = (name, case)
    return found


def case_ids(outcomes: Sequence[EvalOutcome], *, common: bool = False) -> list[str]:
    """Name each case by its node id. Further evals of the same test get a number.

    With `common`, leave out the parameters that tell subjects apart, so that all subjects have the same cases.
    """
    ids: dict[str, None] = {}
    met: Counter[str] = Counter()
    for outcome in outcomes:
        nodeid = outcome.case_id if common else outcome.nodeid
        name = unique = visible(nodeid, _MAX_NAME_LENGTH).strip() or "?"
        while unique in ids:
            met[name] += 1
            unique = f"{name} #{met[name] + 1}"
        ids[unique] = None
    return list(ids)
