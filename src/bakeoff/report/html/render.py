"""Sections as HTML: one auto-escaping environment, and a policy under which only our own script and style may act."""

import base64
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bakeoff._kernel.files import PRIVATE
from bakeoff._version import __version__
from bakeoff.errors import RunFolderError
from bakeoff.report.html import chunks
from bakeoff.report.html.plots import draw, interval_words, written
from bakeoff.report.sections import Datum, Fragment, Table, Value

LONG_TABLE = 500
"""Rows above which a table of a section is drawn only where it is seen."""

MOST_TRAIL = 40
"""Points of a small line; older ones are left out."""

DATA = "<!--DATA-->"  # where the chunks go; no data can write this, for it is escaped
PageKind = Literal["run", "index", "sections"]


@dataclass(frozen=True, slots=True)
class Served:
    """What differs where a page is not a file but comes from `bakeoff view`."""

    home: str
    events: str | None = None  # the address that tells how a run goes on
    reports: str | None = None  # where run pages are, instead of beside the index


@dataclass(slots=True)
class Page:
    """One page in the making. Long tables are kept back and written as data."""

    kind: PageKind
    template: str
    served: Served | None = None
    long_tables: dict[str, Table] = field(default_factory=dict)

    def keep(self, table: Table) -> str:
        name = f"table-{len(self.long_tables)}"
        self.long_tables[name] = table
        return name

    def halves(self, **content: Any) -> tuple[bytes, bytes]:
        """The page before and after its data."""
        style, script = stylesheet(), self._script()
        html = (
            _environment()
            .get_template(self.template)
            .render(
                content,
                css=Markup(style),  # noqa: S704 - ours, from the package
                js=Markup(script),  # noqa: S704
                policy=policy(style, script, live=self.served is not None),
                page=self.kind,
                version=__version__,
                home=self.served.home if self.served else None,
                live=self.served.events if self.served else None,
                kept=self.keep,
                footer=f"Made by bakeoff {__version__}. This file is whole: it loads nothing from anywhere.",
            )
        )
        before, after = html.split(DATA)
        return before.encode(errors="replace"), after.encode(errors="replace")

    def data(self) -> Iterator[bytes]:
        """The long tables, once the page has been rendered."""
        for name, table in self.long_tables.items():
            rows = [
                [as_datum(value).model_dump(exclude_defaults=True) | {"tone": as_datum(value).tone} for value in row]
                for row in table.rows
            ]
            yield chunks.block(name, {"columns": [column.model_dump() for column in table.columns], "rows": rows})

    def _script(self) -> str:
        names = ["core.js", f"{self.kind}.js", *(["live.js"] if self.served else [])]
        return "\n".join(_static(name) for name in names)


def policy(style: str, script: str, *, live: bool) -> str:
    """Nothing is loaded, and no style or script acts but the two whose hashes these are."""
    rules = [
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        *(["connect-src 'self'"] if live else []),
    ]
    return "; ".join(rules)


def as_datum(value: Value) -> Datum:
    match value:
        case Datum():
            return value
        case None:
            return Datum(text="–", tone="muted")
        case str():
            return Datum(text=value, sort=value)
        case int():
            return Datum(text=f"{value:,}", sort=value)
        case _:
            return Datum(text=f"{value:,.4g}", sort=value)


def write_page(path: Path, parts: Sequence[bytes], data: IO[bytes] | None = None, mode: int = PRIVATE) -> None:
    """Before, data and after into one file, which is there whole or not at all. Data may be larger than memory."""
    before, *after = parts
    with replaced(path, mode) as file:
        file.write(before)
        if data is not None:
            data.seek(0)
            while piece := data.read(1024 * 1024):
                file.write(piece)
        for part in after:
            file.write(part)


@contextmanager
def replaced(path: Path, mode: int) -> Iterator[IO[bytes]]:
    """A file that takes the place of the old one at the end. Pages can be made again, so there is no fsync."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunFolderError(f"{path} cannot be written: {error.strerror}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@cache
def stylesheet() -> str:
    return _static("style.css")


@cache
def _static(name: str) -> str:
    return (files("bakeoff.report.html") / "static" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment(package: str = "bakeoff.report.html") -> Environment:
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        as_datum=as_datum,
        draw=draw,
        fragment=_fragment,
        interval_words=interval_words,
        long_table=LONG_TABLE,
        most_trail=MOST_TRAIL,
        sort_key=_sort_key,
        written=written,
    )
    return environment


def _fragment(fragment: Fragment) -> Markup:
    """A door's own template, in an environment that escapes like ours."""
    html = _environment(fragment.package).get_template(fragment.template).render(fragment.data)
    return Markup(html)  # noqa: S704 - rendered with autoescape


def _sort_key(value: Datum) -> str:
    key = value.text if value.sort is None and value.text not in ("–", "undefined") else value.sort
    return "" if key is None else str(key)
