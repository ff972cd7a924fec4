"""Describe a run's summary: the table of scores, its notes, and the trials that did not pass."""

from collections.abc import Iterator
from itertools import islice

from bakeoff._kernel.text import count_of, part_of, visible
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record
from bakeoff.report.answer import answer
from bakeoff.report.blocks import (
    Block,
    Column,
    Datum,
    Quote,
    Section,
    Table,
    TextBlock,
    columns,
    counted,
    heading,
    paragraph,
    trail,
)
from bakeoff.report.compare.within_run import (
    STOPPED_NOTE,
    CellsOf,
    describe_comparisons,
    scores_by_tag,
    tag_section,
    treatment_effects,
    treatment_section,
)
from bakeoff.report.formatting import (
    UNKNOWN,
    interval_notes,
    judging_note,
    money,
    percent,
    replay_note,
    sentence,
    span,
    token_count,
)
from bakeoff.report.judges.calibration import Judgements
from bakeoff.report.readers import Source
from bakeoff.report.reasons import why
from bakeoff.report.run_records import RunRecords
from bakeoff.report.scores import (
    BOUND_NOTE,
    SCORE_COLUMNS,
    SHARE_COLUMNS,
    UNIT_TESTS_COLUMN,
    best_first,
    name_datum,
    proven_note,
    score_cells,
    share_cells,
    unit_tests_datum,
)
from bakeoff.report.summary import RunTally, Summary
from bakeoff.stats.intervals import TOO_SMALL
from bakeoff.stats.rounds import PassK
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Verdict

MAX_FAILURES = 20
_MIN_ROUNDS = 2  # so few rounds show no more than the score
_MAX_NAMED = 8


def describe_run(name: str, records: RunRecords) -> tuple[Block, ...]:
    """Return the table of scores with its denominators, and the first trials that did not pass."""
    failures = [*islice(failed_records(records), MAX_FAILURES + 1)]
    return (
        heading("Bakeoff: ", Quote(name)),
        *summary_blocks(records.plan, records.summary, records.cells),
        _failures(failures) if failures else paragraph(_without_failures(records.summary)),
    )


def summary_blocks(
    plan: Plan, summary: Summary, cells_of: CellsOf, judgements: Judgements | None = None
) -> tuple[Block, ...]:
    """Return the answer in one sentence, the table of scores, comparisons, and scores by treatment and by tag."""
    tags = tag_section(plan, cells_of, [one.subject for one in summary.judged])
    treatments = treatment_section(treatment_effects(plan, summary, cells_of))
    sections = [section for section in (treatments, tags) if section]
    compared = () if summary.comparisons is None else (describe_comparisons(summary.comparisons),)
    return paragraph(answer(plan, summary, cells_of, judgements)), summary_table(summary), *compared, *sections


def summary_table(summary: Summary) -> Table:
    """Return each subject's score with its interval and every denominator."""
    by_round = summary.rounds > _MIN_ROUNDS and any(one.by_round for one in summary.subjects)
    rounds = (Column("By round", drop=7, optional=True),) if by_round else ()
    split = any(one.tests for one in summary.subjects)
    units = any(one.unit_tests for one in summary.subjects)
    repeated = any(one.pass_at_k for one in summary.subjects)
    missing = Column("Not run", align="end", short="Not\nrun", drop=4)
    tokens = Column("Tokens", align="end", drop=10, optional=True)
    rows = tuple(
        (
            name_datum(one),
            *score_cells(one, max(summary.thresholds, default=None)),
            *((unit_tests_datum(one),) if units else ()),
            *(share_cells(one) if split else ()),
            *((_pass_k(one.pass_at_k), _pass_k(one.pass_hat_k)) if repeated else ()),
            counted(one.missing),
            *((Datum("", trail=trail(one.by_round)),) if by_round else ()),
            Datum(token_count(used := one.spent.tokens, estimated=bool(one.estimated)), sort=min(used, 2**53) or None),
        )
        for one in best_first(summary.subjects)
    )
    caption = "Score, interval and every denominator, by subject"
    more = (*((UNIT_TESTS_COLUMN,) if units else ()), *(SHARE_COLUMNS if split else ()))
    titles = (Column("Subject"), *SCORE_COLUMNS, *more)
    titles = (*titles, *(_pass_k_columns(summary.rounds) if repeated else ()), missing, *rounds, tokens)
    return Table(titles, rows, caption, tuple(_notes(summary)))


def _pass_k_columns(rounds: int) -> tuple[Column, ...]:
    """Return the pass@k columns, for pages only: text shows these numbers below the table."""
    meanings = {f"pass@{rounds}": f"one of {rounds:,} rounds passes", f"pass^{rounds}": f"all {rounds:,} rounds pass"}
    return tuple(Column(name, align="end", help=meaning, page_only=True) for name, meaning in meanings.items())


def _pass_k(estimate: PassK | None) -> Datum:
    if estimate is None:
        return Datum(UNKNOWN, note="every case lost a round")
    note = f"{span(estimate.interval)} over {count_of(estimate.cases, 'case')}"
    return Datum(percent(estimate.value), sort=estimate.value, note=note)


def _estimate(found: PassK | None) -> str:
    if found is None:
        return UNKNOWN
    small = f", {TOO_SMALL}" if found.interval and not found.interval.promised else ""
    return f"{found.name} {percent(found.value)} ({span(found.interval)}{small})"


def pass_k_notes(summary: Summary) -> Iterator[str]:
    """Yield pass@k and pass^k of each subject, with intervals."""
    known = [one for one in summary.subjects if one.pass_at_k and one.pass_hat_k and not one.control]
    if known:
        yield f"pass@{summary.rounds}: one of {summary.rounds:,} rounds passes; pass^{summary.rounds}: all pass."
    for one in known[:_MAX_NAMED]:
        yield f"{visible(one.subject, 200)}: {_estimate(one.pass_at_k)}, {_estimate(one.pass_hat_k)}."


def _notes(summary: Summary) -> Iterator[str]:
    subjects = summary.subjects
    size = (count_of(summary.cases, "case"), count_of(len(subjects), "subject"), count_of(summary.rounds, "round"))
    yield f"{' × '.join(size)}; {_pass_rule(summary)}."
    yield "The score is the mean over cases; lost trials and trials that were not run are not in it."
    yield from _interval_notes(summary)
    yield from pass_k_notes(summary)
    if any(one.verdicts.get(Verdict.TIMEOUT) for one in subjects):
        yield "A timeout counts against the subject: it scores 0."
    if any(one.bound for one in subjects):
        yield BOUND_NOTE
    if summary.only_controls:
        yield "Every subject is a control, which tests the cases."
    elif any(one.control for one in subjects):
        yield "Controls test the cases; their failures do not count."
    if any(one.tests for one in subjects):
        yield "Visible and hidden: the tests that passed, of those that subjects saw and of those that they did not."
    yield from proven_note(one.proven_tests for one in subjects)
    if estimated := sum(one.estimated for one in subjects):
        yield f"≈: in {count_of(estimated, 'trial')} a provider sent no usage: tokens and cost are estimates."
    if summary.replayed:
        by = ", ".join(f"{visible(one.subject, 40)} {one.replayed:,}" for one in subjects[:20] if one.replayed)
        replayed = replay_note(summary.replayed, summary.finished)
        yield f"{replayed} ({by}): their cost and time are those of the recording."
    if summary.recorded:
        recorded = part_of(summary.recorded, summary.finished, "trial", "was/were")
        yield f"{recorded} answered live and recorded for replays."
    yield from _money_notes(summary)


def _money_notes(summary: Summary) -> Iterator[str]:
    for one in [one for one in summary.subjects if one.spent.tokens_without_price][:_MAX_NAMED]:
        yield f"{visible(one.subject, 200)} cost {money(one.spent, estimated=bool(one.estimated))}."
    if summary.judging != NO_USAGE:
        yield sentence(judging_note(summary.judging))


def _interval_notes(summary: Summary) -> Iterator[str]:
    yield from interval_notes(one.interval for one in summary.subjects)
    if summary.until_decided:
        yield STOPPED_NOTE


def _pass_rule(summary: Summary) -> str:
    if summary.own_rules and summary.thresholds:
        return "a case passes by its own rule over all its rounds"
    if summary.thresholds and summary.thresholds != (summary.threshold,):
        asked = ", ".join(f"{each:g}" for each in summary.thresholds)
        return f"a trial passes at the score that its case asks for ({asked})"
    if not summary.thresholds:
        return "there is no threshold: scores are only recorded"
    return f"a trial passes at a score of {summary.threshold:g} or more"


def failed_records(records: RunRecords) -> Iterator[Record]:
    """Yield the failed rounds of the cases that did not pass, in order, without controls."""
    for subject in records.judged:
        for case in records.cases_of(subject.name):
            if not records.case_verdict(subject.name, case.id).ok:
                rounds = records.rounds(subject.name, case.id)
                yield from (record for record in rounds if not record.verdict.ok)


def _without_failures(summary: Summary) -> str:
    finished = sum(subject.finished for subject in summary.judged)
    planned = sum(subject.planned for subject in summary.judged)
    if not finished:
        return "Nothing has been run yet."
    if not summary.thresholds:
        return "Everything that ran was scored. No threshold was set, so nothing passed or failed."
    return "Everything passed." if finished == planned else "Everything that ran passed."


def _failures(failures: list[Record]) -> Section:
    rows = tuple(
        (str(record.verdict), Quote(record.case), Quote(record.subject), str(record.round + 1), Quote(why(record)))
        for record in failures[:MAX_FAILURES]
    )
    table = Table(columns("Verdict", "Case", "Subject", "Round>", "Reason"), rows)
    more = (TextBlock("… and more."),) if len(failures) > MAX_FAILURES else ()
    return Section("failures", "What did not pass", (table, *more))


def summary_json(
    plan: Plan, summary: Summary, tally: RunTally, where: RunFolder | Source, judgements: Judgements | None = None
) -> dict[str, object]:
    """Return the summary of a run folder or of a log as `--json` prints it."""
    judged = [one.subject for one in summary.judged]
    # Tokens that nobody counted are null, like an unknown cost.
    written = {**summary.model_dump(mode="json"), "ledger": summary.ledger.model_dump(mode="json")}
    for one in written["subjects"]:
        if not one["spent"]["input"] + one["spent"]["output"]:
            one["spent"].update(dict.fromkeys(("input", "output", "cache_read", "cache_write", "reasoning")))
    about: dict[str, object] = {"file": str(where.path)}
    if isinstance(where, RunFolder):
        about = {"run": where.name, "spent": where.spent().model_dump()}
    return {
        **about,
        "outcome": summary.outcome,
        "answer": answer(plan, summary, tally.cells, judgements),
        "summary": written,
        "treatments": [
            {**one.model_dump(mode="json"), "verdict": one.verdict}
            for one in treatment_effects(plan, summary, tally.cells)
        ],
        "by_tag": [one.model_dump(mode="json") for one in scores_by_tag(plan, tally.cells, judged)],
    }
