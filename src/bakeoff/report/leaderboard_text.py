"""A leaderboard in words: blocks that a terminal, Markdown and a page all show."""

from collections.abc import Iterator
from datetime import UTC, datetime

from bakeoff.report.compare_text import passed_of
from bakeoff.report.leaderboard import Entry, Leaderboard
from bakeoff.report.outputs import Block, Column, Grid, Listing, Quote, Words, heading, sparkline
from bakeoff.report.words import UNKNOWN, cost, duration, percent, span

WHY_LEFT_OUT = "they are there to test the cases, or nothing of theirs was scored"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def describe_leaderboard(board: Leaderboard) -> tuple[Block, ...]:
    return heading("Leaderboard"), _table(board), Listing(tuple(_notes(board)))


def _table(board: Leaderboard) -> Grid:
    history = any(len(entry.history) > 1 for entry in board.entries)
    titles = (
        Column("rank", numeric=True),
        Column("group"),
        Column("subject"),
        Column("score", numeric=True),
        Column("95 % interval", numeric=True),
        Column("passed/scored", numeric=True),
        Column("lost", numeric=True, least_width=90),
        Column("cost", numeric=True),
        Column("per trial", numeric=True, least_width=120),
        Column("time", numeric=True),
        *((Column("history", least_width=110),) if history else ()),
        Column("updated", least_width=130),
        Column("run", least_width=100),
    )
    return Grid(titles, tuple(_row(entry, history=history) for entry in board.entries))


def _row(entry: Entry, *, history: bool) -> tuple[Words, ...]:
    summary = entry.summary
    return (
        entry.rank,
        "".join(letter(number) for number in entry.standing.groups) or UNKNOWN,
        Quote(entry.standing.subject),
        percent(entry.standing.score),
        span(entry.standing.interval),
        passed_of(summary, entry.threshold),
        str(sum(summary.lost.values())),
        cost(summary.spent.cost),
        cost(entry.cost_per_trial),
        duration(summary.seconds),
        *((sparkline(entry.history),) if history else ()),
        day(entry.updated),
        Quote(entry.source),
    )


def day(seconds: float | None) -> str:
    """A date in UTC; a time that no calendar has is unknown."""
    try:
        return UNKNOWN if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def which_run(board: Leaderboard) -> str:
    several = "self-check does not" if board.selfchecks == 1 else "self-checks do not"
    own = f" ({board.selfchecks:,} {several})" if board.selfchecks else ""
    return f"the latest run of each subject that was carried through counts{own}"


def caveats(board: Leaderboard) -> Iterator[str]:
    if any(entry.standing.undefined for entry in board.entries):
        yield "a subject without rank and group could not be compared: it shares fewer than two cases with anybody"
    if board.strangers:
        yield "some subjects were not tried on the same cases: between those, scores say little"
    if board.by_id_alone:
        yield "some cases were paired by their names alone: a journal without a plan does not say what was asked"


def incomplete(entry: Entry) -> str:
    summary = entry.summary
    return f"has no run that was carried through: of the latest, {summary.scored:,} of {summary.planned:,} trials count"


def letter(number: int) -> str:
    return _LETTERS[number - 1] if number <= len(_LETTERS) else f"({number})"


def _notes(board: Leaderboard) -> Iterator[tuple[Words, ...]]:
    yield ("subjects that share a letter in “group” cannot be told apart; “rank” is every place that fits the data",)
    yield (f"{which_run(board)}; time is the mean of a trial, cost that of the whole run",)
    for caveat in caveats(board):
        yield (caveat,)
    for entry in board.entries:
        if not entry.whole:
            yield Quote(entry.standing.subject), f" {incomplete(entry)}"
    if board.left_out:
        names = [part for name in board.left_out[:10] for part in (Quote(name), ", ")][:-1]
        yield (f"left out, because {WHY_LEFT_OUT}: ", *names)
    for problem in board.unreadable[:10]:
        yield ("not read: ", Quote(problem))
