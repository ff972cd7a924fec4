"""Describe a leaderboard: ranks and tied groups, score against cost and time, and the run of each number."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bakeoff._kernel.text import count_of, visible
from bakeoff.report.answer import what_was_lost_unequally
from bakeoff.report.blocks import Column, Datum, Phrase, Quote, Report, Section, Table, Value, columns, mark_of
from bakeoff.report.formatting import UNKNOWN, cost, percent, replay_note, span, utc
from bakeoff.report.leaderboard.ranking import Leaderboard, LeaderboardEntry
from bakeoff.report.scores import SCORE_COLUMNS, score_cells, tradeoff_plots

_WHY_LEFT_OUT = "a control, or without a scored trial"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_NAMED = 20
RANK_COLUMNS = (
    Column("Rank", align="end", help="every place that is consistent with the data"),
    Column("Group", help="subjects that share a letter cannot be told apart"),
)
RANK_NOTE = (
    "Subjects that share a letter cannot be told apart; the rank is every place that is consistent with the data."
)


def describe_leaderboard(board: Leaderboard) -> Report:
    """Describe the rankings and the runs behind them; tied groups and plots are on the page only."""
    chapters = [section for number in range(1, len(board.boards) + 1) for section in _chapter(board, number)]
    sections = (*chapters, _provenance(board), _left_out(board))
    return Report(
        "Leaderboard", tuple(section for section in sections if section), headline=_headline(board), tiles=_tiles(board)
    )


def _chapter(whole: Leaderboard, number: int) -> Iterator[Section]:
    """Describe one board; its name is in the titles where there are several."""
    entries, board = whole.on_board(number), whole.boards[number - 1]
    plots = tradeoff_plots((entry.summary, entry.cost_interval, entry.time_interval) for entry in entries)
    unequal = what_was_lost_unequally(board.unequal_losses)
    notes = [
        *([unequal] if unequal else []),
        *_notes(entries),
        *(_common_notes(whole) if number == len(whole.boards) else ()),
    ]
    found = [section for section in (_ranking(entries, notes), _groups(entries), plots) if section]
    if len(whole.boards) == 1:
        yield from found
        return
    ranking, *others = found
    cases = count_of(board.cases, "case")
    yield replace(ranking, id=f"{ranking.id}-{number}", title=(Quote(board.name), f", {cases}"), lead=_first(entries))
    for section in others:
        title = f"{section.title}: {visible(board.name, 60)}, {cases}"
        yield replace(section, id=f"{section.id}-{number}", title=title, in_menu=False)


def _headline(board: Leaderboard) -> str:
    if len(board.boards) == 1:
        return _first(board.entries)
    return (
        f"{len(board.boards):,} rankings, one for each set of cases: scores on different cases are not comparable. "
        "The latest comes first."
    )


def _first(entries: Sequence[LeaderboardEntry]) -> str:
    return " ".join(filter(None, (_best(entries), unranked_sentence(entries))))


def unranked_sentence(entries: Sequence[LeaderboardEntry]) -> str:
    """Name the subjects that have no complete run, and so no rank; empty if there are none."""
    if entries and not any(entry.whole for entry in entries):
        return "No complete run was found."
    names = [entry.standing.subject for entry in entries if not entry.ranked]
    return f"Unfinished and not ranked: {_names(names)}." if names else ""


def _best(entries: Sequence[LeaderboardEntry]) -> str:
    ranked = [entry.standing for entry in entries if entry.ranked]
    if len(ranked) == 1:
        [only] = ranked
        how = "was tried" if len(entries) == 1 else "has a complete run"
        return f"Only {visible(only.subject, 60)} {how}: {percent(only.score)} ({span(only.interval)})."
    first = [standing for standing in ranked if standing.best == 1 and not standing.undefined]
    if not first:
        return "No two subjects could be compared: they share too few cases."
    if len(first) == 1:
        [best] = first
        return f"First: {visible(best.subject, 60)} with {percent(best.score)} ({span(best.interval)})."
    return f"{len(first):,} subjects may be first: {_names([standing.subject for standing in first])}."


def _tiles(board: Leaderboard) -> tuple[tuple[str, str, str], ...]:
    entries = board.entries
    spent = [entry.summary.spent.cost for entry in entries if entry.summary.spent.cost is not None]
    groups = {(entry.board, group) for entry in entries for group in entry.standing.groups}
    subjects = {entry.standing.subject for entry in entries}
    scored = sum(entry.summary.scored for entry in entries)
    return (
        ("Subjects", f"{len(subjects):,}", f"{len(board.left_out):,} left out"),
        ("Groups", f"{len(groups):,}", "of tied subjects"),
        ("Runs", f"{len({entry.path for entry in entries}):,}", "the latest of each subject"),
        ("Scored", f"{scored:,}", "trial" if scored == 1 else "trials"),
        ("Spent", cost(sum(spent)) if spent else UNKNOWN, "by these subjects in these runs"),
        ("Updated", max((day(entry.updated) for entry in entries if entry.updated), default=UNKNOWN), "UTC"),
    )


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(visible(name, 60) for name in names[:_MAX_NAMED]) + more


def _ranking(entries: Sequence[LeaderboardEntry], notes: Sequence[Phrase]) -> Section:
    titles = (
        Column("Subject"),
        *RANK_COLUMNS,
        *SCORE_COLUMNS,
        Column("Per trial", align="end", help="the mean cost of a finished trial", short="Per\ntrial", drop=7),
    )
    rows = tuple(_row(entry) for entry in entries)
    table = Table(titles, rows, "Subjects, best first", tuple(notes))
    return Section("ranking", "Ranking", (table,))


def _row(entry: LeaderboardEntry) -> tuple[Value, ...]:
    return (
        Datum(
            Quote(entry.standing.subject),
            sort=entry.standing.subject,
            tone="strong",
            mark=mark_of(entry.standing.subject),
        ),
        *rank_cells(entry),
        *score_cells(entry.summary, entry.threshold),
        Datum(cost(entry.summary.cost_per_trial), sort=entry.summary.cost_per_trial),
    )


def rank_cells(entry: LeaderboardEntry, note: str = "") -> tuple[Value, Value]:
    """Return the rank of a subject, and the groups that it shares with others, as every leaderboard shows them."""
    standing = entry.standing
    groups = " ".join(map(letter, standing.groups)) or UNKNOWN
    return (
        Datum(entry.rank, sort=standing.best, note=note),
        Datum(groups, sort=standing.groups[0] if standing.groups else None),
    )


def day(seconds: float | None) -> str:
    """Return a date in UTC; a time outside the calendar is unknown."""
    moment = utc(seconds)
    return f"{moment:%Y-%m-%d}" if moment else UNKNOWN


def letter(number: int) -> str:
    """Return the letter of a group."""
    return _LETTERS[number - 1] if number <= len(_LETTERS) else f"({number})"


def _notes(entries: Sequence[LeaderboardEntry]) -> Iterator[Phrase]:
    if any(entry.standing.undefined and entry.ranked for entry in entries):
        yield "A subject without rank and group shares fewer than two cases with every other subject."
    if any(entry.summary.not_needed for entry in entries):
        yield "Some runs ended when they were decided: intervals and groups assume a fixed number of cases."
    yield from unfinished_notes(entries)
    if replayed := sum(entry.summary.replayed for entry in entries):
        note = replay_note(replayed, sum(entry.summary.finished for entry in entries))
        yield f"{note}: their cost and time are those of the recording."


def unfinished_notes(entries: Sequence[LeaderboardEntry]) -> Iterator[Phrase]:
    """Say of each subject without a complete run how much of it counts."""
    for entry in entries:
        if not entry.whole:
            counts = f"{entry.summary.scored:,} of {entry.summary.planned:,} trials of the latest one count"
            rank = "" if entry.ranked else "; it is not ranked"
            yield Quote(entry.standing.subject), f" has no complete run: {counts}{rank}."


def _common_notes(board: Leaderboard) -> Iterator[Phrase]:
    yield RANK_NOTE
    skipped = f" ({board.selfchecks:,} self-check{'s' * (board.selfchecks != 1)} left out)" if board.selfchecks else ""
    yield f"The latest complete run of each subject counts{skipped}."
    if board.by_id_alone:
        yield "Some cases were paired by their ids only, because a journal or a log does not have their content."
    if board.left_out:
        names = [part for name in board.left_out[:10] for part in (Quote(name), ", ")][:-1]
        yield (f"Left out ({_WHY_LEFT_OUT}): ", *names)
    for problem in board.unreadable[:10]:
        yield ("Not read: ", Quote(problem))


def _groups(entries: Sequence[LeaderboardEntry]) -> Section | None:
    """List the members of each group, unless there is only one subject."""
    members: dict[int, list[LeaderboardEntry]] = {}
    for entry in entries:
        for group in entry.standing.groups:
            members.setdefault(group, []).append(entry)
    if len(entries) < 2 or not members:
        return None
    rows = tuple(_group_row(group, members[group]) for group in sorted(members))
    titles = columns("Group", "Cannot be told apart", "Subjects>", "Ranks>", "Scores>")
    lead = (
        "Every pair was compared case by case, with p-values adjusted by Holm's method. A subject may be in two groups."
    )
    table = Table(titles, rows, "Groups of subjects that cannot be told apart")
    return Section("groups", "Tied groups", (table,), lead, page_only=True)


def _group_row(group: int, entries: list[LeaderboardEntry]) -> tuple[Value, ...]:
    best, worst = min(entry.standing.best for entry in entries), max(entry.standing.worst for entry in entries)
    scores = [entry.standing.score for entry in entries]
    low, high = percent(min(scores)), percent(max(scores))
    names = _names([entry.standing.subject for entry in entries])
    return (
        Datum(letter(group), sort=group, tone="strong"),
        names if len(entries) > 1 else Datum(f"{names} differs from all others", tone="muted"),
        len(entries),
        Datum(str(best) if best == worst else f"{best}–{worst}", sort=best),
        Datum(high if low == high else f"{low} – {high}", sort=max(scores)),
    )


def _provenance(board: Leaderboard) -> Section:
    titles = (
        Column("Subject"),
        Column("Run"),
        Column("Model", drop=1),
        Column("History", help="its scores in every run that was read, oldest first"),
        Column("Cases", align="end"),
        Column("Trials", align="end"),
        Column("Last trial"),
    )
    rows = tuple(
        (
            Datum(Quote(entry.standing.subject), tone="strong"),
            Datum(Quote(entry.source), source=entry.path),
            Quote(entry.model) if entry.model else None,
            _history(entry),
            entry.summary.cases,
            entry.summary.finished,
            Datum(day(entry.updated), sort=entry.updated),
        )
        for entry in board.entries
    )
    return Section("provenance", "Runs and history", (Table(titles, rows, "The run of each subject's numbers"),))


def _history(entry: LeaderboardEntry) -> Datum:
    runs = count_of(len(entry.history), "run")
    trail = tuple(min(1.0, max(0.0, score)) for score in entry.history)
    scores = ", ".join(percent(score) for score in entry.history[-_MAX_NAMED:])
    return Datum(runs, sort=len(entry.history), trail=trail if len(trail) > 1 else (), note=scores)


def _left_out(board: Leaderboard) -> Section | None:
    rows: list[tuple[Value, ...]] = [(Quote(name), _WHY_LEFT_OUT) for name in board.left_out]
    rows += [(visible(problem, 500), "cannot be read") for problem in board.unreadable]
    table = Table(columns("Name", "Reason"), tuple(rows), "Not ranked")
    return Section("left-out", "Left out", (table,), page_only=True) if rows else None
