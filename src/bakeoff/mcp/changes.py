"""Compare two snapshots, and say what each change means for the users of the servers.

`breaking`: a call that worked is refused, or means something else. `risky`: calls go on working, but models are told
something else, so that they may choose or fill in something else. `cosmetic`: nothing that models go by.
"""

import json
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.mcp.schemas import Effect, SchemaChange, schema_changes, text_changes
from bakeoff.mcp.snapshot import ArgumentEntry, ResourceEntry, ServerEntry, Snapshot, SnapshotPrompt, ToolEntry

ChangeLevel = Literal["breaking", "risky", "cosmetic"]
CHANGE_LEVELS: tuple[ChangeLevel, ...] = ("breaking", "risky", "cosmetic")
Part = Literal["server", "tool", "resource", "prompt"]

_OF_INPUT: dict[Effect, ChangeLevel] = {
    "changes": "breaking",
    "narrows": "breaking",
    "widens": "risky",
    "adds": "risky",
    "told": "risky",
    "untold": "cosmetic",
}
_OF_OUTPUT: dict[Effect, ChangeLevel] = {
    "changes": "breaking",
    "narrows": "cosmetic",
    "widens": "risky",
    "adds": "cosmetic",
    "told": "cosmetic",
    "untold": "cosmetic",
}
_SAME_TOOL = 0.9  # likeness of the descriptions of a tool and of the one that replaces it


class ToolChange(FrozenModel):
    """One difference. `before` and `after` are texts that changed, such as descriptions. All texts are untrusted."""

    level: ChangeLevel
    kind: str
    server: str
    part: Part
    name: str = ""
    place: str = ""
    what: str
    before: str | None = None
    after: str | None = None
    renamed: str = ""
    """The present name of a tool that has another name now."""

    @property
    def where(self) -> str:
        """Return `server/name: place`."""
        return "/".join(part for part in (self.server, self.name) if part) + (self.place and f": {self.place}")


def changes(before: Snapshot, after: Snapshot) -> tuple[ToolChange, ...]:
    """Return the differences of two snapshots, the most serious first.

    If each has one server, the two are compared whatever their names are.
    """
    old, new = before.servers, after.servers
    if len(old) == len(new) == 1:
        old = dict(zip(new, old.values(), strict=True))
    found = [change for name in old if name in new for change in _server_changes(name, old[name], new[name])]
    found += [_server(name, "breaking", "removed") for name in old if name not in new]
    found += [_server(name, "risky", "added") for name in new if name not in old]
    return tuple(sorted(found, key=lambda one: (CHANGE_LEVELS.index(one.level), one.server, one.part, one.name)))


def _server(name: str, level: ChangeLevel, event: str) -> ToolChange:
    return ToolChange(level=level, kind=f"server-{event}", server=name, part="server", what=f"the server was {event}")


def tool_changes(server: str, name: str, before: ToolEntry, after: ToolEntry) -> Iterator[ToolChange]:
    """Yield the differences of one tool."""

    def change(found: SchemaChange, level: ChangeLevel, prefix: str = "") -> ToolChange:
        place = ".".join(part for part in (prefix, found.place) if part)
        texts = (before.description, after.description) if found.kind.startswith("description") and not place else None
        return ToolChange(
            level=level,
            kind=found.kind,
            server=server,
            part="tool",
            name=name,
            place=place,
            what=found.what,
            before=texts and texts[0],
            after=texts and texts[1],
        )

    for found in text_changes(before.description, after.description):
        yield change(found, _OF_INPUT[found.effect])
    if before.title != after.title:
        yield change(SchemaChange("title-changed", "untold", "", "its title changed"), "cosmetic")
    for found in schema_changes(before.inputSchema, after.inputSchema):
        yield change(found, _OF_INPUT[found.effect])
    if before.outputSchema is None or after.outputSchema is None:
        if before.outputSchema != after.outputSchema:
            added = before.outputSchema is None
            what = f"it has {'a' if added else 'no'} schema of its result now"
            kind = "output-schema-added" if added else "output-schema-removed"
            yield change(SchemaChange(kind, "told", "", what), "cosmetic" if added else "breaking")
    else:
        for found in schema_changes(before.outputSchema, after.outputSchema):
            yield change(found, _OF_OUTPUT[found.effect], "result")
    old, new = before.annotations, after.annotations
    hints = [
        f"{quoted(hint, 80)} {json.dumps(old.get(hint))} became {json.dumps(new.get(hint))}"
        for hint in sorted({*old, *new})
        if old.get(hint) != new.get(hint)
    ]
    if hints:
        # The server says now that a tool destroys something, or no longer that it only reads.
        destroys = new.get("destructiveHint") is True and old.get("destructiveHint") is not True
        worse = destroys or (old.get("readOnlyHint") is True and new.get("readOnlyHint") is not True)
        found = SchemaChange("hint-changed", "told", "", ", ".join(hints))
        yield change(found, "risky" if worse else "cosmetic")


def _server_changes(server: str, before: ServerEntry, after: ServerEntry) -> Iterator[ToolChange]:
    """Yield the differences of one server: instructions, tools, resources and prompts."""
    for found in text_changes(before.instructions, after.instructions, name="instructions"):
        yield ToolChange(
            level=_OF_INPUT[found.effect],
            kind=found.kind,
            server=server,
            part="server",
            what=found.what,
            before=before.instructions,
            after=after.instructions,
        )
    yield from _tools(server, before.tools, after.tools)
    yield from _resources(server, "resource", before.resources, after.resources)
    yield from _resources(server, "resource template", before.resourceTemplates, after.resourceTemplates)
    yield from _prompts(server, before.prompts, after.prompts)


def _tools(server: str, before: Mapping[str, ToolEntry], after: Mapping[str, ToolEntry]) -> Iterator[ToolChange]:
    """Yield added, removed, renamed and changed tools."""

    def change(level: ChangeLevel, event: str, name: str, what: str, renamed: str = "") -> ToolChange:
        kind = f"tool-{event}"
        return ToolChange(level=level, kind=kind, server=server, part="tool", name=name, what=what, renamed=renamed)

    renamed = dict(_renamed(before, after))
    for name, tool in before.items():
        if name in after:
            yield from tool_changes(server, name, tool, after[name])
        elif name in renamed:
            now = renamed[name]
            yield change("breaking", "renamed", name, f"it is now called {quoted(now, 80)}", now)
            for each in tool_changes(server, name, tool, after[now]):
                yield each.model_copy(update={"renamed": now})
        else:
            yield change("breaking", "removed", name, "it was removed")
    for name in after:
        if name not in before and name not in renamed.values():
            yield change("risky", "added", name, "it is new: models may call it in place of others")


def _renamed(before: Mapping[str, ToolEntry], after: Mapping[str, ToolEntry]) -> Iterator[tuple[str, str]]:
    """Yield the old and new names of tools that only changed their names, or little more."""
    added = [name for name in after if name not in before]
    for name, tool in before.items():
        if name in after:
            continue
        same = next((each for each in added if _is_same_tool(tool, after[each])), None)
        if same is not None:
            added.remove(same)
            yield name, same


def _is_same_tool(one: ToolEntry, other: ToolEntry) -> bool:
    """Return True if a tool is likely another one under a new name."""
    if one.inputSchema.get("properties") != other.inputSchema.get("properties"):
        return bool(one.description) and one.description == other.description
    if not one.description and not one.inputSchema.get("properties"):
        return False  # nothing tells such tools apart
    matcher = SequenceMatcher(None, one.description[:1000], other.description[:1000], autojunk=False)
    return matcher.real_quick_ratio() >= _SAME_TOOL and matcher.ratio() >= _SAME_TOOL


def _resources(
    server: str, kind: str, before: Mapping[str, ResourceEntry], after: Mapping[str, ResourceEntry]
) -> Iterator[ToolChange]:
    def change(level: ChangeLevel, what: str, uri: str, event: str) -> ToolChange:
        named = f"{kind.replace(' ', '-')}-{event}"
        return ToolChange(level=level, kind=named, server=server, part="resource", name=uri, what=what)

    for uri, old in before.items():
        new = after.get(uri)
        if new is None:
            yield change("breaking", f"the {kind} was removed", uri, "removed")
            continue
        if old.mimeType != new.mimeType:
            what = f"its type {quoted(old.mimeType, 80)} became {quoted(new.mimeType, 80)}"
            yield change("breaking", what, uri, "type-changed")
        for found in text_changes(old.description, new.description):
            yield change(_OF_INPUT[found.effect], found.what, uri, found.kind)
        if (old.name, old.title) != (new.name, new.title):
            yield change("cosmetic", "its name or title changed", uri, "name-changed")
    for uri in after:
        if uri not in before:
            yield change("cosmetic", f"the {kind} is new", uri, "added")


def _prompts(
    server: str, before: Mapping[str, SnapshotPrompt], after: Mapping[str, SnapshotPrompt]
) -> Iterator[ToolChange]:
    """Compare prompts. People choose them, so that their descriptions are cosmetic."""

    def change(level: ChangeLevel, what: str, name: str, event: str, place: str = "") -> ToolChange:
        kind = f"prompt-{event}"
        return ToolChange(level=level, kind=kind, server=server, part="prompt", name=name, place=place, what=what)

    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield change("breaking", "the prompt was removed", name, "removed")
            continue
        for argument in dict.fromkeys((*old.arguments, *new.arguments)):
            found = _argument_change(old.arguments.get(argument), new.arguments.get(argument))
            if found is not None:
                yield change(*found[:2], name, found[2], argument)
        if (old.title, old.description) != (new.title, new.description):
            yield change("cosmetic", "its title or description changed", name, "description-changed")
    for name in after:
        if name not in before:
            yield change("cosmetic", "the prompt is new", name, "added")


def _argument_change(old: ArgumentEntry | None, new: ArgumentEntry | None) -> tuple[ChangeLevel, str, str] | None:
    """Return the level, the description and the event of a changed argument."""
    if new is None:
        return "breaking", "it was removed", "argument-removed"
    needed = "required" if new.required else "optional"
    level: ChangeLevel = "breaking" if new.required else "cosmetic"
    if old is None:
        return level, f"it is new and {needed}", "argument-added"
    if old.required != new.required:
        return level, f"it is now {needed}", f"argument-{needed}"
    if old.description != new.description:
        return "cosmetic", "its description changed", "argument-description-changed"
    return None


MEANINGS: dict[ChangeLevel, str] = {
    "breaking": "Calls that worked are refused, or mean something else.",
    "risky": "Calls go on working, but models are told something else: evaluate again.",
    "cosmetic": "Nothing that models go by changed.",
}
