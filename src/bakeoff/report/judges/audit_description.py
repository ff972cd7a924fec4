"""Describe the audit of a judge."""

from collections.abc import Iterator

from bakeoff._kernel.text import count_of
from bakeoff.report.blocks import Block, Column, Datum, Phrase, Quote, Report, Section, Table, TextBlock, Value, columns
from bakeoff.report.formatting import UNKNOWN, percent, span
from bakeoff.report.judges.audit import Agreement, JudgeAudit
from bakeoff.report.judges.calibration import calibration_table
from bakeoff.stats.agreement import Estimate


def describe_judge_audit(audit: JudgeAudit) -> Report:
    """Describe how a judge did: its quality, what sways it, the corrected scores, and the labellers."""
    quality = audit.quality
    tiles = tuple(
        (title, _number(found, as_share=as_share), _range(found, as_share=as_share))
        for title, found, as_share in (
            ("Sensitivity", quality.sensitivity, True),
            ("Specificity", quality.specificity, True),
            ("Accuracy", quality.accuracy, True),
            ("Kappa", quality.kappa, False),
        )
    )
    flips = audit.flips
    around = f"95 %: {span(flips.interval)}" if flips and flips.interval else "" if flips else "not asked twice"
    tiles += (
        ("Flips", percent(flips.rate if flips else None), around),
        ("Labels", f"{audit.labels:,}", f"of {count_of(audit.trials, 'answer')}"),
    )
    sections = (
        Section("quality", "Judge against labels", (_quality(audit), *_warnings(audit))),
        Section("scores", "Corrected scores", (_scores(audit),)),
        Section("labellers", "Labellers", tuple(_labellers(audit.agreement))),
    )
    judge: Phrase = (Quote(audit.scorer), " (", Quote(audit.judge), ")") if audit.judge else Quote(audit.scorer)
    title = ("Audit of ", *(judge if isinstance(judge, tuple) else (judge,)), " in ", Quote(audit.run))
    return Report(title, sections, headline=_headline(audit), tiles=tiles)


def _headline(audit: JudgeAudit) -> str:
    quality = audit.quality
    if not audit.labels:
        return "Nothing is labelled yet."
    parts = []
    if quality.sensitivity:
        parts.append(f"passes {percent(quality.sensitivity.value)} of the good answers")
    if quality.specificity:
        parts.append(f"fails {percent(quality.specificity.value)} of the bad ones")
    return f"The judge {' and '.join(parts)}." if parts else "The labels are too few to tell how good the judge is."


def _quality(audit: JudgeAudit) -> Table:
    quality = audit.quality
    shares = (
        ("Sensitivity", quality.sensitivity, "good answers that the judge passes"),
        ("Specificity", quality.specificity, "bad answers that the judge fails"),
        ("Accuracy", quality.accuracy, "answers on which judge and labels agree"),
    )
    rows: list[tuple[Value, ...]] = [
        (name, percent(found.value if found else None), span(found.interval) if found else UNKNOWN, meaning)
        for name, found, meaning in shares
    ]
    if audit.flips:
        meaning = f"two verdicts on one answer that disagree; {audit.flips_from}"
        rows.append(("Flips", percent(audit.flips.rate), span(audit.flips.interval), meaning))
    rows += [
        (name, _number(found, as_share=False), _plain_range(found), meaning)
        for name, found, meaning in (
            ("Kappa", quality.kappa, "1: full agreement; 0: what chance alone would give"),
            ("Length bias", audit.length_bias, "above 0: long answers are judged too kindly (rank correlation)"),
            ("Position bias", audit.position_bias, "above 0: later answers are judged too kindly"),
        )
    ]
    titles = (Column("Measure"), Column("Value", "end"), Column("95 % interval", "end"), Column("Meaning", drop=1))
    return Table(titles, tuple(rows), "The judge against the labels", tuple(_quality_notes(audit)))


def _quality_notes(audit: JudgeAudit) -> Iterator[Phrase]:
    yield f"The judge passes an answer at a score of {audit.cut:g} or more."
    yield "Labels are weighted by the strata that they were drawn from, so that the numbers hold for the whole run."
    if audit.flips is None:
        yield f"Flips are unknown: {audit.flips_from}."
    if audit.labels and (audit.length_bias is None or audit.position_bias is None):
        yield "A bias is unknown where the judge made no error, or all answers are alike."


def _warnings(audit: JudgeAudit) -> Iterator[Block]:
    if audit.outdated:
        yield TextBlock(
            f"{count_of(audit.outdated, 'label is', 'labels are')} of answers that are not in the run any more.",
            tone="lost",
        )
    if audit.damaged:
        yield TextBlock(f"{count_of(audit.damaged, 'line')} of labels.jsonl cannot be read: left out.", tone="lost")


def _scores(audit: JudgeAudit) -> Block:
    table = calibration_table(audit.subjects, audit.run)
    return table or TextBlock("The judge has scored nothing.")


def _labellers(agreement: Agreement) -> Iterator[Block]:
    if not agreement.labellers:
        yield TextBlock("Nobody has labelled anything for this judge.")
        return
    rows = tuple((Quote(name), count) for name, count in agreement.labellers.items())
    yield Table(columns("Labeller", "Labels>"), rows, "Who labelled how much")
    if agreement.pairs:
        titles = (*columns("Labellers", "Answers>", "Kappa>"), Column("95 % interval", "end"))
        pairs = tuple(
            (
                Datum((Quote(pair.labellers[0]), " and ", Quote(pair.labellers[1]))),
                pair.answers,
                _number(pair.kappa, as_share=False),
                _plain_range(pair.kappa),
            )
            for pair in agreement.pairs
        )
        alpha = f"Krippendorff's alpha over all labellers: {_number(agreement.alpha, as_share=False)}"
        around = (
            f" (95 % interval {_plain_range(agreement.alpha)})" if agreement.alpha and agreement.alpha.interval else ""
        )
        yield Table(titles, pairs, "Agreement between labellers", (f"{alpha}{around}.",))
    else:
        yield TextBlock("One labeller: agreement needs a second one, with `bakeoff label --labeller NAME`.")


def agreement_blocks(agreement: Agreement) -> tuple[Block, ...]:
    """Return how much each labelled and how far they agree, for the end of `bakeoff label`."""
    return tuple(_labellers(agreement))


def _number(found: Estimate | None, *, as_share: bool) -> str:
    if found is None:
        return UNKNOWN
    return percent(found.value) if as_share else f"{found.value:.2f}"


def _plain_range(found: Estimate | None) -> str:
    if found is None or found.interval is None:
        return UNKNOWN
    return f"{found.interval.low:.2f} to {found.interval.high:.2f}"


def _range(found: Estimate | None, *, as_share: bool) -> str:
    if found is None or found.interval is None:
        return "unknown" if found is None else ""
    return f"95 %: {span(found.interval) if as_share else _plain_range(found)}"
