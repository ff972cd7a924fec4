"""Gates on the suites of a whole run: a least pass rate, a least score, no regression against earlier runs."""

import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bakeoff._kernel.model import fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.report.formatting import percent
from bakeoff.report.gates import (
    NONE_ALLOWED,
    Allowance,
    GateEvidence,
    GateRule,
    Uncompared,
    decide_gate,
    describe_new_failures,
)
from bakeoff.report.history import SeriesRun, in_order, series_evidence
from bakeoff.report.judges.labelling import judges_calibrated
from bakeoff.report.readers import Source
from bakeoff.report.suites.eval_file import EvalFile, EvalFileReader, case_ids
from bakeoff.report.suites.numbers import GateResult, SuiteName, SuitesSummary, cell_of, suite_of
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, Mismatch, compare
from bakeoff.stats.gates import (
    TOGETHER,
    GateJudgement,
    GateVerdict,
    JudgedPair,
    Losses,
    PairedArms,
    judge_pairs,
    new_failures,
    nothing_shown,
)
from bakeoff.stats.sequential import PairDecision, SequentialDecision
from bakeoff.verdict import Verdict

_MAX_NAMED = 5
_WORST_FIRST = (GateVerdict.REGRESSED, GateVerdict.UNDECIDABLE, GateVerdict.EQUIVALENT, GateVerdict.IMPROVED)
_NO_RULE = GateRule()
_Suites = Mapping[SuiteName, Mapping[CaseKey, EvalOutcome]]


@dataclass(frozen=True, slots=True)
class SuiteGates:
    """The gates that were asked for.

    `baseline` is an earlier run; `rule` says how it is compared. `decided` has, by suite, comparisons with it that were
    made after every case, and `not_needed` the node ids of the cases that were then not run.
    """

    min_pass_rate: float | None = None
    min_score: float | None = None
    baseline: EvalFile | None = None
    rule: GateRule = _NO_RULE
    decided: Mapping[str, PairDecision] = field(default_factory=dict)
    not_needed: Container[str] = ()
    labelled: Path | None = None  # the folder of runs in which every judge must have labels
    allowed: Allowance = NONE_ALLOWED  # undecided cases
    prefix: str = "--eval-"  # of the names of options
    history: Sequence[SeriesRun] = ()  # earlier runs in order, of which the first is the baseline


def judge_gates(gates: SuiteGates, outcomes: Iterable[EvalOutcome], summary: SuitesSummary) -> tuple[GateResult, ...]:
    """Judge each gate that was asked for. `outcomes` may be iterated several times."""
    found: dict[str, GateEvidence] = {}
    numbers, ledger = summary.numbers, summary.ledger
    common = GateEvidence(ledgers={"": ledger}, allowed=gates.allowed, option=f"{gates.prefix}allow-undecided")
    best = 1.0 if ledger.undecided else None  # where nothing has a result
    if (wanted := gates.min_pass_rate) is not None:
        sentence = "no case has a threshold, so that none passed or failed"
        sentence = "no case with a threshold has a result" if ledger.undecided else sentence
        if (rate := numbers.pass_rate) is not None:
            shares = f"({percent(rate)}), wanted {percent(wanted)}"
            sentence = f"{numbers.passed:,} of {numbers.judged:,} passed {shares}"
        possible = best if rate is None else None
        found["min-pass-rate"] = replace(common, wanted=wanted, value=rate, best=possible, sentence=sentence)
    if (wanted := gates.min_score) is not None:
        sentence = "no case has a score"
        if (score := numbers.score) is not None:
            sentence = f"mean score {score:.3f} over {count_of(numbers.scored, 'case')}, wanted {wanted:g}"
        scored = replace(common, ledgers={"": ledger.for_scores}, best=best if score is None else None)
        found["min-score"] = replace(scored, wanted=wanted, value=score, sentence=sentence)
    if gates.baseline is not None:
        found["baseline"] = _against_baseline(gates, gates.baseline, outcomes, common)
    if gates.history:
        found["history"] = _over_history(gates.history, outcomes, common)
    if gates.labelled is not None:
        records = (record for outcome in outcomes for record in outcome.records)
        labelled, sentence = judges_calibrated(records, gates.labelled)
        found["require-calibrated-judge"] = replace(common, refused=not labelled, sentence=sentence)
    decisions = {option: decide_gate(evidence) for option, evidence in found.items()}
    return tuple(
        GateResult(option=gates.prefix + option, met=decision.state.met, sentence=decision.sentence)
        for option, decision in decisions.items()
    )


def _against_baseline(
    gates: SuiteGates, baseline: EvalFile, outcomes: Iterable[EvalOutcome], common: GateEvidence
) -> GateEvidence:
    """Compare case by case, each suite for itself and all together.

    The gate is refused if no suite is in both runs, or if scores or passes mean different things in them.
    """
    was, now = _by_suite(baseline.outcomes), _by_suite(outcomes)
    both = [(was[name], now[name]) for name in now if name in was]
    arms = {str(name): _paired(was[name], now[name]) for name in now if name in was}
    judged = judge_pairs(
        {name: pair for name, pair in arms.items() if name not in gates.decided}, margin=gates.rule.margin
    )
    for name in [name for name in arms if name in gates.decided]:
        pair = gates.decided[name]  # its numbers hold although it was looked at after every case
        found = {"difference": pair.difference, "interval": pair.interval, "inner": pair.interval, "cases": pair.cases}
        compared = compare(arms[name].before, arms[name].after).model_copy(update={**found, "p_value": None})
        judged[name] = JudgedPair(compared, _anytime_ruling(compared, pair))
    strict = gates.rule.gate == "no-new-failures"
    shared = [(old[key], new[key]) for old, new in both for key in old if key in new]
    refusals = [] if arms else ["no suite is in both runs"]
    refusals += _judged_differently(shared)
    if strict and shared and all(map(_lacks_threshold, shared)):
        refusals.append("no case in both runs has a threshold, so that none passed or failed")
    broken: Sequence[str] = ()
    if strict and not refusals:
        broken = [case for old, new in both for case in new_failures(_passes(old), _passes(new))]
    parts = refusals or ([describe_new_failures(broken)] if strict else _sentences(judged))
    return replace(
        common,
        ledgers={**common.ledgers, "the baseline": baseline.planned},
        comparisons=() if strict or refusals else [*judged.values()],
        rule=gates.rule,
        broken=broken,
        refused=bool(refusals),
        sentence="; ".join([*parts, *_in_one_run_only(was, now)]),
        uncompared=_uncompared(was, now, gates.not_needed, strict=strict),
    )


def read_history(folder: Path, written: Path | None) -> list[SeriesRun]:
    """Return the files of `--eval-json` below a folder by their start, without that which will be `written`.

    Raises `UsageError` if there are none, and an error for any other `.json` file: nobody could tell what it lacks.
    """
    reader, own = EvalFileReader(), None if written is None else written.resolve()
    found = [Source(path, reader) for path in sorted(folder.rglob("*.json")) if path.resolve() != own]
    if not found:
        raise UsageError(f"--eval-history {folder} has no file of --eval-json: keep those of the target branch there")
    return in_order(found)


def _over_history(earlier: Sequence[SeriesRun], outcomes: Iterable[EvalOutcome], common: GateEvidence) -> GateEvidence:
    """Judge this session as the last of a series, by the rule of `bakeoff history`."""
    held = list(outcomes)
    if not held:
        return replace(common, refused=True, sentence="there is no eval to compare")
    now = Source(Path("this-run"), EvalFileReader(held, common.ledgers[""]))
    return series_evidence([*earlier, SeriesRun(now, time.time(), "this run")], common)[1]


def _judged_differently(shared: Iterable[tuple[EvalOutcome, EvalOutcome]]) -> list[str]:
    """Say which scores do not mean the same in both runs: their scorers differ, or the rules by which cases pass."""
    named = []
    for old, new in shared:
        if old.score is not None and new.score is not None:
            sides = {"scorers": (_scorers(old), _scorers(new)), "rule": (_rule(old), _rule(new))}
            differing = [Mismatch(name, *both) for name, both in sides.items() if all(both) and both[0] != both[1]]
            named += [f"{visible(new.nodeid, 80)}: {', '.join(map(str, differing))}"] if differing else []
    if not named:
        return []
    count = count_of(len(named), "case is", "cases are")
    return [f"not comparable: {count} scored or judged in another way ({named[0]}{'; …' * (len(named) > 1)})"]


def _scorers(outcome: EvalOutcome) -> str:
    """Return the names of scorers; none are known of a task that failed."""
    return visible(", ".join(sorted({score.name for record in outcome.records for score in record.scores})), 200)


def _rule(outcome: EvalOutcome) -> str:
    """Describe when a case passes. The number of rounds matters unless the score is their mean."""
    rule, rounds = outcome.rule, len(outcome.records)
    over = "" if rule.gate == "mean" else f" of {count_of(rounds, 'round')}"
    return f"{rule.gate}{over} at {rule.threshold}{', null counts as 0' * rule.null_as_zero}"


def _lacks_threshold(outcomes: tuple[EvalOutcome, EvalOutcome]) -> bool:
    return any(outcome.threshold is None for outcome in outcomes)


def _uncompared(was: _Suites, now: _Suites, not_needed: Container[str], *, strict: bool) -> Uncompared:
    """Return the cases of the baseline that are gone, or have another content or, if that is compared, no threshold."""
    named: list[str] = []
    for suite, cases in was.items():
        here = now.get(suite, {})
        ids = {key.id for key in here}
        for key, old in cases.items():
            if key in here:
                named += [f"{key.id}: it has no threshold"] * (strict and _lacks_threshold((old, here[key])))
            elif old.nodeid not in not_needed:
                named.append(f"{key.id}: {'its content has changed' if key.id in ids else 'it is gone'}")
    return Uncompared(len(named), named)


def _passes(outcomes: Mapping[CaseKey, EvalOutcome]) -> Cells:
    found = {}
    for key, outcome in outcomes.items():
        verdicts = [record.verdict for record in outcome.records if record.verdict.counts]
        if outcome.threshold is not None and verdicts:
            found[key] = Cell.of(verdict is Verdict.PASS for verdict in verdicts)
    return found


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
    """Return the cases of each suite, identified by node id and content: an edited case is another one."""
    found: dict[SuiteName, list[EvalOutcome]] = {}
    for outcome in outcomes:
        found.setdefault(suite_of(outcome), []).append(outcome)
    return {
        name: {
            CaseKey(case, fingerprint(outcome.input, outcome.expected)): outcome
            for case, outcome in zip(case_ids(cases), cases, strict=True)
        }
        for name, cases in found.items()
    }


def _paired(before: Mapping[CaseKey, EvalOutcome], after: Mapping[CaseKey, EvalOutcome]) -> PairedArms:
    cells, lost = [], []
    for outcomes in (before, after):
        cells.append({key: cell for key, outcome in outcomes.items() if (cell := cell_of(outcome)) is not None})
        lost.append({key: count for key, outcome in outcomes.items() if (count := _lost_rounds(outcome))})
    return PairedArms(cells[0], cells[1], (lost[0], lost[1]), (_losses(before.values()), _losses(after.values())))


def _lost_rounds(outcome: EvalOutcome) -> int:
    """Return how many rounds of a case have no score; of pass@k, which counts as one round, the case itself."""
    if outcome.rule.gate != "mean" or len(outcome.records) < 2:
        return int(outcome.score is None)
    return sum(record.value is None for record in outcome.records)


def _losses(outcomes: Collection[EvalOutcome]) -> Losses:
    lost = sum(outcome.score is None for outcome in outcomes)
    return Losses(trials=len(outcomes), lost=lost, to="broken scorers or infrastructure")


def _sentences(judged: Mapping[str, JudgedPair]) -> list[str]:
    """Say what is shown, the worst first; what all suites show together comes before those that show the same."""
    order = sorted(judged, key=lambda name: (_WORST_FIRST.index(judged[name].ruling.verdict), name != TOGETHER))
    said = []
    for name in order[: _MAX_NAMED + (TOGETHER in judged)]:
        found, ruling = judged[name]
        pairs = count_of(found.cases, "pair of cases", "pairs of cases") if found.paired else "no case in common"
        changed = f", {len(found.changed)} with changed content" if found.changed else ""
        said.append(f"{visible(name, 80)}: {ruling.sentence} ({pairs}{changed})")
    return [*said, f"and {count_of(len(order) - len(said), 'more suite')}"] if len(order) > len(said) else said


def _in_one_run_only(was: _Suites, now: _Suites) -> Iterator[str]:
    for words, names in (
        ("only in the baseline", [name for name in was if name not in now]),
        ("not in the baseline", [name for name in now if name not in was]),
    ):
        if names:
            shown = ", ".join(visible(str(name), 80) for name in names[:_MAX_NAMED])
            yield f"{count_of(len(names), 'suite')} {words}: {shown}{', …' if len(names) > _MAX_NAMED else ''}"
