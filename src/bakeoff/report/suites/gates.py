"""Gates on the suites of a whole run: a least pass rate, a least score, no regression against an earlier run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff._kernel.choices import UndecidableRule
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.report.formatting import percent
from bakeoff.report.gates import (
    NONE_ALLOWED,
    Allowance,
    GateEvidence,
    GateRule,
    GateState,
    UndecidedCases,
    decide_gate,
)
from bakeoff.report.judges.labelling import judges_calibrated
from bakeoff.report.suites.eval_file import case_ids
from bakeoff.report.suites.numbers import GateResult, SuiteName, SuitesSummary, cell_of, suite_of
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.stats.cells import CaseKey, Cells
from bakeoff.stats.comparison import Comparison, compare, compare_all
from bakeoff.stats.gates import GateJudgement, GateVerdict, Losses, judge_all, nothing_shown
from bakeoff.stats.sequential import PairDecision, SequentialDecision

_MAX_NAMED = 5
_WORST_FIRST = (GateVerdict.REGRESSED, GateVerdict.UNDECIDABLE, GateVerdict.EQUIVALENT, GateVerdict.IMPROVED)
_Suites = Mapping[SuiteName, list[EvalOutcome]]


@dataclass(frozen=True, slots=True)
class SuiteGates:
    """The gates that were asked for.

    `baseline` holds the outcomes of an earlier run; the two after it are its rule. `decided` has, by suite, comparisons
    with it that were made after every case.
    """

    min_pass_rate: float | None = None
    min_score: float | None = None
    baseline: Sequence[EvalOutcome] | None = None
    margin: float | None = None
    undecidable: UndecidableRule = "pass"
    decided: Mapping[str, PairDecision] = field(default_factory=dict)
    labelled: Path | None = None  # the folder of runs in which every judge must have labels
    allowed: Allowance = NONE_ALLOWED  # undecided cases
    prefix: str = "--eval-"  # of the names of options


def judge_gates(gates: SuiteGates, outcomes: Iterable[EvalOutcome], summary: SuitesSummary) -> tuple[GateResult, ...]:
    """Judge each gate that was asked for. `outcomes` may be iterated several times."""
    found: dict[str, GateEvidence] = {}
    numbers = summary.numbers
    if (wanted := gates.min_pass_rate) is not None:
        sentence = "no case has a threshold, so that none passed or failed"
        if (rate := numbers.pass_rate) is not None:
            shares = f"({percent(rate)}), wanted {percent(wanted)}"
            sentence = f"{numbers.passed:,} of {numbers.judged:,} passed {shares}"
        found["min-pass-rate"] = _least(gates, summary, wanted, rate, sentence)
    if (wanted := gates.min_score) is not None:
        sentence = "no case has a score"
        if (score := numbers.score) is not None:
            sentence = f"mean score {score:.3f} over {count_of(numbers.scored, 'case')}, wanted {wanted:g}"
        found["min-score"] = _least(gates, summary, wanted, score, sentence, scored=True)
    if gates.baseline is not None:
        found["baseline"] = _against_baseline(gates, gates.baseline, outcomes, summary)
    if gates.labelled is not None:
        records = (record for outcome in outcomes for record in outcome.records)
        labelled, sentence = judges_calibrated(records, gates.labelled)
        found["require-calibrated-judge"] = GateEvidence(
            refused=not labelled, sentence=sentence, cases=numbers.cases, complete=summary.complete
        )
    decisions = {option: decide_gate(evidence) for option, evidence in found.items()}
    return tuple(
        GateResult(option=gates.prefix + option, met=decision.state.met, sentence=decision.sentence)
        for option, decision in decisions.items()
    )


def _least(
    gates: SuiteGates,
    summary: SuitesSummary,
    wanted: float,
    value: float | None,
    sentence: str,
    *,
    scored: bool = False,
) -> GateEvidence:
    """Return the evidence of a gate that wants a least value; `scored` says that every case must have a score."""
    return GateEvidence(
        wanted=wanted,
        value=value,
        sentence=sentence,
        undecided=(_undecided(gates, summary, scored=scored),),
        cases=summary.numbers.cases,
        complete=summary.complete,
    )


def _undecided(gates: SuiteGates, summary: SuitesSummary, *, scored: bool = False) -> UndecidedCases:
    """Return the cases that could not be judged; if they must be `scored`, all that have no score."""
    numbers, tallies = summary.numbers, summary.tallies
    named = [f"{outcome.nodeid}: {outcome.problem}" for outcome in tallies.unjudged]
    named += [f"{nodeid}: no score" for nodeid in tallies.unscored if scored]
    count = numbers.cases - numbers.scored if scored else numbers.undecided
    return UndecidedCases(count, numbers.cases, named, gates.allowed, f"{gates.prefix}allow-undecided")


def _against_baseline(
    gates: SuiteGates, before: Iterable[EvalOutcome], after: Iterable[EvalOutcome], summary: SuitesSummary
) -> GateEvidence:
    """Compare suite by suite, case by case. Holm's method keeps many suites from finding a regression by chance.

    The gate is refused if no suite is in both runs.
    """
    was, now = _by_suite(before), _by_suite(after)
    common = [name for name in now if name in was]
    cells = {str(name): (_cells(was[name]), _cells(now[name])) for name in common}
    compared = compare_all({name: both for name, both in cells.items() if name not in gates.decided})
    losses = {str(name): (_losses(was[name]), _losses(now[name])) for name in common}
    rulings = judge_all(compared, margin=gates.margin, losses=losses)
    for name in [name for name in cells if name in gates.decided]:
        pair = gates.decided[name]  # its numbers hold although it was looked at after every case
        found = {"difference": pair.difference, "interval": pair.interval, "inner": pair.interval, "cases": pair.cases}
        compared[name] = compare(*cells[name]).model_copy(update={**found, "p_value": None})
        rulings[name] = _anytime_ruling(compared[name], pair)
    comparisons = [(compared[name], ruling) for name, ruling in rulings.items()]
    rule = GateRule(margin=gates.margin, undecidable=gates.undecidable)
    parts = ["no suite is in both runs"] * (not common)
    parts += [*_sentences(compared, rulings), *_in_one_run_only(was, now)]
    failed = decide_gate(GateEvidence(comparisons=comparisons, rule=rule)).state is GateState.FAILED
    if failed and not any(ruling.verdict is GateVerdict.REGRESSED for ruling in rulings.values()):
        parts.append("undecidable counts as failed")
    gone: list[str] = []  # a case with another content is still there
    for suite in [suite for suite in was if str(suite) not in gates.decided]:
        there = set(case_ids(now.get(suite, ())))
        gone += [case for case in case_ids(was[suite]) if case not in there]
    missing = UndecidedCases(
        len(gone),
        sum(map(len, was.values())),
        gone,
        gates.allowed,
        f"{gates.prefix}allow-undecided",
        "cases of the baseline are gone: ",
    )
    return GateEvidence(
        comparisons=comparisons,
        rule=rule,
        refused=not common,
        sentence="; ".join(parts),
        undecided=(missing, _undecided(gates, summary)),
        cases=summary.numbers.cases,
        complete=summary.complete,
    )


def _anytime_ruling(compared: Comparison, pair: PairDecision) -> GateJudgement:
    if pair.refused is not None:
        return GateJudgement(verdict=GateVerdict.UNDECIDABLE, sentence=pair.refused, refused=True)
    if pair.interval is None or pair.difference is None:
        return GateJudgement(verdict=GateVerdict.UNDECIDABLE, sentence="no case can be compared")
    low, high = 100 * pair.interval.low, 100 * pair.interval.high
    facts = f"{100 * pair.difference:+.1f} points, anytime-valid interval {low:+.1f} to {high:+.1f}"
    if pair.decision is SequentialDecision.UNDECIDED:
        return GateJudgement(verdict=GateVerdict.UNDECIDABLE, sentence=f"{nothing_shown(compared)}: {facts}")
    return GateJudgement(verdict=GateVerdict(pair.decision), sentence=f"{pair.decision}: {facts}")


def _by_suite(outcomes: Iterable[EvalOutcome]) -> _Suites:
    found: dict[SuiteName, list[EvalOutcome]] = {}
    for outcome in outcomes:
        found.setdefault(suite_of(outcome), []).append(outcome)
    return found


def _cells(outcomes: Sequence[EvalOutcome]) -> Cells:
    """Identify cases by node id and content: an edited case is another one."""
    keyed = zip(case_ids(outcomes), outcomes, strict=True)
    return {
        CaseKey(case, fingerprint(outcome.input, outcome.expected)): cell
        for case, outcome in keyed
        if (cell := cell_of(outcome)) is not None
    }


def _losses(outcomes: Sequence[EvalOutcome]) -> Losses:
    lost = sum(outcome.score is None for outcome in outcomes)
    return Losses(trials=len(outcomes), lost=lost, to="broken scorers or infrastructure")


def _sentences(compared: Mapping[str, Comparison], rulings: Mapping[str, GateJudgement]) -> Iterator[str]:
    order = sorted(rulings, key=lambda name: _WORST_FIRST.index(rulings[name].verdict))
    for name in order[:_MAX_NAMED]:
        found, ruling = compared[name], rulings[name]
        pairs = count_of(found.cases, "pair of cases", "pairs of cases") if found.paired else "no case in common"
        changed = f", {len(found.changed)} with changed content" if found.changed else ""
        if gone := len([key for key in found.baseline_only if key.id not in found.changed]):
            changed += f", {gone} of the baseline gone or not scored"
        counts = f", {found.losses} worse and {found.wins} better" if found.paired else ""
        said = f"{ruling.sentence} ({pairs}{counts}{changed})"
        if found.paired and not found.wins and not found.losses and not ruling.refused:
            shown = ruling.sentence if ruling.verdict is GateVerdict.EQUIVALENT else nothing_shown(found)
            said = f"the same scores in {pairs}{changed}: {shown}"
        yield f"{visible(name, 80)}: {said}"
    if len(order) > _MAX_NAMED:
        yield f"and {count_of(len(order) - _MAX_NAMED, 'more suite')}"


def _in_one_run_only(was: _Suites, now: _Suites) -> Iterator[str]:
    for words, names in (
        ("only in the baseline", [name for name in was if name not in now]),
        ("not in the baseline", [name for name in now if name not in was]),
    ):
        if names:
            shown = ", ".join(visible(str(name), 80) for name in names[:_MAX_NAMED])
            yield f"{count_of(len(names), 'suite')} {words}: {shown}{', …' if len(names) > _MAX_NAMED else ''}"
