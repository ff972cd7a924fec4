"""Rank agents by result files: the latest complete file of each agent, model and provider.

The rules are those of `bakeoff leaderboard`. If the run folder lies beside a file, its journal is
read, which has the content of the exercises; otherwise, the numbers of the file are used.
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
from bakeoff.record import ProvenTests, Record, TestShares
from bakeoff.report.blocks import Matrix, MatrixCell, Report, Section, Tone
from bakeoff.report.leaderboard import Leaderboard, LeaderboardEntry, describe_leaderboard, rank_sources
from bakeoff.report.readers import Description, RecordsInMemory, RunFolderReader, Source
from bakeoff.storage.run_folder import RunFolder

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
    def proven_tests(self) -> ProvenTests | None:
        return self.result.bakeoff.proven_tests if self.result.bakeoff else None

    @property
    def cost(self) -> float | None:
        """Return the cost of all attempts; None if part of it is unknown, for example without a meter."""
        if self.result.bakeoff is not None and self.result.bakeoff.metered is False:
            return None
        total = added_costs([each.token_usage for each in self.result.results if each.token_usage])
        return None if total is None else round(total, 12)


@dataclass(frozen=True, slots=True)
class AgentsBoard:
    """The common leaderboard of result files, and the file behind each of its entries, best first."""

    common: Leaderboard
    rows: tuple[RankedRow, ...]


def rank_agents(files: Iterable[AgentResult]) -> AgentsBoard:
    """Rank agents, best first, separately for each set of exercises. A rank is the number of better agents plus one."""
    tried = {str(file.path): file for file in files if file.result.results or file.result.summary.total_count}
    keys = _keys(file.result for file in tried.values())
    board = rank_sources(Source(file.path, _reader(keys[_identity(file.result)], file)) for file in tried.values())
    rows = tuple(
        RankedRow(
            tried[entry.path], entry, tuple(other.standing.subject for other in peers if entry.is_tied_with(other))
        )
        for number in range(1, len(board.boards) + 1)
        for peers in [board.on_board(number)]
        for entry in peers
    )
    # Pages link to the run if it exists; files without a run also have proven and hidden tests.
    files_of = {one.entry.path: one for one in rows}
    entries = tuple(_with_facts_of(files_of[entry.path], entry) for entry in board.entries)
    return AgentsBoard(board.model_copy(update={"entries": entries}), rows)


def _with_facts_of(row: RankedRow, entry: LeaderboardEntry) -> LeaderboardEntry:
    """Return the entry with the place of its run, and the proven and hidden tests of its result file.

    If a part of the cost is unknown, the total is unknown, so that the agent does not look cheap.
    """
    facts: dict[str, Any] = {"proven_tests": row.proven_tests or entry.summary.proven_tests}
    found: dict[str, Any] = {"path": str(row.file.run_folder or row.file.path)}
    if (split := row.hidden_tests) is not None:
        facts["tests"] = TestShares(**split.model_dump(by_alias=False, include=set(TestShares.model_fields)))
        facts |= {"visible_score": split.visible_score, "hidden_score": split.hidden_score}
        facts["hidden_difference"] = split.difference
    if row.cost is None:
        facts["spent"] = entry.summary.spent.model_copy(update={"cost": None})
        found["cost_interval"] = None
    return entry.model_copy(update={**found, "summary": entry.summary.model_copy(update=facts)})


def _reader(key: str, file: AgentResult) -> RecordsInMemory:
    """Return a reader of the journal from which a file was computed or, without one, of the file itself."""
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
    """Return a key for each agent, model and provider. It contains the provider only if keys would collide."""
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


def leaderboard_json(ranked: AgentsBoard) -> dict[str, Any]:
    """Return `lastUpdated`, the `results` by agent and model (and board), and the ranked `entries` of each `board`."""
    results: dict[str, Any] = {}
    board = ranked.rows
    for one in board:  # the first board has the latest; results on other exercises are not replaced by it
        results[one.key if one.key not in results else f"{one.key}-board{one.entry.board}"] = one.result.as_json()
    stamps = [stamp for one in board if (stamp := one.result.metadata.timestamp)]
    updated = max(stamps, key=lambda stamp: seconds_of(stamp) or 0.0, default=None)
    return {"lastUpdated": updated, "results": results, "entries": [_entry(one) for one in board]}


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
        **({"provenTests": known.model_dump(mode="json")} if (known := one.proven_tests) else {}),
        "lastUpdated": about.timestamp,
    }


def describe_board(ranked: AgentsBoard) -> Report:
    """Describe the rankings as `bakeoff leaderboard` does, and the exercise × agent matrix of each."""
    boards = [list(group) for _, group in groupby(ranked.rows, key=lambda one: one.entry.board)]
    matrices = [_matrix(agents, number if len(boards) > 1 else None) for number, agents in enumerate(boards, 1)]
    report = describe_leaderboard(ranked.common)
    sections = (*report.sections, *(matrix for matrix in matrices if matrix))
    return replace(report, title="Leaderboard of agents", sections=sections)


def _exercises(board: Sequence[RankedRow]) -> dict[str, list[ExerciseResult | None]]:
    """Return every exercise that an agent tried, with the result of each agent in the order of the board."""
    tried = [{each.exercise: each for each in one.result.results} for one in board]
    names = dict.fromkeys(name for results in tried for name in results)
    return {name: [results.get(name) for results in tried] for name in sorted(names)}


def _matrix(board: Sequence[RankedRow], number: int | None) -> Section | None:
    if not (exercises := _exercises(board)):
        return None
    matrix = Matrix(
        corner="Exercise",
        columns=tuple(visible(one.key, _NAME) for one in board),
        rows=tuple(
            (visible(name, _NAME), tuple(map(_cell, cells))) for name, cells in list(exercises.items())[:_MAX_EXERCISES]
        ),
        caption="Attempts that solved each exercise",
    )
    if number is None:
        return Section("exercises", "Exercises", (matrix,))
    return Section(f"exercises-{number}", f"Exercises of ranking {number}", (matrix,))


def _cell(result: ExerciseResult | None) -> MatrixCell | None:
    if result is None:
        return None
    attempts = result.attempts or (result,)
    solved, tries = sum(one.overall_success for one in attempts), len(attempts)
    tone: Tone = "pass" if solved == tries else "partial" if solved else "fail"
    why = result.agent_error or result.test_error or ""
    return MatrixCell(f"{solved}/{tries}", solved / tries, tone, "" if solved == tries else visible(why, 300))


def read_results(places: Sequence[Path], say: Callable[[str], None]) -> list[AgentResult]:
    """Read result files, and all in given folders. A file that is named directly must be readable.

    Damaged files, and files whose run folder is damaged, are left out with a warning to `say`.
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
