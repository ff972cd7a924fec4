"""Describe a comparison: the verdict, the difference with its interval, and every case."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.report.blocks import (
    Block,
    Code,
    Column,
    Datum,
    Difference,
    ForestPlot,
    Mark,
    Phrase,
    Quote,
    Report,
    Section,
    Table,
    TextBlock,
    Tone,
    Value,
    columns,
    mark_of,
)
from bakeoff.report.compare.cases import CaseChange, CaseDetail, Outcome, Side
from bakeoff.report.compare.comparison import ArmFacts, CompareReport, PairReport
from bakeoff.report.formatting import UNKNOWN, cost, duration, percent, points, points_range, replay_note, sentence
from bakeoff.report.judges.calibration import CalibratedPair
from bakeoff.report.scores import SCORE_COLUMNS, score_cells
from bakeoff.stats.gates import GateVerdict

VERDICT_TONES: dict[GateVerdict, Tone] = {
    GateVerdict.IMPROVED: "pass",
    GateVerdict.EQUIVALENT: "pass",
    GateVerdict.REGRESSED: "fail",
    GateVerdict.UNDECIDABLE: "partial",
}
_OUTCOMES: dict[Outcome, tuple[str, Tone]] = {
    "loss": ("worse", "fail"),
    "not scored": ("not scored", "lost"),
    "win": ("better", "pass"),
    "tie": ("same", "muted"),
}
_GATES = {0: "open", 1: "shut", 3: "refused"}
_POWER = "with a power of 80 %"
_MAX_OPEN = 2  # pairs whose sections are open on a page; of more, only regressions are
_MAX_IN_MENU = 4  # pairs
_MAX_CASES = 50  # that text shows


@dataclass(frozen=True, slots=True)
class _Chapter:
    """The sections of one pair: its name is in their titles and ids where there are several pairs."""

    pair: PairReport
    number: int
    several: bool

    def section(self, id_: str, title: str, *blocks: Block, lead: str = "") -> Section:
        """Return a section of this pair, with the subject in its title where there are several pairs."""
        if not self.several:
            return Section(id_, title, blocks, lead)
        title = f"{visible(self.pair.candidate.subject, 60)}: {title}"
        return Section(f"{id_}-{self.number}", title, blocks, lead, in_menu=False)

    def detail_id(self, place: int) -> str:
        """Return the id of the section about the case at this place, to link to."""
        return f"change-{self.number}-{place + 1}"


def describe_comparison(report: CompareReport) -> Report:
    """Describe all pairs: the verdict, both sides, every case, and the conditions that differ.

    One pair is a report of its own; several have an overview with one plot, and a section each. Differences of texts
    come last, because they are what a short output leaves out first.
    """
    several = len(report.pairs) > 1
    chapters = [_Chapter(pair, number, several) for number, pair in enumerate(report.pairs, 1)]
    sections = (
        *([_differences(report)] if several else []),
        *(section for chapter in chapters for section in _chapter(report, chapter)),
        *(_details(chapter) for chapter in chapters if chapter.pair.details),
    )
    return _overview(report, sections) if several else _single(report.pairs[0], sections)


def _single(pair: PairReport, sections: tuple[Section, ...]) -> Report:
    compared, old, new = pair.comparison, pair.baseline, pair.candidate
    outcomes, pairing = UNKNOWN, "unpaired" if compared.difference is not None else "nothing to compare"
    if compared.paired:
        outcomes = f"{compared.wins:,} · {compared.ties:,} · {compared.losses:,}"
        pairing = f"of {count_of(compared.cases, 'case')} in pairs"
    scores = _change(percent(compared.baseline), percent(compared.candidate)).replace(" %", "\u00a0%")
    around = f"95 %: {points_range(compared.interval)}" if compared.interval else "interval undefined"
    tiles = (
        ("Difference", f"{points(compared.difference)} points", around),
        ("Better · same · worse", outcomes, pairing),
        ("Score", scores, "over the compared cases"),
        ("p", _p_value(pair), compared.test),
        ("Cost of a trial", _cost_change(pair), ""),
        ("Gate", _GATES[pair.exit_code], f"exit {pair.exit_code}"),
    )
    title: Phrase = (Quote(new.subject), " against ", Quote(old.subject))
    if old.subject == new.subject:
        title = (Quote(new.subject), " in ", Quote(new.source), " against ", Quote(old.source))
    headline = f"{_ruling(pair, adjusted=False)} Exit code {pair.exit_code}."
    return Report(title, sections, _verdict(pair), VERDICT_TONES[pair.ruling.verdict], headline, tiles)


def _overview(report: CompareReport, sections: tuple[Section, ...]) -> Report:
    first = report.pairs[0]
    judged = [pair for pair in report.pairs if not pair.control]
    verdicts = Counter(pair.ruling.verdict for pair in judged)
    headline = "1 subject is in both."
    if len(judged) != 1:
        headline = f"{len(judged):,} subjects are in both; p-values and intervals are adjusted by Holm's method."
    if controls := len(report.pairs) - len(judged):
        more = count_of(controls, "more is a control", "more are controls")
        headline += f" {more}, without influence on the gate."
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items())
    headline = f"{sentence(counts)} The gate is {_GATES[report.exit_code]}: exit code {report.exit_code}. {headline}"
    tiles = [(verdict.value.capitalize(), f"{verdicts[verdict]:,}", "") for verdict in GateVerdict]
    tiles.append(("Gate", _GATES[report.exit_code], f"exit {report.exit_code}"))
    title = (Quote(first.candidate.source), " against ", Quote(first.baseline.source))
    return Report(title, sections, headline=headline, tiles=tuple(tiles))


def _verdict(pair: PairReport) -> str:
    """Return the verdict with the remarks that a reader must not overlook."""
    compared = pair.comparison
    remarks = ["control"] if pair.control else []
    remarks += ["unpaired"] if not compared.paired and compared.difference is not None else []
    return pair.ruling.verdict.value.capitalize() + (f" ({', '.join(remarks)})" if remarks else "")


def _ruling(pair: PairReport, *, adjusted: bool) -> str:
    holm = " (adjusted for several comparisons by Holm's method)" if adjusted and pair.ruling.p_value else ""
    gate = sentence(pair.gate)
    return f"{sentence(pair.ruling.sentence + holm)} {gate}"


def _p_value(pair: PairReport) -> str:
    return UNKNOWN if pair.ruling.p_value is None else f"{pair.ruling.p_value:.2g}"


def _cost_change(pair: PairReport) -> str:
    return _change(cost(pair.baseline.summary.cost_per_trial), cost(pair.candidate.summary.cost_per_trial))


def _change(was: str, now: str) -> str:
    return was if was == now else f"{was} → {now}"


def _differences(report: CompareReport) -> Section:
    """Show all pairs in one plot and one table."""
    titles = (
        Column("Subject"),
        Column("Verdict"),
        Column("Points", align="end"),
        Column("Interval", align="end", help="95 % over all subjects, adjusted by Holm's method", drop=5),
        Column("p", align="end", help="adjusted by Holm's method"),
        Column("Better", align="end", drop=3),
        Column("Same", align="end", drop=2),
        Column("Worse", align="end", drop=4),
        Column("Cost of a trial", align="end", drop=6),
    )
    rows = tuple(_pair_row(pair, number) for number, pair in enumerate(report.pairs, 1))
    plot = _forest(report, [(pair, pair.candidate.subject) for pair in report.pairs])
    table = Table(titles, rows, "Every subject that both have")
    return Section("differences", "Differences", (table, plot))


def _pair_row(pair: PairReport, number: int) -> tuple[Value, ...]:
    compared = pair.comparison
    return (
        Datum(Quote(pair.candidate.subject), href=f"#pair-{number}", mark=_mark(pair.candidate)),
        Datum(_verdict(pair), tone=VERDICT_TONES[pair.ruling.verdict]),
        Datum(points(compared.difference), sort=compared.difference),
        Datum(points_range(compared.interval)),
        Datum(_p_value(pair), sort=pair.ruling.p_value),
        *(compared.wins, compared.ties, compared.losses),
        Datum(_cost_change(pair), sort=pair.candidate.summary.cost_per_trial),
    )


def _mark(facts: ArmFacts) -> Mark:
    return mark_of(facts.subject, control=facts.summary.control)


def _forest(report: CompareReport, pairs: list[tuple[PairReport, str]]) -> ForestPlot:
    paired, several_pairs = all(pair.comparison.paired for pair in report.pairs), len(pairs) > 1
    shaded = f" Shaded: within ±{100 * report.margin:g} points." if report.margin else ""
    several = (
        " over all subjects, adjusted by Holm's method" if sum(not pair.control for pair in report.pairs) > 1 else ""
    )
    return ForestPlot(
        f"{'Paired difference' if paired else 'Difference'}, candidate minus baseline",
        tuple(
            Difference(
                label=label,
                value=compared.difference,
                interval=compared.interval.ends if compared.interval else None,
                inner=compared.inner.ends if compared.inner else None,
                verdict=_verdict(pair),
                mark=_mark(pair.candidate) if several_pairs else None,
                shown=pair.ruling.verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED),
            )
            for pair, label in pairs
            for compared in [pair.comparison]
        ),
        report.margin,
        f"The line is the 95 % interval{several}; its thick part, at 90 %, decides on equivalence.{shaded}",
    )


def _chapter(report: CompareReport, chapter: _Chapter) -> Iterator[Section]:
    """Yield the sections of a pair; where there are several pairs, all in one that can be closed."""
    first, *others = _pair_sections(report, chapter)
    if not chapter.several:
        yield from (first, *others)
        return
    regressed = chapter.pair.ruling.verdict is GateVerdict.REGRESSED
    closed = len(report.pairs) > _MAX_OPEN and not regressed
    yield replace(first, blocks=(*first.blocks, *others), folded=closed, in_menu=len(report.pairs) <= _MAX_IN_MENU)


def _pair_sections(report: CompareReport, chapter: _Chapter) -> Iterator[Section]:
    """Describe one pair: both sides, each case, and the conditions that differ."""
    yield _sides(report, chapter)
    if chapter.pair.cases:
        yield _cases(chapter)
    yield _conditions(chapter)
    if unmatched := [(names, reason) for reason, names in _unmatched(chapter.pair) if names]:
        rows = tuple((Quote(name), reason) for names, reason in unmatched for name in names)
        lead = "; ".join(f"{len(names):,} {reason}" for names, reason in unmatched)
        table = Table(columns("Case", "Reason"), rows, "Cases without a partner", text_rows=_MAX_CASES)
        yield chapter.section("unmatched", "Cases without a partner", table, lead=sentence(lead))


def _sides(report: CompareReport, chapter: _Chapter) -> Section:
    pair = chapter.pair
    titles = (Column("Side"), Column("Subject"), *SCORE_COLUMNS, Column("Run", drop=7))
    rows = (_side("Baseline", pair.baseline), _side("Candidate", pair.candidate))
    table = Table(titles, rows, "Both sides", tuple(map(sentence, _how_compared(pair))))
    if chapter.several:
        adjusted = not pair.control and sum(not one.control for one in report.pairs) > 1
        title = (f"{_verdict(pair)}: ", Quote(pair.candidate.subject))
        return Section(f"pair-{chapter.number}", title, (TextBlock(_ruling(pair, adjusted=adjusted)), table))
    plot = _forest(report, [(pair, f"{points(pair.comparison.difference)} points")])
    return Section("difference", "Difference", (plot, table))


def _side(role: str, facts: ArmFacts) -> tuple[Value, ...]:
    return (
        Datum(f"{role} *" if facts.bound else role, tone="strong"),
        Datum(Quote(facts.subject), mark=_mark(facts)),
        *score_cells(facts.summary, facts.threshold),
        Datum(Quote(facts.source), source=facts.path),
    )


def _how_compared(pair: PairReport) -> Iterator[str]:
    compared = pair.comparison
    yield _pairing(pair)
    if compared.paired:
        scores = f"the baseline scored {percent(compared.baseline)}, the candidate {percent(compared.candidate)}"
        yield f"over the {count_of(compared.cases, 'compared case')} {scores}"
    if compared.interval is not None:
        yield f"interval: {compared.interval.method}; test: {compared.test}"
    if compared.paired and pair.detectable is None:
        yield "the smallest difference that this comparison can find cannot be estimated"
    elif compared.paired and pair.detectable is not None:
        found = f"finds a true difference of {100 * pair.detectable:.1f} points"
        yield f"this comparison {'is too small to find any difference' if pair.detectable > 1 else found} {_POWER}"
    if pair.advice:
        yield pair.advice
    yield from map(_by_labels, pair.calibrated)
    if pair.by_id_alone:
        yield "cases were paired by their ids only, because a journal or a log does not have their content"
    for role, facts in (("baseline", pair.baseline), ("candidate", pair.candidate)):
        yield from _caveats(role, facts)


def _by_labels(judged: CalibratedPair) -> str:
    """Say what labels make of the difference in the eyes of a judge."""
    judge = f"the judge {visible(repr(judged.scorer), 60)}"
    found = judged.corrected
    if found is None:
        return f"the difference by {judge} is not corrected: {judged.lacking}"
    around = f"95 % interval {points_range(found.interval)}" if found.interval else "interval undefined"
    chance = "" if found.p_value is None else f", p = {found.p_value:.2g}"
    return f"by {judge} {points(found.raw)} points; corrected by labels {points(found.difference)} ({around}{chance})"


def _pairing(pair: PairReport) -> str:
    compared = pair.comparison
    if compared.paired:
        outcomes = f"{compared.wins} better, {compared.ties} the same, {compared.losses} worse"
        return f"{count_of(compared.cases, 'case')} in pairs: {outcomes}"
    sides = (("baseline", compared.baseline), ("candidate", compared.candidate))
    if empty := [name for name, score in sides if score is None]:
        return f"no trial of the {' and the '.join(empty)} was scored: there is nothing to compare"
    problem = "no case was scored on both sides" if pair.cases else "no case is the same on both sides"
    return f"{problem}: the comparison is unpaired, which is less sensitive"


def _caveats(role: str, facts: ArmFacts) -> Iterator[str]:
    summary = facts.summary
    if facts.damaged:
        yield f"not counted: {count_of(facts.damaged, 'damaged line')} of the {role}'s journal"
    if summary.missing:
        yield f"{part_of(summary.missing, summary.planned, 'trial', 'was/were')} not run for the {role}"
    if summary.not_needed:
        left = part_of(summary.not_needed, summary.planned, "trial")
        yield (
            f"the {role}'s run ended when it was decided, without {left}: p and interval assume a fixed number of "
            "cases; the anytime-valid intervals are in that run's own report"
        )
    if summary.replayed:
        yield f"of the {role}, {replay_note(summary.replayed, summary.finished)}"
    if facts.bound:
        yield f"* the {role} was given the hidden answers on purpose"


def _conditions(chapter: _Chapter) -> Section:
    title, differ = "Not the same on both sides", chapter.pair.mismatches
    if not differ:
        return chapter.section("circumstances", title, TextBlock("No known condition differs.", tone="muted"))
    rows = tuple((found.field.replace("_", " "), _known(found.baseline), _known(found.candidate)) for found in differ)
    table = Table(columns("Condition", "Baseline", "Candidate"), rows, title)
    return chapter.section("circumstances", title, table, lead="These may explain a difference between the scores.")


def _known(value: str | None) -> Value:
    return Datum("unknown", tone="muted") if value is None else Quote(value)


def _unmatched(pair: PairReport) -> tuple[tuple[str, list[str]], ...]:
    """Return the cases without a partner, by reason."""
    compared = pair.comparison
    # A case that both have and only one side scored is listed with the cases.
    listed = {*compared.changed, *(case.case for case in pair.cases)}
    return (
        (f"with changed content, and so not {'compared' if compared.paired else 'paired'}", list(compared.changed)),
        ("only in the baseline", [key.id for key in compared.baseline_only if key.id not in listed]),
        ("only in the candidate", [key.id for key in compared.candidate_only if key.id not in listed]),
    )


def _cases(chapter: _Chapter) -> Section:
    pair = chapter.pair
    titles = (
        Column("Case"),
        Column("Outcome"),
        Column("Baseline", align="end"),
        Column("Candidate", align="end"),
        Column("Points", align="end"),
        Column("Cost", align="end", help="of a round", drop=4),
        Column("Time", align="end", help="of a round", drop=3),
        Column("Tokens", align="end", help="of a round", drop=2),
        Column("Tool calls", align="end", help="of a round", drop=1),
        Column("Reason", help="why the candidate did not pass", page_only=True),
    )
    order = list(_OUTCOMES)
    cases = sorted(pair.cases, key=lambda case: (order.index(case.outcome), case.difference or 0.0))
    details = {detail.case: chapter.detail_id(at) for at, detail in enumerate(pair.details)}
    rows = tuple(_case_row(case, details.get(case.case)) for case in cases)
    counts = Counter(case.outcome for case in pair.cases)
    lead = ", ".join(f"{counts[name]:,} {word}" for name, (word, _) in _OUTCOMES.items() if counts[name])
    changed = len(cases) - counts["tie"]
    table = Table(titles, rows, "Every case that both have, losses first", text_rows=min(changed, _MAX_CASES))
    return chapter.section("cases", "Cases", table, lead=sentence(lead))


def _case_row(case: CaseChange, detail: str | None) -> tuple[Value, ...]:
    old, new = case.baseline, case.candidate
    word, tone = _OUTCOMES[case.outcome]
    changes = (
        (_change(cost(old.cost), cost(new.cost)), new.cost),
        (_change(duration(old.seconds), duration(new.seconds)), new.seconds),
        (_change(f"{old.tokens:,}", f"{new.tokens:,}"), min(new.tokens, 2**53)),
        (_change(_calls(old), _calls(new)), new.tool_calls),
    )
    return (
        Datum(Quote(case.case), href=f"#{detail}" if detail else None),
        Datum(word, tone=tone),
        Datum(percent(old.score), sort=old.score),
        Datum(percent(new.score), sort=new.score),
        Datum(points(case.difference), sort=case.difference, tone="strong"),
        *(Datum(text, sort=sort) for text, sort in changes),
        Quote(new.why),
    )


def _calls(side: Side) -> str:
    return f"{side.tool_calls:,.1f}".removesuffix(".0")


def _details(chapter: _Chapter) -> Section:
    cases = {case.case: case for case in chapter.pair.cases}
    blocks = (
        _detail(detail, cases[detail.case], chapter.detail_id(at)) for at, detail in enumerate(chapter.pair.details)
    )
    lead = "For each case, the first round that ended differently. The largest losses come first."
    section = chapter.section("changes", "What changed", *blocks, lead=lead)
    return replace(section, folded=True) if chapter.several else section


def _detail(detail: CaseDetail, case: CaseChange, place: str) -> Section:
    old, new = case.baseline, case.candidate
    rows = (
        ("Verdicts", _verdicts(old), _verdicts(new)),
        ("Reason", Quote(old.why) if old.why else UNKNOWN, Quote(new.why) if new.why else UNKNOWN),
        ("Cost", cost(old.cost), cost(new.cost)),
        ("Time", duration(old.seconds), duration(new.seconds)),
    )
    blocks: list[Block] = [Table(columns("Property", "Baseline", "Candidate"), rows, visible(case.case))]
    blocks += [
        Code("\n".join(change.lines), "diff", visible(change.what), folded=at > 0)
        for at, change in enumerate(detail.changes)
    ]
    about = f"{points(case.difference)} points, round {detail.round + 1:,}"
    return Section(place, Quote(case.case), tuple(blocks), about)


def _verdicts(side: Side) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in side.verdicts.items()) or "not run"
