"""Compute the places of marks, ticks and labels on a plot, which the templates then draw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff._kernel.text import visible
from bakeoff.report.blocks import Difference, ForestPlot, Fragment, Plot, Point, Unit
from bakeoff.report.formatting import UNKNOWN, cost, duration, utc

WIDTH, HEIGHT = 480.0, 310.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 16.0, 14.0, 44.0
_LABEL = 26  # characters beside a mark
MAX_LABELS = 9  # names beside marks; with more, or if two would collide, marks have numbers and a legend
_LEGEND = 80  # characters of a name in the legend
_CHARACTER, _LINE = 6.1, 13.0  # the approximate size of a label's characters and lines

_MARGIN = 14.0  # beside a forest plot
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
MAX_ROWS = 60  # of a forest plot


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, in units of the drawing, with its text."""

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Spot:
    """One mark: its centre and its label."""

    point: Point
    x: float
    y: float
    label: str
    label_x: float
    label_y: float
    anchor: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that the template of a plot draws, in units of its view box."""

    across: "Scale"
    up: "Scale"
    spots: tuple[Spot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    frontier: str  # the points of a polyline
    scale_note: str
    legend: tuple[str, ...] = ()  # the names of the marks, where these are numbered
    width: float = WIDTH
    height: float = HEIGHT


@dataclass(frozen=True, slots=True)
class Scale:
    """Map a value to a place on the canvas."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)


def draw(plot: Plot) -> Drawing:
    """Lay out a plot: return the places of everything that it shows."""
    xs = [value for point in plot.points for value in _extent(point.x, point.x_interval)]
    ys = [value for point in plot.points for value in _extent(point.y, point.y_interval)]
    across = _scale(xs, plot.x.unit, LEFT, WIDTH - RIGHT)
    up = _scale(ys, plot.y.unit, HEIGHT - BOTTOM, TOP)
    named = [visible(point.label, _LABEL) for point in plot.points]
    spots = _spots(plot, across, up, named) if len(named) <= MAX_LABELS else None
    legend = () if spots is not None else tuple(visible(point.label, _LEGEND) for point in plot.points)
    if spots is None:
        spots = _spots(plot, across, up, [str(number) for number in range(1, len(named) + 1)], always=True)
    # The efficient frontier, the best score for each amount of money, is a staircase.
    best = sorted({(across(point.x), up(point.y)) for point in plot.points if point.frontier})
    corners: list[tuple[float, float]] = []
    for x, y in best:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    if best:
        corners.append((WIDTH - RIGHT, best[-1][1]))
    return Drawing(
        across=across,
        up=up,
        spots=spots or (),
        legend=legend,
        x_ticks=tuple(Tick(across(value), tick_text(value, plot.x.unit)) for value in _ticks(across, plot.x.unit, 5)),
        y_ticks=tuple(Tick(up(value), tick_text(value, plot.y.unit)) for value in _ticks(up, plot.y.unit, 6)),
        frontier=(" ".join(f"{x},{y}" for x, y in corners) if len(best) > 1 else ""),
        scale_note="logarithmic" if across.log else "",
    )


def written(value: float, unit: Unit) -> str:
    """Format a value for the table of a plot's numbers."""
    match unit:
        case "percent":
            return f"{100 * value:.3g} %"
        case "usd":
            return cost(value)
        case "seconds":
            return duration(value)
        case _:
            return f"{value:,.4g}"


def tick_text(value: float, unit: Unit) -> str:
    """Format a round value for the tick of an axis, as briefly as possible."""
    if value == 0 and unit in ("usd", "seconds"):
        return "0"
    if unit == "usd":
        return f"${value:.3g}" if value >= 1e-4 else f"${value:.0e}"
    if unit == "seconds" and value < 120:
        return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
    return written(value, unit)


def moment(seconds: float | None) -> str:
    """Return a time in UTC, to the minute."""
    if seconds is None:
        return UNKNOWN
    at = utc(seconds)
    return f"{at:%Y-%m-%d %H:%M}" if at else "not a time"


def _extent(value: float, interval: tuple[float, float] | None) -> tuple[float, ...]:
    """Return the values that an axis must show. Whiskers that nearly reach 0 must not stretch the axis."""
    if interval is None:
        return (value,)
    low, high = interval
    return value, max(low, value / 4) if 0 <= low <= value else low, high


def _scale(values: Sequence[float], unit: Unit, start: float, end: float) -> Scale:
    if unit == "percent":
        return Scale(0.0, 1.0, start, end)
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    # Costs and times of models differ by orders of magnitude; a linear scale would pile most of them up at 0.
    if low > 0 and high / low > 30:
        return Scale(low / 1.5, high * 1.8, start, end, log=True)
    return Scale(min(0.0, low), (high * 1.12) or 1.0, start, end)


def _ticks(scale: Scale, unit: Unit, most: int) -> list[float]:
    if unit == "percent":
        return [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    if scale.log:
        # Powers of ten; where these are few, their multiples too.
        powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
        inside: list[float] = []
        for multiples in ((1, 2, 5), (1, 3), (1,)):
            ticks = [number * 10.0**power for power in powers for number in multiples]
            inside = [tick for tick in ticks if scale.low <= tick <= scale.high]
            if len(inside) <= most:
                break
        return inside[:: math.ceil(len(inside) / most) or 1]
    least = (scale.high - scale.low) / most
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    step = next(power * nice for nice in (1, 2, 5, 10) if power * nice >= least * 0.999)
    first = math.ceil(scale.low / step)
    return [number * step for number in range(first, math.floor(scale.high / step) + 1)]


def _spots(
    plot: Plot, across: Scale, up: Scale, labels: Sequence[str], *, always: bool = False
) -> tuple[Spot, ...] | None:
    """Return the marks with their labels; None if a label has no free place, unless `always` is set."""
    taken: list[tuple[float, float, float, float]] = [
        (across(point.x) - 7, up(point.y) - 7, across(point.x) + 7, up(point.y) + 7) for point in plot.points
    ]
    taken += [  # so that no label hides a whisker
        (across(point.x_interval[0]), up(point.y) - 4, across(point.x_interval[1]), up(point.y) + 4)
        for point in plot.points
        if point.x_interval
    ]
    spots = []
    for point, label in zip(plot.points, labels, strict=True):
        x, y = across(point.x), up(point.y)
        place = _label_place(x, y, label, taken)
        if place is None and not always:
            return None
        label_x, label_y, anchor = place or (x + 10, y + 4, "start")
        spots.append(Spot(point, x, y, label, label_x, label_y, anchor))
    return tuple(spots)


def _label_place(
    x: float, y: float, label: str, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float, str] | None:
    """Return the first free place right, left, above or below a mark; None if there is none."""
    width = len(label) * _CHARACTER
    for shift in (0.0, -_LINE, _LINE, -2 * _LINE, 2 * _LINE, -3 * _LINE, 3 * _LINE):
        for anchor, left in (("start", x + 10), ("end", x - 10 - width)):
            box = (left, y + shift - _LINE / 2, left + width, y + shift + _LINE / 2)
            inside = box[0] >= LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= HEIGHT - BOTTOM + 4
            if inside and not any(
                (box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]) for other in taken
            ):
                taken.append(box)
                return x + 10 if anchor == "start" else x - 10, round(y + shift + 4, 1), anchor
    return None


def interval_words(interval: tuple[float, float] | None, unit: Unit) -> str:
    """Format an interval for the table of a plot's numbers."""
    return UNKNOWN if interval is None else f"{written(interval[0], unit)} to {written(interval[1], unit)}"


def forest(plot: ForestPlot) -> Fragment:
    """Return the drawing of the first rows, and the table with the numbers of all rows."""
    # The scale goes a little further to either side of zero than anything drawn.
    drawn_ends = [abs(end) for row in plot.rows for end in (row.value or 0.0, *(row.interval or ()))]
    reach: float = min(1.0, 1.12 * max([*drawn_ends, 1.5 * (plot.margin or 0.0), 0.05]))
    step = next((step for step in _STEPS if reach / step <= 4), _STEPS[-1])
    data: dict[str, Any] = {
        "plot": plot,
        "drawn": [row for row in plot.rows if row.value is not None][:MAX_ROWS],
        "ticks": [number * step for number in range(-int(reach / step), int(reach / step) + 1)],
        "at": Scale(-reach, reach, _MARGIN, WIDTH - _MARGIN),
        "kind": _kind,
        "points": _points,
        "between": lambda ends: "undefined" if ends is None else " to ".join(map(_points, ends)),
        "width": WIDTH,
    }
    return Fragment(package="bakeoff.report.render.html", template="forest.html", data=data)


def _kind(row: Difference) -> str:
    """Return better, worse or open, by the verdict of a difference or else by its interval."""
    excluded = row.interval is not None and not row.interval[0] <= 0 <= row.interval[1]
    if not (excluded if row.shown is None else row.shown):
        return "open"
    return "better" if (row.value or 0.0) > 0 else "worse"


def _points(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:+.3g}"
