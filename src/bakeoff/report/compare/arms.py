"""Read both sides of a comparison: the scores of a subject by case, its losses, and the conditions of its run.

read_arm   reads one arm: a subject in one source
RunPair    both sides, with the cases and scores that can be compared
"""

import filecmp
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Self, TypeVar

from pydantic import JsonValue, PlainSerializer, ValidationError

from bakeoff._kernel.json import clean_text
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import CLUSTER_TAG, PassRule, Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.gates import Uncompared
from bakeoff.report.judges.calibration import NO_LABELS, CalibratedPair, Judgements, by_labels, calibrated_pairs
from bakeoff.report.readers import Circumstances, Source
from bakeoff.report.run_records import RunRecords
from bakeoff.report.summary import SubjectSummary
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, Mismatch, Stamp, compare
from bakeoff.stats.gates import Losses, PairedArms, new_failures
from bakeoff.stats.intervals import ALPHA
from bakeoff.stats.sequential import PairDecisions
from bakeoff.storage.journal_lines import JOURNAL
from bakeoff.storage.labels import read_labels
from bakeoff.storage.ledger import Ledger
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

_CONTENT = {"id", "prompt", "files", "collect", "answer_file", "hidden", "reference", "expected"}
_MAX_VALUES = 3  # of one condition that are listed
_MAX_VALUE_LENGTH = 120
_GONE, _CHANGED, _NO_THRESHOLD = "it is gone", "its content has changed", "not both runs have a threshold for it"
_NONE_GONE: Mapping[str, int] = MappingProxyType({})

Value = TypeVar("Value")
FileName = Annotated[str, PlainSerializer(clean_text, return_type=str, when_used="json")]
"""The name of a file or folder. Names that are not valid text are escaped in JSON."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A subject in one source. Use it as a context manager, because its records are in a temporary file."""

    source: Source
    plan: Plan  # of this subject alone
    cells: Cells
    summary: SubjectSummary
    stamp: Stamp
    circumstances: Circumstances
    records: RunRecords
    judgements: Judgements
    keys: Mapping[str, CaseKey]  # of each planned case, by its id
    score_names: Mapping[CaseKey, set[str]]  # which scorers scored each case

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.records.__exit__(*error)

    @property
    def spec(self) -> SubjectSpec:
        """Return the subject of this arm."""
        return self.plan.subjects[0]

    @property
    def content_known(self) -> bool:
        """Tell whether the prompts and files of the cases are known, and not only their ids."""
        return self.source.description.content_known

    @property
    def digests(self) -> dict[CaseKey, set[str]]:
        """Return the names and digests of scorers, for each case that has scorers of its own."""
        found = {}
        for case in self.plan.cases:
            suite = case.tags.get("suite", case.id)
            if case.scorers is not None:
                found[self.keys[case.id]] = {f"{one.name} of {suite} ({one.digest[:8]})" for one in case.scorers}
        return found

    @property
    def ledger(self) -> Ledger:
        """Return the ledger that the run recorded, or else the one counted from the records."""
        return self.circumstances.ledger_of(self.plan, self.summary.ledger)

    @property
    def passes(self) -> Cells:
        """Return the rounds of each case as 1 if the round passed and 0 if it failed.

        A case with a single score for all rounds counts as one round.
        """
        cells = {}
        for case in self.plan.cases:
            found: Iterable[Verdict | None] = self.records.verdicts(self.spec.name, case.id)
            if (rule := case.rule_over_rounds) is not None and rule.gate != "mean":
                found = (self.records.case_verdict(self.spec.name, case.id).verdict,)
            counted = (each for each in found if each is not None and each.counts and each is not Verdict.RECORDED)
            if passed := [each is Verdict.PASS for each in counted]:
                cells[self.keys[case.id]] = Cell.of(passed, case.tags.get(CLUSTER_TAG))
        return cells

    @property
    def without_threshold(self) -> set[str]:
        """Return the cases that neither pass nor fail."""
        own = {case.id: case.pass_rule.threshold for case in self.plan.cases if case.pass_rule is not None}
        return {case.id for case in self.plan.cases if own.get(case.id, self.plan.threshold) is None}

    @property
    def lost_rounds(self) -> dict[CaseKey, int]:
        """Return the number of needed rounds without a score, by case. A single score for all rounds counts once."""
        found = {}
        for case in self.plan.cases:
            key, rule = self.keys[case.id], case.rule_over_rounds
            verdicts = self.records.verdicts(self.spec.name, case.id)
            planned = len(verdicts) if self.plan.sparse or self.summary.not_needed else self.plan.rounds
            found[key] = planned - sum(verdict.counts for verdict in verdicts)
            if rule is not None and (rule.gate != "mean" or planned < 2):
                found[key] = int(key not in self.cells)
        return {key: count for key, count in found.items() if count}

    @property
    def losses(self) -> Losses:
        """Count the trials lost to infrastructure and graders, but not to a budget."""
        whose = {Verdict.INFRA: "infrastructure", Verdict.GRADER: "graders"}
        counts = {words: lost for verdict, words in whose.items() if (lost := self.summary.verdicts.get(verdict))}
        lost = sum(counts.values())
        to = " and ".join(counts) or "infrastructure"
        return Losses(trials=self.summary.scored + lost, lost=lost, to=to, final=self.plan.is_imported)


def read_arm(source: Source, subject: str) -> Arm:
    """Read a subject's records in one pass, into a temporary file that the arm closes.

    Memory depends on the number of cases only. Raises `UsageError` if the source has no such subject.
    """
    plan = source.plan
    found = [spec for spec in plan.subjects if spec.name == subject]
    if not found:
        raise UsageError(f"{source.name} has no subject {subject!r}: it has {subject_names(source)}")
    cases = plan.cases
    if plan.sparse and len(plan.subjects) > 1:  # cases of other subjects are not missing
        had = {record.case for record in source.records() if record.subject == subject}
        cases = tuple(case for case in cases if case.id in had)
    until_decided = plan.until_decided  # alone, a subject would seem decided
    if until_decided is not None and PairDecisions.of(plan, source.records()).needs(subject):
        until_decided = None
    plan = plan.with_changes(subjects=tuple(found[:1]), cases=cases, until_decided=until_decided)
    conditions = _Conditions()
    keys = case_keys(source, plan)
    judgements = labelled_judgements(source, plan, keys)
    names: dict[CaseKey, set[str]] = {}

    def own_records() -> Iterator[Record]:
        for record in source.records():
            if record.subject == subject:
                conditions.add(record.transcript.metadata if record.transcript else {})
                judgements.add(record)
                names.setdefault(keys[record.case], set()).update(score.name for score in record.scores)
                yield record

    records = RunRecords(plan, own_records())
    try:
        [summary] = records.summary.subjects
        circumstances = source.circumstances()
    except BaseException:
        records.__exit__()
        raise
    cells = {keys[case]: cell for case, cell in records.cells(subject).items()}
    stamp = _stamp(plan, circumstances, conditions)
    return Arm(source, plan, cells, summary, stamp, circumstances, records, judgements, keys, names)


def subject_names(source: Source) -> str:
    """Return the names of all subjects of a source."""
    return ", ".join(spec.name for spec in source.plan.subjects)


def labelled_judgements(
    source: Source, plan: Plan, keys: Mapping[str, CaseKey], *, only_labelled: bool = False
) -> Judgements:
    """Return a collector for the judged trials of a source, with the labels of its run."""
    labels = read_labels(RunFolder(source.path).labels_file) if source.path.is_dir() else NO_LABELS
    return Judgements(plan, labels, keys=keys, only_labelled=only_labelled)


def refuse_copy(baseline: Path, candidate: Path) -> None:
    """Raise `UsageError` if both have the same content: their gate would pass although nothing was run again."""
    old, new = (path / JOURNAL if path.is_dir() else path for path in (baseline, candidate))
    if old.is_file() and new.is_file() and filecmp.cmp(old, new, shallow=False):
        name = visible(str(candidate), 200)
        raise UsageError(f"{name} is the same run as the baseline, so that nothing was run again: name another run")


@contextmanager
def countable(*sources: Source) -> Iterator[None]:
    """Turn overflows, which only damaged or hostile files cause, into an error message."""
    try:
        yield
    except (ValidationError, ArithmeticError) as error:
        paths = " or ".join(dict.fromkeys(visible(str(source.path)) for source in sources))
        raise RunFolderError(
            f"{paths} cannot be counted: the sum of its costs, times or scores is not a finite number; "
            "`bakeoff runs check` checks every line"
        ) from error


def case_keys(source: Source, plan: Plan) -> dict[str, CaseKey]:
    """Return the key of each case by its id. Cases that differ only in limits share a key."""
    if not source.description.content_known:
        return {case.id: CaseKey(case.id) for case in plan.cases}
    contents = {case.id: case.model_dump(include=_CONTENT, exclude_defaults=True) for case in plan.cases}
    return {case: CaseKey(case, fingerprint(content)) for case, content in contents.items()}


class _Conditions:
    """The conditions that transcripts name, as short texts."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, None]] = {}

    def add(self, metadata: Mapping[str, JsonValue]) -> None:
        for key in ("agent_version", "network_policy", "mcp_tools_hash", "model"):
            if isinstance(value := metadata.get(key), str | int | float):
                self._note(key, str(value))
        if isinstance(price := metadata.get("price"), dict):
            self._note("price_date", f"{price.get('source', 'unknown')} {price.get('date') or 'undated'}")

    def _note(self, key: str, value: str) -> None:
        values = self._values.setdefault(key, {})
        if len(values) <= _MAX_VALUES:
            values[value[:_MAX_VALUE_LENGTH]] = None

    def get(self, key: str) -> str | None:
        """Return the values of one condition, joined."""
        values = list(self._values.get(key, ()))
        more = ", …" if len(values) > _MAX_VALUES else ""
        return ", ".join(sorted(values[:_MAX_VALUES])) + more if values else None


def _stamp(plan: Plan, circumstances: Circumstances, conditions: _Conditions) -> Stamp:
    spec = plan.subjects[0]
    model, system = spec.options.get("model"), spec.options.get("system")
    return Stamp(
        model=model if isinstance(model, str) else conditions.get("model"),
        agent_version=conditions.get("agent_version") or spec.revision or None,
        sandbox=", ".join(circumstances.sandboxes) or None,
        timeouts=_timeouts(plan),
        prompt_hash=fingerprint(system)[:12] if system is not None else None,
        **{name: conditions.get(name) for name in ("network_policy", "mcp_tools_hash", "price_date")},
    )


def _timeouts(plan: Plan) -> str:
    """Return the time limits of the attempt and score phases; limits that differ by case are shown as a hash."""
    limits = {(case.limits.attempt_seconds, case.limits.score_seconds) for case in plan.cases}
    own = plan.subjects[0].options.get("timeout")
    answer = f", answer {own:g} s" if isinstance(own, int | float) else ""
    if len(limits) == 1:
        [(attempt, score)] = limits
        return f"attempt {attempt:g} s, score {score:g} s{answer}"
    return f"by case ({fingerprint(sorted(limits))[:8]}){answer}"


def judged_by(
    plan: Plan, cases: Container[CaseKey], keys: Mapping[str, CaseKey], names: Iterable[str] | None = None
) -> dict[str, str]:
    """Describe how these cases are scored and judged. Comparable scores have the same description.

    It includes the number of rounds if a rule makes one score of all rounds. `names` are the scorers
    of these cases, for plans that do not name them.
    """
    chosen = [case for case in plan.cases if keys[case.id] in cases]
    own = {case.id: [one.digest for one in case.scorers] for case in chosen if case.scorers is not None}
    own = own if names is None else {}
    rules = {case.id: case.pass_rule for case in chosen if case.pass_rule is not None}
    over_rounds = any(rule.gate != "mean" for case in chosen if (rule := case.rule_over_rounds) is not None)
    if names is None:
        names = (f"{scorer.name or scorer.kind} ({scorer.digest[:8]})" for scorer in plan.scorers)
    return {
        "scorers": ", ".join([*sorted(names), *([f"by case ({fingerprint(own)[:8]})"] if own else [])]),
        "threshold": str(plan.threshold) if len(rules) < len(chosen) and not plan.is_imported else "",
        "rule of cases": _rules_in_words(rules) + (f", {count_of(plan.rounds, 'round')}" if over_rounds else ""),
    }


def _rules_in_words(rules: Mapping[str, PassRule]) -> str:
    """Return the rule that all cases share; if their rules differ, a digest of the rules."""
    if not (found := set(rules.values())):
        return ""
    if len(found) > 1:
        return f"by case ({fingerprint({case: rule.model_dump() for case, rule in rules.items()})[:8]})"
    [rule] = found
    share = f", share {rule.share:g}" if rule.gate == "share" else ""
    return f"{rule.gate} at {rule.threshold}{share}{', null counts as 0' * rule.null_as_zero}"


@dataclass(frozen=True, slots=True)
class RunPair:
    old: Arm
    new: Arm
    part: str = ""  # the scorer or log, if several are compared
    gone: dict[str, int] = field(default_factory=dict)  # cases of subjects and parts that the candidate lacks

    @property
    def content_known(self) -> bool:
        return self.old.content_known and self.new.content_known

    @property
    def cells(self) -> tuple[Cells, Cells]:
        """Return the scores of both sides by case, or by case id if some contents are unknown."""
        return self._keyed(self.old.cells), self._keyed(self.new.cells)

    @property
    def arms(self) -> PairedArms:
        """Return both sides with their losses."""
        lost = [self._keyed(arm.lost_rounds) for arm in (self.old, self.new)]
        return PairedArms(*self.cells, (lost[0], lost[1]), (self.old.losses, self.new.losses))

    @property
    def judged_differently(self) -> tuple[Mismatch, ...]:
        """Return the differences between the sides that make the scores of shared cases incomparable.

        The threshold of a log is guessed from its scores, and changes nothing about them.
        """
        imported = self.old.plan.is_imported or self.new.plan.is_imported
        if not self.content_known:
            thresholds = [str(arm.plan.threshold) for arm in (self.old, self.new)]
            return (Mismatch("threshold", *thresholds),) if thresholds[0] != thresholds[1] and not imported else ()
        sides = (self.old, self.new)
        both = {*self.old.keys.values()} & {*self.new.keys.values()}
        names: list[set[str] | None] = [None, None]
        if self.old.plan.sparse and self.new.plan.sparse:  # no scorer is known of a task that failed
            names = [*self._scorers(both)]
        was, now = (judged_by(arm.plan, both, arm.keys, each) for arm, each in zip(sides, names, strict=True))
        different = [name for name in was if was[name] != now[name] and not (imported and name == "threshold")]
        return tuple(Mismatch(name, was[name] or None, now[name] or None) for name in different)

    def _scorers(self, both: Iterable[CaseKey]) -> tuple[set[str], set[str]]:
        """Return the scorers of both sides for one case, if possible one where they differ.

        Names include digests if both sides know them.
        """
        sides = (self.old, self.new)
        scored = sorted(key for key in both if all(key in arm.cells and arm.score_names[key] for arm in sides))
        found = [(self.old.score_names[key], self.new.score_names[key]) for key in scored]
        was, now = (arm.digests for arm in sides)
        found += [(was[key], now[key]) for key in sorted(both) if key in was and key in now]
        return next((pair for pair in found if pair[0] != pair[1]), (found or [(set[str](), set[str]())])[-1])

    @property
    def new_failures(self) -> Sequence[str]:
        """Return the cases that passed every round of the baseline and fail every round of the candidate."""
        return new_failures(self._keyed(self.old.passes), self._keyed(self.new.passes))

    @property
    def keys(self) -> tuple[list[CaseKey], list[CaseKey]]:
        """Return the keys of the planned cases of both sides."""
        old, new = (list(self._keyed(dict.fromkeys(arm.keys.values()))) for arm in (self.old, self.new))
        return old, new

    @property
    def without_threshold(self) -> set[str]:
        """Return the cases that neither pass nor fail on at least one side."""
        return self.old.without_threshold | self.new.without_threshold

    def _keyed(self, found: Mapping[CaseKey, Value]) -> Mapping[CaseKey, Value]:
        return found if self.content_known else {CaseKey(key.id): value for key, value in found.items()}

    def compared_by_label(self, level: float) -> Comparison:
        """Compare both sides, by corrected scores if labels correct the only judge."""
        return by_labels(compare(*self.cells, level=level), self.calibrated(level=level))

    def calibrated(self, *, unlabelled: bool = False, level: float = ALPHA) -> tuple[CalibratedPair, ...]:
        """Return the difference between the sides by each judge, corrected by labels."""
        subjects = (self.old.spec.name, self.new.spec.name)
        judges = (self.old.judgements, self.new.judgements)
        return calibrated_pairs(*judges, subjects, unlabelled=unlabelled, level=level)

    @property
    def control(self) -> bool:
        """Tell whether either side is a control, which tests the cases and is not judged."""
        return self.old.summary.control or self.new.summary.control


def uncompared(
    old: Collection[CaseKey],
    new: Iterable[CaseKey],
    unjudged: Container[str] = (),
    gone: Mapping[str, int] = _NONE_GONE,
) -> Uncompared:
    """Return the baseline's cases that the candidate lacks, has changed, or does not judge.

    `gone` maps subjects that the candidate lacks to the number of their cases.
    """
    here = {key.id: key for key in new}
    named = [
        f"{key.id}: {_NO_THRESHOLD if here.get(key.id) == key else _CHANGED if key.id in here else _GONE}"
        for key in old
        if here.get(key.id) != key or key.id in unjudged
    ]
    lost = sum(gone.values())
    return Uncompared(len(named) + lost, [*(f"subject {name}: {_GONE}" for name in gone), *named], len(old) + lost)
