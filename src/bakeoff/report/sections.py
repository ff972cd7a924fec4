"""The seam between the report and the doors: what a page shows, as data. Nothing here knows how it is drawn.

    Section   a heading with blocks under it        IndexColumn   one more column of the index
    Block     Table, Plot, Matrix, Facts, Text, Code or Fragment

A door gives sections to `write_run_page` and columns to `write_index`. Every text may be hostile: it is escaped where
it is drawn, and links may lead only to places of this file, files beside it, or the web.
"""

from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, JsonValue

from bakeoff._kernel.model import FrozenModel

Tone = Literal["plain", "muted", "strong", "pass", "partial", "fail", "timeout", "lost", "none"]
"""What a value means. Each has a colour and, where it stands alone, a shape: nothing is told by colour only."""

Unit = Literal["number", "percent", "usd", "seconds", "time"]
Align = Literal["start", "end"]


def _harmless(href: str) -> str:
    parts = urlsplit(href)
    foreign = parts.scheme not in ("", "http", "https") or (parts.netloc and not parts.scheme)
    if foreign or "\\" in href or not href.isprintable() or href != href.strip():
        raise ValueError(f"{href!r} is not a link: use #place, a relative path or http(s)")
    return href


def _identifier(text: str) -> str:
    if not text.replace("-", "").replace("_", "").isalnum() or not text.isascii():
        raise ValueError(f"{text!r} is not an id: use letters, digits, - and _")
    return text


Href = Annotated[str, AfterValidator(_harmless)]
Id = Annotated[str, AfterValidator(_identifier)]


class Span(FrozenModel):
    """A share with its interval, drawn on a track from 0 to 1."""

    value: float
    low: float | None = None
    high: float | None = None


class Datum(FrozenModel):
    """One value of a table: how it is written, what it is sorted by, where it leads."""

    text: str
    sort: float | str | None = None
    tone: Tone = "plain"
    href: Href | None = None
    span: Span | None = None
    trail: tuple[float, ...] = Field(default=(), description="shares over time, oldest first, drawn as a small line")
    note: str = Field(default="", description="shown when pointed at, and read aloud")


Value = Datum | str | int | float | None


class Column(FrozenModel):
    """A column of a table."""

    title: str
    align: Align = "start"
    help: str = ""


class IndexColumn(FrozenModel):
    """One more column of the index. `values` are by run name; runs without one show a dash."""

    id: Id
    title: str
    align: Align = "start"
    values: Mapping[str, Datum]


class Table(FrozenModel):
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str
    notes: tuple[str, ...] = ()  # what the numbers are out of


class Axis(FrozenModel):
    title: str
    unit: Unit = "number"


class Point(FrozenModel):
    """One mark of a plot. Intervals are (low, high)."""

    x: float
    y: float
    label: str
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    frontier: bool = False  # nothing else is both better and cheaper
    href: Href | None = None


class Plot(FrozenModel):
    """Drawn as SVG, with the same numbers in a table behind it."""

    kind: Literal["scatter", "line"] = "scatter"
    title: str
    x: Axis
    y: Axis
    points: tuple[Point, ...]
    caption: str = ""


class MatrixCell(FrozenModel):
    text: str
    tone: Tone = "none"
    note: str = ""
    href: Href | None = None


class Matrix(FrozenModel):
    """Rows × columns of small coloured cells, each with a text and a shape of its own."""

    corner: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[MatrixCell | None, ...]], ...]
    caption: str


class Facts(FrozenModel):
    pairs: tuple[tuple[str, str], ...]


class Text(FrozenModel):
    text: str
    tone: Tone = "plain"


class Code(FrozenModel):
    text: str
    language: str = ""
    title: str = ""
    folded: bool = True


class Fragment(FrozenModel):
    """A template of a door's own, `templates/<template>` in that package, filled with data and always auto-escaped."""

    package: str
    template: str
    data: dict[str, JsonValue] = {}


Block = Table | Plot | Matrix | Facts | Text | Code | Fragment


class Section(FrozenModel):
    id: Id
    title: str
    blocks: tuple[Block, ...]
    lead: str = ""


def frontier(points: tuple[Point, ...], excluded: frozenset[str] = frozenset()) -> tuple[Point, ...]:
    """The same points, with those marked that no other beats in both y (higher) and x (lower)."""
    # What scores nothing is never efficient, however little it costs.
    candidates = [point for point in points if point.label not in excluded and point.y > 0]

    def beaten(point: Point) -> bool:
        return any(
            other.x <= point.x and other.y >= point.y and (other.x, other.y) != (point.x, point.y)
            for other in candidates
        )

    best = {id(point) for point in candidates if not beaten(point)}
    return tuple(point.model_copy(update={"frontier": id(point) in best}) for point in points)
