"""Two subjects, case by case: how much better the candidate is, how sure that is, and what else was different.

compare_sources   picks the arms, compares each pair, judges all of them together (Holm)
CompareReport     everything it found, as data; `compare_text` says it as blocks, `compare_page` as a page
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Literal

from bakeoff.errors import UsageError
from bakeoff.frozen import Frozen
from bakeoff.report.compare_arms import Arm, by_id_alone, case_key, countable, read_arm
from bakeoff.report.compare_cases import CaseChange, CaseDetail, case_change, case_detail
from bakeoff.report.readers import Source
from bakeoff.report.summary import SubjectSummary
from bakeoff.stats import (
    Cells,
    Comparison,
    Mismatch,
    Noise,
    Ruling,
    Stamp,
    compare,
    difference_split,
    exit_code_of,
    judge_all,
    minimum_detectable,
    mismatches,
)

Gate = Literal["verdict", "regression"]
"""`verdict`: as the ruling says. `regression`: with a margin, not being worse by more than it is enough."""

OPEN, SHUT, UNDECIDED = 0, 1, 3


class ArmFacts(Frozen):
    """One side, as the report tells it."""

    source: str
    path: str
    subject: str
    bound: bool
    summary: SubjectSummary
    stamp: Stamp
    damaged: int  # lines of its journal that are in no number


class PairReport(Frozen):
    """One candidate against one baseline."""

    baseline: ArmFacts
    candidate: ArmFacts
    comparison: Comparison
    ruling: Ruling
    exit_code: int
    gate: str  # the sentence that explains the exit code
    mismatches: tuple[Mismatch, ...]
    by_id_alone: bool  # the content of a side's cases is unknown, so cases were paired by their names
    advice: str | None = None  # where the noise lies
    detectable: float | None = None  # the smallest true difference that this comparison would find
    cases: tuple[CaseChange, ...] = ()
    details: tuple[CaseDetail, ...] = ()


class CompareReport(Frozen):
    gate: Gate
    margin: float | None
    pairs: tuple[PairReport, ...]
    exit_code: int


def compare_sources(
    baseline: Source,
    candidate: Source,
    *,
    subjects: tuple[str | None, str | None] = (None, None),
    gate: Gate = "verdict",
    margin: float | None = None,
    most_details: int = 5,
) -> CompareReport:
    """Compare one subject with another, or every subject that both sources have with itself."""
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
        "Say which to compare with --subject-a and --subject-b"
    )


def _both_of(source: Source) -> tuple[str, str]:
    specs = source.plan.subjects
    if len(specs) != 2:
        raise UsageError(
            f"{source.name} is one run with {len(specs)} subjects ({_names(source)}): "
            "say which two to compare with --subject-a and --subject-b"
        )
    return specs[0].name, specs[1].name


def _names(source: Source) -> str:
    return ", ".join(spec.name for spec in source.plan.subjects)


def _report(arms: Sequence[tuple[Arm, Arm]], gate: Gate, margin: float | None, most_details: int) -> CompareReport:
    compared = {str(place): compare(*_cells(old, new)) for place, (old, new) in enumerate(arms)}
    losses = {str(place): (old.losses, new.losses) for place, (old, new) in enumerate(arms)}
    rulings = judge_all(compared, margin=margin, losses=losses)
    pairs = [
        _pair(old, new, compared[str(place)], rulings[str(place)], gate, margin, most_details)
        for place, (old, new) in enumerate(arms)
    ]
    codes = {pair.exit_code for pair in pairs}
    code = next((code for code in (SHUT, UNDECIDED) if code in codes), OPEN)
    assert gate != "verdict" or code == exit_code_of(rulings.values())
    return CompareReport(gate=gate, margin=margin, pairs=tuple(pairs), exit_code=code)


def _cells(old: Arm, new: Arm) -> tuple[Cells, Cells]:
    if old.content_known and new.content_known:
        return old.cells, new.cells
    return by_id_alone(old.cells), by_id_alone(new.cells)


def _pair(
    old: Arm, new: Arm, compared: Comparison, ruling: Ruling, gate: Gate, margin: float | None, most_details: int
) -> PairReport:
    code, sentence = gate_of(compared, ruling, gate, margin)
    split = difference_split(*_cells(old, new))
    cases = tuple(_changes(old, new))
    rounds = min(old.plan.rounds, new.plan.rounds)
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
        detectable=minimum_detectable(compared.cases, rounds, Noise.seen(split)) if split and compared.paired else None,
        cases=cases,
        details=tuple(_details(old, new, cases, most_details)),
    )


def gate_of(compared: Comparison, ruling: Ruling, gate: Gate, margin: float | None) -> tuple[int, str]:
    """The exit code and its reason."""
    bounded = not ruling.refused and compared.inner is not None and margin is not None
    if gate == "regression" and bounded and ruling.exit_code == UNDECIDED:
        assert compared.inner is not None
        assert margin is not None
        if compared.inner.low > -margin:  # one-sided: how much better it may be does not matter here
            return OPEN, f"not worse by more than {100 * margin:g} points: the gate is open"
        return UNDECIDED, f"a loss of more than {100 * margin:g} points is not ruled out: undecidable"
    return ruling.exit_code, {OPEN: "the gate is open", SHUT: "the gate is shut"}.get(
        ruling.exit_code, "undecidable: more cases or rounds, or a wider --margin, would decide it"
    )


def _facts(arm: Arm) -> ArmFacts:
    return ArmFacts(
        source=arm.source,
        path=str(arm.path),
        subject=arm.spec.name,
        bound=arm.summary.bound,
        summary=arm.summary,
        stamp=arm.stamp,
        damaged=arm.circumstances.damaged,
    )


def _other_mismatches(old: Arm, new: Arm) -> Iterator[Mismatch]:
    """What the stamp has no field for and still makes scores mean something else."""
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
    """Every case that both have with the same content, in the baseline's order."""
    known = old.content_known and new.content_known
    theirs = {case_key(case, content_known=known) for case in new.plan.cases}
    for case in old.plan.cases:
        if case_key(case, content_known=known) in theirs:
            before, after = old.shelf.rounds(old.spec.name, case.id), new.shelf.rounds(new.spec.name, case.id)
            yield case_change(case.id, before, after)


def _details(old: Arm, new: Arm, cases: Sequence[CaseChange], most: int) -> Iterator[CaseDetail]:
    """Of the cases that changed most, losses first."""
    changed = [case for case in cases if case.outcome in ("win", "loss")]
    for case in sorted(changed, key=lambda case: case.difference or 0.0)[:most]:
        detail = case_detail(case.case, old.shelf, old.spec.name, new.shelf, new.spec.name)
        if detail is not None:
            yield detail
