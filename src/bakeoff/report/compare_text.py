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
from bakeoff.report.words import UNKNOWN, cost, duration, percent, replay_note, span
from bakeoff.stats import GateVerdict

_MOST_CASES = 50
_MOST_NAMED = 10  # unmatched cases


def describe_comparison(report: CompareReport) -> tuple[Block, ...]:
    return tuple(block for pair in report.pairs for block in _pair(pair, many=len(report.pairs) > 1))


def points(share: float | None) -> str:
    """A difference of scores in percentage points, with its sign."""
    return UNKNOWN if share is None else f"{100 * share:+.1f}"


def _pair(pair: PairReport, *, many: bool) -> Iterator[Block]:
    yield heading(verdict_word(pair.ruling.verdict), ": ", *_title(pair))
    holm = " (p adjusted for several comparisons by Holm)" if many and pair.ruling.p_value is not None else ""
    yield paragraph(sentence(f"{pair.ruling.sentence}{holm}"))
    yield paragraph(sentence(f"{pair.gate} (exit {pair.exit_code})"))
    yield _arms(pair)
    yield Listing(tuple((line,) for line in how_compared(pair)))
    if pair.mismatches:
        yield heading("Not the same on both sides", level=3)
        yield _mismatches(pair)
    yield from _unmatched(pair)
    yield from _cases(pair)
    for detail in pair.details:
        yield from _detail(detail, next(case for case in pair.cases if case.case == detail.case))


def sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def verdict_word(verdict: GateVerdict) -> str:
    return verdict.value.capitalize()


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
        f"{summary.passed}/{summary.scored}",
        lost,
        cost(summary.spent.cost),
        duration(summary.seconds),
        Quote(facts.source),
    )


def how_compared(pair: PairReport) -> Iterator[str]:
    compared = pair.comparison
    if compared.paired:
        outcomes = f"{compared.wins} better, {compared.ties} the same, {compared.losses} worse"
        yield f"{compared.cases} cases in pairs: {outcomes}"
    else:
        yield "no case is in both: the arms were compared unpaired, which finds less"
    if compared.interval is not None:
        yield f"interval: {compared.interval.method}; test: {compared.test}"
    if pair.detectable is not None:
        yield f"this comparison finds a true difference of {100 * pair.detectable:.1f} points in four of five tries"
    if pair.advice:
        yield pair.advice
    if pair.by_id_alone:
        yield "cases were paired by their names alone: a journal without a plan does not say what was asked"
    for role, facts in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        yield from _caveats(role, facts)


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
    compared, changed = pair.comparison, set(pair.comparison.changed)
    return (
        ("with changed content, and so not compared", list(compared.changed)),
        ("only in the baseline", [key.id for key in compared.baseline_only if key.id not in changed]),
        ("only in the candidate", [key.id for key in compared.candidate_only if key.id not in changed]),
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
    yield heading("Cases that changed", level=3)
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
        both(str(old.tool_calls), str(new.tool_calls)),
    )


def both(was: str, now: str) -> str:
    return was if was == now else f"{was} → {now}"


def _detail(detail: CaseDetail, case: CaseChange) -> Iterator[Block]:
    yield heading(Quote(case.case), f": {points(case.difference)} points, round {detail.round + 1}", level=3)
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
