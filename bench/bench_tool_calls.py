"""Measure the time of pairing 200 × 200 tool calls in the hardest case: general calls must leave special ones."""

import asyncio
import statistics
import sys
import time
from typing import Any

from bakeoff.protocols import ScoreInput
from bakeoff.record import ToolCall
from bakeoff.scorers import ToolCalls

SIZE = 200
REPEATS = 5
WANTED = 1.0  # seconds


def main() -> int:
    special: list[Any] = [
        {"name": "search", "arguments": {"query": f"word {n}", "limit": n, "tags": ["a", "b"]}}
        for n in range(SIZE // 2)
    ]
    calls = [ToolCall(**call) for call in special]
    calls += [ToolCall(name="search", arguments={"query": "other"})] * (SIZE // 2)
    given = ScoreInput.of(tool_calls=calls, expected_tools=["search"] * (SIZE // 2) + special)
    print(f"{SIZE} × {SIZE} calls, median of {REPEATS}")
    worst = 0.0
    for ordered in (False, True):
        for params in ("strict", "fuzzy"):
            scorer = ToolCalls(ordered=ordered, params=params, require_all=False)
            seconds = statistics.median(_seconds(scorer, given) for _ in range(REPEATS))
            worst = max(worst, seconds)
            print(f"  {'ordered' if ordered else 'any order':10}{params:8}{seconds:8.3f} s")
    print(f"wanted: under {WANTED:g} s")
    return 0 if worst < WANTED else 1


def _seconds(scorer: ToolCalls, given: ScoreInput) -> float:
    started = time.perf_counter()
    asyncio.run(scorer(given))
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
