"""The leaderboard of many result files, as JSON: the latest word on each agent with each model and provider."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff.doors.exercises.results.model import ResultFile, safe_name, seconds_of
from bakeoff.stats import Cell, Interval, score_interval


@dataclass(frozen=True, slots=True)
class _Standing:
    result: ResultFile
    interval: Interval | None

    @property
    def rate(self) -> float:
        return self.result.summary.success_rate


def leaderboard_json(results: Iterable[ResultFile]) -> dict[str, Any]:
    """`lastUpdated`, `results` by agent and model, and `entries`. Those whose intervals overlap share a rank."""
    latest = latest_of(results)
    standings = sorted(map(_standing, latest), key=lambda standing: -standing.rate)
    keys = _keys([standing.result for standing in standings])
    stamps = [result.metadata.timestamp for result in latest if result.metadata.timestamp]
    return {
        "lastUpdated": max(stamps, key=seconds_of) if stamps else None,
        "results": {key: standing.result.as_json() for key, standing in zip(keys, standings, strict=True)},
        "entries": [_entry(standing, standings) for standing in standings],
    }


def latest_of(results: Iterable[ResultFile]) -> list[ResultFile]:
    """One for each agent, model and provider; controls are not ranked."""
    latest: dict[tuple[str, str | None, str], ResultFile] = {}
    for result in results:
        if result.bakeoff is not None and result.bakeoff.control:
            continue
        about = result.metadata
        key = (about.agent, about.model, about.provider)
        if key not in latest or _when(result) >= _when(latest[key]):
            latest[key] = result
    return list(latest.values())


def _when(result: ResultFile) -> float:
    return seconds_of(result.metadata.timestamp) if result.metadata.timestamp else 0.0


def _keys(results: Sequence[ResultFile]) -> list[str]:
    short = [f"{safe_name(r.metadata.agent)}-{safe_name(r.metadata.model or 'default')}" for r in results]
    shared = Counter(short)
    return [
        f"{key}-{safe_name(result.metadata.provider)}" if shared[key] > 1 else key
        for key, result in zip(short, results, strict=True)
    ]


def _standing(result: ResultFile) -> _Standing:
    cells = []
    for each in result.results:
        tries = each.attempts or (each,)
        passed = float(sum(one.overall_success for one in tries))
        cells.append(Cell(len(tries), passed, passed))
    if not result.results:
        solved, count = result.summary.success_count, result.summary.total_count
        cells = [Cell(1, float(place < solved), float(place < solved)) for place in range(count)]
    return _Standing(result, score_interval(cells))


def _entry(standing: _Standing, all_of_them: Sequence[_Standing]) -> dict[str, Any]:
    result = standing.result
    about, summary = result.metadata, result.summary
    costs = [each.token_usage.cost for each in result.results if each.token_usage and each.token_usage.cost is not None]
    rank = 1 + sum(_better(other, standing) for other in all_of_them)
    return {
        "rank": rank,
        "tied": sum(1 + sum(_better(other, each) for other in all_of_them) == rank for each in all_of_them) > 1,
        "agent": about.agent,
        "version": about.version or "unknown",
        "model": about.model or "default",
        "provider": about.provider,
        "successRate": summary.success_rate,
        "interval": [round(100 * standing.interval.low, 1), round(100 * standing.interval.high, 1)]
        if standing.interval
        else None,
        "avgExecutionTime": summary.avg_duration,
        "problemsSolved": summary.success_count,
        "totalProblems": summary.total_count,
        "cost": round(sum(costs), 6) if costs else None,  # unknown is not 0
        "lastUpdated": about.timestamp,
    }


def _better(one: _Standing, other: _Standing) -> bool:
    """Whether the evidence says so: intervals that overlap leave it open."""
    if one.interval is None or other.interval is None:
        return False
    return one.rate > other.rate and not one.interval.overlaps(other.interval)
