"""Compare two subjects case by case: the difference, its certainty, and other differences between the runs.

compare_sources   chooses the subjects, compares each pair, and judges all pairs together (Holm)
CompareReport     all findings as data; `description` describes them as blocks
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pydantic import JsonValue

from bakeoff._kernel.choices import ComparisonGate, UndecidableRule
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.report.compare.arms import (
    Arm,
    FileName,
    RunPair,
    countable,
    read_arm,
    refuse_copy,
    subject_names,
    uncompared,
)
from bakeoff.report.compare.cases import CaseChange, CaseDetail, case_change, case_detail
from bakeoff.report.gates import (
    NONE_ALLOWED,
    Allowance,
    GateDecision,
    GateEvidence,
    GateRule,
    GateState,
    decide_gate,
    describe_new_failures,
)
from bakeoff.report.judges.calibration import CalibratedPair, refusal
from bakeoff.report.readers import Source
from bakeoff.report.summary import SubjectSummary, is_control
from bakeoff.stats.comparison import Comparison, Mismatch, Stamp, mismatches
from bakeoff.stats.gates import TOGETHER, GateJudgement, GateVerdict, JudgedPair, judge_pairs
from bakeoff.stats.power import detectable_between, difference_split
from bakeoff.storage.ledger import Ledger

_STAMPED = {"model", "system", "timeout"}  # options of a subject that its stamp holds
_MAX_VALUE_LENGTH = 120
STATES = {state.exit_code: state for state in GateState}


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
    part: str = sparse_field("")  # the scorer or log, if several are compared
    comparison: Comparison
    ruling: GateJudgement
    exit_code: int
    gate: str  # the explanation of the exit code
    control: bool = False  # tests the cases: shown, but ignored by the gate
    mismatches: tuple[Mismatch, ...]
    by_id_alone: bool  # cases were paired by id only, because the content of a side's cases is unknown
    advice: str | None = None  # on the source of the noise
    calibrated: tuple[CalibratedPair, ...] = ()  # the differences by each judge, corrected by labels
    detectable: float | None = None  # the smallest true difference that this comparison can find
    cases: tuple[CaseChange, ...] = ()
    details: tuple[CaseDetail, ...] = ()

    @property
    def kind(self) -> str:
        """Return what is compared: several subjects, or the scores of several scorers."""
        return "score" if self.part else "subject"

    @property
    def label(self) -> str:
        """Return the name of the pair among others: its subject, and what was compared of it."""
        return " · ".join(filter(None, (self.candidate.subject, self.part)))


class CompareReport(FrozenModel):
    """All pairs that were compared; the exit code is the worst of those that are not controls."""

    gate: ComparisonGate
    margin: float | None
    undecidable: UndecidableRule = "pass"
    pairs: tuple[PairReport, ...]
    together: GateJudgement | None = None  # all subjects that are judged, if there are several
    exit_code: int


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """The options of a comparison of two sources.

    Args:
        subjects: the names of both subjects; None stands for the only one, or for all common ones.
        rule: turns verdicts into an exit code.
        allowed: how many trials may be missing before the gate is undecided.
        anyway: compare although scorers or thresholds differ.
        most_details: the number of cases whose outputs are compared line by line, the largest losses first.
        require_calibrated: decide by scores corrected by labels; refuse judges with too few labels.
    """

    subjects: tuple[str | None, str | None] = (None, None)
    rule: GateRule = GateRule("verdict")  # noqa: RUF009 - it is frozen
    allowed: Allowance = NONE_ALLOWED
    anyway: bool = False
    most_details: int = 5
    require_calibrated: bool = False

    def refuses(self, pair: RunPair) -> bool:
        """Tell whether a pair must not be compared: its scores differ in meaning, and `anyway` was not given."""
        return not self.anyway and any(pair.judged_differently)


_USUAL = CompareRequest()


def compare_sources(baseline: Source, candidate: Source, request: CompareRequest = _USUAL) -> CompareReport:
    """Compare one subject with another, or every common subject between the two sources.

    Give the same source twice to compare two subjects of one run. Controls influence the exit code
    only if they were named or are the only subjects.

    Raises:
        UsageError: no pair of subjects can be chosen.
        RunFolderError: a source cannot be read or counted.
    """
    return compare_parts([baseline], [candidate], request)


def compare_parts(baseline: Sequence[Source], candidate: Sequence[Source], request: CompareRequest) -> CompareReport:
    """Compare the parts of two sources, such as the scorers of a log, as `compare_sources` does.

    Parts are paired by their scorers or, if several have the same, by the names of their plans.
    """
    ours, theirs = _by_part(baseline), _by_part(candidate)
    if len(ours) == len(theirs) == 1:
        ours, theirs = {"": baseline[0]}, {"": candidate[0]}
    if not (shared := [part for part in ours if part in theirs]):
        raise UsageError(f"nothing is in both: the baseline has {', '.join(ours)}; the candidate {', '.join(theirs)}")
    lacking = {
        f"{spec.name} · {part}": len(source.plan.cases)
        for part, source in ours.items()
        if part not in theirs
        for spec in source.plan.subjects
    }
    with countable(*baseline, *candidate), ExitStack() as opened:
        found = [(part, pair) for part in shared for pair in _open_pairs(ours[part], theirs[part], request, opened)]
        return _report([replace(pair, part=part, gone=pair.gone | lacking) for part, pair in found], request)


def _by_part(sources: Sequence[Source]) -> dict[str, Source]:
    named = {", ".join(scorer.name or scorer.kind for scorer in source.plan.scorers): source for source in sources}
    named = named if len(named) == len(sources) else {source.plan.name: source for source in sources}
    if len(named) < len(sources):
        places = " and ".join(str(source.path) for source in sources if source not in named.values())
        raise UsageError(f"{places}: another log has the same name and scorers: name one log of each side")
    return named


def _open_pairs(baseline: Source, candidate: Source, request: CompareRequest, opened: ExitStack) -> Iterator[RunPair]:
    names = _pairs_of(baseline, candidate, request.subjects)
    one_run = baseline.path.resolve() == candidate.path.resolve()
    if any(old == new for old, new in names):
        refuse_copy(baseline.path, candidate.path)
    alone = [] if any(request.subjects) or one_run else baseline.plan.subjects
    left = [spec.name for spec in alone if spec.name not in dict(names)]
    arms = [opened.enter_context(read_arm(baseline, name)) for name in left]
    gone = {arm.spec.name: len(arm.plan.cases) for arm in arms if not arm.summary.control}
    for old, new in names:
        before = opened.enter_context(read_arm(baseline, old))
        yield RunPair(before, opened.enter_context(read_arm(candidate, new)), gone=gone)


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
            told = f"{baseline.name} is one run with {count_of(len(ours), 'subject')} ({subject_names(baseline)})"
            raise UsageError(f"{told}: {way_out}")
        return [(two[0], two[1])]
    if common := [name for name in ours if name in theirs]:
        return [(name, name) for name in common]
    if len(theirs) == len(ours) == 1:
        return [(ours[0], theirs[0])]
    each = "; ".join(f"{source.name} has {subject_names(source)}" for source in (baseline, candidate))
    raise UsageError(f"no subject is in both: {each}. Choose two with --subject-a and --subject-b")


def _report(pairs: Sequence[RunPair], request: CompareRequest) -> CompareReport:
    controls = [pair for pair in pairs if pair.control]
    if len(controls) == len(pairs):  # then the controls are compared
        controls = []
    # Controls must not make the correction for the other subjects stricter.
    judged = {str(place): pair for place, pair in enumerate(pairs) if pair not in controls}
    rulings, margin = dict[str, JudgedPair](), request.rule.margin
    for group in (judged, *({str(len(pairs) + place): pair} for place, pair in enumerate(controls))):
        by_label = partial(_by_label, group) if request.require_calibrated else None
        arms, together = {key: pair.arms for key, pair in group.items()}, not any(pair.part for pair in pairs)
        rulings |= judge_pairs(arms, margin=margin, compared=by_label, together=together)
    whole = rulings.get(TOGETHER)
    reports = [_pair_report(pair, rulings[key], request) for key, pair in judged.items()]
    if request.require_calibrated:
        reports = [_refused(report, pair) for report, pair in zip(reports, judged.values(), strict=True)]
    decided_nothing = {"control": True, "exit_code": 0, "gate": "a control, which does not influence the exit code"}
    beside = [
        _pair_report(pair, rulings[str(len(pairs) + place)], request).model_copy(update=decided_nothing)
        for place, pair in enumerate(controls)
    ]
    codes = [pair.exit_code for pair in reports]
    by_scores = request.rule.gate != "no-new-failures" and not any(map(request.refuses, judged.values()))
    if whole is not None and by_scores:
        codes.append(decide_gate(GateEvidence(comparisons=(whole,), rule=request.rule)).exit_code)
    code = GateState.worst(STATES[code] for code in codes).exit_code
    gate = request.rule._asdict()
    return CompareReport(**gate, pairs=(*reports, *beside), together=whole and whole.ruling, exit_code=code)


def _by_label(pairs: Mapping[str, RunPair], key: str, level: float) -> Comparison:
    return pairs[key].compared_by_label(level)


def _refused(report: PairReport, pair: RunPair) -> PairReport:
    """Replace the verdict of a pair by a refusal if its judge has too few labels."""
    reason = refusal(pair.calibrated(unlabelled=True), (pair.old.source.name, pair.new.source.name))
    if reason is None:
        return report
    ruling = GateJudgement.undecidable(reason, refused=True)
    said = "no decision: --require-calibrated-judge needs more labels"
    decision = decide_gate(GateEvidence(refused=True, sentence=said))
    return report.model_copy(update={"ruling": ruling, "exit_code": decision.exit_code, "gate": decision.sentence})


def _pair_report(pair: RunPair, judged: JudgedPair, request: CompareRequest) -> PairReport:
    old, new = pair.old, pair.new
    compared, ruling = judged
    differing = (*mismatches(old.stamp, new.stamp), *_other_mismatches(pair))
    decision = _decision(pair, judged, request)
    split = difference_split(*pair.cells)
    cases = tuple(_changes(pair))
    changed = [case for case in cases if case.outcome in ("win", "loss")]
    telling = sorted(changed, key=lambda case: case.difference or 0.0)[: request.most_details]  # losses first
    found = (case_detail(case.case, old.records, old.spec.name, new.records, new.spec.name) for case in telling)
    return PairReport(
        baseline=_facts(old),
        candidate=_facts(new),
        part=pair.part,
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
        details=tuple(filter(None, found)),
    )


def _decision(pair: RunPair, judged: JudgedPair, request: CompareRequest) -> GateDecision:
    """Decide the gate of one pair; refuse to compare scores of different kinds unless told to."""
    rule, old, new = request.rule, pair.old, pair.new
    names = ("the baseline", "the candidate") if old.source.path != new.source.path else (old.spec.name, new.spec.name)
    strict, refused, differing = rule.gate == "no-new-failures", request.refuses(pair), pair.judged_differently
    broken = pair.new_failures if strict and not refused else ()
    keys, unjudged = pair.keys, pair.without_threshold if strict else set[str]()
    said = ""
    if refused:
        said = f"not comparable: {'; '.join(map(str, differing))}; --anyway compares them all the same"
    elif strict and not {key.id for key in keys[0]} - unjudged:
        refused, said = True, "no case has a threshold, so that none passed or failed"
    elif strict:
        said = describe_new_failures(broken)
    ledgers = [old.ledger, new.ledger]
    decided = judged.ruling.verdict is not GateVerdict.UNDECIDABLE or judged.not_worse_by(rule.margin)
    if pair.arms.final and decided and not strict and not request.require_calibrated:
        # The verdict is the same, however the missing trials would have ended.
        ledgers = [ledger.model_copy(update={"missing": {}}) for ledger in ledgers]
    decision = decide_gate(
        GateEvidence(
            ledgers=dict(zip(names, ledgers, strict=True)),
            allowed=request.allowed,
            uncompared=uncompared(keys[0], keys[1], unjudged, pair.gone),
            comparisons=() if strict or refused else (judged,),
            broken=broken,
            rule=rule,
            refused=refused,
            sentence=said,
        )
    )
    although = [f"the {' and '.join(one.field for one in differing)} differ"] if differing and not refused else []
    if not any(request.subjects) and old.source.path != new.source.path and old.spec.name != new.spec.name:
        although.append(f"{visible(old.spec.name, 80)} is called {visible(new.spec.name, 80)} now")
    said = f"although {' and '.join(although)}: " if although else ""
    return decision._replace(sentence=f"{said}{decision.sentence}")


def _facts(arm: Arm) -> ArmFacts:
    return ArmFacts(
        source=arm.source.name,
        path=str(arm.source.path),
        subject=arm.spec.name,
        bound=arm.summary.bound,
        summary=arm.summary.model_copy(update={"costs": {}, "times": {}}),  # not written to files
        ledger=arm.summary.ledger,
        threshold=max(arm.plan.thresholds, default=None),
        stamp=arm.stamp,
        damaged=arm.circumstances.damaged,
    )


def _other_mismatches(pair: RunPair) -> Iterator[Mismatch]:
    """Yield differences between the runs, besides their conditions, that change the meaning of scores."""
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


def _short(value: JsonValue) -> str:
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _MAX_VALUE_LENGTH)


def _changes(pair: RunPair) -> Iterator[CaseChange]:
    """Yield every case that both sides have with the same content, in the baseline's order."""
    old, new = pair.old, pair.new
    ours, theirs = pair.keys
    for case, key in zip(old.plan.cases, ours, strict=True):
        if key in theirs:
            yield case_change(case.id, old.records, old.spec.name, new.records, new.spec.name)
