"""Compare two subjects case by case: the difference, its certainty, and other differences between the runs.

compare_sources   chooses the subjects, compares each pair, and judges all pairs together (Holm)
CompareReport     all findings as data; `compare_report` describes them as blocks
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated

from pydantic import PlainSerializer

from bakeoff._kernel.choices import ComparisonGate
from bakeoff._kernel.json import clean_text
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import UsageError
from bakeoff.report.compare_arms import Arm, by_id_alone, case_key, countable, read_arm
from bakeoff.report.compare_cases import CaseChange, CaseDetail, case_change, case_detail
from bakeoff.report.formatting import visible
from bakeoff.report.readers import Source
from bakeoff.report.summary import SubjectSummary
from bakeoff.stats import (
    Cells,
    Comparison,
    Mismatch,
    Ruling,
    Stamp,
    compare,
    detectable_between,
    difference_split,
    exit_code_of,
    judge,
    judge_all,
    mismatches,
)

OPEN, SHUT, UNDECIDED = 0, 1, 3


FileName = Annotated[str, PlainSerializer(clean_text, return_type=str, when_used="json")]
"""The name of a file or folder. Names that are not valid text are escaped in JSON."""


class ArmFacts(FrozenModel):
    """One side of a comparison."""

    source: FileName
    path: FileName
    subject: str
    bound: bool
    summary: SubjectSummary
    threshold: float | None  # None: nothing passes or fails
    stamp: Stamp
    damaged: int  # unreadable lines of its journal, which are not counted


class PairReport(FrozenModel):
    """One candidate against one baseline."""

    baseline: ArmFacts
    candidate: ArmFacts
    comparison: Comparison
    ruling: Ruling
    exit_code: int
    gate: str  # the explanation of the exit code
    control: bool = False  # tests the cases: shown, but ignored by the gate
    mismatches: tuple[Mismatch, ...]
    by_id_alone: bool  # cases were paired by id only, because the content of a side's cases is unknown
    advice: str | None = None  # on the source of the noise
    detectable: float | None = None  # the smallest true difference that this comparison can find
    cases: tuple[CaseChange, ...] = ()
    details: tuple[CaseDetail, ...] = ()


class CompareReport(FrozenModel):
    gate: ComparisonGate
    margin: float | None
    pairs: tuple[PairReport, ...]
    exit_code: int


def compare_sources(
    baseline: Source,
    candidate: Source,
    *,
    subjects: tuple[str | None, str | None] = (None, None),
    gate: ComparisonGate = "verdict",
    margin: float | None = None,
    most_details: int = 5,
) -> CompareReport:
    """Compare one subject with another, or every subject that both sources have with itself.

    Controls do not influence the exit code unless they were named or are the only subjects.
    """
    names = _pairs_of(baseline, candidate, subjects)
    with countable(baseline, candidate), ExitStack() as open_arms:
        arms = [
            (open_arms.enter_context(read_arm(baseline, old)), open_arms.enter_context(read_arm(candidate, new)))
            for old, new in names
        ]
        return _report(arms, gate, margin, most_details)


def _pairs_of(baseline: Source, candidate: Source, subjects: tuple[str | None, str | None]) -> list[tuple[str, str]]:
    old, new = subjects
    if old is not None or new is not None:
        if old is None or new is None:
            _refuse_itself(baseline, candidate, old or new or "")
        return [(old or new or "", new or old or "")]
    theirs = {spec.name for spec in candidate.plan.subjects}
    common = [spec.name for spec in baseline.plan.subjects if spec.name in theirs]
    if baseline.path.resolve() == candidate.path.resolve():
        return [_both_of(baseline)]
    if common:
        return [(name, name) for name in common]
    if len(theirs) == len(baseline.plan.subjects) == 1:
        return [(baseline.plan.subjects[0].name, candidate.plan.subjects[0].name)]
    raise UsageError(
        f"no subject is in both: {baseline.name} has {_names(baseline)}; {candidate.name} has {_names(candidate)}. "
        "Choose two with --subject-a and --subject-b"
    )


def _refuse_itself(baseline: Source, candidate: Source, named: str) -> None:
    if baseline.path.resolve() == candidate.path.resolve():
        names = [spec.name for spec in baseline.plan.subjects if spec.name != named]
        others = visible(", ".join(names), 200) or "it has no other"
        name = visible(repr(named), 80)
        raise UsageError(
            f"{baseline.name} is one run, so {name} would be compared with itself: add a second run, or choose "
            f"two subjects with --subject-a and --subject-b (besides {name}: {others})"
        )


def _both_of(source: Source) -> tuple[str, str]:
    specs = source.plan.subjects
    if len(specs) != 2:
        raise UsageError(
            f"{source.name} is one run with {len(specs)} subjects ({_names(source)}): "
            "choose two with --subject-a and --subject-b"
        )
    return specs[0].name, specs[1].name


def _names(source: Source) -> str:
    return ", ".join(spec.name for spec in source.plan.subjects)


def _report(
    arms: Sequence[tuple[Arm, Arm]], gate: ComparisonGate, margin: float | None, most_details: int
) -> CompareReport:
    compared = {str(place): compare(*_cells(old, new)) for place, (old, new) in enumerate(arms)}
    losses = {str(place): (old.losses, new.losses) for place, (old, new) in enumerate(arms)}
    controls = _controls(arms)
    # Controls must not make the correction for the other subjects stricter.
    rulings = judge_all(_without(compared, controls), margin=margin, losses=losses)
    beside = {place: judge(compared[place], margin=margin, losses=losses[place]) for place in controls}
    pairs = [
        _pair(old, new, compared[str(place)], (rulings | beside)[str(place)], gate, margin, most_details)
        for place, (old, new) in enumerate(arms)
    ]
    judged = [pair for place, pair in enumerate(pairs) if str(place) not in controls]
    codes = {pair.exit_code for pair in judged}
    code = next((code for code in (SHUT, UNDECIDED) if code in codes), OPEN)
    assert gate != "verdict" or code == exit_code_of(rulings.values())
    decided_nothing = {"control": True, "exit_code": OPEN, "gate": "a control, which does not influence the exit code"}
    others = [pairs[int(place)].model_copy(update=decided_nothing) for place in controls]
    return CompareReport(gate=gate, margin=margin, pairs=(*judged, *others), exit_code=code)


def _controls(arms: Sequence[tuple[Arm, Arm]]) -> list[str]:
    """Return the places of pairs with a control; none if all pairs are such."""
    found = [str(place) for place, (old, new) in enumerate(arms) if old.summary.control or new.summary.control]
    return found if len(found) < len(arms) else []


def _without(compared: Mapping[str, Comparison], places: Sequence[str]) -> dict[str, Comparison]:
    return {place: found for place, found in compared.items() if place not in places}


def _cells(old: Arm, new: Arm) -> tuple[Cells, Cells]:
    if old.content_known and new.content_known:
        return old.cells, new.cells
    return by_id_alone(old.cells), by_id_alone(new.cells)


def _pair(
    old: Arm,
    new: Arm,
    compared: Comparison,
    ruling: Ruling,
    gate: ComparisonGate,
    margin: float | None,
    most_details: int,
) -> PairReport:
    code, sentence = gate_of(compared, ruling, gate, margin)
    split = difference_split(*_cells(old, new))
    cases = tuple(_changes(old, new))
    return PairReport(
        baseline=_facts(old),
        candidate=_facts(new),
        comparison=compared,
        ruling=ruling,
        exit_code=code,
        gate=sentence,
        mismatches=(*mismatches(old.stamp, new.stamp), *_other_mismatches(old, new)),
        by_id_alone=not (old.content_known and new.content_known),
        advice=split.sentence if split and split.of_mean else None,
        detectable=detectable_between(*_cells(old, new)),
        cases=cases,
        details=tuple(_details(old, new, cases, most_details)),
    )


def gate_of(compared: Comparison, ruling: Ruling, gate: ComparisonGate, margin: float | None) -> tuple[int, str]:
    """Return the exit code and its explanation."""
    unpaired = "" if compared.paired else ", although the cases differ"
    bounded = not ruling.refused and compared.inner is not None and margin is not None
    if gate == "regression" and bounded and ruling.exit_code == UNDECIDED:
        assert compared.inner is not None
        assert margin is not None
        if compared.inner.low > -margin:  # one-sided: only losses matter
            return OPEN, f"not worse by more than {100 * margin:g} points: the gate is open{unpaired}"
        return UNDECIDED, f"a loss of more than {100 * margin:g} points is not ruled out: undecidable"
    return ruling.exit_code, {OPEN: f"the gate is open{unpaired}", SHUT: f"the gate is shut{unpaired}"}.get(
        ruling.exit_code, f"undecidable: {_way_out(compared, ruling)}"
    )


def _way_out(compared: Comparison, ruling: Ruling) -> str:
    if ruling.refused:
        return "run `bakeoff resume` to retry the lost trials"
    if compared.baseline is None or compared.candidate is None:
        return "a side without scored trials cannot be compared"
    return "use more cases or rounds, or a wider --margin"


def _facts(arm: Arm) -> ArmFacts:
    return ArmFacts(
        source=arm.source,
        path=str(arm.path),
        subject=arm.spec.name,
        bound=arm.summary.bound,
        summary=arm.summary,
        threshold=arm.plan.threshold,
        stamp=arm.stamp,
        damaged=arm.circumstances.damaged,
    )


def _other_mismatches(old: Arm, new: Arm) -> Iterator[Mismatch]:
    """Yield differences that change the meaning of scores and are not in the stamp."""
    known = old.content_known and new.content_known
    pairs = {
        "scorers": (_scorers(old), _scorers(new)) if known else ("", ""),
        "threshold": (str(old.plan.threshold), str(new.plan.threshold)),
        "rounds": (str(old.plan.rounds), str(new.plan.rounds)),
        "bakeoff version": (", ".join(old.circumstances.versions), ", ".join(new.circumstances.versions)),
    }
    for name, (was, now) in pairs.items():
        if was != now:
            yield Mismatch(name, was or None, now or None)
    if known and old.spec.name == new.spec.name and old.spec.digest != new.spec.digest:
        yield Mismatch("subject's settings", old.spec.digest[:12], new.spec.digest[:12])


def _scorers(arm: Arm) -> str:
    return ", ".join(f"{scorer.name or scorer.kind} ({scorer.digest[:8]})" for scorer in arm.plan.scorers)


def _changes(old: Arm, new: Arm) -> Iterator[CaseChange]:
    """Yield every case that both sides have with the same content, in the baseline's order."""
    known = old.content_known and new.content_known
    theirs = {case_key(case, content_known=known) for case in new.plan.cases}
    for case in old.plan.cases:
        if case_key(case, content_known=known) in theirs:
            before, after = old.records.rounds(old.spec.name, case.id), new.records.rounds(new.spec.name, case.id)
            yield case_change(case.id, before, after)


def _details(old: Arm, new: Arm, cases: Sequence[CaseChange], most: int) -> Iterator[CaseDetail]:
    """Yield the details of the cases that changed most, losses first."""
    changed = [case for case in cases if case.outcome in ("win", "loss")]
    for case in sorted(changed, key=lambda case: case.difference or 0.0)[:most]:
        detail = case_detail(case.case, old.records, old.spec.name, new.records, new.spec.name)
        if detail is not None:
            yield detail
