"""Shards of one run as if they had been one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.shape import read_eval_file
from bakeoff.errors import UsageError
from bakeoff.report.words import visible


@dataclass(frozen=True, slots=True)
class Merged:
    """All evals of some files, and what there is to say about it."""

    outcomes: list[EvalOutcome]
    complete: bool
    shards: int
    notes: tuple[str, ...] = ()


def merge_files(paths: Sequence[Path]) -> Merged:
    """A test that is in two files counts once where both say the same of it, and is refused where they do not: nobody
    could tell which of them the run meant."""
    whole: dict[str, list[EvalOutcome]] = {}
    origin: dict[str, Path] = {}
    twice, shards, stopped = 0, 0, []
    for path in paths:
        file = read_eval_file(path)
        shards += file.shards
        stopped += [] if file.complete else [path]
        for nodeid, outcomes in by_nodeid(file.outcomes).items():
            if nodeid not in whole:
                whole[nodeid], origin[nodeid] = outcomes, path
            elif whole[nodeid] == outcomes:
                twice += 1
            else:
                raise UsageError(
                    f"{visible(nodeid)} has one result in {origin[nodeid]} and another in {path}: "
                    "shards of one run share no test; leave one of the files out"
                )
    notes = [f"{twice} tests are in more than one file, with the same result: each counts once"] if twice else []
    notes += [f"{path} is of a run that was stopped before its end" for path in stopped]
    outcomes = [outcome for found in whole.values() for outcome in found]
    return Merged(outcomes, complete=not stopped, shards=shards, notes=tuple(notes))


def by_nodeid(outcomes: Sequence[EvalOutcome]) -> dict[str, list[EvalOutcome]]:
    """A test may hold several evals."""
    found: dict[str, list[EvalOutcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.nodeid, []).append(outcome)
    return found
