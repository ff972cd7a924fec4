"""Render blocks as HTML, with auto-escaping and a policy that allows only our own script and style."""

import base64
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bakeoff._kernel.files import PRIVATE, write_atomically
from bakeoff._kernel.text import count_of, visible
from bakeoff._version import __version__
from bakeoff.errors import RunFolderError
from bakeoff.report.blocks import Datum, Fragment, Phrase, Quote, Report, Section, Table, as_datum, mark_of, pieces
from bakeoff.report.formatting import NO_INTERVAL, shown
from bakeoff.report.output_files import PUBLIC, replace_file
from bakeoff.report.render.html.drawing import draw, forest, interval_words, written
from bakeoff.storage.run_folder import RunFolder

PAGE_NAME = "report.html"
"""The name of a run's page, beside its journal."""

NAME = 200
"""The longest name that a page shows, in characters."""

LONG_TABLE = 500
"""The number of rows above which a page draws only the visible part of a table."""

MAX_TRAIL = 40
"""The most points of a trend line; older points are left out."""

CHUNK_BYTES = 256 * 1024
"""The size of a chunk before compression. Opening a trial decodes only one chunk, which is fast."""

_LEVEL = 4  # of compression: two thirds of the time of the usual 6 for 4 % more bytes
_DATA = "<!--DATA-->"  # the place of the chunks; no data can contain this, because all data is escaped
_MAX_TITLE_LENGTH = 300
_MAX_NOTE_LENGTH = 140  # of a line below a table
PageKind = Literal["run", "index", "label", "sections"]
_SCRIPTS: dict[PageKind, tuple[str, ...]] = {
    "run": ("markdown.js", "trial.js", "beside.js", "trials.js", "answers.js", "run.js"),
    "index": ("index.js",),
    "label": ("label.js",),
    "sections": ("sections.js",),
}


def write_report_page(path: Path, report: Report, *, served: "ServedPages | None" = None) -> Path:
    """Write a report as a self-contained page, which loads nothing and runs no script but its own.

    Links to run folders are relative to `path`; pages that are `served` link to addresses instead.
    """
    title = visible(words(report.title), _MAX_TITLE_LENGTH)
    page = Page("sections", "sections.html", path, served)
    before, after = page.halves(
        title=f"{title} · bakeoff",
        heading=title,
        headline=" ".join(filter(None, (report.decision, words(report.headline)))),
        badge=report.badge,
        tone=report.tone,
        tiles=report.tiles,
        whys=report.whys,
        menu=menu(report.sections),
        sections=report.sections,
    )
    write_page(path, (before, *page.data(), after), mode=PUBLIC)
    return path


def menu(sections: Sequence[Section]) -> list[dict[str, str]]:
    """Return the entries of a page's menu."""
    return [{"id": section.id, "title": words(section.title)} for section in sections if section.in_menu]


@dataclass(frozen=True, slots=True)
class ServedPages:
    """The addresses that a page links to if `bakeoff view` serves it instead of a file."""

    home: str
    events: str | None = None  # the address of a run's progress
    reports: str | None = None  # the place of run pages, instead of beside the index
    leaderboard: str | None = None  # the address of the leaderboard


@dataclass(slots=True)
class Page:
    """A page under construction. Long tables are written as data."""

    kind: PageKind
    template: str
    path: Path
    served: ServedPages | None = None
    cycle: int | None = None  # of a watch, such as `pytest --eval-watch`: after the next one, the page loads itself
    long_tables: dict[str, Table] = field(default_factory=dict)

    def halves(self, first: bytes = b"", **content: Any) -> tuple[bytes, bytes]:
        """Return the HTML before and after the data. Browsers can use the chunk `first` early."""
        names = ["place.js", "core.js", *_SCRIPTS[self.kind], *(["live.js"] if self.served else [])]
        names += ["cycle.js"] if self.cycle is not None else []
        style, script = _static("style.css"), "\n".join(map(_static, names))
        html = (
            _environment()
            .get_template(self.template)
            .render(
                content,
                css=Markup(style),  # noqa: S704 - ours, from the package
                js=Markup(script),  # noqa: S704
                policy=policy(style, script, live=self.served is not None, watched=self.cycle is not None),
                first=Markup(first.decode()),  # noqa: S704 - base64
                page=self.kind,
                version=__version__,
                home=self.served.home if self.served else None,
                live=self.served.events if self.served else None,
                cycle=self.cycle,
                as_data=self._as_data,
                link=self._link,
                footer=f"Made by bakeoff {__version__}. Self-contained: this page loads no external resources.",
            )
        )
        before, after = html.split(_DATA)
        return before.encode(errors="replace"), after.encode(errors="replace")

    def data(self) -> Iterator[bytes]:
        """Yield the long tables. Call this after `halves`."""
        for name, table in self.long_tables.items():
            rows = [[datum_json(datum, self._link(datum.source)) for datum in map(as_datum, row)] for row in table.rows]
            tracks = span_columns(table)
            columns = [
                {"title": one.title, "align": one.align, "help": one.help, "track": place in tracks}
                for place, one in enumerate(table.columns)
            ]
            yield chunk(name, {"columns": columns, "rows": rows})

    def _as_data(self, table: Table) -> str:
        name = f"table-{len(self.long_tables)}"
        self.long_tables[name] = table
        return name

    def _link(self, source: str | None) -> str | None:
        if source is not None and self.served and self.served.reports:
            return f"{self.served.reports}{quote(RunFolder(Path(source)).label)}"
        return None if source is None else file_link(self.path, source)


def span_columns(table: Table) -> set[int]:
    """Return the places of the columns that draw intervals."""
    return {place for row in table.rows for place, value in enumerate(row) if as_datum(value).span}


def words(phrase: Phrase) -> str:
    """Return a phrase as text for a page, which escapes it."""
    return "".join(visible(part.text, NAME) if isinstance(part, Quote) else part for part in pieces(phrase))


def first_sentence(notes: Sequence[Phrase]) -> tuple[str, str]:
    """Return the first sentence of the notes below a table, which is always shown, and the rest, which is folded."""
    line, rest = words(notes[0]), " ".join(map(words, notes[1:]))
    if len(line) > _MAX_NOTE_LENGTH and ". " in line:
        line, _, more = line.partition(". ")
        line, rest = f"{line}.", f"{more} {rest}".rstrip()
    return line, rest


def datum_json(datum: Datum, link: str | None = None) -> dict[str, Any]:
    """Return a value in the form that the scripts of a page read."""
    span = datum.span and {"value": datum.span.value, "low": datum.span.low, "high": datum.span.high}
    sort = visible(datum.sort, NAME) if isinstance(datum.sort, str) else datum.sort
    optional = {"sort": sort, "href": datum.href or link, "span": span, "trail": datum.trail, "note": datum.note}
    optional["mark"] = datum.mark
    said = {name: value for name, value in optional.items() if value not in (None, "", ())}
    return {"text": words(datum.text), "tone": datum.tone, **said}


def file_link(page: Path, source: str) -> str | None:
    """Return the link from a page to the page of a run folder, or else to its journal or the file itself."""
    for target in (Path(source) / PAGE_NAME, Path(source) / "journal.jsonl", Path(source)):
        try:
            if target.is_file():
                return quote(os.path.relpath(target.resolve(), page.resolve().parent))
        except (OSError, ValueError):  # no disk can have such a path
            continue
    return None


def policy(style: str, script: str, *, live: bool, watched: bool = False) -> str:
    """Return a content security policy that loads nothing and allows only this style and script.

    A watched page may also load pictures from its own server or from files.
    """
    rules = [
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "img-src data: 'self' file:" if watched else "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if live else []),
    ]
    return "; ".join(rules)


def write_cycle(page: Path, number: int | None) -> None:
    """Tell an open page the number of the last watch cycle; None means that no other follows.

    A page opened from disk can load pictures but not other files: the number is a picture's width.
    """
    picture = page.with_name(f"{page.name}.svg")
    with suppress(OSError):  # the page is right, only not live
        if number is None:
            picture.unlink(missing_ok=True)
        else:
            size = f'width="{number}" height="1"'
            write_atomically(picture, f'<svg xmlns="http://www.w3.org/2000/svg" {size}/>'.encode(), PUBLIC)


def write_page(path: Path, parts: Sequence[bytes], data: IO[bytes] | None = None, mode: int = PRIVATE) -> None:
    """Write the parts of a page, with `data` after the first part. The data may be larger than memory."""
    before, *after = parts
    with replace_file(path, mode, RunFolderError) as temporary, temporary.open("wb") as file:
        file.write(before)
        if data is not None:
            data.seek(0)
            while piece := data.read(1024 * 1024):
                file.write(piece)
        file.writelines(after)


def chunk(name: str, data: Any) -> bytes:
    """Return data as compressed JSON that no browser executes. The same data gives the same bytes."""
    return _packed(name, _json(data))


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _packed(name: str, text: str) -> bytes:
    """Return JSON, compressed with gzip and encoded in base64, which is safe in HTML."""
    packed = base64.b64encode(gzip.compress(text.encode(errors="replace"), compresslevel=_LEVEL, mtime=0))
    return b'<script type="application/gzip" data-chunk="%s">%s</script>\n' % (name.encode("ascii"), packed)


class ChunkWriter:
    """A writer that packs items into chunks of a file. Memory holds one chunk."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._items: list[str] = []
        self._bytes = 0
        self.number = 0

    def add(self, item: Any) -> tuple[int, int]:
        """Add an item. Return the number of its chunk, and its place in the chunk."""
        text = _json(item)
        if self._items and self._bytes + len(text) > CHUNK_BYTES:
            self.close()
        self._items.append(text)
        self._bytes += len(text)
        return self.number, len(self._items) - 1

    def close(self) -> None:
        """Write the last chunk."""
        if not self._items:
            return
        self._file.write(_packed(f"{self._name}-{self.number}", f"[{','.join(self._items)}]"))
        self._items, self._bytes = [], 0
        self.number += 1


@cache
def _static(name: str) -> str:
    return (files("bakeoff.report.render.html") / "static" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment(package: str = "bakeoff.report.render.html") -> Environment:
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["words"] = words
    tools = (as_datum, count_of, draw, forest, interval_words, mark_of, shown, span_columns, visible, words, written)
    environment.globals.update({tool.__name__: tool for tool in tools})
    environment.globals.update(
        first_sentence=first_sentence,
        fragment=_fragment,
        long_table=LONG_TABLE,
        most_trail=MAX_TRAIL,
        sort_key=_sort_key,
    )
    return environment


def _fragment(fragment: Fragment) -> Markup:
    """Render a template of another package in an environment that escapes in the same way."""
    html = _environment(fragment.package).get_template(fragment.template).render(fragment.data)
    return Markup(html)  # noqa: S704 - rendered with autoescape


def _sort_key(value: Datum) -> str:
    text = words(value.text)
    key = text if value.sort is None and text not in ("–", NO_INTERVAL) else value.sort
    return "" if key is None else visible(str(key), NAME)
