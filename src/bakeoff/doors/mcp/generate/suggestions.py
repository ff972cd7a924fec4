"""Suggest values that make sense: those of the server's surroundings, of examples in descriptions, and usual ones."""

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from bakeoff.doors.mcp.generate.leaks import name_words
from bakeoff.doors.mcp.generate.surroundings import Surroundings
from bakeoff.doors.mcp.generate.values import Suggest
from bakeoff.doors.mcp.generate.wording import entry_for, group, wording
from bakeoff.mcp import ServerTool

_FORMATS: dict[str, list[JsonValue]] = {
    "date": ["2026-03-04", "2026-03-11"],
    "date-time": ["2026-03-04T10:30:00Z", "2026-03-11T10:30:00Z"],
    "time": ["10:30:00Z", "11:45:00Z"],
}
_EXAMPLES = re.compile(
    r"(?:\be\.g\.|\bfor example|\bsuch as|\blike\b)[:,]?\s*((?:[\"'`][^\"'`\n]{1,60}[\"'`][,\s]*(?:or |and )?)+)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\(e\.g\.,? ([a-z][\w/-]{2,30})(?:, [\w/-]+)*(?:,? etc\.?|,? \.\.\.)?\)")
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,60})[\"'`]")


def suggestions(tool: ServerTool, around: Surroundings) -> Suggest:
    """Return what suggests values for the parameters of a tool."""

    def suggest(name: str, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
        yield from around.values(name, tool)
        yield from _examples(str(schema.get("description", "")), schema)
        late = bool(group("late") & set(name_words(name)[:-1]))
        form = str(schema.get("format", "date" if "YYYY-MM-DD" in str(schema.get("description")) else ""))
        kind = _FORMATS.get(form, [])
        usual: list[JsonValue] = entry_for(name, wording()["values"]) or []
        known = kind or ([] if "format" in schema else usual)
        yield from reversed(known) if late and len(known) > 1 else known

    return suggest


def _examples(description: str, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yield the quoted examples of a description."""
    if schema.get("type") != "string":
        return
    for found in _LISTED.finditer(description):
        yield found[1]
    for found in _EXAMPLES.finditer(description):
        yield from (text for text in _QUOTED.findall(found[1]) if _is_whole(text))


def _is_whole(text: str) -> bool:
    """Return True unless a text is a part of an example that contains quotes itself."""
    return (
        text.isprintable() and "${" not in text and all(text.count(a) == text.count(b) for a, b in ("()", "{}", "[]"))
    )
