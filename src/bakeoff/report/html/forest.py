"""Differences with their intervals, drawn one under the other around zero."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from bakeoff.report.sections import Fragment
from bakeoff.report.words import visible

WIDTH = 480.0
_LEFT, _RIGHT, _TOP, _ROW, _BOTTOM = 14.0, 14.0, 8.0, 44.0, 40.0
_LABEL = 60  # characters above a line
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate minus baseline, as shares; `inner` is the narrower interval from which equivalence is read."""

    label: str
    value: float | None
    interval: tuple[float, float] | None = None
    inner: tuple[float, float] | None = None
    verdict: str = ""


def forest(rows: Sequence[Difference], title: str, margin: float | None = None) -> Fragment:
    """The drawing and, behind it, its numbers. More rows than a reader looks through are only in the table."""
    reach = _reach(rows, margin)

    def at(share: float) -> float:
        part = min(1.0, max(-1.0, share / reach))
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * (1 + part) / 2, 1)

    def ends(interval: tuple[float, float] | None) -> list[JsonValue]:
        return [at(interval[0]), at(interval[1])] if interval else []

    drawn = [row for row in rows if row.value is not None][:MOST_ROWS]
    bottom = _TOP + _ROW * len(drawn) + 6
    data: dict[str, JsonValue] = {
        "title": title,
        "width": WIDTH,
        "height": bottom + _BOTTOM,
        "left": _LEFT,
        "right": WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": bottom,
        "zero": at(0.0),
        "margin": ends((-margin, margin)) if margin else [],
        "ticks": [[at(share), _points(share) if share else "0"] for share in _ticks(reach)],
        "rows": [
            {
                "label": visible(row.label, _LABEL),
                "y": _TOP + _ROW * place + 31,
                "value": at(row.value or 0.0),
                "interval": ends(row.interval),
                "inner": ends(row.inner),
                "kind": _kind(row),
            }
            for place, row in enumerate(drawn)
        ],
        "numbers": [
            [visible(row.label), _points(row.value), _between(row.interval), _between(row.inner), row.verdict]
            for row in rows
        ],
    }
    return Fragment(package="bakeoff.report.html", template="forest.html", data=data)


def _reach(rows: Sequence[Difference], margin: float | None) -> float:
    """How far the scale goes to either side of zero: as far as anything drawn, and a little more."""
    ends = [abs(end) for row in rows for end in (row.value or 0.0, *(row.interval or ()))]
    furthest: float = max([*ends, 1.5 * (margin or 0.0), 0.05])
    return min(1.0, 1.12 * furthest)


def _ticks(reach: float) -> list[float]:
    step = next((step for step in _STEPS if reach / step <= 4), _STEPS[-1])
    most = int(reach / step)
    return [number * step for number in range(-most, most + 1)]


def _kind(row: Difference) -> str:
    """Which side of zero the whole interval lies on."""
    if row.interval is None or row.interval[0] <= 0 <= row.interval[1]:
        return "open"
    return "better" if row.interval[0] > 0 else "worse"


def _points(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:+.3g}"


def _between(interval: tuple[float, float] | None) -> str:
    return "undefined" if interval is None else f"{_points(interval[0])} to {_points(interval[1])}"
