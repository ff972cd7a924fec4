"""Describe tools for people: what servers offer, what lint found, and what changed between two snapshots."""

import difflib
import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, starmap
from typing import Any

from bakeoff._kernel.text import count_of, visible
from bakeoff.mcp.changes import CHANGE_LEVELS, MEANINGS, ChangeLevel, ToolChange
from bakeoff.mcp.lint import LEVELS, RULE_ORDER, RULES, Level, LintFinding
from bakeoff.mcp.lint.checks import LintReport
from bakeoff.mcp.schemas import Schema, accepted_types, resolved
from bakeoff.mcp.snapshot import ServerEntry, Snapshot, SnapshotPrompt, ToolEntry
from bakeoff.mcp.tools import properties_of, required_by
from bakeoff.report.blocks import (
    Block,
    BulletList,
    Code,
    Datum,
    Quote,
    Table,
    Tone,
    Value,
    Words,
    columns,
    heading,
    paragraph,
)

_MAX_ROWS = 200
_MAX_REASON_LENGTH = 2000
_MAX_OF_A_RULE: dict[Level, int] = {"error": 50, "warning": 20, "note": 3}  # more findings share a row


def lint_blocks(report: LintReport, *, notes: bool = True) -> Iterator[Block]:
    """Describe a report: a table of findings, the fix for each rule once, and the cost of the tools."""
    shown = [finding for finding in report.findings if notes or finding.level != "note"]
    if shown:
        # A row for each finding, and one row for all of a rule if there are many.
        rows: list[tuple[Words, ...]] = []
        ranked = sorted(shown, key=lambda one: (LEVELS.index(one.level), RULE_ORDER[one.rule], one.server, one.tool))
        for rule, group in groupby(ranked, key=lambda one: one.rule):
            alike = list(group)
            level = alike[0].level
            if len(alike) > _MAX_OF_A_RULE[level]:
                places = ", ".join(one.place for one in alike[:3])
                rows.append(
                    (level, rule, f"{len(alike):,} places", Quote(f"{places} and {len(alike) - 3:,} more: see --json"))
                )
            else:
                rows += [(one.level, one.rule, Quote(one.place), _what(one)) for one in alike]
        yield Table(columns("level", "rule", "where", "what"), tuple(rows[:_MAX_ROWS]))
        if len(rows) > _MAX_ROWS:
            yield paragraph(f"{len(rows) - _MAX_ROWS:,} more rows: use --json or --sarif to see all")
        yield heading("How to fix it", level=3)
        broken = dict.fromkeys(finding.rule for finding in shown)
        yield BulletList(tuple((f"{rule}: {RULES[rule].why} {RULES[rule].how}",) for rule in broken))
    if report.costs:
        yield heading("Estimated tokens of the tool lists in every request", level=3)
        providers = list(dict.fromkeys(cost.provider for cost in report.costs))
        tokens = {(cost.server, cost.provider): f"{cost.tokens:,}" for cost in report.costs}
        cost_rows: list[tuple[Words, ...]] = [
            (Quote(server), f"{count:,}", *(tokens[server, provider] for provider in providers))
            for server, count in {cost.server: cost.tools for cost in report.costs}.items()
        ]
        yield Table(columns("server", "tools>", *(f"{provider}>" for provider in providers)), tuple(cost_rows))
    counts = ", ".join(count_of(report.count(level), level) for level in LEVELS)
    hidden = len(report.findings) - len(shown)
    text = f"{count_of(report.tools, 'tool')} of {count_of(len(report.servers), 'server')}: {counts}"
    yield paragraph(f"{text} ({count_of(hidden, 'note')} not shown)" if hidden else text)


def _what(finding: LintFinding) -> Words:
    """Return the text of a finding; cut it less if it says why a server cannot be used."""
    whole = finding.rule == "server-unusable"
    return visible(" ".join(finding.what.split()), _MAX_REASON_LENGTH) if whole else Quote(finding.what)


LEVEL_TONES: dict[ChangeLevel, Tone] = {"breaking": "fail", "risky": "partial", "cosmetic": "muted"}
_MAX_ALIKE = 3  # more of the same share a row
_DIFF_WIDTH = 100  # of the lines of a description that are compared
_WHOLE_TEXT = 1_000_000  # lines around a change that are shown


def fails(found: Sequence[ToolChange], on: str) -> bool:
    """Tell whether a change is at least as serious as `on`: breaking, risky, cosmetic or never."""
    serious = CHANGE_LEVELS[: CHANGE_LEVELS.index(on) + 1] if on in CHANGE_LEVELS else ()
    return any(change.level in serious for change in found)


def change_blocks(found: Sequence[ToolChange]) -> Iterator[Block]:
    """Describe changes: a table, the diffs of changed descriptions, and the counts."""
    yield from listed_changes(found)
    counts = Counter(change.level for change in found)
    listed = ", ".join(f"{counts[level]} {level}" for level in CHANGE_LEVELS)
    worst = found[0].level if found else None
    yield paragraph(f"{listed}. {MEANINGS[worst] if worst else 'Nothing changed.'}")


def listed_changes(found: Sequence[ToolChange]) -> Iterator[Block]:
    """Describe changes: a table and the diffs of changed descriptions; nothing without changes."""
    if not found:
        return
    # A row for each change, and one row for a change that many places have alike.
    alike: dict[tuple[ChangeLevel, str, str], list[ToolChange]] = {}
    for change in found:
        alike.setdefault((change.level, change.kind, change.what), []).append(change)
    rows: list[tuple[Value, ...]] = []
    for (level, _, what), same in alike.items():
        shown = Datum(level, sort=CHANGE_LEVELS.index(level), tone=LEVEL_TONES[level])
        if len(same) > _MAX_ALIKE:
            places = ", ".join(change.where for change in same[:2])
            rows.append((shown, f"{len(same):,} places", Quote(f"{what}: {places} and {len(same) - 2:,} more")))
        else:
            rows += [(shown, Quote(change.where), Quote(change.what)) for change in same]
    yield Table(columns("level", "where", "what"), tuple(rows[:_MAX_ROWS]))
    if len(rows) > _MAX_ROWS:
        yield paragraph(f"{len(rows) - _MAX_ROWS:,} more rows: use --json or --sarif to see all")
    for change in found[:_MAX_ROWS]:
        if change.before and change.after:
            yield Code(text_diff(change.before, change.after), "diff", change.where, folded=False)


def text_diff(before: str, after: str) -> str:
    """Return a diff of two texts with all of their lines."""
    # Unlike `ndiff`, this takes no time to speak of for long texts that have nothing in common.
    marked = difflib.unified_diff(_folded(before), _folded(after), n=_WHOLE_TEXT, lineterm="")
    return "\n".join(f"{line[0]} {line[1:]}" for line in islice(marked, 3, None))


def _folded(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in textwrap.wrap(line, _DIFF_WIDTH) or [""]]


def changes_as_json(found: Sequence[ToolChange]) -> dict[str, Any]:
    """Return the changes, and how many there are of each severity, ready for JSON."""
    counts = Counter(change.level for change in found)
    return {
        "changes": [change.model_dump(mode="json", exclude_none=True) for change in found],
        "counts": {level: counts[level] for level in CHANGE_LEVELS},
    }


_WIDTH = 110  # of the lines of a description
_HINTS = {
    ("readOnlyHint", True): "read-only",
    ("destructiveHint", True): "destructive",
    ("idempotentHint", True): "idempotent",
    ("openWorldHint", True): "reaches other systems",
}


def listing_blocks(snapshot: Snapshot, *, whole: bool) -> Iterator[Block]:
    """Describe every server: with `whole`, every tool with its whole description and every parameter."""
    for name, server in snapshot.servers.items():
        yield heading(Quote(name), level=2)
        counts = [
            count_of(len(server.tools), "tool"),
            count_of(len(server.resources), "resource"),
            count_of(len(server.resourceTemplates), "resource template"),
            count_of(len(server.prompts), "prompt"),
        ]
        yield paragraph(", ".join(count for count in counts if not count.startswith("0 ")) or "nothing")
        if whole and server.instructions:
            yield from _text("instructions", server.instructions)
        if whole:
            yield from chain.from_iterable(starmap(_whole_tool, server.tools.items()))
        elif server.tools:
            tools = ((name, _signature(tool), _first_line(tool.description)) for name, tool in server.tools.items())
            yield _quotes(("tool", "parameters", "description"), tools)
        yield from _others(server)


def _whole_tool(name: str, tool: ToolEntry) -> Iterator[Block]:
    """Describe a tool with its hints, its whole description and its parameters."""
    hints = [text for (hint, value), text in _HINTS.items() if tool.annotations.get(hint) is value]
    title = visible(name, 80) + (f" ({', '.join(hints)})" if hints else "")
    yield from _text(title, tool.description or "no description")
    parameters = properties_of(tool.inputSchema)
    if not parameters:
        return
    needed = required_by(tool.inputSchema)
    rows = []
    for parameter, schema in parameters.items():
        found = resolved(schema, tool.inputSchema)
        about = Quote(_first_line(str(found.get("description") or "")))
        rows.append((Quote(parameter), Quote(_type(found)), "yes" if parameter in needed else "", about))
    yield Table(columns("parameter", "type", "required", "description"), tuple(rows))


def _text(title: str, text: str) -> Iterator[Block]:
    """Show a text of several lines below its title."""
    lines = [part for line in text.strip().splitlines() for part in textwrap.wrap(line, _WIDTH) or [""]]
    yield Table(columns(title), tuple((Quote(line),) for line in lines))


def _others(server: ServerEntry) -> Iterator[Block]:
    """Describe the resources and prompts of a server."""
    if resources := [*server.resources.items(), *server.resourceTemplates.items()]:
        about = ((uri, one.mimeType, _first_line(one.description or one.title or one.name)) for uri, one in resources)
        yield _quotes(("resource", "type", "description"), about)
    if server.prompts:
        prompts = ((name, _arguments(one), _first_line(one.description)) for name, one in server.prompts.items())
        yield _quotes(("prompt", "arguments", "description"), prompts)


def _quotes(titles: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    return Table(columns(*titles), tuple(tuple(map(Quote, row)) for row in rows))


def _signature(tool: ToolEntry) -> str:
    """Return the names of parameters; optional ones have a question mark."""
    needed = required_by(tool.inputSchema)
    return ", ".join(name if name in needed else f"{name}?" for name in properties_of(tool.inputSchema))


def _arguments(prompt: SnapshotPrompt) -> str:
    return ", ".join(name if each.required else f"{name}?" for name, each in prompt.arguments.items())


def _type(schema: Schema) -> str:
    """Return the types or choices of a parameter, and its default."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        kinds = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    else:
        kinds = " | ".join(accepted_types(schema)) or "any"
    return f"{kinds} = {json.dumps(schema['default'], ensure_ascii=False)}" if "default" in schema else kinds


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else ""
