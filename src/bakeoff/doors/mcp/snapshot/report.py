"""Report what changed between two snapshots as text, data or SARIF."""

import difflib
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bakeoff._kernel.model import fingerprint
from bakeoff.doors.mcp.sarif import SarifLevel, SarifResult, sarif_log
from bakeoff.doors.mcp.snapshot.changes import LEVELS, Level, ToolChange
from bakeoff.doors.mcp.snapshot.files import PlacedSnapshot
from bakeoff.report.blocks import Block, Code, Quote, Table, Words, columns, paragraph

MEANINGS: dict[Level, str] = {
    "breaking": "Calls that worked are refused, or mean something else.",
    "risky": "Calls go on working, but models are told something else: evaluate again.",
    "cosmetic": "Nothing that models go by changed.",
}
_SARIF_LEVELS: dict[Level, SarifLevel] = {"breaking": "error", "risky": "warning", "cosmetic": "note"}
_MAX_ROWS = 200
_MAX_ALIKE = 3  # more of the same share a row
_WIDTH = 100  # of the lines of a description that are compared


def fails(found: Sequence[ToolChange], on: str) -> bool:
    """Return True if a change is at least as serious as `on`: breaking, risky, cosmetic, or never."""
    serious = LEVELS[: LEVELS.index(on) + 1] if on in LEVELS else ()
    return any(change.level in serious for change in found)


def change_blocks(found: Sequence[ToolChange]) -> Iterator[Block]:
    """Describe changes: a table, the words of changed descriptions, and the counts."""
    yield from listed_changes(found)
    counts = Counter(change.level for change in found)
    listed = ", ".join(f"{counts[level]} {level}" for level in LEVELS)
    worst = found[0].level if found else None
    yield paragraph(f"{listed}. {MEANINGS[worst] if worst else 'Nothing changed.'}")


def listed_changes(found: Sequence[ToolChange]) -> Iterator[Block]:
    """Describe changes, if there are any: a table, and the words of changed descriptions."""
    if not found:
        return
    rows = _rows(found)
    yield Table(columns("level", "where", "what"), tuple(rows[:_MAX_ROWS]))
    if len(rows) > _MAX_ROWS:
        yield paragraph(f"{len(rows) - _MAX_ROWS:,} more rows: use --json or --sarif to see all")
    for change in found[:_MAX_ROWS]:
        if change.before and change.after:
            yield Code(text_diff(change.before, change.after), "diff", change.where)


def _rows(found: Sequence[ToolChange]) -> list[tuple[Words, ...]]:
    """Return a row for each change, and one row for a change that many places have alike."""
    alike: dict[tuple[Level, str, str], list[ToolChange]] = {}
    for change in found:
        alike.setdefault((change.level, change.kind, change.what), []).append(change)
    rows: list[tuple[Words, ...]] = []
    for (level, _, what), same in alike.items():
        if len(same) > _MAX_ALIKE:
            places = ", ".join(change.where for change in same[:2])
            rows.append((level, f"{len(same):,} places", Quote(f"{what}: {places} and {len(same) - 2:,} more")))
        else:
            rows += [(change.level, Quote(change.where), Quote(change.what)) for change in same]
    return rows


def text_diff(before: str, after: str) -> str:
    """Return the lines of two texts with `-` and `+` before those that differ."""
    lines = difflib.ndiff(_folded(before), _folded(after))
    return "\n".join(line for line in lines if not line.startswith("?"))


def _folded(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in textwrap.wrap(line, _WIDTH) or [""]]


def changes_as_json(found: Sequence[ToolChange]) -> dict[str, Any]:
    counts = Counter(change.level for change in found)
    return {
        "changes": [change.model_dump(mode="json", exclude_none=True) for change in found],
        "counts": {level: counts[level] for level in LEVELS},
    }


def changes_as_sarif(found: Sequence[ToolChange], before: PlacedSnapshot) -> dict[str, Any]:
    """Return the changes as SARIF 2.1.0. They point to the lines of the committed snapshot."""
    rules = {
        change.kind: {
            "id": change.kind,
            "shortDescription": {"text": change.kind.replace("-", " ").capitalize()},
            "help": {"text": MEANINGS[change.level]},
            "defaultConfiguration": {"level": _SARIF_LEVELS[change.level]},
        }
        for change in reversed(found)
    }
    results = [
        SarifResult(
            rule=change.kind,
            level=_SARIF_LEVELS[change.level],
            text=f"{change.level}: {change.where}: {change.what}. {MEANINGS[change.level]}",
            names=(("module", change.server), ("function", change.name), ("parameter", change.place)),
            place=change.where,
            fingerprint=fingerprint(change.kind, change.where, change.what),
            file=before.file,
            line=before.line(*_key(change)),
        )
        for change in found
    ]
    return sarif_log("bakeoff mcp diff", list(rules.values()), results)


def _key(change: ToolChange) -> tuple[str, ...]:
    section = {
        "tool": "tools",
        "prompt": "prompts",
        "resource": "resourceTemplates" if "template" in change.kind else "resources",
    }.get(change.part)
    return ("servers", change.server, *((section, change.name) if section else ()))
