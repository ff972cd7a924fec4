"""The blocks that every report is made of, independent of how they are shown.

A report is described once, as data. `terminal`, `markdown` and `html` each render the same blocks:

    Report    a title, a verdict and sections          Section   a titled group of blocks; sections may be nested
    TextBlock  Heading  BulletList  Table  Matrix  Facts  Code  Plot  ForestPlot  Fragment

Wrap text from outside (names, outputs, reasons) in a `Quote`. Each renderer makes quotes harmless in its own way:
control characters become visible everywhere, Markdown uses code spans, pages escape. Only pages show plots and
fragments.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from bakeoff._kernel.text import visible

COLOURS, SHAPES = 12, 8
"""The number of `--series-…` colours in the style sheet, and of `mark-…` symbols in a page."""

_NAME = 200  # characters, as pages show names


class Mark(NamedTuple):
    """A subject's colour and shape. Controls have a neutral colour."""

    colour: int
    shape: int


def mark_of(subject: str, *, control: bool = False) -> Mark:
    """Return the colour and shape that stand for a subject."""
    first, second = hashlib.blake2b(visible(subject, _NAME).encode(errors="replace"), digest_size=2).digest()
    return Mark(COLOURS if control else first % COLOURS, second % SHAPES)


Tone = Literal["plain", "muted", "strong", "pass", "partial", "fail", "timeout", "lost", "none"]
"""The meaning of a value. Each tone has a colour and, where it stands alone, a shape: colour is never the only sign."""

Unit = Literal["number", "percent", "usd", "seconds"]
Align = Literal["start", "end"]

_BARS = "▁▂▃▄▅▆▇█"
_MAX_SPARKLINE_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Quote:
    """Text that comes from outside, such as a subject's name or output."""

    text: str


Words = str | Quote
Phrase = Words | tuple[Words, ...]
"""A sentence or a cell: one piece of text, or several that are joined."""


def pieces(phrase: Phrase) -> tuple[Words, ...]:
    """Return the parts of a phrase."""
    return phrase if isinstance(phrase, tuple) else (phrase,)


def joined(phrase: Phrase) -> str:
    """Return a phrase as plain text, without escaping its quotes."""
    return "".join(part.text if isinstance(part, Quote) else part for part in pieces(phrase))


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A share with its interval, drawn on a track from 0 to 1."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Datum:
    """One value of a table: its text, its sort key, and details that only pages show."""

    text: Phrase
    sort: float | str | None = None
    tone: Tone = "plain"
    href: str | None = None
    source: str | None = None  # the run folder or file of the numbers; pages link to it where it exists
    span: TextSpan | None = None
    trail: tuple[float, ...] = ()  # shares over time, oldest first, drawn as a small line
    note: str = ""  # a tooltip, which screen readers read
    short: str = ""  # the text on a narrow terminal; the whole text then follows below the table
    mark: Mark | None = None  # of the subject that is named, on pages

    def __post_init__(self) -> None:
        _check_link(self.href)


Value = Datum | Quote | str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. Narrow terminals omit columns with a high `drop` first; 0 means never."""

    title: str
    align: Align = "start"
    help: str = ""
    short: str = ""  # the title on a narrow terminal, over several lines
    drop: int = 0
    optional: bool = False  # a terminal does not mention that it left this column out
    page_only: bool = False

    @property
    def numeric(self) -> bool:
        """Tell whether the column holds numbers, which are right-aligned."""
        return self.align == "end"


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Every row has one value per column; the first column names the row."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    caption: str = ""
    notes: tuple[Phrase, ...] = ()
    text_rows: int | None = None  # the number of rows that terminals and Markdown show; None: all
    splits: bool = False  # on a terminal, columns that do not fit go into further tables below


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """An additional column of the index. `values` maps run names to values; runs without one show a dash."""

    id: str
    title: str
    values: Mapping[str, Datum]
    align: Align = "start"

    def __post_init__(self) -> None:
        _check_id(self.id)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a plot: its title, and the unit in which its values are written."""

    title: str
    unit: Unit = "number"


@dataclass(frozen=True, slots=True)
class Point:
    """One mark of a plot. Intervals are (low, high)."""

    x: float
    y: float
    label: str
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    frontier: bool = False  # no other point is both better and cheaper

    def __post_init__(self) -> None:
        if not all(map(isfinite, (self.x, self.y, *(self.x_interval or ()), *(self.y_interval or ())))):
            raise ValueError(f"{self.label!r:.100}: a point needs finite numbers, not ({self.x}, {self.y})")


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, drawn as SVG with its numbers in a table behind it."""

    title: str
    x: Axis
    y: Axis
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of shares: candidate minus baseline. `inner` is the interval for equivalence."""

    label: str
    value: float | None
    interval: tuple[float, float] | None = None
    inner: tuple[float, float] | None = None
    verdict: str = ""
    mark: Mark | None = None  # of the subject that the label names
    shown: bool | None = None  # whether the verdict is a difference; None: the interval decides


@dataclass(frozen=True, slots=True)
class ForestPlot:
    """Differences with their intervals around zero, drawn one below the other."""

    title: str
    rows: tuple[Difference, ...]
    margin: float | None = None
    caption: str = ""


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One cell of a matrix. `sort` is its value from 0 to 1, and `note` is its tooltip."""

    text: str
    sort: float | None = None
    tone: Tone = "none"
    note: str = ""
    href: str | None = None

    def __post_init__(self) -> None:
        _check_link(self.href)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows × columns of small coloured cells, each with a text and a shape of its own."""

    corner: str
    columns: tuple[str | Datum, ...]
    rows: tuple[tuple[str, tuple[MatrixCell | None, ...]], ...]
    caption: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, shown as a list."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph."""

    text: Phrase
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 2 is for reports, level 3 and deeper for their sections."""

    text: Phrase
    level: int = 2


@dataclass(frozen=True, slots=True)
class BulletList:
    """A list of sentences."""

    items: tuple[Phrase, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text from outside. The language `diff` marks added and removed lines."""

    text: str
    language: str = ""
    title: str = ""
    folded: bool = True  # pages show the title only until it is clicked


@dataclass(frozen=True, slots=True)
class Fragment:
    """A template of another package, `templates/<template>`, filled with data and always auto-escaped."""

    package: str
    template: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Section:
    """A titled group of blocks; the id is its link target on a page.

    Raises `ValueError` if the id has characters other than letters, digits, `-` and `_`.
    """

    id: str
    title: Phrase
    blocks: tuple["Block", ...]
    lead: str = ""
    page_only: bool = False
    in_menu: bool = True
    folded: bool | None = None  # on a page: whether it is closed at first; None if it cannot be closed

    def __post_init__(self) -> None:
        _check_id(self.id)


Block = TextBlock | Heading | BulletList | Table | Matrix | Facts | Code | Plot | ForestPlot | Fragment | Section
Blocks = Sequence[Block]


@dataclass(frozen=True, slots=True)
class DoorParts:
    """The parts that a door adds to the page of its run: a verdict, sections and a gate."""

    verdict: str = ""
    first: tuple[Section, ...] = ()
    after: tuple[Section, ...] = ()
    gate: str = ""  # passed, failed or undecided; replaces the state of the run in the badge
    answers: bool = False  # the page shows the answers in the cells of its matrix, and not the scores alone


Why = tuple[Datum, str, Datum, str]
"""A reason of failures for the first screen of a page: outcome, what failed, an example, and how often."""


@dataclass(frozen=True, slots=True)
class Report:
    """A complete report. `tiles` are the key figures at the top of a page: label, value, explanation."""

    title: Phrase
    sections: tuple[Section, ...]
    badge: str = ""
    tone: Tone = "plain"  # of the badge
    headline: Phrase = ""
    tiles: tuple[tuple[str, str, str], ...] = ()
    decision: str = ""  # of the gate; the first line as text, and the first sentence on a page
    whys: tuple[Why, ...] = ()  # shown on pages only


def heading(*words: Words, level: int = 2) -> Heading:
    """Return a heading made of strings and quotes."""
    return Heading(words, level)


def paragraph(*words: Words) -> TextBlock:
    """Return a paragraph made of strings and quotes."""
    return TextBlock(words)


def columns(*titles: str) -> tuple[Column, ...]:
    """Return columns with these titles; a title that ends in `>` is for numbers."""
    return tuple(Column(title.removesuffix(">"), "end" if title.endswith(">") else "start") for title in titles)


def text_blocks(content: Report | Blocks) -> list[Block]:
    """Return the flat list of blocks that terminals and Markdown show, with headings for sections.

    Leave out plots, fragments, and the sections and columns that are only for pages.
    """
    if not isinstance(content, Report):
        return list(_flat(content, level=3))
    badge = (f"{content.badge}: ",) if content.badge and not content.decision else ()
    title = Heading((*badge, *pieces(content.title)))
    decision = [TextBlock(content.decision, tone=content.tone)] if content.decision else []
    headline = [TextBlock(content.headline)] if content.headline else []
    return [*decision, title, *headline, *_flat(content.sections, level=3)]


def _flat(blocks: Blocks, level: int) -> Iterator[Block]:
    for block in blocks:
        match block:
            case Section():
                if inside := [] if block.page_only else [*_flat(block.blocks, level + 1)]:
                    yield Heading(block.title, level)
                    yield from [TextBlock(block.lead)] if block.lead else []
                    yield from inside
            case Table():
                places = [place for place, column in enumerate(block.columns) if not column.page_only]
                rows = block.rows[: block.text_rows]
                if rows:
                    titles = tuple(block.columns[place] for place in places)
                    shown = tuple(tuple(row[place] for place in places) for row in rows)
                    yield replace(block, columns=titles, rows=shown, notes=(), text_rows=None)
                if hidden := len(block.rows) - len(rows):
                    yield TextBlock(f"… and {hidden:,} more; the page and --json list all of them.")
                if block.notes:
                    yield BulletList(block.notes)
            case Matrix():
                yield _matrix_table(block)
            case Plot() | ForestPlot() | Fragment():
                pass
            case _:
                yield block


def _matrix_table(matrix: Matrix) -> Table:
    titles = (Column(matrix.corner), *(Column(joined(as_datum(name).text), align="end") for name in matrix.columns))
    rows: list[tuple[Value, ...]] = []
    for name, cells in matrix.rows:
        rows.append((Quote(name), *("–" if cell is None else cell.text for cell in cells)))
    return Table(titles, tuple(rows), matrix.caption)


def as_datum(value: Value) -> Datum:
    """Return any value of a table as a `Datum`, with its sort key."""
    match value:
        case Datum():
            return value
        case None:
            return Datum("–", tone="muted")
        case Quote():
            return Datum(value, sort=value.text)
        case str():
            return Datum(value, sort=value)
        case int():
            return Datum(f"{value:,}", sort=value)
        case _:
            return Datum(f"{value:,.4g}", sort=value)


def counted(number: int) -> Datum:
    """Return a cell with a count of something bad, in the colour of losses unless it is 0."""
    return Datum(f"{number:,}", sort=number, tone="lost" if number else "muted")


def trail(scores: Iterable[float | None]) -> tuple[float, ...]:
    """Return the known scores as the points of a small trend line."""
    return tuple(min(1.0, max(0.0, score)) for score in scores if score is not None)


def sparkline(shares: Sequence[float]) -> str:
    """Draw the last twenty shares as small bars, always on the scale from 0 to 1, so that rows can be compared."""
    return "".join(_BARS[min(7, max(0, int(8 * share)))] for share in shares[-_MAX_SPARKLINE_LENGTH:])


def frontier(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return the points, with the efficient ones marked.

    A point is efficient if no other is at least as high (y) and at least as far left (x).
    """
    # A score of 0 is never efficient, however little it costs.
    candidates = [point for point in points if point.y > 0]

    def beaten(point: Point) -> bool:
        as_good = [other for other in candidates if other.x <= point.x and other.y >= point.y]
        return any((other.x, other.y) != (point.x, point.y) for other in as_good)

    best = {id(point) for point in candidates if not beaten(point)}
    return tuple(replace(point, frontier=id(point) in best) for point in points)


def _check_link(href: str | None) -> None:
    if href is None:
        return
    parts = urlsplit(href)
    foreign = parts.scheme not in ("", "http", "https") or (parts.netloc and not parts.scheme)
    if foreign or "\\" in href or not href.isprintable() or href != href.strip():
        raise ValueError(f"{href!r} is not a link: use #place, a relative path or http(s)")


def _check_id(text: str) -> None:
    if not text.replace("-", "").replace("_", "").isalnum() or not text.isascii():
        raise ValueError(f"{text!r} is not an id: use letters, digits, - and _")
