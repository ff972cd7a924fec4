"""Answer the question of a run in one sentence: which prompt or subject is better, by how much, and at what cost."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from math import comb

from bakeoff._kernel.text import count_of, visible
from bakeoff.plan import Plan
from bakeoff.report.compare.factors import compare_levels, factors_of, strongest_first
from bakeoff.report.compare.within_run import CellsOf, by_key
from bakeoff.report.formatting import NO_INTERVAL, percent, span
from bakeoff.report.gates import GateEvidence, of_shard_alone
from bakeoff.report.judges.calibration import Judgements, calibrated_pairs
from bakeoff.report.summary import Comparisons, SubjectSummary, Summary
from bakeoff.stats.cells import Cells
from bakeoff.stats.comparison import compare
from bakeoff.stats.gates import Losses, UnequalLosses, not_told_apart
from bakeoff.stats.intervals import ALPHA, TOO_SMALL, ratio_interval
from bakeoff.stats.ranking import Standing, leaderboard
from bakeoff.stats.sequential import SequentialDecision
from bakeoff.verdict import Verdict

_NAME = 60
_MAX_NAMED = 4
_MAX_CELLS = 200_000  # comparing more would hold up a page
_REASON = 160  # characters
_TOO_FEW = "they share too few cases"
_SAME_COST = 1.05  # a smaller ratio is not mentioned


def answer(plan: Plan, summary: Summary, cells_of: CellsOf, judgements: Judgements | None = None) -> str:
    """Say which prompt, treatment or subject is better, and what is missing and why.

    Controls are left out; `cells_of` returns the scores of a subject by case. If the only scorer
    is a judge and people's labels correct its scores, the corrected scores come first.
    """
    found = _by_factor(plan, summary, cells_of) or _as_scored(summary, cells_of)
    corrected = None if judgements is None else _corrected(summary, judgements)
    scored = found if corrected is None else f"{corrected} As the judge scored: {found}"
    about_cases = (what_is_unfit(summary), what_controls_show(summary, cells_of))
    return " ".join(filter(None, (what_always_failed(summary), scored, what_is_missing(summary), *about_cases)))


def run_evidence(summary: Summary, fail_under: float | None = None, *, controls: bool = False) -> GateEvidence:
    """Return the evidence for the gate of a run: no trial may fail, or every score must reach `fail_under`.

    A failed control counts only with `controls`. A shard is judged without the other shards.
    """
    judged, alone = summary.judged, "" if summary.merged else of_shard_alone(summary.ledger.shards)
    found = GateEvidence(ledgers={"": summary.gated_ledger})
    if fail_under is None:
        tried = [one for one in judged if controls or not one.control]
        passed, failed = sum(one.passed for one in tried), sum(one.failed for one in tried)
        if not passed + failed:
            return replace(found, sentence=f"there is no trial that could fail{alone}")
        said = f"{passed:,} of {passed + failed:,} passed{alone}"
        return replace(found, wanted=1.0, value=passed / (passed + failed), sentence=said)
    scored = sorted((one.score, _name(one)) for one in judged if one.score is not None)
    found = replace(found, wanted=fail_under, refused=len(scored) < len(judged))
    if not scored:
        return replace(found, best=1.0, sentence="nothing was scored")
    score, name = scored[0]
    lowest = f"the lowest score is {score:.3f} ({name})" if len(scored) > 1 else f"{name} scored {score:.3f}"
    return replace(found, value=score, sentence=f"{lowest}, wanted {fail_under:g}{alone}")


def what_always_failed(summary: Summary) -> str:
    """Name the subjects whose trials all ended with the same error: their scores say nothing about answers."""
    failed = [one for one in summary.judged if one.same_error is not None]
    told = []
    for one in failed[:_MAX_NAMED]:
        alike = f"the same error in all {one.finished:,} trials" if one.finished > 1 else "an error in its only trial"
        told.append(f"{_name(one)} failed with {alike}: {one.same_error}")
    more = f" So did {len(failed) - _MAX_NAMED:,} more." if len(failed) > _MAX_NAMED else ""
    return " ".join(f"{line.rstrip(' .')}." for line in told) + more


def what_controls_show(summary: Summary, cells_of: CellsOf) -> str:
    """Name the cases whose reference answer fails, and those that `nop` passes without an answer."""
    planned = sum(one.planned for one in summary.subjects)
    if not summary.thresholds or planned > _MAX_CELLS:
        return ""
    low, high = summary.thresholds[0], summary.thresholds[-1]  # the threshold of a single case is not known here
    controls = {one.subject for one in summary.subjects if one.control}
    failed = [case for case, cell in cells_of("oracle").items() if cell.mean < low] if "oracle" in controls else []
    passed = [case for case, cell in cells_of("nop").items() if cell.mean >= high] if "nop" in controls else []
    answers = "answers fail" if len(failed) > 1 else "answer fails"
    found = (
        f"The reference {answers} {_named(failed)}: check `expected` and the scorers." if failed else "",
        f"`nop` does nothing and passes {_named(passed)}: nothing is measured there." if passed else "",
    )
    return " ".join(filter(None, found))


def _named(cases: Sequence[str]) -> str:
    return f"{count_of(len(cases), 'case')} ({_first([visible(case, _NAME) for case in cases])})"


def _first(texts: Sequence[str]) -> str:
    return ", ".join([*texts[:_MAX_NAMED], *(["…"] if len(texts) > _MAX_NAMED else [])])


def what_is_unfit(summary: Summary) -> str:
    """Name the cases whose reference solution fails some of its tests; empty if there are none."""
    if not summary.unfit:
        return ""
    tests = {one.case: f"{one.broken:,}{f' of {one.tests:,}' if one.tests else ''}" for one in summary.unfit}
    named = _first([f"{visible(case, _NAME)} ({broken})" for case, broken in tests.items()])
    return f"{count_of(len(tests), 'case is', 'cases are')} unfit, as the reference fails tests: {named}."


def what_is_missing(summary: Summary) -> str:
    """Say how many trials have no score, and why; empty if all have one. Controls do not count."""
    subjects = summary.judged
    counts, reasons = Counter[Verdict](), Counter[tuple[Verdict, str]]()
    for one in subjects:
        counts.update(one.lost)
        reasons.update({(loss.verdict, loss.reason): loss.trials for loss in one.losses})
    not_run = sum(one.missing for one in subjects)
    without = counts.total() + not_run
    if not without:
        return ""
    parts = [f"{count:,} lost to {verdict}{_reason(verdict, count, reasons)}" for verdict, count in counts.items()]
    parts += [f"{not_run:,} not run"] if not_run else []
    planned = sum(one.planned for one in subjects)
    verb = "has" if planned == 1 else "have"
    missing = f"{without:,} of {count_of(planned, 'trial')} {verb} no score: {', '.join(parts)}."
    return " ".join(filter(None, (missing, what_was_lost_unequally(summary.unequal_losses))))


def what_was_lost_unequally(found: Sequence[UnequalLosses]) -> str:
    """Name the clearest pair of subjects with unequal losses of trials; empty if there is none.

    A subject that loses the trials it cannot solve gets too good a score.
    """
    if not found:
        return ""
    first = found[0]
    most, least = Losses(first.more_trials, first.more_lost), Losses(first.fewer_trials, first.fewer_lost)
    pairs = f"; so do {count_of(len(found) - 1, 'more pair')}" if len(found) > 1 else ""
    return (
        f"Losses are more unequal than chance: {visible(first.more, _NAME)} lost {most} to infra or grader, "
        f"{visible(first.fewer, _NAME)} {least} (Fisher's exact test, p = {first.p_value:.2g}){pairs}. "
        "Their scores are not of the same trials, so the comparison may be biased."
    )


def _reason(verdict: Verdict, count: int, reasons: Mapping[tuple[Verdict, str], int]) -> str:
    found = sorted(((trials, why) for (kind, why), trials in reasons.items() if kind == verdict), reverse=True)
    if not found:
        return ""
    [(trials, why), *others] = found
    many = f" in {trials:,} of them" if trials < count else ""
    return f" ({visible(why, _REASON).rstrip('.')}{many}{'; …' if others and not many else ''})"


def _corrected(summary: Summary, judgements: Judgements) -> str | None:
    """Answer by corrected scores; return None if the score of any subject cannot be corrected."""
    scored = [one.subject for one in summary.subjects if not one.control and one.score is not None]
    judges = [scorer for scorer in judgements.scorers if scorer in judgements.labels.scorers]
    if summary.comparisons is not None or len(judges) != 1 or judgements.names != {judges[0]}:
        return None
    found = {subject: judgements.calibration(judges[0], subject).corrected for subject in scored}
    known = {subject: one for subject, one in found.items() if one is not None}
    if not known or len(known) < len(found):
        return None
    names = sorted(known, key=lambda name: -known[name].value)
    if len(names) == 2:
        return f"Corrected by labels, {_corrected_pair(names, [known[name].value for name in names], judgements)}."
    around = f" ({span(known[names[0]].interval)})" if len(names) == 1 else ""
    scores = _first([f"{visible(name, _NAME)} {percent(known[name].value)}" for name in names])
    return f"Corrected by labels: {scores}{around}."


def _corrected_pair(names: Sequence[str], values: Sequence[float], judgements: Judgements) -> str:
    """Compare two subjects by corrected scores. The subject with the higher score comes first."""
    [found] = [pair.corrected for pair in calibrated_pairs(judgements, judgements, (names[1], names[0]))]
    better, other = (visible(name, _NAME) for name in names)
    scores = " and ".join(map(percent, values))
    if found is None or found.p_value is None:
        return f"{better} and {other} cannot be told apart ({scores})"
    if found.p_value <= ALPHA and found.difference > 0:
        return f"{better} is better than {other} ({scores}, p = {found.p_value:.2g})"
    facts = not_told_apart(found.difference, found.interval)
    return f"{better} and {other} cannot be told apart ({scores}, p = {found.p_value:.2g}; {facts})"


def _by_factor(plan: Plan, summary: Summary, cells_of: CellsOf) -> str:
    """Return the answer for a run with several prompts, or treatments of several subjects; else an empty text."""
    scored = [one for one in summary.judged if one.score is not None]
    if summary.comparisons is not None or summary.cases * len(scored) > _MAX_CELLS:
        return ""
    factors = factors_of(plan, summary, cells_of)
    found = strongest_first(compare_levels(factors)) if "prompt" in factors or len(factors) > 1 else ""
    return f"{found}{_costs(scored)}." if found else ""


def _as_scored(summary: Summary, cells_of: CellsOf) -> str:
    scored = [one for one in summary.subjects if not one.control and one.score is not None]
    if not scored:
        controls = [one for one in summary.subjects if one.score is not None]
        if controls:
            only = "Only controls ran" if summary.only_controls else "Only controls were scored"
            return f"{only}, which test the cases: {_scores(controls)}."
        return "Nothing was scored." if summary.finished else "Nothing has been run yet."
    scored.sort(key=lambda one: -(one.score or 0.0))
    if len(scored) == 1:
        [one] = scored
        interval = f" ({span(one.interval)})" if one.interval else f", the interval {NO_INTERVAL}"
        return f"{_name(one)} scored {percent(one.score)}{interval}."
    if summary.comparisons is not None:
        return f"{_decided(scored, summary.comparisons)}{_costs(scored) if len(scored) == 2 else ''}."
    if summary.cases * len(scored) > _MAX_CELLS:
        return f"{len(scored):,} subjects were scored: {_scores(scored)}."
    cells = {one.subject: by_key(cells_of(one.subject)) for one in scored}
    if len(scored) == 2:
        return f"{_of_two(scored, cells)}{_costs(scored)}."
    standings = {standing.subject: standing for standing in leaderboard(cells)}
    # The subjects that no other is better than, best score first.
    first = [one for one in scored if standings[one.subject].best == 1 and not standings[one.subject].undefined]
    return f"{_of_many(scored, first, standings, cells)}{_costs(first)}."


def _decided(scored: Sequence[SubjectSummary], compared: Comparisons) -> str:
    """Answer for a run that stops as soon as it is decided: usual p-values would be invalid."""
    improved, regressed = SequentialDecision.IMPROVED, SequentialDecision.REGRESSED
    told = [(pair.second, pair.first) for pair in compared.pairs if pair.decision is improved]
    told += [(pair.first, pair.second) for pair in compared.pairs if pair.decision is regressed]
    worse = {lower for _, lower in told}
    first = [one for one in scored if one.subject not in worse]
    if len(first) < 2:
        wins = sum(upper == first[0].subject for upper, _ in told) if first else 0
        return _leader(first, wins, scored, ", anytime-valid")
    best = f"the best of {len(scored):,} and " if len(first) < len(scored) else ""
    verdict, more = _alike({one.subject for one in first}, compared)
    return f"{_names(first)} are {best}{verdict} ({_scores_only(first)}, anytime-valid){more}"


def _alike(subjects: Set[str], compared: Comparisons) -> tuple[str, str]:
    """Return a phrase for subjects of which none is better, and a remark on equivalent pairs."""
    among = [pair for pair in compared.pairs if {pair.first, pair.second} <= subjects]
    alike = [pair for pair in among if pair.decision is SequentialDecision.EQUIVALENT]
    within = f"equivalent within ±{100 * (compared.margin or 0.0):g} points"
    if alike and len(alike) == len(among):
        return within, ""
    if len(alike) == 1:
        first, second = visible(alike[0].first, _NAME), visible(alike[0].second, _NAME)
        return "not told apart", f"; {first} and {second} are {within}"
    return "not told apart", f"; {len(alike):,} of their {len(among):,} pairs are {within}" if alike else ""


def _leader(first: Sequence[SubjectSummary], wins: int, scored: Sequence[SubjectSummary], how: str = "") -> str:
    """Answer if at most one subject is unbeaten; `wins` is the number of subjects that it beats."""
    others = len(scored) - 1
    if not first:  # each is worse than some other
        return f"None of {len(scored):,} subjects is the best ({_scores(scored)}{how})"
    if wins < others:
        beaten = f"which is better than {wins:,} of {others:,} others"
        return f"No subject is better than {_name(first[0])}, {beaten} ({_scores(scored)}{how})"
    than = f"all {others:,} others" if others > 1 else _name(next(one for one in scored if one is not first[0]))
    return f"{_name(first[0])} is better than {than} ({_scores(scored)}{how})"


def _of_two(scored: Sequence[SubjectSummary], cells: Mapping[str, Cells]) -> str:
    better, other = scored
    compared = compare(cells[other.subject], cells[better.subject])
    chance = compared.p_value
    unpaired = "" if compared.paired else ", on different cases"
    same = f"both {percent(better.score)}" if better.score == other.score else _scores_only(scored)
    if chance is None:
        return f"{_name(better)} and {_name(other)} cannot be compared: {_TOO_FEW} ({same}{unpaired})"
    if chance > compared.alpha or not compared.difference:
        facts = not_told_apart(compared.difference or 0.0, compared.interval)
        return f"{_name(better)} and {_name(other)} cannot be told apart ({same}, p = {chance:.2g}{unpaired}; {facts})"
    ahead = f"+{100 * abs(compared.difference):.1f} points"
    if compared.difference < 0:  # each also has cases that the other has not
        common = f"{ahead} over the {count_of(compared.cases, 'case')} that both have"
        return f"{_name(other)} is better than {_name(better)} ({common}, p = {chance:.2g})"
    return f"{_name(better)} is better than {_name(other)} ({same}, {ahead}, p = {chance:.2g}{unpaired})"


def _of_many(
    scored: Sequence[SubjectSummary],
    first: Sequence[SubjectSummary],
    standings: Mapping[str, Standing],
    cells: Mapping[str, Cells],
) -> str:
    ranked = sum(not standing.undefined for standing in standings.values())
    if not ranked:
        return f"{len(scored):,} subjects cannot be compared: {_TOO_FEW} ({_scores(scored)})"
    if len(first) < 2:
        return _leader(first, ranked - standings[first[0].subject].worst if first else 0, scored)
    level = ALPHA / comb(len(scored), 2)
    ends = compare(cells[first[-1].subject], cells[first[0].subject], level=level)
    facts = f"{_scores_only(first)}; first and last: {not_told_apart(ends.difference or 0.0, ends.interval, level)}"
    best = "" if len(first) == len(scored) else f"are the best of {len(scored):,} and "
    return f"{_names(first)} {best}cannot be told apart ({facts})"


def _costs(scored: Sequence[SubjectSummary]) -> str:
    """Say how many times more the most expensive subject costs per trial than the cheapest."""
    known = [(one.cost_per_trial, one) for one in scored if one.cost_per_trial is not None]
    if len(known) < 2 or len(known) < len(scored):
        return ""
    (least, cheap), (most, dear) = (pick(known, key=lambda pair: pair[0]) for pick in (min, max))
    if not least:
        return f"; {_name(cheap)} costs nothing" if most else ""
    if most / least < _SAME_COST:
        return ""
    than = "" if len(scored) == 2 else f" as much as {_name(cheap)}"
    times = most / least
    return f"; {_name(dear)} costs {_times(times)}×{than}{_cost_range(dear, cheap)}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


def _cost_range(dear: SubjectSummary, cheap: SubjectSummary) -> str:
    """Return the interval of the cost ratio, over the cases that both tried equally often."""
    both = [unit for unit in cheap.costs if unit in dear.costs and dear.costs[unit][0] == cheap.costs[unit][0]]
    paid = ([subject.costs[unit][1] for unit in both] for subject in (dear, cheap))
    found = ratio_interval([cheap.costs[unit][0] for unit in both], *paid) if len(both) == len(cheap.costs) else None
    if found is None:
        return ""
    return f" ({_times(found.low)} to {_times(found.high)}{'' if found.promised else f', {TOO_SMALL}'})"


def _name(one: SubjectSummary) -> str:
    return visible(one.subject, _NAME)


def _names(subjects: Sequence[SubjectSummary]) -> str:
    names = [_name(one) for one in subjects[:_MAX_NAMED]]
    if len(subjects) > _MAX_NAMED:
        return f"{', '.join(names)} and {len(subjects) - _MAX_NAMED:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _scores(subjects: Sequence[SubjectSummary]) -> str:
    return _first([f"{_name(one)} {percent(one.score)}" for one in subjects])


def _scores_only(subjects: Sequence[SubjectSummary]) -> str:
    if len(subjects) == 2:
        return " and ".join(percent(one.score) for one in subjects)
    return _first([percent(one.score) for one in subjects])
