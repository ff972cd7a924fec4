"""The leaderboard of many result files: the latest word on each agent with each model and provider."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff.doors.exercises.results.model import ResultFile, added_costs, safe_name, seconds_of
from bakeoff.stats import Cell, Interval, score_interval


@dataclass(frozen=True, slots=True)
class Standing:
    """One agent with one model of one provider, by its latest file."""

    key: str
    result: ResultFile
    interval: Interval | None
    rank: int
    tied_with: tuple[str, ...]  # the keys of those it cannot be told apart from

    @property
    def tied(self) -> bool:
        return bool(self.tied_with)

    @property
    def cost(self) -> float | None:
        """Of all that was counted; a sum with an unknown in it is unknown."""
        total = added_costs([each.token_usage for each in self.result.results if each.token_usage])
        return None if total is None else round(total, 12)


def leaderboard_json(results: Iterable[ResultFile]) -> dict[str, Any]:
    """`lastUpdated`, `results` by agent and model, and `entries`. Those whose intervals overlap are tied."""
    standings = standings_of(results)
    return {
        "lastUpdated": last_updated(standings),
        "results": {standing.key: standing.result.as_json() for standing in standings},
        "entries": [_entry(standing) for standing in standings],
    }


def standings_of(results: Iterable[ResultFile]) -> tuple[Standing, ...]:
    """Best first. A rank counts those that are better beyond doubt.

    Being told apart is not handed on: the second may be tied with the first and with the third, and they not.
    """
    latest = sorted(latest_of(results), key=lambda result: -result.summary.success_rate)
    rated = [(key, result, _interval(result)) for key, result in zip(_keys(latest), latest, strict=True)]
    standings = []
    for key, result, interval in rated:
        one = (result.summary.success_rate, interval)
        others = [(name, (other.summary.success_rate, its)) for name, other, its in rated if name != key]
        rank = 1 + sum(_better(other, one) for _, other in others)
        tied = tuple(name for name, other in others if not _better(other, one) and not _better(one, other))
        standings.append(Standing(key, result, interval, rank, tied))
    return tuple(standings)


def last_updated(standings: Iterable[Standing]) -> str | None:
    stamps = [stamp for standing in standings if (stamp := standing.result.metadata.timestamp)]
    return max(stamps, key=seconds_of) if stamps else None


def latest_of(results: Iterable[ResultFile]) -> list[ResultFile]:
    """One for each agent, model and provider; neither controls nor runs in which every trial was lost are ranked."""
    latest: dict[tuple[str, str | None, str], ResultFile] = {}
    for result in results:
        if (result.bakeoff is not None and result.bakeoff.control) or _is_empty(result):
            continue
        about = result.metadata
        key = (about.agent, about.model, about.provider)
        if key not in latest or _when(result) >= _when(latest[key]):
            latest[key] = result
    return list(latest.values())


def _is_empty(result: ResultFile) -> bool:
    return not result.summary.total_count and not result.results


def _when(result: ResultFile) -> float:
    return seconds_of(result.metadata.timestamp) if result.metadata.timestamp else 0.0


def _keys(results: Sequence[ResultFile]) -> list[str]:
    short = [f"{safe_name(r.metadata.agent)}-{safe_name(r.metadata.model or 'default')}" for r in results]
    shared = Counter(short)
    longer = [
        f"{key}-{safe_name(result.metadata.provider)}" if shared[key] > 1 else key
        for key, result in zip(short, results, strict=True)
    ]
    keys: list[str] = []
    for key in longer:  # names that differ only in what a key cannot hold are numbered: nobody is lost
        number = 1
        while (numbered := key if number == 1 else f"{key}-{number}") in keys:
            number += 1
        keys.append(numbered)
    return keys


def _interval(result: ResultFile) -> Interval | None:
    cells = []
    for each in result.results:
        tries = each.attempts or (each,)
        passed = float(sum(one.overall_success for one in tries))
        cells.append(Cell(len(tries), passed, passed))
    if not result.results:
        solved, count = result.summary.success_count, result.summary.total_count
        cells = [Cell(1, float(place < solved), float(place < solved)) for place in range(count)]
    return score_interval(cells)


def _entry(standing: Standing) -> dict[str, Any]:
    about, summary, interval = standing.result.metadata, standing.result.summary, standing.interval
    return {
        "rank": standing.rank,
        "tied": standing.tied,
        "tiedWith": list(standing.tied_with),
        "agent": about.agent,
        "version": about.version or "unknown",
        "model": about.model or "default",
        "provider": about.provider,
        "successRate": summary.success_rate,
        "interval": [round(100 * interval.low, 1), round(100 * interval.high, 1)] if interval else None,
        "avgExecutionTime": summary.avg_duration,
        "problemsSolved": summary.success_count,
        "totalProblems": summary.total_count,
        "cost": standing.cost,
        "lastUpdated": about.timestamp,
    }


def _better(one: tuple[float, Interval | None], other: tuple[float, Interval | None]) -> bool:
    """Whether the evidence says so: intervals that overlap leave it open."""
    (rate, interval), (other_rate, other_interval) = one, other
    if interval is None or other_interval is None:
        return False
    return rate > other_rate and not interval.overlaps(other_interval)
