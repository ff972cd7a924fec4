"""Describe a comparison: the verdict, the difference with its interval, and every case.

Also describe how far two runs of one subject agree, and what a design of cases and rounds can show.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.report.blocks import (
    Block,
    BulletList,
    Code,
    Column,
    Datum,
    Difference,
    Facts,
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
    Why,
    columns,
    mark_of,
)
from bakeoff.report.compare.arms import FileName, read_arm
from bakeoff.report.compare.cases import CaseChange, CaseDetail, Outcome, Side
from bakeoff.report.compare.comparison import STATES, ArmFacts, CompareReport, PairReport
from bakeoff.report.formatting import (
    NO_INTERVAL,
    UNKNOWN,
    cost,
    duration,
    interval_notes,
    p_value,
    percent,
    points,
    points_range,
    replay_note,
    sentence,
    span,
)
from bakeoff.report.gates import GATE_TONES, GateEvidence, decide_gate
from bakeoff.report.judges.calibration import CalibratedPair
from bakeoff.report.readers import find_source
from bakeoff.report.reasons import normalised
from bakeoff.report.scores import SCORE_COLUMNS, score_cells
from bakeoff.stats.comparison import Comparison
from bakeoff.stats.gates import GateJudgement, GateVerdict, PairedArms, judge_pairs
from bakeoff.stats.power import Design, too_few
from bakeoff.stats.rounds import FlipRate, flip_rate, flip_rate_within
from bakeoff.storage.ledger import describe
from bakeoff.storage.run_folder import RunFolder

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
_POWER = "with a power of 80 %"
_MAX_WHYS = 3  # reasons of losses on the first screen
_MAX_OPEN = 2  # with more pairs, a page opens only the sections of regressions
_MAX_IN_MENU = 4  # pairs
_MAX_CASES = 50  # shown as text


@dataclass(frozen=True, slots=True)
class _Chapter:
    """A maker of the sections of one pair; with several pairs, titles and ids name the pair."""

    pair: PairReport
    number: int
    several: bool

    def section(self, id_: str, title: str, *blocks: Block, lead: str = "") -> Section:
        """Return a section of this pair. With several pairs, its title names the subject."""
        if not self.several:
            return Section(id_, title, blocks, lead)
        title = f"{visible(self.pair.label, 60)}: {title}"
        return Section(f"{id_}-{self.number}", title, blocks, lead, in_menu=False)

    def detail_id(self, place: int) -> str:
        """Return the id, for links, of the section about the case at this place."""
        return f"change-{self.number}-{place + 1}"


def describe_comparison(report: CompareReport) -> Report:
    """Describe all pairs: the verdict, both sides, every case, and the conditions that differ.

    A single pair is the whole report; several pairs have an overview with one plot, and a section
    each. Differences between texts come last, because a short output is cut at the end.
    """
    several = len(report.pairs) > 1
    chapters = [_Chapter(pair, number, several) for number, pair in enumerate(report.pairs, 1)]
    sections = (
        *([_differences(report)] if several else []),
        *(section for chapter in chapters for section in _chapter(report, chapter)),
        *(_details(chapter) for chapter in chapters if chapter.pair.details),
    )
    described = _overview(report, sections) if several else _single(report.pairs[0], sections)
    return replace(described, whys=tuple(_why_worse(chapters)))


def _why_worse(chapters: Sequence[_Chapter]) -> Iterator[Why]:
    """Yield the most frequent reasons of cases that got worse."""
    found: dict[str, list[tuple[CaseChange, str]]] = {}
    for chapter in chapters:
        place = f"#pair-{chapter.number}" if chapter.several else "#cases"
        worse = [case for case in chapter.pair.cases if case.outcome == "loss" and not chapter.pair.control]
        for case in worse:
            found.setdefault(normalised(case.candidate.why), []).append((case, place))
    word, tone = _OUTCOMES["loss"]
    for alike in sorted(found.values(), key=len, reverse=True)[:_MAX_WHYS]:
        case, place = alike[0]
        often = f"{count_of(len(alike), 'case')} like this" if len(alike) > 1 else ""
        why = Datum(Quote(case.candidate.why or "lower score"), href=place)
        yield Datum(word, tone=tone), visible(case.case, 60), why, often


def _single(pair: PairReport, sections: tuple[Section, ...]) -> Report:
    compared, old, new = pair.comparison, pair.baseline, pair.candidate
    outcomes, pairing = UNKNOWN, "unpaired" if compared.difference is not None else "nothing to compare"
    if compared.paired:
        outcomes = f"{compared.wins:,} · {compared.ties:,} · {compared.losses:,}"
        pairing = f"of {count_of(compared.cases, 'case')} in pairs"
    tiles = (
        *difference_tiles(compared, pair.ruling, outcomes, pairing),
        ("Cost of a trial", _cost_change(pair), ""),
        ("Gate", STATES[pair.exit_code], f"exit {pair.exit_code}"),
    )
    title: Phrase = (Quote(new.subject), " against ", Quote(old.subject))
    if old.subject == new.subject:
        title = (Quote(new.subject), " in ", Quote(new.source), " against ", Quote(old.source))
    return gated_report(title, sections, (pair.exit_code, pair.gate), _claims(pair), tiles)


def gated_report(
    title: Phrase,
    sections: tuple[Section, ...],
    gate: tuple[int, str],
    headline: str,
    tiles: tuple[tuple[str, str, str], ...] = (),
) -> Report:
    """Return a report that begins with the decision of its gate; `gate` is the exit code and the reason."""
    code, why = gate
    state = STATES[code]
    first = f"Gate {state}: {why}. Exit code {code}."
    return Report(title, sections, f"Gate {state}", GATE_TONES[state], headline, tiles, first)


def _claims(pair: PairReport, *, adjusted: bool = False) -> str:
    """Return the ruling as a sentence; empty if the reason of the gate already contains it."""
    if pair.ruling.refused and pair.ruling.sentence.removeprefix("refused: ") in pair.gate:
        return ""
    holm = " (adjusted for several comparisons by Holm's method)" if adjusted and pair.ruling.p_value else ""
    remarks = "Unpaired: " if not pair.comparison.paired and pair.comparison.difference is not None else ""
    return f"{remarks}{sentence(pair.ruling.sentence + holm)}"


def difference_tiles(
    compared: Comparison, ruling: GateJudgement, outcomes: str, pairing: str
) -> tuple[tuple[str, str, str], ...]:
    """Return the key figures of a comparison; `outcomes` counts the cases that are better, the same and worse."""
    scores = _change(percent(compared.baseline), percent(compared.candidate)).replace(" %", "\u00a0%")
    around = f"95 %: {points_range(compared.interval)}" if compared.interval else f"the interval {NO_INTERVAL}"
    return (
        ("Difference", f"{points(compared.difference)} points", around),
        ("Better · same · worse", outcomes, pairing),
        ("Score", scores, "over the compared cases"),
        ("p", p_value(ruling.p_value), compared.test),
    )


def difference_cells(compared: Comparison, ruling: GateJudgement) -> tuple[Value, ...]:
    """Return the difference, its interval and its p-value as every table of differences shows them."""
    return (
        Datum(points(compared.difference), sort=compared.difference, tone="strong"),
        Datum(points_range(compared.interval)),
        Datum(p_value(ruling.p_value), sort=ruling.p_value),
    )


def _overview(report: CompareReport, sections: tuple[Section, ...]) -> Report:
    first = report.pairs[0]
    judged = [pair for pair in report.pairs if not pair.control]
    verdicts = Counter(pair.ruling.verdict for pair in judged)
    what = first.kind
    headline = f"1 {what} is in both."
    if len(judged) != 1:
        headline = f"{len(judged):,} {what}s are in both; p-values and intervals are adjusted by Holm's method."
    if controls := len(report.pairs) - len(judged):
        more = count_of(controls, "more is a control", "more are controls")
        headline += f" {more}, without influence on the gate."
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items())
    headline = f"{sentence(counts)} {headline}"
    if report.together is not None:
        headline = f"All subjects together: {report.together.sentence}. {headline}"
    tiles = [(verdict.value.capitalize(), f"{verdicts[verdict]:,}", "") for verdict in GateVerdict]
    tiles.append(("Gate", STATES[report.exit_code], f"exit {report.exit_code}"))
    title = (Quote(first.candidate.source), " against ", Quote(first.baseline.source))
    return gated_report(title, sections, (report.exit_code, _reasons(report)), headline, tuple(tiles))


def _reasons(report: CompareReport) -> str:
    """Return the reasons of the pairs that decided the gate."""
    deciding = [pair for pair in report.pairs if not pair.control and pair.exit_code == report.exit_code]
    said = [f"{visible(pair.label, 60)}: {pair.gate}" for pair in deciding[:_MAX_OPEN]]
    said += [f"and {len(deciding) - _MAX_OPEN:,} more alike"] if len(deciding) > _MAX_OPEN else []
    if not deciding:
        said = ["all subjects together got worse, although no single one is shown to"]
    elif len({pair.gate for pair in deciding}) == 1:
        said = [f"{deciding[0].gate}{f', of all {len(deciding):,} {deciding[0].kind}s' if len(deciding) > 1 else ''}"]
    return "; ".join(said)


def _verdict(pair: PairReport) -> str:
    """Return the verdict with important remarks, such as `control` or `unpaired`."""
    compared = pair.comparison
    remarks = ["control"] if pair.control else []
    remarks += ["unpaired"] if not compared.paired and compared.difference is not None else []
    return pair.ruling.verdict.value.capitalize() + (f" ({', '.join(remarks)})" if remarks else "")


def _cost_change(pair: PairReport) -> str:
    return _change(cost(pair.baseline.summary.cost_per_trial), cost(pair.candidate.summary.cost_per_trial))


def _change(was: str, now: str) -> str:
    return was if was == now else f"{was} → {now}"


def _differences(report: CompareReport) -> Section:
    """Show all pairs in one plot and one table."""
    titles = (
        *columns("Subject", "Verdict", "Points>"),
        Column("Interval", align="end", help="95 % over all subjects, adjusted by Holm's method", drop=5),
        Column("p", align="end", help="adjusted by Holm's method"),
        Column("Better", align="end", drop=3),
        Column("Same", align="end", drop=2),
        Column("Worse", align="end", drop=4),
        Column("Cost of a trial", align="end", drop=6),
    )
    rows = tuple(_pair_row(pair, number) for number, pair in enumerate(report.pairs, 1))
    plot = _forest(report, [(pair, pair.label) for pair in report.pairs])
    table = Table(titles, rows, "Every subject that both have")
    return Section("differences", "Differences", (table, plot))


def _pair_row(pair: PairReport, number: int) -> tuple[Value, ...]:
    compared = pair.comparison
    return (
        Datum(Quote(pair.label), href=f"#pair-{number}", mark=_mark(pair.candidate)),
        Datum(_verdict(pair), tone=VERDICT_TONES[pair.ruling.verdict]),
        *difference_cells(compared, pair.ruling),
        *(compared.wins, compared.ties, compared.losses),
        Datum(_cost_change(pair), sort=pair.candidate.summary.cost_per_trial),
    )


def _mark(facts: ArmFacts) -> Mark:
    return mark_of(facts.subject, control=facts.summary.control)


def _forest(report: CompareReport, pairs: list[tuple[PairReport, str]]) -> ForestPlot:
    paired, several_pairs = all(pair.comparison.paired for pair in report.pairs), len(pairs) > 1
    shaded = f" Shaded: within ±{100 * report.margin:g} points." if report.margin else ""
    adjusted = sum(not pair.control for pair in report.pairs) > 1
    several = " over all subjects, adjusted by Holm's method" if adjusted else ""
    rows = []
    for pair, label in pairs:
        row = plotted_difference(label, pair.comparison, pair.ruling.verdict)
        rows.append(replace(row, verdict=_verdict(pair), mark=_mark(pair.candidate) if several_pairs else None))
    return ForestPlot(
        f"{'Paired difference' if paired else 'Difference'}, candidate minus baseline",
        tuple(rows),
        report.margin,
        f"The line is the 95 % interval{several}; its thick part, at 90 %, decides on equivalence.{shaded}",
    )


def plotted_difference(label: str, compared: Comparison, verdict: GateVerdict) -> Difference:
    """Return the row of a comparison in a forest plot."""
    return Difference(
        label,
        compared.difference,
        compared.interval.ends if compared.interval else None,
        compared.inner.ends if compared.inner else None,
        verdict.value,
        shown=verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED),
    )


def _chapter(report: CompareReport, chapter: _Chapter) -> Iterator[Section]:
    """Yield the sections of a pair; with several pairs, all in one section that can be collapsed."""
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
        title = (f"{_verdict(pair)}: ", Quote(pair.label))
        said = TextBlock(f"{sentence(pair.gate)} {_claims(pair, adjusted=adjusted)}")
        return Section(f"pair-{chapter.number}", title, (said, table))
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
        yield from (note.removesuffix(".") for note in interval_notes([compared.interval]))
        yield f"test: {compared.test}"
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
        yield f"{role}: {describe(facts.ledger, 'trial')}"
        yield from _caveats(role, facts)


def _by_labels(judged: CalibratedPair) -> str:
    """Describe the difference after the judge's scores were corrected by people's labels."""
    judge = f"the judge {visible(repr(judged.scorer), 60)}"
    found = judged.corrected
    if found is None:
        return f"the difference by {judge} is not corrected: {judged.lacking}"
    around = f"95 % interval {points_range(found.interval)}" if found.interval else f"the interval {NO_INTERVAL}"
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
        yield f"* the {role} is a control that submits the expected answers"


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
    """Return the cases that are not in both arms with the same content, by reason."""
    compared = pair.comparison
    # A case that both have, but only one side scored, is in the table of cases.
    listed = {*compared.changed, *(case.case for case in pair.cases)}
    return (
        (f"with changed content, and so not {'compared' if compared.paired else 'paired'}", list(compared.changed)),
        ("only in the baseline", [key.id for key in compared.baseline_only if key.id not in listed]),
        ("only in the candidate", [key.id for key in compared.candidate_only if key.id not in listed]),
    )


def _cases(chapter: _Chapter) -> Section:
    pair = chapter.pair
    titles = (
        *columns("Case", "Outcome", "Baseline>", "Candidate>", "Points>"),
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
    return replace(chapter.section("changes", "What changed", *blocks, lead=lead), folded=True)


def _detail(detail: CaseDetail, case: CaseChange, place: str) -> Section:
    old, new = case.baseline, case.candidate
    rows = (
        ("Verdicts", _verdicts(old), _verdicts(new)),
        ("Reason", Quote(old.why) if old.why else UNKNOWN, Quote(new.why) if new.why else UNKNOWN),
        ("Cost", cost(old.cost), cost(new.cost)),
        ("Time", duration(old.seconds), duration(new.seconds)),
    )
    blocks: list[Block] = [Table(columns("Property", "Baseline", "Candidate"), rows, visible(case.case))]
    for at, change in enumerate(detail.changes):
        blocks.append(Code("\n".join(change.lines), "diff", visible(change.what), folded=at > 0))
    about = f"{points(case.difference)} points, round {detail.round + 1:,}"
    return Section(place, Quote(case.case), tuple(blocks), about)


def _verdicts(side: Side) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in side.verdicts.items()) or "not run"


def verdict_on(design: Design) -> str:
    """Say in one sentence which difference a design can show or, if none, what to do."""
    size = f"{count_of(design.cases, 'case')} × {count_of(design.rounds, 'round')}"
    if few := too_few(design.cases):
        return few
    if design.too_small or design.detectable is None:
        return f"{size} are too few to tell any two subjects apart: use more cases"
    return (
        f"{size} find a difference of {100 * design.detectable:.0f} points between two subjects 4 times in 5, at usual "
        f"noise; the interval of the difference is about ±{_points(design.difference_width)} points; with "
        f"`--undecidable fail`, unchanged code passes in 95 % of runs from `--margin {design.least_margin or 1:.2f}` on"
    )


def describe_design(design: Design, others: tuple[Design, ...]) -> Report:
    """Describe which differences a design can show, beside `others` that have more cases or rounds."""
    titles = (
        *columns("Cases>", "Rounds>"),
        Column("Finds", align="end", help="the difference that is found 4 times in 5, in points"),
        Column("Difference", align="end", help="half the width of its 95 % interval, in points"),
        Column("Score", align="end", help="the same of one subject's score"),
    )
    notes = (
        "Finds: the true difference, in points, that a paired comparison shows 4 times in 5 (power 80 %, level 5 %).",
        "Difference and Score: half the width of their 95 % intervals, in points.",
        f"Guessed: scores near {100 * design.score:.0f} %, half of a round's variance between cases, and a correlation "
        "of 0.5 between the case scores of two subjects. After a run, `bakeoff compare` uses what was seen.",
    )
    table = Table(titles, tuple(map(_row, (design, *others))), "This design, twice its cases, twice its rounds", notes)
    headline = sentence(verdict_on(design))
    return Report("What this design can show", (Section("design", "Designs", (table,)),), headline=headline)


def _row(design: Design) -> tuple[Value, ...]:
    return (
        design.cases,
        design.rounds,
        Datum("nothing" if design.too_small else _points(design.detectable), sort=design.detectable, tone="strong"),
        Datum(f"±{_points(design.difference_width)}", sort=design.difference_width),
        Datum(f"±{_points(design.score_width)}", sort=design.score_width),
    )


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:.1f}"


class SelfCheck(FrozenModel):
    """The agreement of two runs of one subject.

    The exit code is 1 if they differ, and 3 if too much is missing to tell.
    """

    runs: tuple[FileName, FileName]
    subject: str
    between: FlipRate | None
    within: FlipRate | None
    comparison: Comparison
    ruling: GateJudgement
    gate: str  # the explanation of the exit code
    exit_code: int

    @property
    def differ(self) -> bool:
        """Tell whether the two runs differ by more than chance."""
        return self.exit_code == 1


def check_runs(first: RunFolder, second: RunFolder, subject: str) -> SelfCheck:
    """Compare two runs of one subject with each other."""
    sources = [find_source(folder.path, str(folder.path)) for folder in (first, second)]
    with read_arm(sources[0], subject) as one, read_arm(sources[1], subject) as other:
        arms = PairedArms(one.cells, other.cells, losses=(one.losses, other.losses))
        compared, ruling = judge_pairs({"": arms})[""]
        differ = ruling.verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED)
        decision = decide_gate(
            GateEvidence(
                ledgers={"the first run": one.summary.ledger, "the second run": other.summary.ledger},
                broken=[subject] if differ else (),
                refused=ruling.refused,
                sentence=f"the two runs {'differ' if differ else 'do not differ'}",
            )
        )
        return SelfCheck(
            runs=(first.name, second.name),
            subject=subject,
            between=flip_rate(one.passes, other.passes),
            within=flip_rate_within({**one.passes}),
            comparison=compared,
            ruling=ruling,
            gate=decision.sentence,
            exit_code=decision.exit_code,
        )


def describe_self_check(check: SelfCheck) -> Report:
    """Describe how far two runs of one subject agree."""
    kept = Facts((("First run", check.runs[0]), ("Second run", check.runs[1])))
    lines = [f"two trials of one case disagree {_rate(check.between)} of the time (between the two runs)"]
    if check.within:
        lines.append(f"two rounds of one case disagree {_rate(check.within)} of the time (within the first run)")
    lines.append(f"comparison of the two runs: {check.ruling.sentence}")
    if check.differ:
        lines.append(
            "something besides the subject changes from run to run: check what the scorers and the sandbox depend on"
        )
    sections = (
        Section("findings", "Findings", (BulletList(tuple(map(sentence, lines))),)),
        Section("runs", "Runs", (kept,)),
    )
    title, rate = ("Self-check: ", Quote(check.subject)), f"Flip rate {_rate(check.between)}."
    return gated_report(title, sections, (check.exit_code, check.gate), rate)


def _rate(flips: FlipRate | None) -> str:
    if flips is None:
        return "an unknown share"
    return f"{percent(flips.rate)} (95 % interval {span(flips.interval)}, {count_of(flips.cases, 'case')})"
