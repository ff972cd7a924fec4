"""Rank agents by their result files: the latest complete one of each agent with each model and provider.

`bakeoff leaderboard` chooses and ranks them. A file whose run folder lies beside it is read from the run's journal,
which knows the content of the exercises; any other file gives its own numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from bakeoff._kernel.text import free_name, visible
from bakeoff.doors.agents.results.model import AgentsResult, ExerciseResult, added_costs, safe_name
from bakeoff.doors.agents.results.read import ExerciseResultReader, plan_of, read_result, records_of
from bakeoff.doors.result_files import HiddenTests
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.logs.trials import seconds_of
from bakeoff.plan import Origin
from bakeoff.record import Record
from bakeoff.report.blocks import Column, Datum, Matrix, MatrixCell, Point, Quote, Report, Section, Table, Tone, Value
from bakeoff.report.formatting import UNKNOWN, cost, duration, percent, points
from bakeoff.report.leaderboard import (
    RANK_COLUMNS,
    RANK_NOTE,
    LeaderboardEntry,
    rank_cells,
    rank_sources,
    unfinished_notes,
    unranked_sentence,
)
from bakeoff.report.readers import Description, RecordsInMemory, RunFolderReader, Source
from bakeoff.report.scores import SHARE_COLUMNS, interval_datum, score_plots
from bakeoff.storage.run_folder import RunFolder

_NOT_METERED = "not metered"
_NAME = 120
_MAX_EXERCISES = 2000  # so that the page stays small


@dataclass(frozen=True, slots=True)
class AgentResult:
    """A result file and its path."""

    path: Path
    result: AgentsResult

    @property
    def run_folder(self) -> Path | None:
        """Return the folder of the run that the file was computed from, if it lies beside the file."""
        name = self.result.bakeoff.run if self.result.bakeoff else None
        if not name or Path(name).name != name:  # a file must not lead out of its folder
            return None
        folder = self.path.parent / "runs" / name
        return folder if folder.is_dir() else None


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One agent with one model of one provider, and the file that it is ranked by."""

    file: AgentResult
    entry: LeaderboardEntry
    tied_with: tuple[str, ...]  # the keys of the agents that cannot be told apart from it

    @property
    def key(self) -> str:
        return self.entry.standing.subject

    @property
    def result(self) -> AgentsResult:
        return self.file.result

    @property
    def hidden_tests(self) -> HiddenTests | None:
        return self.result.bakeoff.hidden_tests if self.result.bakeoff else None

    @property
    def planned(self) -> int:
        """Return the number of exercises that the agent was to try."""
        rounds = self.result.bakeoff.rounds if self.result.bakeoff else 1
        return max(self.entry.summary.cases, self.entry.summary.planned // rounds)

    @property
    def seconds(self) -> float:
        """Return the mean time of an attempt; 0 if no time is known."""
        return self.entry.summary.seconds or self.result.summary.avg_duration / 1000

    @property
    def cost(self) -> float | None:
        """Return the cost of all attempts, or None if a part of it is unknown."""
        total = added_costs([each.token_usage for each in self.result.results if each.token_usage])
        return None if total is None else round(total, 12)


def _split_cells(one: RankedRow) -> tuple[Value, ...]:
    split = one.hidden_tests
    shares = (split.visible_score, split.hidden_score) if split else (None, None)
    gap = split.difference if split else None
    shown = [Datum(percent(share), sort=share) for share in shares]
    return (*shown, Datum(points(gap), sort=gap))


def rank_agents(files: Iterable[AgentResult]) -> tuple[RankedRow, ...]:
    """Rank agents, best first, apart for each set of exercises. A rank is one more than the number of better agents."""
    tried = {str(file.path): file for file in files if file.result.results or file.result.summary.total_count}
    keys = _keys(file.result for file in tried.values())
    board = rank_sources(Source(file.path, _reader(keys[_identity(file.result)], file)) for file in tried.values())
    return tuple(
        RankedRow(
            tried[entry.path], entry, tuple(other.standing.subject for other in peers if entry.is_tied_with(other))
        )
        for number in range(1, len(board.boards) + 1)
        for peers in [board.on_board(number)]
        for entry in peers
    )


def _by_exercises(board: Sequence[RankedRow]) -> list[list[RankedRow]]:
    """Return the agents that were tried on the same exercises together."""
    return [list(group) for _, group in groupby(board, key=lambda one: one.entry.board)]


def _reader(key: str, file: AgentResult) -> RecordsInMemory:
    """Return a reader of the journal that a file was computed from, or else of the file itself."""
    folder, added = file.run_folder, file.result.bakeoff
    if folder is not None and added is not None and RunFolderReader().recognises(folder):
        whole = RunFolderReader().describe(folder).plan
        specs = tuple(spec.model_copy(update={"name": key}) for spec in whole.subjects if spec.name == added.subject)
        if specs:
            described = Description(name=file.path.name, plan=whole.with_changes(subjects=specs))
            return RecordsInMemory(described, partial(_records_of_subject, folder, added.subject, key))
    plan = plan_of(file.result, key)
    plan = plan.with_changes(subjects=(plan.subjects[0].model_copy(update={"name": key}),))
    described = Description(name=file.path.name, plan=plan, content_known=False)
    return RecordsInMemory(described, partial(records_of, file.result, plan))


def _records_of_subject(folder: Path, subject: str, key: str) -> Iterator[Record]:
    for record in RunFolderReader().read(folder):
        if record.subject == subject:
            yield record.model_copy(update={"subject": key})


def _identity(result: AgentsResult) -> tuple[str, str | None, str]:
    return result.metadata.agent, result.metadata.model, result.metadata.provider


def _keys(results: Iterable[AgentsResult]) -> dict[tuple[str, str | None, str], str]:
    """Return a key for each agent, model and provider; the provider is in it only where two would be the same."""
    short = {
        (agent, model, provider): f"{safe_name(agent)}-{safe_name(model or 'default')}"
        for agent, model, provider in map(_identity, results)
    }
    shared = Counter(short.values())
    keys: dict[tuple[str, str | None, str], str] = {}
    for identity, name in short.items():
        key = f"{name}-{safe_name(identity[2])}" if shared[name] > 1 else name
        # Number the names that differ only in characters that a key cannot hold.
        keys[identity] = free_name(key, keys.values(), "{}-{}")
    return keys


def last_updated(board: Iterable[RankedRow]) -> str | None:
    """Return the latest timestamp of all files."""
    stamps = [stamp for one in board if (stamp := one.result.metadata.timestamp)]
    return max(stamps, key=lambda stamp: seconds_of(stamp) or 0.0) if stamps else None


def leaderboard_json(board: Sequence[RankedRow]) -> dict[str, Any]:
    """Return `lastUpdated`, the `results` by agent and model (and board), and the ranked `entries` of each `board`."""
    results: dict[str, Any] = {}
    for one in board:  # the first board has the latest; results on other exercises are not replaced by it
        results[one.key if one.key not in results else f"{one.key}-board{one.entry.board}"] = one.result.as_json()
    return {"lastUpdated": last_updated(board), "results": results, "entries": [_entry(one) for one in board]}


def _entry(one: RankedRow) -> dict[str, Any]:
    about, summary, interval = one.result.metadata, one.result.summary, one.entry.standing.interval
    return {
        "board": one.entry.board,
        "rank": one.entry.standing.best if one.entry.ranked else None,
        "complete": one.entry.whole,
        "tied": bool(one.tied_with),
        "tiedWith": list(one.tied_with),
        "agent": about.agent,
        "version": about.version or "unknown",
        "model": about.model or "default",
        "provider": about.provider,
        "successRate": summary.success_rate,
        "interval": [round(100 * interval.low, 1), round(100 * interval.high, 1)] if interval else None,
        "avgExecutionTime": summary.avg_duration,
        "problemsSolved": summary.success_count,
        "totalProblems": summary.total_count,
        "cost": one.cost,
        **({"hiddenTests": split.model_dump(mode="json")} if (split := one.hidden_tests) else {}),
        "lastUpdated": about.timestamp,
    }


def describe_board(board: Sequence[RankedRow]) -> Report:
    """Describe the ranking, score against cost and time, and the exercise × agent matrix."""
    exercises = _exercises(board)
    boards = _by_exercises(board)
    sections: list[Section | None] = []
    for number, agents in enumerate(boards, 1):
        costs = [(one, _cost_per_attempt(one)) for one in agents]
        priced = tuple(_point(one, paid) for one, paid in costs if paid is not None)
        timed = tuple(_point(one, one.seconds) for one in agents if one.seconds)
        found = [_ranking(agents), score_plots(priced, timed), _matrix(agents, _exercises(agents))]
        sections += [section and _numbered(section, agents, number) for section in found] if len(boards) > 1 else found
    tiles = (
        ("Agents", f"{len({one.key for one in board}):,}", "with each model and provider"),
        ("Exercises", f"{len(exercises):,}", "known by name"),
        ("Updated", visible((last_updated(board) or UNKNOWN)[:10]), "UTC"),
    )
    shown = tuple(section for section in sections if section)
    return Report("Leaderboard of agents", shown, headline=_headline(board), tiles=tiles)


def _numbered(section: Section, agents: Sequence[RankedRow], number: int) -> Section:
    """Name the exercises in the title of a section, where there are several boards."""
    count, added = agents[0].planned, agents[0].result.bakeoff
    origin = Origin(track=added.track, checkout=added.checkout, commit=added.commit).label if added else ""
    of = f" of {visible(origin, 60)}" if origin else ""
    title = f"{section.title}: {count:,} exercise{'s' * (count != 1)}{of} (board {number})"
    return replace(section, id=f"{section.id}-{number}", title=title, in_menu=section.id == "ranking")


def _headline(board: Sequence[RankedRow]) -> str:
    if len(boards := _by_exercises(board)) > 1:
        return f"{len(boards):,} rankings, one for each set of exercises: scores on different ones are not comparable."
    first = [one for one in board if one.entry.standing.best == 1 and one.entry.ranked]
    names = _named([one.key for one in first])
    rate = f"First: {names} with {first[0].result.summary.success_rate:.1f} %."
    best = rate if len(first) == 1 else f"{len(first):,} agents may be first: {names}."
    return " ".join(filter(None, (best, unranked_sentence([one.entry for one in board]))))


def _named(keys: Sequence[str]) -> str:
    return ", ".join(visible(key, 60) for key in keys[:10]) + (" and more" if len(keys) > 10 else "")


def _ranking(board: Sequence[RankedRow]) -> Section:
    split = any(one.hidden_tests for one in board)
    titles = (
        Column("Agent"),
        Column("Version", drop=3),
        Column("Model"),
        Column("Provider", drop=2),
        *RANK_COLUMNS,
        Column("Success", align="end", help="of all attempts"),
        Column("95 % interval", align="end", short="95 %\ninterval"),
        Column("Solved", align="end", help="exercises, in every attempt"),
        *(SHARE_COLUMNS if split else ()),
        Column("Time", align="end", help="the mean of an attempt"),
        Column("Cost", align="end", help="of all attempts"),
        Column("Updated", drop=4),
        Column("Run", help="patches and logs of every attempt", page_only=True),
    )
    notes = (
        RANK_NOTE,
        "An exercise is solved if every attempt at it was. The time is the mean of an attempt, the cost that of all.",
        *unfinished_notes([one.entry for one in board]),
    )
    rows = tuple(_row(one, split=split) for one in board)
    return Section("ranking", "Ranking", (Table(titles, rows, "Agents, best first", notes),))


def _row(one: RankedRow, *, split: bool) -> tuple[Value, ...]:
    about, summary = one.result.metadata, one.result.summary
    rate, seconds = summary.success_rate, one.seconds
    tied = f"cannot be told apart from {_named(one.tied_with)}" if one.tied_with else ""
    planned = "" if one.entry.whole else f" of {one.planned:,}"
    return (
        Datum(Quote(about.agent), tone="strong"),
        Quote(about.version or "unknown"),
        Quote(about.model or "default"),
        Quote(about.provider),
        *rank_cells(one.entry, tied),
        Datum(f"{rate:.1f} %", sort=rate, tone="strong"),
        interval_datum(min(1.0, rate / 100), one.entry.standing.interval),
        Datum(f"{summary.success_count:,}/{summary.total_count:,}{planned}", sort=summary.success_count),
        *(_split_cells(one) if split else ()),
        Datum(duration(seconds) if seconds else UNKNOWN, sort=seconds or None),
        Datum(_cost_text(one), sort=one.cost),
        Datum((about.timestamp or UNKNOWN)[:10], sort=about.timestamp),
        _run(one),
    )


def _cost_text(one: RankedRow) -> str:
    """Return the cost; the cost of an agent that bypasses the meter is unknown."""
    added = one.result.bakeoff
    return _NOT_METERED if added is not None and added.metered is False else cost(one.cost)


def _run(one: RankedRow) -> Value:
    """Return a link to the run's page if it lies beside the result file, or else to the GitHub run."""
    about, added = one.result.metadata, one.result.bakeoff
    if added is not None and added.run:
        folder = one.file.run_folder
        return Datum(Quote(added.run), source=str(folder) if folder else None)
    if not about.run_url:
        return None
    try:
        return Datum(Quote(about.run_id or "run"), href=about.run_url)
    except ValueError:  # not a link that a page may have
        return Quote(about.run_url)


def _cost_per_attempt(one: RankedRow) -> float | None:
    """Return the mean cost, or None if a part of it is unknown: an agent must not look cheap for that."""
    attempts = sum(_solved(each)[1] for each in one.result.results)
    known = one.cost is not None and _cost_text(one) != _NOT_METERED
    return one.cost / attempts if known and one.cost is not None and attempts else None


def _point(one: RankedRow, x: float) -> Point:
    interval = one.entry.standing.interval
    return Point(
        x=x,
        y=min(1.0, one.result.summary.success_rate / 100),
        label=visible(one.key, _NAME),
        y_interval=interval.ends if interval else None,
    )


def _exercises(board: Sequence[RankedRow]) -> dict[str, list[ExerciseResult | None]]:
    """Return every exercise that an agent tried, with the result of each agent in the order of the board."""
    tried = [{each.exercise: each for each in one.result.results} for one in board]
    names = dict.fromkeys(name for results in tried for name in results)
    return {name: [results.get(name) for results in tried] for name in sorted(names)}


def _solved(result: ExerciseResult) -> tuple[int, int]:
    """Return the number of attempts that solved the exercise, and of all attempts."""
    tries = result.attempts or (result,)
    return sum(one.overall_success for one in tries), len(tries)


def _matrix(board: Sequence[RankedRow], exercises: dict[str, list[ExerciseResult | None]]) -> Section | None:
    if not exercises:
        return None
    matrix = Matrix(
        corner="Exercise",
        columns=tuple(visible(one.key, _NAME) for one in board),
        rows=tuple(
            (visible(name, _NAME), tuple(map(_cell, cells))) for name, cells in list(exercises.items())[:_MAX_EXERCISES]
        ),
        caption="Attempts that solved each exercise",
    )
    return Section("exercises", "Exercises", (matrix,))


def _cell(result: ExerciseResult | None) -> MatrixCell | None:
    if result is None:
        return None
    solved, tries = _solved(result)
    tone: Tone = "pass" if solved == tries else "partial" if solved else "fail"
    why = result.agent_error or result.test_error or ""
    return MatrixCell(f"{solved}/{tries}", solved / tries, tone, "" if solved == tries else visible(why, 300))


def read_results(places: Sequence[Path], say: Callable[[str], None]) -> list[AgentResult]:
    """Read result files, and those of folders. A file that is named itself must be readable.

    Other files that are damaged, and all whose run folder is, are left out with a warning to `say`.
    """
    found: list[AgentResult] = []
    for place in places:
        if not place.exists():
            raise UsageError(f"{visible(str(place))} does not exist: name result files of agents, or folders of them")
        for path in sorted(place.glob("*.json")) if place.is_dir() else [place]:
            # `latest.json` is a copy.
            if place.is_dir() and (path.name == "latest.json" or not ExerciseResultReader().recognises(path)):
                continue
            named = path == place
            try:
                file = AgentResult(path, read_result(path))
                named = False  # a damaged run folder does not end the command
                if file.run_folder is not None and (file.run_folder / "plan.json").is_file():
                    RunFolder(file.run_folder).read_plan()
            except BakeoffError as error:
                if named:
                    raise
                say(f"warning: left out: {error}")
            else:
                found.append(file)
    return found
