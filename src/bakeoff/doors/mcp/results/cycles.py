"""Describe a cycle of `bakeoff mcp evaluate --watch`: what changed, what was asked, and the points won and lost."""

from collections.abc import Iterator, Mapping

from bakeoff._kernel.text import count_of
from bakeoff.doors.mcp.outcome import CallOutcome, CellOutcome
from bakeoff.doors.mcp.results.sections import TONES, pass_rates, reasons, verdict_sentence
from bakeoff.doors.mcp.selection import CellKey, Selection
from bakeoff.report.blocks import Block, Datum, Quote, Table, Value, columns, paragraph
from bakeoff.report.formatting import UNKNOWN, percent, points
from bakeoff.report.tools import listed_changes

_MAX_ROWS = 60


def cycle_blocks(selection: Selection, outcome: CallOutcome, rounds: int) -> Iterator[Block]:
    """Describe a cycle. Without an earlier run, all pass rates are shown."""
    before = selection.before
    yield from listed_changes(selection.changes)
    if before is None:
        yield pass_rates(outcome)
    elif rows := tuple(_rows(selection, outcome, before)):
        titles = columns("case", "model", "asked because", "before>", "now>")
        yield Table(titles, rows, "Cells that were asked", text_rows=_MAX_ROWS)
    yield from reasons(outcome)
    yield paragraph(f"{verdict_sentence(outcome, rounds)}: {outcome.state}")
    yield paragraph(_counts(selection, outcome))


def _rows(
    selection: Selection, outcome: CallOutcome, before: Mapping[CellKey, CellOutcome]
) -> Iterator[tuple[Value, ...]]:
    """Yield the cells that were asked, and those that came out differently when they were scored again."""
    for cell in outcome.cells:
        key = cell.case, cell.model
        earlier = before.get(key)
        reason = selection.asked.get(key)
        if reason is None and earlier is not None and earlier.pass_rate == cell.pass_rate:
            continue
        yield Quote(cell.case), Quote(cell.model), reason or "scored again", _rate(earlier), _rate(cell)


def _rate(cell: CellOutcome | None) -> Datum:
    if cell is None:
        return Datum(UNKNOWN, tone="muted")
    return Datum(
        f"{percent(cell.pass_rate)} ({cell.passed}/{cell.scored}{cell.lost})", cell.pass_rate, TONES[cell.state]
    )


def _counts(selection: Selection, outcome: CallOutcome) -> str:
    asked = f"{count_of(len(selection.asked), 'cell')} asked"
    carried = f", {selection.cells_carried:,} carried over" if selection.cells_carried else ""
    if selection.before is None:
        return f"{asked}{carried}"
    pairs = [
        (earlier.pass_rate, cell.pass_rate)
        for cell in outcome.cells
        if (earlier := selection.before.get((cell.case, cell.model))) is not None
    ]
    both = [(old, new) for old, new in pairs if old is not None and new is not None]
    if not both:
        return f"{asked}{carried}"
    won, lost = sum(new > old for old, new in both), sum(new < old for old, new in both)
    difference = sum(new - old for old, new in both) / len(both)
    return f"{asked}{carried}; {points(difference)} points since the last cycle: {won} better, {lost} worse"
