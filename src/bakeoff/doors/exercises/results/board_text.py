"""The leaderboard of agents in words: ranks, and which exercise each of them solved."""

from collections.abc import Sequence

from bakeoff.doors.exercises.results.board import Standing
from bakeoff.doors.exercises.results.model import ExerciseResult
from bakeoff.report.outputs import Block, Column, Grid, Listing, Quote, Words, heading, paragraph
from bakeoff.report.words import UNKNOWN, cost, duration, span

TIES = "a rank counts the agents that are better beyond doubt; = marks those whose interval overlaps another's"
TALLY = "an exercise is solved if every attempt at it was; time is the mean of an attempt, cost that of all of them"
NOT_METERED = "not metered"
NOBODY = "No agent has a result: neither controls nor runs in which every trial was lost are ranked."


def describe_board(standings: Sequence[Standing]) -> tuple[Block, ...]:
    if not standings:
        return heading("Leaderboard of agents"), paragraph(NOBODY)
    notes = Listing(((TIES,), (TALLY,)))
    return heading("Leaderboard of agents"), _ranking(standings), notes, *_matrix(standings)


def _ranking(standings: Sequence[Standing]) -> Grid:
    columns = (
        Column("rank", numeric=True),
        Column("agent"),
        Column("version", least_width=110),
        Column("model"),
        Column("provider", least_width=90),
        Column("success", numeric=True),
        Column("95 % interval", numeric=True),
        Column("solved", numeric=True),
        Column("time", numeric=True),
        Column("cost", numeric=True),
        Column("updated", least_width=120),
    )
    return Grid(columns, tuple(map(_row, standings)))


def _row(standing: Standing) -> tuple[Words, ...]:
    about, summary = standing.result.metadata, standing.result.summary
    return (
        rank_words(standing),
        Quote(about.agent),
        Quote(about.version or "unknown"),
        Quote(about.model or "default"),
        Quote(about.provider),
        f"{summary.success_rate:.1f} %",
        span(standing.interval),
        f"{summary.success_count}/{summary.total_count}",
        duration(summary.avg_duration / 1000) if summary.avg_duration else UNKNOWN,
        cost_words(standing),
        (about.timestamp or UNKNOWN)[:10],
    )


def rank_words(standing: Standing) -> str:
    return f"={standing.rank}" if standing.tied else str(standing.rank)


def cost_words(standing: Standing) -> str:
    """An agent that went past the meter may have cost anything."""
    added = standing.result.bakeoff
    return NOT_METERED if added is not None and added.metered is False else cost(standing.cost)


def exercises_of(standings: Sequence[Standing]) -> dict[str, list[ExerciseResult | None]]:
    """Every exercise that someone tried, with what became of it for each, in the order of the standings."""
    tried = [{each.exercise: each for each in standing.result.results} for standing in standings]
    names = dict.fromkeys(name for results in tried for name in results)
    return {name: [results.get(name) for results in tried] for name in sorted(names)}


def solved_of(result: ExerciseResult) -> tuple[int, int]:
    """How many attempts solved it, and how many there were."""
    tries = result.attempts or (result,)
    return sum(one.overall_success for one in tries), len(tries)


def _matrix(standings: Sequence[Standing]) -> tuple[Block, ...]:
    rows = exercises_of(standings)
    if not rows:
        return ()
    columns = (Column("exercise"), *(Column(standing.key, numeric=True) for standing in standings))
    grid = Grid(columns, tuple((Quote(name), *map(_cell, cells)) for name, cells in rows.items()))
    return heading("Exercises", level=3), grid


def _cell(result: ExerciseResult | None) -> str:
    if result is None:
        return UNKNOWN
    solved, tries = solved_of(result)
    return f"{solved}/{tries}"
