"""A comparison as a page: the verdict, the difference drawn with its interval, and every case."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from bakeoff.report.compare import ArmFacts, CompareReport, PairReport
from bakeoff.report.compare_cases import CaseChange, CaseDetail, Outcome, Side
from bakeoff.report.compare_text import (
    both,
    calls,
    headword,
    how_compared,
    losses_first,
    outcome_word,
    passed_of,
    points,
    sentence,
    unmatched,
    verdict_word,
    verdicts_of,
)
from bakeoff.report.html.detail import NAME, shown
from bakeoff.report.html.forest import Difference, forest
from bakeoff.report.html.scores import cost_per_trial, interval_datum, losses
from bakeoff.report.html.section_page import Masthead, source_datum, write_section_page
from bakeoff.report.sections import Block, Column, Datum, Fragment, Section, Table, Text, Tone, Value
from bakeoff.report.words import UNKNOWN, cost, duration, percent, visible
from bakeoff.stats import GateVerdict, Interval

_TONES: dict[GateVerdict, Tone] = {
    GateVerdict.IMPROVED: "pass",
    GateVerdict.EQUIVALENT: "pass",
    GateVerdict.REGRESSED: "fail",
    GateVerdict.UNDECIDABLE: "partial",
}
_OUTCOME_TONES: dict[Outcome, Tone] = {"win": "pass", "loss": "fail", "not scored": "lost", "tie": "muted"}
_GATE_WORDS = {0: "open", 1: "shut", 3: "undecided"}
_LONGEST_REASON = 300


def write_compare_page(path: Path, report: CompareReport) -> Path:
    several = len(report.pairs) > 1
    sections = [_differences(report)] if several else []
    unlisted: set[str] = set()
    for number, pair in enumerate(report.pairs, 1):
        found = list(_pair_sections(path, report, pair, number, several=several))
        sections += found
        unlisted |= {section.id for section in found[1:]} if several else set()
    head = _head_of_several(report) if several else _head_of_one(report.pairs[0])
    return write_section_page(path, head, sections, unlisted=frozenset(unlisted))


def _head_of_one(pair: PairReport) -> Masthead:
    compared, ruling = pair.comparison, pair.ruling
    was, now = cost_per_trial(pair.baseline.summary), cost_per_trial(pair.candidate.summary)
    outcomes = f"{compared.wins:,} · {compared.ties:,} · {compared.losses:,}" if compared.paired else UNKNOWN
    tiles = (
        ("Difference", f"{points(compared.difference)} points", _between(compared.interval)),
        ("Better · same · worse", outcomes, _cases_in(pair)),
        ("Score", _unbroken(both(percent(compared.baseline), percent(compared.candidate))), "over the cases compared"),
        ("p", UNKNOWN if ruling.p_value is None else f"{ruling.p_value:.2g}", compared.test),
        ("Cost of a trial", both(cost(was), cost(now)), ""),
        ("Gate", _GATE_WORDS[pair.exit_code], f"exit {pair.exit_code}"),
    )
    return Masthead(
        title=_title(pair),
        headline=_said(pair),
        badge=headword(pair),
        tone=_TONES[ruling.verdict],
        tiles=tiles,
    )


def _head_of_several(report: CompareReport) -> Masthead:
    first = report.pairs[0]
    judged = [pair for pair in report.pairs if not pair.control]
    verdicts = Counter(pair.ruling.verdict for pair in judged)
    beside = len(report.pairs) - len(judged)
    controls = f" {beside:,} more are controls, which have no say in the gate." if beside else ""
    tiles = [(verdict_word(verdict), f"{verdicts[verdict]:,}", "") for verdict in GateVerdict]
    exit_tile = ("Gate", _GATE_WORDS[report.exit_code], f"exit {report.exit_code}")
    return Masthead(
        title=f"{first.candidate.source} against {first.baseline.source}",
        headline=f"{_subjects_in_both(len(judged))}{controls}",
        tiles=(*tiles, exit_tile),
    )


def _subjects_in_both(number: int) -> str:
    if number == 1:
        return "1 subject is in both."
    return f"{number:,} subjects are in both; p-values are adjusted for that by Holm."


def _said(pair: PairReport) -> str:
    """The ruling and what the gate makes of it, without saying twice that it is undecidable."""
    return f"{sentence(pair.ruling.sentence)} {sentence(pair.gate.removeprefix('undecidable: '))}"


def _unbroken(text: str) -> str:
    """Figures that stay together with their unit where there is little room."""
    return text.replace(" %", "\u00a0%")


def _title(pair: PairReport) -> str:
    old, new = pair.baseline, pair.candidate
    if old.subject != new.subject:
        return f"{visible(new.subject, 80)} against {visible(old.subject, 80)}"
    return f"{visible(new.subject, 80)} in {visible(new.source, 80)} against {visible(old.source, 80)}"


def _cases_in(pair: PairReport) -> str:
    compared = pair.comparison
    if compared.paired:
        return f"of {compared.cases:,} cases in pairs"
    return "unpaired" if compared.difference is not None else "nothing to compare"


def _between(interval: Interval | None) -> str:
    return "interval undefined" if interval is None else f"95 %: {points(interval.low)} to {points(interval.high)}"


def _differences(report: CompareReport) -> Section:
    """All pairs in one drawing, for a comparison of several."""
    drawing = forest(
        [_difference(pair, pair.candidate.subject) for pair in report.pairs], _drawn(report), report.margin
    )
    columns = (
        Column(title="Subject"),
        Column(title="Verdict"),
        Column(title="Points", align="end"),
        Column(title="95 % interval", align="end"),
        Column(title="p", align="end", help="adjusted by Holm"),
        Column(title="Better", align="end"),
        Column(title="Same", align="end"),
        Column(title="Worse", align="end"),
        Column(title="Cost of a trial", align="end"),
    )
    rows = tuple(_pair_row(pair, number) for number, pair in enumerate(report.pairs, 1))
    table = Table(columns=columns, rows=rows, caption="Every subject that both have")
    return Section(id="differences", title="Differences", blocks=(drawing, table), lead=_drawing_lead(report.margin))


def _pair_row(pair: PairReport, number: int) -> tuple[Value, ...]:
    compared, ruling = pair.comparison, pair.ruling
    was, now = cost_per_trial(pair.baseline.summary), cost_per_trial(pair.candidate.summary)
    interval = compared.interval
    return (
        Datum(text=visible(pair.candidate.subject, NAME), href=f"#pair-{number}"),
        Datum(text=headword(pair), tone=_TONES[ruling.verdict]),
        Datum(text=points(compared.difference), sort=compared.difference),
        Datum(text=f"{points(interval.low)} to {points(interval.high)}" if interval else "undefined"),
        Datum(text=UNKNOWN if ruling.p_value is None else f"{ruling.p_value:.2g}", sort=ruling.p_value),
        *(Datum(text=f"{count:,}", sort=count) for count in (compared.wins, compared.ties, compared.losses)),
        Datum(text=both(cost(was), cost(now)), sort=now),
    )


def _difference(pair: PairReport, label: str) -> Difference:
    compared = pair.comparison
    return Difference(
        label=label,
        value=compared.difference,
        interval=_ends(compared.interval),
        inner=_ends(compared.inner),
        verdict=headword(pair),
    )


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return (interval.low, interval.high) if interval else None


def _drawn(report: CompareReport) -> str:
    paired = all(pair.comparison.paired for pair in report.pairs)
    return f"{'Paired difference' if paired else 'Difference'}, candidate minus baseline"


def _drawing_lead(margin: float | None) -> str:
    lead = "The line is the 95 % interval, its thick part the 90 % interval from which equivalence is read."
    return f"{lead} Shaded: within ±{100 * margin:g} points." if margin else lead


def _pair_sections(
    path: Path, report: CompareReport, pair: PairReport, number: int, *, several: bool
) -> Iterator[Section]:
    """One pair: what was compared, under what circumstances, and each case."""
    of = f"{visible(pair.candidate.subject, 60)}: " if several else ""
    ids = [f"{name}-{number}" if several else name for name in ("circumstances", "cases", "unmatched", "changes")]
    yield _sides(path, report, pair, number, several=several)
    if pair.cases:
        yield _cases(pair, number, ids[1], f"{of}Cases")
    if pair.details:
        lead = "Of each, the first round that ended differently. Cases that lost most come first."
        blocks = tuple(_detail(pair, detail, number, place) for place, detail in enumerate(pair.details))
        yield Section(id=ids[3], title=f"{of}What changed", blocks=blocks, lead=lead)
    yield _circumstances(pair, ids[0], f"{of}Not the same on both sides")
    if any(names for _, names in unmatched(pair)):
        yield _unmatched(pair, ids[2], f"{of}Cases without a partner")


def _sides(path: Path, report: CompareReport, pair: PairReport, number: int, *, several: bool) -> Section:
    columns = (
        Column(title="Side"),
        Column(title="Subject"),
        Column(title="Score", align="end", help="over all its cases"),
        Column(title="95 % interval"),
        Column(title="Passed / scored", align="end"),
        Column(title="Lost", align="end", help="to budget, infra or grader: not the subject's doing, not in its score"),
        Column(title="Cost", align="end"),
        Column(title="Time", align="end", help="mean of a scored trial"),
        Column(title="Run"),
    )
    rows = (_side(path, "Baseline", pair.baseline), _side(path, "Candidate", pair.candidate))
    notes = tuple(sentence(words) for words in how_compared(pair))
    blocks: list[Block] = [Table(columns=columns, rows=rows, caption="Both sides", notes=notes)]
    if several:
        said = Text(text=_said(pair))
        title = visible(pair.candidate.subject, NAME)
        return Section(id=f"pair-{number}", title=title, blocks=(said, *blocks))
    drawing = forest([_difference(pair, f"{points(pair.comparison.difference)} points")], _drawn(report), report.margin)
    return Section(id="difference", title="Difference", blocks=(drawing, *blocks), lead=_drawing_lead(report.margin))


def _side(path: Path, role: str, facts: ArmFacts) -> tuple[Value, ...]:
    summary = facts.summary
    return (
        Datum(text=f"{role} *" if facts.bound else role, tone="strong"),
        visible(facts.subject, NAME),
        Datum(text=percent(summary.score), sort=summary.score, tone="strong"),
        interval_datum(summary.score, summary.interval),
        Datum(text=passed_of(summary, facts.threshold).replace("/", " / "), sort=summary.passed),
        losses(summary),
        Datum(text=cost(summary.spent.cost), sort=summary.spent.cost),
        Datum(text=duration(summary.seconds), sort=summary.seconds),
        source_datum(path, facts.source, facts.path),
    )


def _circumstances(pair: PairReport, place: str, title: str) -> Section:
    if not pair.mismatches:
        text = Text(text="Nothing that is known of both sides differs.", tone="muted")
        return Section(id=place, title=title, blocks=(text,))
    columns = (Column(title="Circumstance"), Column(title="Baseline"), Column(title="Candidate"))
    rows = tuple(
        (found.field.replace("_", " "), _known(found.baseline), _known(found.candidate)) for found in pair.mismatches
    )
    lead = "A difference in score may be due to any of these."
    table = Table(columns=columns, rows=rows, caption=title)
    return Section(id=place, title=title, blocks=(table,), lead=lead)


def _known(value: str | None) -> Datum:
    return Datum(text="unknown", tone="muted") if value is None else Datum(text=visible(value, _LONGEST_REASON))


def _unmatched(pair: PairReport, place: str, title: str) -> Section:
    rows = tuple((visible(name, NAME), words) for words, names in unmatched(pair) for name in names)
    columns = (Column(title="Case"), Column(title="Why it is not compared"))
    lead = "; ".join(f"{len(names):,} {words}" for words, names in unmatched(pair) if names)
    table = Table(columns=columns, rows=rows, caption=title)
    return Section(id=place, title=title, blocks=(table,), lead=sentence(lead))


def _cases(pair: PairReport, number: int, place: str, title: str) -> Section:
    columns = (
        Column(title="Case"),
        Column(title="Outcome"),
        Column(title="Baseline", align="end"),
        Column(title="Candidate", align="end"),
        Column(title="Points", align="end"),
        Column(title="Cost", align="end", help="of a round"),
        Column(title="Time", align="end", help="of a round"),
        Column(title="Tokens", align="end", help="of a round"),
        Column(title="Tool calls", align="end", help="of a round"),
        Column(title="Why", help="why the candidate did not pass"),
    )
    opened = {detail.case: _place_of(number, at) for at, detail in enumerate(pair.details)}
    rows = tuple(_case_row(case, opened.get(case.case)) for case in sorted(pair.cases, key=losses_first))
    counts = Counter(case.outcome for case in pair.cases)
    told = [f"{counts[name]:,} {outcome_word(name)}" for name in ("loss", "not scored", "win", "tie") if counts[name]]
    table = Table(columns=columns, rows=rows, caption="Every case that both have, what got worse first")
    return Section(id=place, title=title, blocks=(table,), lead=sentence(", ".join(told)))


def _case_row(case: CaseChange, href: str | None) -> tuple[Value, ...]:
    old, new = case.baseline, case.candidate
    changes = (
        (both(cost(old.cost), cost(new.cost)), new.cost),
        (both(duration(old.seconds), duration(new.seconds)), new.seconds),
        (both(f"{old.tokens:,}", f"{new.tokens:,}"), min(new.tokens, 2**53)),
        (both(calls(old), calls(new)), new.tool_calls),
    )
    return (
        Datum(text=visible(case.case, NAME), href=href),
        Datum(text=outcome_word(case.outcome), tone=_OUTCOME_TONES[case.outcome]),
        Datum(text=percent(old.score), sort=old.score),
        Datum(text=percent(new.score), sort=new.score),
        Datum(text=points(case.difference), sort=case.difference, tone="strong"),
        *(Datum(text=text, sort=sort) for text, sort in changes),
        visible(new.why, 160),
    )


def _place_of(number: int, at: int) -> str:
    return f"#change-{number}-{at + 1}"


def _detail(pair: PairReport, detail: CaseDetail, number: int, at: int) -> Fragment:
    case = next(case for case in pair.cases if case.case == detail.case)
    rows: list[JsonValue] = [
        ["Verdicts", verdicts_of(case.baseline), verdicts_of(case.candidate)],
        ["Why", _why(case.baseline), _why(case.candidate)],
        ["Cost", cost(case.baseline.cost), cost(case.candidate.cost)],
        ["Time", duration(case.baseline.seconds), duration(case.candidate.seconds)],
    ]
    changes: list[JsonValue] = [
        {"title": visible(change.what), "language": "diff", "text": shown("\n".join(change.lines))}
        for change in detail.changes
    ]
    data: dict[str, JsonValue] = {
        "id": _place_of(number, at)[1:],
        "title": visible(case.case, NAME),
        "about": f"{points(case.difference)} points, round {detail.round + 1:,}",
        "rows": rows,
        "changes": changes,
    }
    return Fragment(package="bakeoff.report.html", template="case_change.html", data=data)


def _why(side: Side) -> str:
    return visible(side.why, _LONGEST_REASON) or UNKNOWN
