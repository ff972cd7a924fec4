"""Judge the gates of a run's suites: pass rate, score, and no regression against earlier runs."""

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.report.compare.arms import Arm, RunPair, read_arm, uncompared
from bakeoff.report.formatting import percent
from bakeoff.report.gates import (
    NONE_ALLOWED,
    Allowance,
    GateEvidence,
    GateResult,
    GateRule,
    Uncompared,
    decide_gate,
    describe_new_failures,
)
from bakeoff.report.history import SeriesRun, series_evidence, since_baseline
from bakeoff.report.judges.labelling import judges_calibrated
from bakeoff.report.readers import Source
from bakeoff.report.suites.eval_file import EvalFile, EvalFileReader, case_ids, source_of
from bakeoff.report.suites.numbers import SuiteName, SuitesSummary, suite_of
from bakeoff.report.suites.outcomes import SUBJECT, EvalOutcome
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import TOGETHER, GateJudgement, GateVerdict, JudgedPair, PairedArms, judge_pairs, nothing_shown
from bakeoff.stats.sequential import PairDecision, SequentialDecision

_MAX_NAMED = 5
_WORST_FIRST = (GateVerdict.REGRESSED, GateVerdict.UNDECIDABLE, GateVerdict.EQUIVALENT, GateVerdict.IMPROVED)
_NO_RULE = GateRule()
_Suites = Mapping[SuiteName, Sequence[EvalOutcome]]


@dataclass(frozen=True, slots=True)
class SuiteGates:
    """The gates that were asked for.

    `baseline` is an earlier run, and `rule` says how to compare with it. `decided` maps suites to
    comparisons that were updated after every case; the cases in `not_needed` were skipped for them.
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
    best = 1.0 if ledger.undecided else None  # if nothing has a result
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
        found["fail-under"] = replace(scored, wanted=wanted, value=score, sentence=sentence)
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
        GateResult(option=gates.prefix + option, met=one.state.met, sentence=one.sentence, warning=one.warning)
        for option, one in decisions.items()
    )


def _against_baseline(
    gates: SuiteGates, baseline: EvalFile, outcomes: Iterable[EvalOutcome], common: GateEvidence
) -> GateEvidence:
    """Compare case by case, each suite separately and all together.

    The gate is refused if no suite is in both runs, or if scores or passes mean different things in them.
    """
    was = _by_suite(outcome for outcome in baseline.outcomes if outcome.nodeid not in gates.not_needed)
    now, strict = _by_suite(outcomes), gates.rule.gate == "no-new-failures"
    arms: dict[str, PairedArms] = {}
    both, judged_cases, refusals, broken = 0, 0, list[str](), list[str]()
    lacking = [f"{case}: it is gone" for name in was if name not in now for case in case_ids(was[name])]
    for name in [name for name in was if name in now]:
        with _read_suite(was[name]) as old, _read_suite(now[name]) as new:
            pair = RunPair(old, new)
            arms[str(name)] = pair.arms
            if differing := pair.judged_differently:
                refusals.append(f"not comparable: {visible(str(name), 80)}: {'; '.join(map(str, differing))}")
            shared = {key.id for key in pair.keys[0] if key in pair.keys[1]}
            unjudged = pair.without_threshold if strict else set[str]()
            both, judged_cases = both + len(shared), judged_cases + len(shared - unjudged)
            broken += pair.new_failures if strict else ()
            lacking += uncompared(*pair.keys, unjudged).named
    if not arms:
        refusals.append("no suite is in both runs")
    if both and not judged_cases:
        refusals.append("no case in both runs has a threshold, so that none passed or failed")
    judged = _judge_suites(arms, gates)
    parts = refusals or ([describe_new_failures(broken)] if strict else _sentences(judged))
    return replace(
        common,
        ledgers={**common.ledgers, "the baseline": baseline.planned},
        comparisons=() if strict or refusals else [*judged.values()],
        rule=gates.rule,
        broken=() if refusals else broken,
        refused=bool(refusals),
        sentence="; ".join([*parts, *_in_one_run_only(was, now)]),
        uncompared=Uncompared(len(lacking), lacking),
    )


def _read_suite(outcomes: Iterable[EvalOutcome]) -> Arm:
    """Read the cases of one suite, which have the same parameters, as `bakeoff compare` reads a subject."""
    held = [outcome.model_copy(update={"parameters": ""}) for outcome in outcomes]
    return read_arm(source_of(held, Path("this-run")), SUBJECT)


def _judge_suites(arms: Mapping[str, PairedArms], gates: SuiteGates) -> dict[str, JudgedPair]:
    """Judge all suites together. Suites that were compared after every case keep their anytime-valid numbers."""
    undecided = {name: pair for name, pair in arms.items() if name not in gates.decided}
    judged = judge_pairs(undecided, margin=gates.rule.margin)
    for name in [name for name in arms if name in gates.decided]:
        pair = gates.decided[name]
        found = {"difference": pair.difference, "interval": pair.interval, "inner": pair.interval, "cases": pair.cases}
        compared = compare(arms[name].before, arms[name].after).model_copy(update={**found, "p_value": None})
        judged[name] = JudgedPair(compared, _anytime_ruling(compared, pair))
    return judged


def read_history(folder: Path, written: Path | None, baseline: Path | None = None) -> list[SeriesRun]:
    """Return the files of `--eval-json` below a folder, sorted by start, without the one to be `written`.

    The first is the `baseline`, which may be in another folder, or else the oldest file.

    Raises `UsageError` if there are none, and an error for any other `.json` file: it could be a damaged result.
    """
    reader, own = EvalFileReader(), None if written is None else written.resolve()
    found = [Source(path, reader) for path in sorted(folder.rglob("*.json")) if path.resolve() != own]
    if not found:
        raise UsageError(f"--eval-history {folder} has no file of --eval-json: keep those of the target branch there")
    return since_baseline(found, None if baseline is None else Source(baseline, reader))[0]


def _over_history(earlier: Sequence[SeriesRun], outcomes: Iterable[EvalOutcome], common: GateEvidence) -> GateEvidence:
    """Judge this session as the last of a series, by the rule of `bakeoff history`."""
    held = list(outcomes)
    if not held:
        return replace(common, refused=True, sentence="there is no eval to compare")
    now = source_of(held, Path("this-run"), ledger=common.ledgers[""])
    return series_evidence([*earlier, SeriesRun(now, time.time(), "this run")], common)[1]


def _anytime_ruling(compared: Comparison, pair: PairDecision) -> GateJudgement:
    if pair.refused is not None:
        return GateJudgement.undecidable(pair.refused, refused=True)
    if pair.interval is None or pair.difference is None:
        return GateJudgement.undecidable("no case can be compared")
    low, high = 100 * pair.interval.low, 100 * pair.interval.high
    facts = f"{100 * pair.difference:+.1f} points, anytime-valid interval {low:+.1f} to {high:+.1f}"
    if pair.decision is SequentialDecision.UNDECIDED:
        return GateJudgement.undecidable(f"{nothing_shown(compared)}: {facts}")
    return GateJudgement(verdict=GateVerdict(pair.decision), sentence=f"{pair.decision}: {facts}")


def _by_suite(outcomes: Iterable[EvalOutcome]) -> _Suites:
    found: dict[SuiteName, list[EvalOutcome]] = {}
    for outcome in outcomes:
        found.setdefault(suite_of(outcome), []).append(outcome)
    return found


def _sentences(judged: Mapping[str, JudgedPair]) -> list[str]:
    """Return sentences about what is shown, worst first; the joint result comes before suites with the same verdict."""
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
