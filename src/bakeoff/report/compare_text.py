"""A comparison in words: blocks that a terminal, Markdown and a page all show."""

from collections.abc import Iterator

from bakeoff.report.compare import ArmFacts, CompareReport, PairReport
from bakeoff.report.compare_cases import CaseChange, CaseDetail, Outcome, Side
from bakeoff.report.outputs import (
    Block,
    Column,
    Difference,
    Grid,
    Listing,
    Quote,
    Words,
    columns,
    heading,
    paragraph,
)
from bakeoff.report.summary import SubjectSummary
from bakeoff.report.words import UNKNOWN, cost, duration, percent, replay_note, span
from bakeoff.stats import GateVerdict

_MOST_CASES = 50
_MOST_NAMED = 10  # unmatched cases


def describe_comparison(report: CompareReport) -> tuple[Block, ...]:
    """Every verdict before the first line of a difference: where there is little room, the end is what is left out."""
    judged = sum(not pair.control for pair in report.pairs)
    said = [block for pair in report.pairs for block in _pair(pair, many=judged > 1 and not pair.control)]
    shown = [block for pair in report.pairs for block in _details(pair, many=len(report.pairs) > 1)]
    return *said, *shown


def points(share: float | None) -> str:
    """A difference of scores in percentage points, with its sign."""
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def _pair(pair: PairReport, *, many: bool) -> Iterator[Block]:
    yield heading(f"{headword(pair)}: ", *_title(pair))
    holm = " (p adjusted for several comparisons by Holm)" if many and pair.ruling.p_value is not None else ""
    yield paragraph(sentence(f"{pair.ruling.sentence}{holm}"))
    yield paragraph(sentence(pair.gate if pair.control else f"{pair.gate} (exit {pair.exit_code})"))
    yield _arms(pair)
    yield Listing(tuple((line,) for line in how_compared(pair)))
    if pair.mismatches:
        yield heading("Not the same on both sides", level=3)
        yield _mismatches(pair)
    yield from _unmatched(pair)
    yield from _cases(pair)


def sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def verdict_word(verdict: GateVerdict) -> str:
    return verdict.value.capitalize()


def headword(pair: PairReport) -> str:
    """The verdict, and what a reader must not overlook about it."""
    compared = pair.comparison
    remarks = ["control"] if pair.control else []
    remarks += ["unpaired"] if not compared.paired and compared.difference is not None else []
    return verdict_word(pair.ruling.verdict) + (f" ({', '.join(remarks)})" if remarks else "")


def _title(pair: PairReport) -> tuple[Words, ...]:
    old, new = pair.baseline, pair.candidate
    if old.subject == new.subject:
        return Quote(new.subject), " in ", Quote(new.source), " against ", Quote(old.source)
    return Quote(new.subject), " against ", Quote(old.subject)


def _arms(pair: PairReport) -> Grid:
    titles = columns("", "subject", "score>", "95 % interval>", "passed/scored>", "lost>", "cost>", "time>")
    return Grid(
        (*titles, Column("run", least_width=110)), (_arm("baseline", pair.baseline), _arm("candidate", pair.candidate))
    )


def _arm(role: str, facts: ArmFacts) -> tuple[Words, ...]:
    summary = facts.summary
    lost = ", ".join(f"{count} {verdict}" for verdict, count in summary.lost.items()) or "0"
    return (
        f"{role}{' *' if facts.bound else ''}",
        Quote(facts.subject),
        percent(summary.score),
        span(summary.interval),
        passed_of(summary, facts.threshold),
        lost,
        cost(summary.spent.cost),
        duration(summary.seconds),
        Quote(facts.source),
    )


def passed_of(summary: SubjectSummary, threshold: float | None) -> str:
    """Without a threshold nothing passes, and nothing fails to."""
    return f"{UNKNOWN if threshold is None else f'{summary.passed:,}'}/{summary.judged:,}"


def how_compared(pair: PairReport) -> Iterator[str]:
    compared = pair.comparison
    yield _pairing(pair)
    if compared.paired:
        scores = f"the baseline scored {percent(compared.baseline)}, the candidate {percent(compared.candidate)}"
        yield f"over the {compared.cases} compared cases {scores}"
    if compared.interval is not None:
        yield f"interval: {compared.interval.method}; test: {compared.test}"
    if compared.paired:
        yield _detectable(pair.detectable)
    if pair.advice:
        yield pair.advice
    if pair.by_id_alone:
        yield "cases were paired by their names alone: a journal without a plan does not say what was asked"
    for role, facts in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        yield from _caveats(role, facts)


def _detectable(difference: float | None) -> str:
    if difference is None:
        return "how small a difference this comparison would find cannot be estimated from it"
    if difference > 1:
        return "this comparison is too small to find any difference in four of five tries"
    return f"this comparison finds a true difference of {100 * difference:.1f} points in four of five tries"


def _pairing(pair: PairReport) -> str:
    compared = pair.comparison
    if compared.paired:
        outcomes = f"{compared.wins} better, {compared.ties} the same, {compared.losses} worse"
        return f"{compared.cases} cases in pairs: {outcomes}"
    empty = [
        name for name, score in (("baseline", compared.baseline), ("candidate", compared.candidate)) if score is None
    ]
    if empty:
        return f"nothing of the {' and nothing of the '.join(empty)} was scored: there is nothing to compare"
    if pair.cases:
        return "no case was scored in both: the arms were compared unpaired, which finds less"
    return "no case is the same in both: the arms were compared unpaired, which finds less"


def _caveats(role: str, facts: ArmFacts) -> Iterator[str]:
    """What a reader of one side's numbers has to know."""
    summary = facts.summary
    if facts.damaged:
        yield f"{facts.damaged} damaged lines of the {role}'s journal are in no number"
    if summary.missing:
        yield f"{summary.missing} of the {role}'s {summary.planned} trials were not run"
    if summary.replayed:
        yield f"of the {role}, {replay_note(summary.replayed, summary.finished)}"
    if facts.bound:
        yield f"* the {role} knows the hidden answers on purpose"


def _mismatches(pair: PairReport) -> Grid:
    rows = tuple(
        (found.field.replace("_", " "), _known(found.baseline), _known(found.candidate)) for found in pair.mismatches
    )
    return Grid(columns("", "baseline", "candidate"), rows)


def _known(value: str | None) -> Words:
    return "unknown" if value is None else Quote(value)


def _unmatched(pair: PairReport) -> Iterator[Block]:
    items = tuple(_named(words, names) for words, names in unmatched(pair) if names)
    if items:
        yield heading("Cases without a partner", level=3)
        yield Listing(items)


def unmatched(pair: PairReport) -> tuple[tuple[str, list[str]], ...]:
    """Cases without a partner, by what they are."""
    compared = pair.comparison
    # A case that both have and one side did not score stands among the cases.
    told = {*compared.changed, *(case.case for case in pair.cases)}
    return (
        (f"with changed content, and so not {'compared' if compared.paired else 'paired'}", list(compared.changed)),
        ("only in the baseline", [key.id for key in compared.baseline_only if key.id not in told]),
        ("only in the candidate", [key.id for key in compared.candidate_only if key.id not in told]),
    )


def _named(words: str, names: list[str]) -> tuple[Words, ...]:
    shown = [part for name in names[:_MOST_NAMED] for part in (Quote(name), ", ")][:-1]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return (f"{len(names)} {words}: ", *shown, more)


def _cases(pair: PairReport) -> Iterator[Block]:
    changed = [case for case in pair.cases if case.outcome != "tie"]
    if not changed:
        if pair.cases:
            yield paragraph(f"All {len(pair.cases)} cases scored the same.")
        return
    changed.sort(key=losses_first)
    unscored = any(case.outcome == "not scored" for case in changed)
    yield heading("Cases that changed, or were not scored" if unscored else "Cases that changed", level=3)
    titles = (
        Column("case"),
        Column("outcome"),
        Column("baseline", numeric=True),
        Column("candidate", numeric=True),
        Column("points", numeric=True),
        Column("cost", numeric=True, least_width=100),
        Column("time", numeric=True, least_width=100),
        Column("tokens", numeric=True, least_width=120),
        Column("tool calls", numeric=True, least_width=120),
    )
    yield Grid(titles, tuple(map(_case_row, changed[:_MOST_CASES])))
    if len(changed) > _MOST_CASES:
        yield paragraph(f"… and {len(changed) - _MOST_CASES} more; --json has them all.")


def losses_first(case: CaseChange) -> tuple[int, float]:
    """The order in which cases are read: what got worse, then what cannot be told, then what got better."""
    return {"loss": 0, "not scored": 1, "win": 2}.get(case.outcome, 3), case.difference or 0.0


def outcome_word(outcome: Outcome) -> str:
    return {"win": "better", "loss": "worse", "tie": "same"}.get(outcome, outcome)


def _case_row(case: CaseChange) -> tuple[Words, ...]:
    old, new = case.baseline, case.candidate
    return (
        Quote(case.case),
        outcome_word(case.outcome),
        percent(old.score),
        percent(new.score),
        points(case.difference),
        both(cost(old.cost), cost(new.cost)),
        both(duration(old.seconds), duration(new.seconds)),
        both(f"{old.tokens:,}", f"{new.tokens:,}"),
        both(calls(old), calls(new)),
    )


def calls(side: Side) -> str:
    return f"{side.tool_calls:,.1f}".removesuffix(".0")


def both(was: str, now: str) -> str:
    return was if was == now else f"{was} → {now}"


def _details(pair: PairReport, *, many: bool) -> Iterator[Block]:
    cases = {case.case: case for case in pair.cases}
    whose = (Quote(pair.candidate.subject), ", ") if many else ()
    for detail in pair.details:
        yield from _detail(whose, detail, cases[detail.case])


def _detail(whose: tuple[Words, ...], detail: CaseDetail, case: CaseChange) -> Iterator[Block]:
    yield heading(*whose, Quote(case.case), f": {points(case.difference)} points, round {detail.round + 1}", level=3)
    yield Grid(
        columns("", "baseline", "candidate"),
        (
            ("verdicts", verdicts_of(case.baseline), verdicts_of(case.candidate)),
            ("why", Quote(case.baseline.why), Quote(case.candidate.why)),
            ("cost", cost(case.baseline.cost), cost(case.candidate.cost)),
        ),
    )
    for change in detail.changes:
        yield Difference(Quote(change.what), change.lines)


def verdicts_of(side: Side) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in side.verdicts.items()) or "not run"
