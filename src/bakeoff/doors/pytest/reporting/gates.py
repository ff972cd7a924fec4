"""Gates on a whole run: a least pass rate, a least score, and no significant regression against an earlier run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff._kernel.choices import UndecidableRule
from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.reporting.numbers import Numbers, SuiteName, cell_of, suite_of
from bakeoff.doors.pytest.reporting.session_summary import GateResult, SessionSummary
from bakeoff.doors.pytest.reporting.undecided import NONE, Allowance, refusal
from bakeoff.report.formatting import percent
from bakeoff.stats.cells import CaseKey, Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.decisions import PairDecision
from bakeoff.stats.gates import GateJudgement, GateVerdict, Losses, decide, exit_code_of, judge_all, nothing_shown
from bakeoff.stats.sequential import SequentialDecision
from bakeoff.stats.several import compare_all
from bakeoff.verdict import reaches

_MAX_NAMED = 5
_INCOMPLETE = "the run was stopped before its end, or not all of it could be collected and read"
_WORST_FIRST = (GateVerdict.REGRESSED, GateVerdict.UNDECIDABLE, GateVerdict.EQUIVALENT, GateVerdict.IMPROVED)
_Suites = Mapping[SuiteName, list[EvalOutcome]]


@dataclass(frozen=True, slots=True)
class Gates:
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
    allowed: Allowance = NONE  # undecided cases
    prefix: str = "--eval-"


_Judged = tuple[bool | None, str]


def judge_gates(gates: Gates, outcomes: Iterable[EvalOutcome], summary: SessionSummary) -> tuple[GateResult, ...]:
    """Judge each gate. None is met without any eval, or if the run did not get to its end."""
    numbers = summary.numbers
    found: list[tuple[str, bool | None, str]] = []
    if gates.min_pass_rate is not None:
        found.append(("min-pass-rate", *_unless_undecided(gates, summary, _pass_rate(gates.min_pass_rate, numbers))))
    if gates.min_score is not None:
        unscored = numbers.cases - numbers.scored
        scored = _unless_undecided(gates, summary, _min_score(gates.min_score, numbers), unscored)
        found.append(("min-score", *scored))
    if gates.baseline is not None:
        compared = _against_baseline(gates, gates.baseline, outcomes)
        found.append(("baseline", *_unless_undecided(gates, summary, compared)))
    if gates.labelled is not None:
        from bakeoff.doors.pytest.reporting.calibrated import judges_calibrated

        found.append(("require-calibrated-judge", *judges_calibrated(outcomes, gates.labelled)))
    if not numbers.cases:
        found = [(option, False, "no eval was run") for option, _, _ in found]
    elif not summary.complete:
        found = [(option, False, f"{_INCOMPLETE}; {why}") for option, _, why in found]
    return tuple(GateResult(option=gates.prefix + option, met=met, sentence=why) for option, met, why in found)


def _unless_undecided(gates: Gates, summary: SessionSummary, judged: _Judged, undecided: int | None = None) -> _Judged:
    """Return how a gate was judged, or that it fails because too many cases are undecided."""
    numbers, tallies = summary.numbers, summary.tallies
    count = numbers.undecided if undecided is None else undecided
    named = [f"{outcome.nodeid}: {outcome.problem}" for outcome in tallies.unjudged]
    named += [f"{nodeid}: no score" for nodeid in tallies.unscored if undecided is not None]
    why = refusal(gates.allowed, count, numbers.cases, named, f"{gates.prefix}allow-undecided")
    return judged if why is None else (False, f"{why}; {judged[1]}")


def _pass_rate(wanted: float, numbers: Numbers) -> tuple[bool, str]:
    if numbers.pass_rate is None:
        return False, "no case has a threshold, so that none passed or failed"
    counts = f"{numbers.passed:,} of {numbers.judged:,} passed ({percent(numbers.pass_rate)}), wanted {percent(wanted)}"
    return numbers.pass_rate >= wanted, counts


def _min_score(wanted: float, numbers: Numbers) -> tuple[bool, str]:
    if numbers.score is None:
        return False, "no case has a score"
    sentence = f"mean score {numbers.score:.3f} over {count_of(numbers.scored, 'case')}, wanted {wanted:g}"
    return reaches(numbers.score, wanted), sentence


def _against_baseline(
    gates: Gates, before: Iterable[EvalOutcome], after: Iterable[EvalOutcome]
) -> tuple[bool | None, str]:
    """Compare suite by suite, case by case. Holm's method keeps many suites from finding a regression by chance.

    The rule is that of `bakeoff compare`. None: the gate refuses, because too much is missing.
    """
    was, now = _by_suite(before), _by_suite(after)
    common = [name for name in now if name in was]
    cells = {str(name): (_cells(was[name]), _cells(now[name])) for name in common}
    compared = compare_all({name: both for name, both in cells.items() if name not in gates.decided})
    losses = {str(name): (_losses(was[name]), _losses(now[name])) for name in common}
    rulings = judge_all(compared, margin=gates.margin, losses=losses)
    for name in [name for name in cells if name in gates.decided]:
        compared[name] = _anytime(compare(*cells[name]), gates.decided[name])
        rulings[name] = _anytime_ruling(compared[name], gates.decided[name])
    decisions = [
        decide(compared[name], ruling, margin=gates.margin, undecidable=gates.undecidable)
        for name, ruling in rulings.items()
    ]
    code = exit_code_of(decision.exit_code for decision in decisions) if decisions else 3
    parts = [*_sentences(compared, rulings), *_in_one_run_only(was, now)]
    gone = [case for name in was if str(name) not in gates.decided for case in _gone(was[name], now.get(name, ()))]
    cases = sum(map(len, was.values()))
    if (why := refusal(gates.allowed, len(gone), cases, gone, f"{gates.prefix}allow-undecided")) is not None:
        return False, "; ".join([f"cases of the baseline are gone: {why}", *parts])
    if code == 1 and not any(ruling.verdict is GateVerdict.REGRESSED for ruling in rulings.values()):
        parts.append("undecidable counts as failed")
    return {0: True, 1: False}.get(code), "; ".join(["no suite is in both runs"] * (not common) + parts)


def _anytime(compared: Comparison, pair: PairDecision) -> Comparison:
    """Return a comparison with the numbers that hold although it was looked at after every case."""
    numbers = {"difference": pair.difference, "interval": pair.interval, "inner": pair.interval, "cases": pair.cases}
    return compared.model_copy(update={**numbers, "p_value": None})


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


def _gone(before: Sequence[EvalOutcome], after: Sequence[EvalOutcome]) -> list[str]:
    """Return the cases that are missing from a run; a case with another content is still there."""
    from bakeoff.doors.pytest.reporting.source import case_ids  # only a baseline needs it

    there = set(case_ids(after))
    return [case for case in case_ids(before) if case not in there]


def _cells(outcomes: Sequence[EvalOutcome]) -> Cells:
    """Identify cases by node id and content: an edited case is another one."""
    from bakeoff.doors.pytest.reporting.source import case_ids

    keyed = zip(case_ids(outcomes), outcomes, strict=True)
    return {
        CaseKey(case, fingerprint(outcome.input, outcome.expected)): cell
        for case, outcome in keyed
        if (cell := cell_of(outcome)) is not None
    }


def _losses(outcomes: Sequence[EvalOutcome]) -> Losses:
    lost = sum(outcome.score is None for outcome in outcomes)
    return Losses(trials=len(outcomes), lost=lost, to="broken scorers or infrastructure")


def _same(compared: Comparison) -> bool:
    return compared.paired and not compared.wins and not compared.losses


def _sentences(compared: Mapping[str, Comparison], rulings: Mapping[str, GateJudgement]) -> Iterator[str]:
    order = sorted(rulings, key=lambda name: _WORST_FIRST.index(rulings[name].verdict))
    for name in order[:_MAX_NAMED]:
        yield f"{visible(name, 80)}: {_sentence(compared[name], rulings[name])}"
    if len(order) > _MAX_NAMED:
        yield f"and {count_of(len(order) - _MAX_NAMED, 'more suite')}"


def _sentence(compared: Comparison, ruling: GateJudgement) -> str:
    pairs = count_of(compared.cases, "pair of cases", "pairs of cases") if compared.paired else "no case in common"
    changed = f", {len(compared.changed)} with changed content" if compared.changed else ""
    if gone := len([key for key in compared.baseline_only if key.id not in compared.changed]):
        changed += f", {gone} of the baseline gone or not scored"
    if _same(compared) and not ruling.refused:
        shown = ruling.sentence if ruling.verdict is GateVerdict.EQUIVALENT else nothing_shown(compared)
        return f"the same scores in {pairs}{changed}: {shown}"
    counts = f", {compared.losses} worse and {compared.wins} better" if compared.paired else ""
    return f"{ruling.sentence} ({pairs}{counts}{changed})"


def _in_one_run_only(was: _Suites, now: _Suites) -> Iterator[str]:
    for words, names in (
        ("only in the baseline", [name for name in was if name not in now]),
        ("not in the baseline", [name for name in now if name not in was]),
    ):
        if names:
            shown = ", ".join(visible(str(name), 80) for name in names[:_MAX_NAMED])
            yield f"{count_of(len(names), 'suite')} {words}: {shown}{', …' if len(names) > _MAX_NAMED else ''}"
