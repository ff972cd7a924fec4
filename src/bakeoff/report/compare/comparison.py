"""Compare two subjects case by case: the difference, its certainty, and other differences between the runs.

read_arm          reads one side: a subject's scores by case, its losses, and the conditions of its run
compare_sources   chooses the subjects, compares each pair, and judges all pairs together (Holm)
CompareReport     all findings as data; `description` describes them as blocks
"""

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated, NamedTuple, Self, TypeVar

from pydantic import JsonValue, PlainSerializer, ValidationError

from bakeoff._kernel.choices import ComparisonGate, UndecidableRule
from bakeoff._kernel.json import clean_text
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import CLUSTER_TAG, Case, PassRule, Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.compare.cases import CaseChange, CaseDetail, case_change, case_detail
from bakeoff.report.gates import (
    NONE_ALLOWED,
    Allowance,
    GateDecision,
    GateEvidence,
    GateRule,
    GateState,
    Uncompared,
    decide_gate,
    describe_new_failures,
)
from bakeoff.report.judges.calibration import (
    NO_LABELS,
    CalibratedPair,
    Judgements,
    by_labels,
    calibrated_pairs,
    refusal,
)
from bakeoff.report.readers import Circumstances, Source
from bakeoff.report.run_records import RunRecords
from bakeoff.report.summary import SubjectSummary, is_control
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, Mismatch, Stamp, compare, mismatches
from bakeoff.stats.gates import (
    TOGETHER,
    GateJudgement,
    GateVerdict,
    JudgedPair,
    Losses,
    PairedArms,
    judge_pairs,
    new_failures,
)
from bakeoff.stats.intervals import ALPHA
from bakeoff.stats.power import detectable_between, difference_split
from bakeoff.stats.sequential import PairDecisions
from bakeoff.storage.journal import JournalMark
from bakeoff.storage.labels import read_labels
from bakeoff.storage.ledger import Ledger
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

_CONTENT = {"id", "prompt", "files", "collect", "answer_file", "hidden", "reference", "expected"}
_STAMPED = {"model", "system", "timeout"}  # options of a subject that its stamp holds
STATES = {state.exit_code: state for state in GateState}
_MAX_VALUES = 3  # of one condition that are listed
_MAX_VALUE_LENGTH = 120
_GONE, _CHANGED, _NO_THRESHOLD = "it is gone", "its content has changed", "not both runs have a threshold for it"

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
    def ledger(self) -> Ledger:
        """Return what was planned and what became of it: of the whole file, where the file says it.

        The plan of a pytest session that was killed does not tell what it would have run.
        """
        if self.circumstances.ledger is not None:
            return self.circumstances.ledger
        killed = self.plan.sparse and self.source.path.is_dir() and not self._ended
        return self.summary.ledger.model_copy(update={"ended": not killed})

    @property
    def _ended(self) -> bool:
        last = next(RunFolder(self.source.path).newest_first(), None)
        return not self.circumstances.damaged and isinstance(last, JournalMark) and last.kind == "end"

    @property
    def case_keys(self) -> list[CaseKey]:
        """Return the key of each planned case."""
        return [_case_key(case, content_known=self.content_known) for case in self.plan.cases]

    @property
    def passes(self) -> Cells:
        """Return the rounds with 1 for a pass and 0 for a failure. A case that is judged over its rounds has one."""
        cells = {}
        for case in self.plan.cases:
            found: Iterable[Verdict | None] = self.records.verdicts(self.spec.name, case.id)
            if case.rule_over_rounds is not None:
                found = (self.records.case_verdict(self.spec.name, case.id).verdict,)
            counted = [each for each in found if each is not None and each.counts and each is not Verdict.RECORDED]
            if counted:
                key = _case_key(case, content_known=self.content_known)
                cells[key] = Cell.of((each is Verdict.PASS for each in counted), case.tags.get(CLUSTER_TAG))
        return cells

    @property
    def without_threshold(self) -> set[str]:
        """Return the cases that neither pass nor fail."""
        plain = self.plan.threshold
        return {
            case.id
            for case in self.plan.cases
            if (plain if case.pass_rule is None else case.pass_rule.threshold) is None
        }

    @property
    def lost_rounds(self) -> dict[CaseKey, int]:
        """Return how many needed rounds of each case have no score. A case judged over its rounds counts as one."""
        found = {}
        for case in self.plan.cases:
            key = _case_key(case, content_known=self.content_known)
            verdicts = self.records.verdicts(self.spec.name, case.id)
            planned = len(verdicts) if self.plan.sparse or self.summary.not_needed else self.plan.rounds
            lost = planned - sum(verdict.counts for verdict in verdicts)
            found[key] = int(key not in self.cells) if case.rule_over_rounds is not None else lost
        return {key: count for key, count in found.items() if count}

    @property
    def losses(self) -> Losses:
        """Return the trials lost to infrastructure and graders. Trials that a budget prevented were not run."""
        whose = {Verdict.INFRA: "infrastructure", Verdict.GRADER: "graders"}
        counts = {words: lost for verdict, words in whose.items() if (lost := self.summary.verdicts.get(verdict))}
        lost = sum(counts.values())
        return Losses(trials=self.summary.scored + lost, lost=lost, to=" and ".join(counts) or "infrastructure")


def read_arm(source: Source, subject: str) -> Arm:
    """Read a subject's records in one pass, into a temporary file that the arm closes.

    Memory depends on the number of cases only. Raises `UsageError` if the source has no such subject.
    """
    plan = source.plan
    found = [spec for spec in plan.subjects if spec.name == subject]
    if not found:
        raise UsageError(f"{source.name} has no subject {subject!r}: it has {_names(source)}")
    cases = plan.cases
    if plan.sparse:  # this subject did not miss the cases of other subjects
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
    return Arm(source, plan, cells, summary, stamp, circumstances, records, judgements, names)


def labelled_judgements(
    source: Source, plan: Plan, keys: Mapping[str, CaseKey], *, only_labelled: bool = False
) -> Judgements:
    """Return where the judged trials of a source are to be collected, with the labels that its run has."""
    labels = read_labels(RunFolder(source.path).labels_file) if source.path.is_dir() else NO_LABELS
    return Judgements(plan, labels, keys=keys, only_labelled=only_labelled)


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
    """Return the key of each case by its id. Cases with the same content have the same key; limits are conditions."""
    known = source.description.content_known
    return {case.id: _case_key(case, content_known=known) for case in plan.cases}


def _case_key(case: Case, *, content_known: bool) -> CaseKey:
    if not content_known:
        return CaseKey(case.id)
    return CaseKey(case.id, fingerprint(case.model_dump(include=_CONTENT, exclude_defaults=True)))


class _Conditions:
    """Collect the conditions that transcripts name, as short texts."""

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
        network_policy=conditions.get("network_policy"),
        mcp_tools_hash=conditions.get("mcp_tools_hash"),
        prompt_hash=fingerprint(system)[:12] if system is not None else None,
        price_date=conditions.get("price_date"),
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
    """Return how these cases of a plan are scored and judged. Scores mean the same only where all of this is the same.

    The judge is an option of its scorer. The number of rounds matters where a rule judges all of them together. `names`
    are those of the scorers, where the plan does not tell which of them score these cases.
    """
    chosen = [case for case in plan.cases if keys[case.id] in cases]
    own = {case.id: [one.digest for one in case.scorers] for case in chosen if case.scorers is not None}
    rules = {case.id: case.pass_rule for case in chosen if case.pass_rule is not None}
    over_rounds = any(case.rule_over_rounds is not None for case in chosen)
    if names is None:
        names = (f"{scorer.name or scorer.kind} ({scorer.digest[:8]})" for scorer in plan.scorers)
    return {
        "scorers": ", ".join([*sorted(names), *([f"by case ({fingerprint(own)[:8]})"] if own else [])]),
        "threshold": str(plan.threshold) if len(rules) < len(chosen) else "",
        "rule of cases": _rules_in_words(rules) + (f", {count_of(plan.rounds, 'round')}" if over_rounds else ""),
    }


def _rules_in_words(rules: Mapping[str, PassRule]) -> str:
    """Return the one rule that cases have, or a digest of several."""
    if not (found := set(rules.values())):
        return ""
    if len(found) > 1:
        return f"by case ({fingerprint({case: rule.model_dump() for case, rule in rules.items()})[:8]})"
    [rule] = found
    return f"{rule.gate} at {rule.threshold}, share {rule.share:g}" + (
        ", null counts as 0" if rule.null_as_zero else ""
    )


class ArmFacts(FrozenModel):
    """One side of a comparison."""

    source: FileName
    path: FileName
    subject: str
    bound: bool
    summary: SubjectSummary
    ledger: Ledger
    threshold: float | None  # None: nothing passes or fails
    stamp: Stamp
    damaged: int  # unreadable lines of its journal, which are not counted


class PairReport(FrozenModel):
    """One candidate against one baseline."""

    baseline: ArmFacts
    candidate: ArmFacts
    comparison: Comparison
    ruling: GateJudgement
    exit_code: int
    gate: str  # the explanation of the exit code
    control: bool = False  # tests the cases: shown, but ignored by the gate
    mismatches: tuple[Mismatch, ...]
    by_id_alone: bool  # cases were paired by id only, because the content of a side's cases is unknown
    advice: str | None = None  # on the source of the noise
    calibrated: tuple[CalibratedPair, ...] = ()  # by judge, corrected by labels
    detectable: float | None = None  # the smallest true difference that this comparison can find
    cases: tuple[CaseChange, ...] = ()
    details: tuple[CaseDetail, ...] = ()


class CompareReport(FrozenModel):
    """All pairs that were compared; the exit code is the worst of those that are no controls."""

    gate: ComparisonGate
    margin: float | None
    undecidable: UndecidableRule = "pass"
    pairs: tuple[PairReport, ...]
    together: GateJudgement | None = None  # all subjects that are judged, if there are several
    exit_code: int


class CompareRequest(NamedTuple):
    """How to compare two sources; see `compare_sources`."""

    rule: GateRule
    allowed: Allowance
    anyway: bool
    most_details: int
    require_calibrated: bool
    gone: Mapping[str, int]  # subjects that only the baseline has, with the number of their cases

    def refuses(self, pair: "_RunPair") -> bool:
        """Tell whether the scores of a pair mean different things, and are not to be compared anyway."""
        return not self.anyway and any(pair.judged_differently)


def compare_sources(
    baseline: Source,
    candidate: Source,
    *,
    subjects: tuple[str | None, str | None] = (None, None),
    gate: ComparisonGate = "verdict",
    margin: float | None = None,
    undecidable: UndecidableRule = "pass",
    allowed: Allowance = NONE_ALLOWED,
    anyway: bool = False,
    most_details: int = 5,
    require_calibrated: bool = False,
) -> CompareReport:
    """Compare one subject with another, or every subject that both sources have with itself.

    Controls do not influence the exit code unless they were named or are the only subjects.

    Args:
        baseline: the run or file that counts as before.
        candidate: that which counts as after; the same source compares two subjects of one run.
        subjects: the names of both; None chooses: the only one, or all that both sources have.
        gate: the rule that turns verdicts into an exit code.
        margin: differences within ±margin count as equivalent; None never says so.
        undecidable: whether the gate passes where neither a regression nor its absence is shown.
        allowed: how many trials may be missing before the gate is undecided.
        anyway: compare although scorers or thresholds differ.
        most_details: the number of cases whose outputs are compared line by line, the largest losses first.
        require_calibrated: let scores that labels correct decide, and refuse judges with too few labels.

    Raises:
        UsageError: no pair of subjects can be chosen.
        RunFolderError: a source cannot be read or counted.
    """
    names = _pairs_of(baseline, candidate, subjects)
    rule = GateRule(gate, margin, undecidable)
    with countable(baseline, candidate), ExitStack() as open_arms:
        alone = [] if any(subjects) or baseline.path.resolve() == candidate.path.resolve() else baseline.plan.subjects
        left = [spec.name for spec in alone if spec.name not in dict(names)]
        arms = [open_arms.enter_context(read_arm(baseline, name)) for name in left]
        gone = {arm.spec.name: len(arm.plan.cases) for arm in arms if not arm.summary.control}
        request = CompareRequest(rule, allowed, anyway, most_details, require_calibrated, gone)
        pairs = [
            _RunPair(
                open_arms.enter_context(read_arm(baseline, old)), open_arms.enter_context(read_arm(candidate, new))
            )
            for old, new in names
        ]
        return _report(pairs, request)


def _pairs_of(baseline: Source, candidate: Source, subjects: tuple[str | None, str | None]) -> list[tuple[str, str]]:
    old, new = subjects
    if old is not None and new is not None:
        return [(old, new)]
    ours, theirs = ([spec.name for spec in source.plan.subjects] for source in (baseline, candidate))
    one_run = baseline.path.resolve() == candidate.path.resolve()
    named = new if old is None else old
    if named is not None and one_run:
        others = visible(", ".join(name for name in ours if name != named), 200) or "it has no other"
        name = visible(repr(named), 80)
        raise UsageError(
            f"{baseline.name} is one run, so {name} would be compared with itself: add a second run, or choose "
            f"two subjects with --subject-a and --subject-b (besides {name}: {others})"
        )
    if named is not None:
        return [(named, named)]
    if one_run:
        judged = [spec.name for spec in baseline.plan.subjects if not is_control(spec, bound=False)]
        two = judged if len(judged) == 2 else ours
        if len(two) != 2:
            way_out = "choose two with --subject-a and --subject-b" if len(ours) > 1 else "add a second run"
            told = f"{baseline.name} is one run with {count_of(len(ours), 'subject')} ({_names(baseline)})"
            raise UsageError(f"{told}: {way_out}")
        return [(two[0], two[1])]
    if common := [name for name in ours if name in theirs]:
        return [(name, name) for name in common]
    if len(theirs) == len(ours) == 1:
        return [(ours[0], theirs[0])]
    raise UsageError(
        f"no subject is in both: {baseline.name} has {_names(baseline)}; {candidate.name} has {_names(candidate)}. "
        "Choose two with --subject-a and --subject-b"
    )


def _names(source: Source) -> str:
    return ", ".join(spec.name for spec in source.plan.subjects)


@dataclass(frozen=True, slots=True)
class _RunPair:
    old: Arm
    new: Arm

    @property
    def content_known(self) -> bool:
        return self.old.content_known and self.new.content_known

    @property
    def cells(self) -> tuple[Cells, Cells]:
        """Return the cells of both sides, paired by id alone where the content of a side is unknown."""
        return self._keyed(self.old.cells), self._keyed(self.new.cells)

    @property
    def arms(self) -> PairedArms:
        """Return both sides with their losses."""
        lost = [self._keyed(arm.lost_rounds) for arm in (self.old, self.new)]
        return PairedArms(*self.cells, (lost[0], lost[1]), (self.old.losses, self.new.losses))

    @property
    def judged_differently(self) -> tuple[Mismatch, ...]:
        """Return the differences with which scores of the cases that both have mean different things."""
        if not self.content_known:
            thresholds = [str(arm.plan.threshold) for arm in (self.old, self.new)]
            return (Mismatch("threshold", *thresholds),) if thresholds[0] != thresholds[1] else ()
        keys = [case_keys(arm.source, arm.plan) for arm in (self.old, self.new)]
        both = {*keys[0].values()} & {*keys[1].values()}
        names: list[set[str] | None] = [None, None]
        if self.old.plan.sparse and self.new.plan.sparse:
            scored = [key for key in both if key in self.old.cells and key in self.new.cells]
            names = [{name for key in scored for name in arm.score_names[key]} for arm in (self.old, self.new)]
        was = judged_by(self.old.plan, both, keys[0], names[0])
        now = judged_by(self.new.plan, both, keys[1], names[1])
        return tuple(Mismatch(name, was[name] or None, now[name] or None) for name in was if was[name] != now[name])

    @property
    def passes(self) -> tuple[Cells, Cells]:
        """Return the passes and failures of both sides."""
        return self._keyed(self.old.passes), self._keyed(self.new.passes)

    def _keyed(self, found: Mapping[CaseKey, Value]) -> Mapping[CaseKey, Value]:
        return found if self.content_known else {CaseKey(key.id): value for key, value in found.items()}

    def compared_by_label(self, level: float) -> Comparison:
        """Return the comparison of the scores that labels correct, if a judge gave them, with its interval."""
        return by_labels(compare(*self.cells, level=level), self.calibrated(level=level))

    def calibrated(self, *, unlabelled: bool = False, level: float = ALPHA) -> tuple[CalibratedPair, ...]:
        """Return the difference by each judge, corrected by labels."""
        subjects = (self.old.spec.name, self.new.spec.name)
        judges = (self.old.judgements, self.new.judgements)
        return calibrated_pairs(*judges, subjects, unlabelled=unlabelled, level=level)

    @property
    def control(self) -> bool:
        """Tell whether either side tests the cases instead of being judged."""
        return self.old.summary.control or self.new.summary.control


def _report(pairs: Sequence[_RunPair], request: CompareRequest) -> CompareReport:
    controls = [pair for pair in pairs if pair.control]
    if len(controls) == len(pairs):  # then they are what is compared
        controls = []
    # Controls must not make the correction for the other subjects stricter.
    judged = {str(place): pair for place, pair in enumerate(pairs) if pair not in controls}
    rulings, margin = dict[str, JudgedPair](), request.rule.margin
    for group in (judged, *({str(len(pairs) + place): pair} for place, pair in enumerate(controls))):
        by_label = partial(_by_label, group) if request.require_calibrated else None
        rulings |= judge_pairs({key: pair.arms for key, pair in group.items()}, margin=margin, compared=by_label)
    together = rulings.get(TOGETHER)
    reports = [_pair_report(pair, rulings[key], request) for key, pair in judged.items()]
    if request.require_calibrated:
        reports = [_refused(report, pair) for report, pair in zip(reports, judged.values(), strict=True)]
    decided_nothing = {"control": True, "exit_code": 0, "gate": "a control, which does not influence the exit code"}
    beside = [
        _pair_report(pair, rulings[str(len(pairs) + place)], request).model_copy(update=decided_nothing)
        for place, pair in enumerate(controls)
    ]
    codes = [pair.exit_code for pair in reports]
    if (
        together is not None
        and request.rule.gate != "no-new-failures"
        and not any(map(request.refuses, judged.values()))
    ):
        codes.append(decide_gate(GateEvidence(comparisons=(together,), rule=request.rule)).exit_code)
    code = GateState.worst(STATES[code] for code in codes).exit_code
    gate = request.rule._asdict()
    return CompareReport(**gate, pairs=(*reports, *beside), together=together and together.ruling, exit_code=code)


def _by_label(pairs: Mapping[str, _RunPair], key: str, level: float) -> Comparison:
    return pairs[key].compared_by_label(level)


def _refused(report: PairReport, pair: _RunPair) -> PairReport:
    """Replace the verdict where a judge has too few labels to be trusted."""
    reason = refusal(pair.calibrated(unlabelled=True), (pair.old.source.name, pair.new.source.name))
    if reason is None:
        return report
    ruling = GateJudgement(verdict=GateVerdict.UNDECIDABLE, sentence=reason, refused=True)
    said = "no decision: --require-calibrated-judge needs more labels"
    decision = decide_gate(GateEvidence(refused=True, sentence=said))
    return report.model_copy(update={"ruling": ruling, "exit_code": decision.exit_code, "gate": decision.sentence})


def _pair_report(pair: _RunPair, judged: JudgedPair, request: CompareRequest) -> PairReport:
    old, new = pair.old, pair.new
    compared, ruling = judged
    differing = (*mismatches(old.stamp, new.stamp), *_other_mismatches(pair))
    decision = _decision(pair, judged, request)
    split = difference_split(*pair.cells)
    cases = tuple(_changes(pair))
    changed = [case for case in cases if case.outcome in ("win", "loss")]
    telling = sorted(changed, key=lambda case: case.difference or 0.0)[: request.most_details]  # losses first
    return PairReport(
        baseline=_facts(old),
        candidate=_facts(new),
        comparison=compared,
        ruling=ruling,
        exit_code=decision.exit_code,
        gate=decision.sentence,
        mismatches=differing,
        by_id_alone=not pair.content_known,
        advice=split.sentence if split and split.of_mean else None,
        calibrated=pair.calibrated(),
        detectable=detectable_between(*pair.cells),
        cases=cases,
        details=tuple(
            detail
            for case in telling
            if (detail := case_detail(case.case, old.records, old.spec.name, new.records, new.spec.name))
        ),
    )


def _decision(pair: _RunPair, judged: JudgedPair, request: CompareRequest) -> GateDecision:
    """Decide the gate of one pair. Scores that were made in different ways are not compared unless asked for."""
    rule, old, new = request.rule, pair.old, pair.new
    names = ("the baseline", "the candidate") if old.source.path != new.source.path else (old.spec.name, new.spec.name)
    strict, refused, differing = rule.gate == "no-new-failures", request.refuses(pair), pair.judged_differently
    broken = new_failures(*pair.passes) if strict and not refused else ()
    keys = [[_case_key(case, content_known=pair.content_known) for case in arm.plan.cases] for arm in (old, new)]
    unjudged = old.without_threshold | new.without_threshold if strict else set[str]()
    said = ""
    if refused:
        said = f"not comparable: {'; '.join(map(str, differing))}; --anyway compares them all the same"
    elif strict and not {key.id for key in keys[0]} - unjudged:
        refused, said = True, "no case has a threshold, so that none passed or failed"
    elif strict:
        said = describe_new_failures(broken)
    decision = decide_gate(
        GateEvidence(
            ledgers={names[0]: old.ledger, names[1]: new.ledger},
            allowed=request.allowed,
            uncompared=uncompared(keys[0], keys[1], unjudged, request.gone),
            comparisons=() if strict or refused else (judged,),
            broken=broken,
            rule=rule,
            refused=refused,
            sentence=said,
        )
    )
    if differing and not refused:
        fields = " and ".join(one.field for one in differing)
        return decision._replace(sentence=f"although the {fields} differ: {decision.sentence}")
    return decision


def uncompared(
    old: Collection[CaseKey],
    new: Iterable[CaseKey],
    unjudged: Container[str] = (),
    gone: Mapping[str, int] = MappingProxyType({}),
) -> Uncompared:
    """Return the cases of the baseline that the candidate does not have, has with another content, or does not judge.

    `gone` are subjects that the candidate does not have, with the number of their cases.
    """
    here = {key.id: key for key in new}
    named = [
        f"{key.id}: {_NO_THRESHOLD if here.get(key.id) == key else _CHANGED if key.id in here else _GONE}"
        for key in old
        if here.get(key.id) != key or key.id in unjudged
    ]
    lost = sum(gone.values())
    return Uncompared(len(named) + lost, [*(f"subject {name}: {_GONE}" for name in gone), *named], len(old) + lost)


def _facts(arm: Arm) -> ArmFacts:
    return ArmFacts(
        source=arm.source.name,
        path=str(arm.source.path),
        subject=arm.spec.name,
        bound=arm.summary.bound,
        summary=arm.summary.model_copy(update={"costs": {}}),  # files do not have them
        ledger=arm.summary.ledger,
        threshold=max(arm.plan.thresholds, default=None),
        stamp=arm.stamp,
        damaged=arm.circumstances.damaged,
    )


def _other_mismatches(pair: _RunPair) -> Iterator[Mismatch]:
    """Yield differences that change the meaning of scores and are not in the stamp."""
    old, new = pair.old, pair.new
    yield from pair.judged_differently
    both = {
        "rounds": (str(old.plan.rounds), str(new.plan.rounds)),
        "bakeoff version": (", ".join(old.circumstances.versions), ", ".join(new.circumstances.versions)),
    }
    for name, (was, now) in both.items():
        if was != now:
            yield Mismatch(name, was or None, now or None)
    options = (old.spec.options, new.spec.options)
    for name in sorted((options[0].keys() | options[1].keys()) - _STAMPED):
        if options[0].get(name) != options[1].get(name):
            yield Mismatch(name, *(_short(given[name]) if name in given else None for given in options))
    if pair.content_known and old.spec.name == new.spec.name and old.spec.digest != new.spec.digest:
        yield Mismatch("subject's settings", old.spec.digest[:12], new.spec.digest[:12])


def judged_differently(old: Arm, new: Arm) -> tuple[Mismatch, ...]:
    """Return what makes the scores of two runs mean different things: their scorers or thresholds."""
    return _RunPair(old, new).judged_differently


def _short(value: JsonValue) -> str:
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _MAX_VALUE_LENGTH)


def _changes(pair: _RunPair) -> Iterator[CaseChange]:
    """Yield every case that both sides have with the same content, in the baseline's order."""
    old, new = pair.old, pair.new
    theirs = {_case_key(case, content_known=pair.content_known) for case in new.plan.cases}
    for case in old.plan.cases:
        if _case_key(case, content_known=pair.content_known) in theirs:
            yield case_change(case.id, old.records, old.spec.name, new.records, new.spec.name)
