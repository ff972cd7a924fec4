"""A page of sections alone: the frame, policy and behaviour of a run's page for whatever can be said as sections."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bakeoff.report.html.detail import NAME
from bakeoff.report.html.render import Page, write_page
from bakeoff.report.html.run_page import PAGE_NAME
from bakeoff.report.sections import Datum, Section, Tone
from bakeoff.report.words import visible

PUBLIC = 0o644  # what is written to a place the person names is meant for others
_LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Masthead:
    """What stands above the sections. A tile has a label, a value and a few more words."""

    title: str
    headline: str = ""
    badge: str = ""
    tone: Tone = "plain"  # of the badge
    tiles: tuple[tuple[str, str, str], ...] = ()


def write_section_page(
    path: Path, head: Masthead, sections: Sequence[Section], *, unlisted: frozenset[str] = frozenset()
) -> Path:
    """Write the page. Sections whose ids are `unlisted` are left out of the menu, which has room for a few."""
    title = visible(head.title, _LONGEST_TITLE)
    page = Page("sections", "sections.html")
    before, after = page.halves(
        title=f"{title} · bakeoff",
        heading=title,
        headline=head.headline,
        badge=head.badge,
        tone=head.tone,
        tiles=head.tiles,
        menu=[{"id": section.id, "title": section.title} for section in sections if section.id not in unlisted],
        sections=sections,
    )
    write_page(path, (before, *page.data(), after), mode=PUBLIC)
    return path


def source_datum(page: Path, name: str, path: str) -> Datum:
    """Where numbers come from: a link to the run's page, or else to its journal or result file; or its path as text."""
    source = Path(path)
    href = _link(page, source / PAGE_NAME) or _link(page, source / "journal.jsonl") or _link(page, source)
    return Datum(text=visible(name if href else path, NAME), sort=visible(name, NAME), href=href)


def _link(page: Path, target: Path) -> str | None:
    """The way from a page to a file that is there."""
    try:
        found = target.is_file()
        return quote(os.path.relpath(target.resolve(), page.resolve().parent)) if found else None
    except (OSError, ValueError):  # a path that no disk has
        return None
