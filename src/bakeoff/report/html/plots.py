"""Where the marks of a plot stand: numbers in, places on a canvas out. The template only writes them down."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bakeoff.report.sections import Axis, Plot, Point, Unit
from bakeoff.report.words import cost, duration, visible

WIDTH, HEIGHT = 480.0, 310.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 16.0, 14.0, 44.0
SERIES = 8  # colours and shapes before they come round again
_LABEL = 26  # characters beside a mark
_CHARACTER, _LINE = 6.1, 13.0  # about how much room a label takes


@dataclass(frozen=True, slots=True)
class Tick:
    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Spot:
    """One mark: its centre, its whiskers and its label."""

    x: float
    y: float
    series: int
    label: str
    label_x: float
    label_y: float
    anchor: str
    title: str
    whisker_x: tuple[float, float] | None
    whisker_y: tuple[float, float] | None
    frontier: bool
    href: str | None


@dataclass(frozen=True, slots=True)
class Drawing:
    spots: tuple[Spot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    frontier: str  # the points of a polyline
    line: str
    scale_note: str
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True)
class Scale:
    """From a value to a place."""

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
    xs = [value for point in plot.points for value in _extent(point.x, point.x_interval)]
    ys = [value for point in plot.points for value in _extent(point.y, point.y_interval)]
    across = _scale(xs, plot.x.unit, LEFT, WIDTH - RIGHT)
    up = _scale(ys, plot.y.unit, HEIGHT - BOTTOM, TOP)
    return Drawing(
        spots=_spots(plot, across, up),
        x_ticks=tuple(Tick(across(value), tick_text(value, plot.x.unit)) for value in _ticks(across, plot.x.unit, 5)),
        y_ticks=tuple(Tick(up(value), tick_text(value, plot.y.unit)) for value in _ticks(up, plot.y.unit, 6)),
        frontier=_stairs(plot.points, across, up),
        line=" ".join(f"{across(point.x)},{up(point.y)}" for point in plot.points) if plot.kind == "line" else "",
        scale_note="logarithmic" if across.log else "",
    )


def written(value: float, unit: Unit) -> str:
    """A value as it stands on an axis and in the table behind the plot."""
    match unit:
        case "percent":
            return f"{100 * value:.3g} %"
        case "usd":
            return cost(value)
        case "seconds":
            return duration(value)
        case "time":
            return moment(value)[:10]
        case _:
            return f"{value:,.4g}"


def tick_text(value: float, unit: Unit) -> str:
    """The same on an axis, where the values are round and there is little room."""
    if value == 0 and unit in ("usd", "seconds"):
        return "0"
    if unit == "usd":
        return f"${value:.3g}" if value >= 1e-4 else f"${value:.0e}"
    if unit == "seconds" and value < 120:
        return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
    return written(value, unit)


def moment(seconds: float | None) -> str:
    """A time in UTC, down to the minute."""
    if seconds is None:
        return "–"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "not a time"


def _extent(value: float, interval: tuple[float, float] | None) -> tuple[float, ...]:
    """What an axis must have room for. A whisker that all but reaches 0 must not stretch it to that: it is cut."""
    if interval is None:
        return (value,)
    low, high = interval
    return value, max(low, value / 4) if 0 <= low <= value else low, high


def _scale(values: Sequence[float], unit: Unit, start: float, end: float) -> Scale:
    if unit == "percent":
        return Scale(0.0, 1.0, start, end)
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if unit == "time":
        room = (high - low) * 0.04 or 43_200.0
        return Scale(low - room, high + room, start, end)
    # Costs and times of models lie orders of magnitude apart; a straight scale would pile most of them up at 0.
    if low > 0 and high / low > 30:
        return Scale(low / 1.5, high * 1.8, start, end, log=True)
    return Scale(min(0.0, low), (high * 1.12) or 1.0, start, end)


def _ticks(scale: Scale, unit: Unit, most: int) -> list[float]:
    if unit == "percent":
        return [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    if scale.log:
        return _log_ticks(scale, most)
    if unit == "time":
        return [scale.low + share * (scale.high - scale.low) for share in (0.04, 0.5, 0.96)]
    step = _nice((scale.high - scale.low) / most)
    first = math.ceil(scale.low / step)
    return [number * step for number in range(first, math.floor(scale.high / step) + 1)]


def _log_ticks(scale: Scale, most: int) -> list[float]:
    """Powers of ten; where these are few, their multiples too."""
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    inside: list[float] = []
    for multiples in ((1, 2, 5), (1, 3), (1,)):
        ticks = [number * 10.0**power for power in powers for number in multiples]
        inside = [tick for tick in ticks if scale.low <= tick <= scale.high]
        if len(inside) <= most:
            break
    return inside[:: math.ceil(len(inside) / most) or 1]


def _nice(step: float) -> float:
    """The next of 1, 2, 5 × a power of ten."""
    power = 10.0 ** math.floor(math.log10(step)) if step > 0 else 1.0
    return next(power * nice for nice in (1, 2, 5, 10) if power * nice >= step * 0.999)


def _stairs(points: Sequence[Point], across: Scale, up: Scale) -> str:
    """The efficient frontier: what the best score is for that much money, as a staircase."""
    best = sorted({(across(point.x), up(point.y)) for point in points if point.frontier})
    corners: list[tuple[float, float]] = []
    for x, y in best:
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    if best:
        corners.append((WIDTH - RIGHT, best[-1][1]))
    return " ".join(f"{x},{y}" for x, y in corners) if len(best) > 1 else ""


def _spots(plot: Plot, across: Scale, up: Scale) -> tuple[Spot, ...]:
    taken: list[tuple[float, float, float, float]] = [
        (across(point.x) - 7, up(point.y) - 7, across(point.x) + 7, up(point.y) + 7) for point in plot.points
    ]
    taken += [  # a label would hide a whisker
        (ends[0], up(point.y) - 4, ends[1], up(point.y) + 4)
        for point in plot.points
        if (ends := _whisker(point.x_interval, across))
    ]
    labelled = plot.kind == "scatter" and len(plot.points) <= 40
    spots = []
    for number, point in enumerate(plot.points):
        x, y = across(point.x), up(point.y)
        label = visible(point.label, _LABEL)
        label_x, label_y, anchor = _label_place(x, y, label, taken) if labelled else (x, y, "start")
        spots.append(
            Spot(
                x=x,
                y=y,
                series=number % SERIES if plot.kind == "scatter" else 0,
                label=label if labelled else "",
                label_x=label_x,
                label_y=label_y,
                anchor=anchor,
                title=_title(point, plot.x, plot.y),
                whisker_x=_whisker(point.x_interval, across),
                whisker_y=_whisker(point.y_interval, up),
                frontier=point.frontier,
                href=point.href,
            )
        )
    return tuple(spots)


def _label_place(
    x: float, y: float, label: str, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float, str]:
    """The first free place around the mark: right, left, then further up and down."""
    width = len(label) * _CHARACTER
    for shift in (0.0, -_LINE, _LINE, -2 * _LINE, 2 * _LINE, -3 * _LINE, 3 * _LINE):
        for anchor, left in (("start", x + 10), ("end", x - 10 - width)):
            box = (left, y + shift - _LINE / 2, left + width, y + shift + _LINE / 2)
            inside = box[0] >= LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= HEIGHT - BOTTOM + 4
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                return x + 10 if anchor == "start" else x - 10, round(y + shift + 4, 1), anchor
    anchor = "end" if x > WIDTH / 2 else "start"
    return x + 10 if anchor == "start" else x - 10, y + 4, anchor


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _whisker(interval: tuple[float, float] | None, scale: Scale) -> tuple[float, float] | None:
    return None if interval is None else (scale(interval[0]), scale(interval[1]))


def _title(point: Point, x: Axis, y: Axis) -> str:
    told = (
        f"{axis.title} {written(value, axis.unit)}" + (f" ({_between(interval, axis.unit)})" if interval else "")
        for axis, value, interval in ((y, point.y, point.y_interval), (x, point.x, point.x_interval))
    )
    return f"{visible(point.label, 80)}: {', '.join(told)}"


def _between(interval: tuple[float, float], unit: Unit) -> str:
    return f"{written(interval[0], unit)} to {written(interval[1], unit)}"


def interval_words(interval: tuple[float, float] | None, unit: Unit) -> str:
    return "–" if interval is None else _between(interval, unit)
