"""A leaderboard as a page: ranks and tied groups, score against cost and time, and where each number comes from."""

from pathlib import Path

from bakeoff.report.compare_text import passed_of, sentence
from bakeoff.report.html.detail import NAME
from bakeoff.report.html.scores import interval_datum, losses, score_plots, score_point
from bakeoff.report.html.section_page import Masthead, source_datum, write_section_page
from bakeoff.report.leaderboard import Entry, Leaderboard
from bakeoff.report.leaderboard_text import WHY_LEFT_OUT, caveats, day, incomplete, letter, which_run
from bakeoff.report.sections import Column, Datum, Section, Table, Value
from bakeoff.report.words import UNKNOWN, cost, duration, percent, replay_note, span, visible

_MOST_NAMED = 20


def write_leaderboard_page(path: Path, board: Leaderboard) -> Path:
    sections = [_ranking(board), _groups(board), _tradeoffs(board), _provenance(path, board), _left_out(board)]
    return write_section_page(path, _head(board), [section for section in sections if section])


def _head(board: Leaderboard) -> Masthead:
    entries = board.entries
    first = [entry for entry in entries if entry.standing.best == 1 and not entry.standing.undefined]
    if not first:
        headline = "No two subjects could be compared: they share too few cases."
    elif len(first) == 1:
        [best] = first
        interval = span(best.standing.interval)
        headline = f"First: {visible(best.standing.subject, 60)} with {percent(best.standing.score)} ({interval})."
    else:
        headline = f"{len(first):,} subjects may be first: {_names([entry.standing.subject for entry in first])}."
    spent = [entry.summary.spent.cost for entry in entries if entry.summary.spent.cost is not None]
    groups = {group for entry in entries for group in entry.standing.groups}
    tiles = (
        ("Subjects", f"{len(entries):,}", f"{len(board.left_out):,} left out"),
        ("Groups", f"{len(groups):,}", "of subjects that are tied"),
        ("Runs", f"{len({entry.path for entry in entries}):,}", "the latest of each subject"),
        ("Scored", f"{sum(entry.summary.scored for entry in entries):,}", "trials"),
        ("Spent", cost(sum(spent)) if spent else UNKNOWN, "in these runs, by these subjects"),
        ("Updated", max((day(entry.updated) for entry in entries if entry.updated), default=UNKNOWN), "UTC"),
    )
    return Masthead(title="Leaderboard", headline=headline, tiles=tiles)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(visible(name, 60) for name in names[:_MOST_NAMED]) + more


def _ranking(board: Leaderboard) -> Section:
    columns = (
        Column(title="Subject"),
        Column(title="Rank", align="end", help="every place that fits the data"),
        Column(title="Group", help="subjects that share a letter cannot be told apart"),
        Column(title="Score", align="end", help="the mean over cases of the mean over rounds"),
        Column(title="95 % interval"),
        Column(title="Passed / scored", align="end"),
        Column(title="Lost", align="end", help="to budget, infra or grader: not the subject's doing, not in its score"),
        Column(title="Cost", align="end", help="of the whole run"),
        Column(title="A trial", align="end", help="mean cost of a trial"),
        Column(title="Time", align="end", help="mean of a scored trial"),
    )
    rows = tuple(_row(entry) for entry in board.entries)
    table = Table(columns=columns, rows=rows, caption="Subjects, best first", notes=_notes(board))
    return Section(id="ranking", title="Ranking", blocks=(table,))


def _row(entry: Entry) -> tuple[Value, ...]:
    standing, summary = entry.standing, entry.summary
    return (
        Datum(text=visible(standing.subject, NAME), tone="strong"),
        Datum(text=entry.rank, sort=standing.best),
        Datum(
            text=" ".join(map(letter, standing.groups)) or UNKNOWN, sort=standing.groups[0] if standing.groups else None
        ),
        Datum(text=percent(standing.score), sort=standing.score, tone="strong"),
        interval_datum(standing.score, standing.interval),
        Datum(text=passed_of(summary, entry.threshold).replace("/", " / "), sort=summary.passed),
        losses(summary),
        Datum(text=cost(summary.spent.cost), sort=summary.spent.cost),
        Datum(text=cost(entry.cost_per_trial), sort=entry.cost_per_trial),
        Datum(text=duration(summary.seconds), sort=summary.seconds),
    )


def _history(entry: Entry) -> Datum:
    scores = ", ".join(percent(score) for score in entry.history[-_MOST_NAMED:])
    runs = f"{len(entry.history):,} {'run' if len(entry.history) == 1 else 'runs'}"
    trail = tuple(min(1.0, max(0.0, score)) for score in entry.history)
    return Datum(text=runs, sort=len(entry.history), trail=trail if len(trail) > 1 else (), note=scores)


def _notes(board: Leaderboard) -> tuple[str, ...]:
    notes = [
        "Subjects that share a letter cannot be told apart; a rank is every place that fits the data.",
        sentence(which_run(board)),
        *map(sentence, caveats(board)),
        *(f"{visible(entry.standing.subject, 60)} {incomplete(entry)}." for entry in board.entries if not entry.whole),
    ]
    replayed = sum(entry.summary.replayed for entry in board.entries)
    if replayed:
        finished = sum(entry.summary.finished for entry in board.entries)
        notes.append(f"{replay_note(replayed, finished)}: their cost and time are those of the recording.")
    return tuple(notes)


def _groups(board: Leaderboard) -> Section | None:
    """Who shares a letter with whom, said in full; with one subject there is nothing to say."""
    if len(board.entries) < 2:
        return None
    members: dict[int, list[Entry]] = {}
    for entry in board.entries:
        for group in entry.standing.groups:
            members.setdefault(group, []).append(entry)
    if not members:
        return None
    rows = tuple(_group_row(group, members[group]) for group in sorted(members))
    columns = (
        Column(title="Group"),
        Column(title="Cannot be told apart"),
        Column(title="Subjects", align="end"),
        Column(title="Ranks", align="end"),
        Column(title="Scores", align="end"),
    )
    lead = "Every pair was compared case by case, and p-values adjusted by Holm. A subject may stand in two groups."
    table = Table(columns=columns, rows=rows, caption="Groups of subjects that cannot be told apart")
    return Section(id="groups", title="Tied groups", blocks=(table,), lead=lead)


def _group_row(group: int, entries: list[Entry]) -> tuple[Value, ...]:
    best, worst = min(entry.standing.best for entry in entries), max(entry.standing.worst for entry in entries)
    scores = [entry.standing.score for entry in entries]
    low, high = percent(min(scores)), percent(max(scores))
    return (
        Datum(text=letter(group), sort=group, tone="strong"),
        _names([entry.standing.subject for entry in entries]) if len(entries) > 1 else _alone(entries[0]),
        len(entries),
        Datum(text=str(best) if best == worst else f"{best}–{worst}", sort=best),
        Datum(text=high if low == high else f"{low} – {high}", sort=max(scores)),
    )


def _alone(entry: Entry) -> Datum:
    return Datum(text=f"{visible(entry.standing.subject, 60)} is told apart from all others", tone="muted")


def _tradeoffs(board: Leaderboard) -> Section | None:
    priced = tuple(
        score_point(entry.summary, paid, entry.cost_interval)
        for entry in board.entries
        if (paid := entry.cost_per_trial) is not None
    )
    timed = tuple(
        score_point(entry.summary, seconds, entry.time_interval)
        for entry in board.entries
        if (seconds := entry.summary.seconds) is not None
    )
    return score_plots(priced, timed, frozenset())


def _provenance(path: Path, board: Leaderboard) -> Section:
    columns = (
        Column(title="Subject"),
        Column(title="Run"),
        Column(title="Model"),
        Column(title="History", help="its scores in every run that was read, oldest first"),
        Column(title="Cases", align="end"),
        Column(title="Trials", align="end"),
        Column(title="Not run", align="end"),
        Column(title="Last trial"),
    )
    rows = tuple(
        (
            Datum(text=visible(entry.standing.subject, NAME), tone="strong"),
            source_datum(path, entry.source, entry.path),
            visible(entry.model, NAME) if entry.model else None,
            _history(entry),
            entry.summary.cases,
            Datum(text=f"{entry.summary.finished:,}", sort=entry.summary.finished),
            Datum(text=f"{entry.summary.missing:,}", sort=entry.summary.missing),
            Datum(text=day(entry.updated), sort=entry.updated),
        )
        for entry in board.entries
    )
    lead = "A run is a link where its page, or else its journal, was there when this page was made."
    table = Table(columns=columns, rows=rows, caption="Where each subject's numbers come from")
    return Section(id="provenance", title="Where it comes from", blocks=(table,), lead=lead)


def _left_out(board: Leaderboard) -> Section | None:
    why = WHY_LEFT_OUT
    rows = [(visible(name, NAME), why) for name in board.left_out]
    rows += [(visible(problem, 500), "cannot be read") for problem in board.unreadable]
    if not rows:
        return None
    columns = (Column(title="What"), Column(title="Why"))
    table = Table(columns=columns, rows=tuple(rows), caption="What is not ranked")
    return Section(id="left-out", title="Left out", blocks=(table,))
