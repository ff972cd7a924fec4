"""The leaderboard of agents as a page: ranks, score against cost and time, and the exercise × agent matrix."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from bakeoff.doors.exercises.results.board import Standing, last_updated
from bakeoff.doors.exercises.results.board_text import (
    NOBODY,
    NOT_METERED,
    TALLY,
    TIES,
    cost_words,
    exercises_of,
    rank_words,
    solved_of,
)
from bakeoff.doors.exercises.results.model import ExerciseResult
from bakeoff.report.html.scores import interval_datum, score_plots
from bakeoff.report.html.section_page import Masthead, source_datum, write_section_page
from bakeoff.report.sections import Column, Datum, Matrix, MatrixCell, Point, Section, Table, Tone, Value
from bakeoff.report.words import UNKNOWN, duration, visible

_NAME = 120
_MOST_EXERCISES = 2000  # a page has to stay light


def write_board_page(path: Path, standings: Sequence[Standing], folders: Sequence[Path] = ()) -> Path:
    """`folders` are those of the result files: the runs below them have pages with every patch and log."""
    runs = {standing.key: _run(path, standing, folders) for standing in standings}
    sections = [_ranking(standings, runs), _tradeoffs(standings), _matrix(standings)]
    return write_section_page(path, _head(standings), [section for section in sections if section])


def _head(standings: Sequence[Standing]) -> Masthead:
    first = [standing for standing in standings if standing.rank == 1]
    names = ", ".join(visible(standing.key, 60) for standing in first[:10])
    if not first:
        headline = NOBODY
    elif len(first) == 1:
        headline = f"First: {names} with {first[0].result.summary.success_rate:.1f} %."
    else:
        headline = f"{len(first):,} agents may be first: {names}{' and more' if len(first) > 10 else ''}."
    tiles = (
        ("Agents", f"{len(standings):,}", "with each model and provider"),
        ("Exercises", f"{len(exercises_of(standings)):,}", "that are known by name"),
        ("Updated", visible((last_updated(standings) or UNKNOWN)[:10]), "UTC"),
    )
    return Masthead(title="Leaderboard of agents", headline=headline, tiles=tiles)


def _ranking(standings: Sequence[Standing], runs: Mapping[str, Value]) -> Section:
    columns = (
        Column(title="Rank", align="end", help="how many are better beyond doubt, and one; = marks ties"),
        Column(title="Agent"),
        Column(title="Version"),
        Column(title="Model"),
        Column(title="Provider"),
        Column(title="Success", align="end", help="of all attempts"),
        Column(title="95 % interval"),
        Column(title="Solved", align="end", help="exercises, in every attempt"),
        Column(title="Time", align="end", help="mean of an attempt"),
        Column(title="Cost", align="end", help="of all attempts"),
        Column(title="Updated"),
        Column(title="Run", help="patches and logs of every attempt"),
    )
    rows = tuple((*_row(standing), runs[standing.key]) for standing in standings)
    notes = tuple(f"{text[0].upper()}{text[1:]}." for text in (TIES, TALLY))
    table = Table(columns=columns, rows=rows, caption="Agents, best first", notes=notes)
    return Section(id="ranking", title="Ranking", blocks=(table,))


def _row(standing: Standing) -> tuple[Value, ...]:
    about, summary = standing.result.metadata, standing.result.summary
    rate, seconds = summary.success_rate, summary.avg_duration / 1000
    return (
        Datum(text=rank_words(standing), sort=standing.rank, note=_tied(standing)),
        Datum(text=visible(about.agent, _NAME), tone="strong"),
        visible(about.version or "unknown", _NAME),
        visible(about.model or "default", _NAME),
        visible(about.provider, _NAME),
        Datum(text=f"{rate:.1f} %", sort=rate, tone="strong"),
        interval_datum(min(1.0, rate / 100), standing.interval),
        Datum(text=f"{summary.success_count:,} / {summary.total_count:,}", sort=summary.success_count),
        Datum(text=duration(seconds) if seconds else UNKNOWN, sort=seconds or None),
        Datum(text=cost_words(standing), sort=standing.cost),
        Datum(text=(about.timestamp or UNKNOWN)[:10], sort=about.timestamp),
    )


def _run(page: Path, standing: Standing, folders: Sequence[Path]) -> Value:
    """A link to the run's page where that is beside the result file, or else to where GitHub ran it."""
    about, added = standing.result.metadata, standing.result.bakeoff
    name = added.run if added is not None and added.run else ""
    if name and Path(name).name == name:  # a file must not lead out of its folder
        places = [folder / "runs" / name for folder in folders if (folder / "runs" / name).is_dir()]
        return source_datum(page, name, str(places[0])) if places else visible(name, _NAME)
    if not about.run_url:
        return None
    try:
        return Datum(text=visible(about.run_id or "run", _NAME), href=about.run_url)
    except ValidationError:  # not a link that a page may have
        return visible(about.run_url, _NAME)


def _tied(standing: Standing) -> str:
    names = ", ".join(visible(key, 60) for key in standing.tied_with[:10])
    more = " and more" if len(standing.tied_with) > 10 else ""
    return f"cannot be told apart from {names}{more}" if names else ""


def _tradeoffs(standings: Sequence[Standing]) -> Section | None:
    priced = [(standing, cost) for standing in standings if (cost := _cost_of_an_attempt(standing)) is not None]
    timed = [(standing, standing.result.summary.avg_duration / 1000) for standing in standings]
    return score_plots(
        tuple(_point(*each) for each in priced), tuple(_point(*each) for each in timed if each[1]), frozenset()
    )


def _cost_of_an_attempt(standing: Standing) -> float | None:
    """None where not everything was counted: an agent must not look cheap for that."""
    attempts = sum(solved_of(each)[1] for each in standing.result.results)
    known = standing.cost is not None and cost_words(standing) != NOT_METERED
    return standing.cost / attempts if known and standing.cost is not None and attempts else None


def _point(standing: Standing, x: float) -> Point:
    interval = standing.interval
    return Point(
        x=x,
        y=min(1.0, standing.result.summary.success_rate / 100),
        label=visible(standing.key, _NAME),
        y_interval=(interval.low, interval.high) if interval else None,
    )


def _matrix(standings: Sequence[Standing]) -> Section | None:
    rows = list(exercises_of(standings).items())[:_MOST_EXERCISES]
    if not rows:
        return None
    matrix = Matrix(
        corner="Exercise",
        columns=tuple(visible(standing.key, _NAME) for standing in standings),
        rows=tuple((visible(name, _NAME), tuple(map(_cell, cells))) for name, cells in rows),
        caption="Attempts that solved each exercise",
    )
    return Section(id="exercises", title="Exercises", blocks=(matrix,))


def _cell(result: ExerciseResult | None) -> MatrixCell | None:
    if result is None:
        return None
    solved, tries = solved_of(result)
    tone: Tone = "pass" if solved == tries else "partial" if solved else "fail"
    why = result.agent_error or result.test_error or ""
    return MatrixCell(text=f"{solved}/{tries}", tone=tone, note="" if solved == tries else visible(why, 300))
