"""Half-open intervals of integers: merge, subtract, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def merge(intervals: Iterable[Sequence[int]]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(_checked(pair) for pair in intervals):
        if start == end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def subtract(intervals: Iterable[Sequence[int]], holes: Iterable[Sequence[int]]) -> list[Interval]:
    left: list[Interval] = []
    cuts = merge(holes)
    at = 0
    for start, end in merge(intervals):
        while at < len(cuts) and cuts[at][1] <= start:
            at += 1
        ahead = at
        while ahead < len(cuts) and cuts[ahead][0] < end:
            if start < cuts[ahead][0]:
                left.append((start, cuts[ahead][0]))
            start = cuts[ahead][1]
            ahead += 1
        # The last cut may reach into the next interval.
        at = max(at, ahead - 1)
        if start < end:
            left.append((start, end))
    return left


def gaps(intervals: Iterable[Sequence[int]], start: int, end: int) -> list[Interval]:
    return subtract([(start, end)], intervals)


def _checked(pair: Sequence[int]) -> Interval:
    start, end = pair
    if start > end:
        raise ValueError(f"an interval ends before it starts: {start} > {end}")
    return start, end
