"""Compare two snapshots, and rate what each change means for users of the servers.

`breaking`: calls that worked are refused or change their meaning. `risky`: calls work, but models
see other texts, and may choose other tools or arguments. `cosmetic`: models do not rely on it.
"""

import json
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from functools import partial
from typing import Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.mcp.schemas import Effect, schema_changes, text_changes
from bakeoff.mcp.snapshot import ServerEntry, Snapshot, ToolEntry

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
_SAME_TOOL = 0.9  # similarity of the descriptions of a tool and its replacement


class ToolChange(FrozenModel):
    """One difference. `before` and `after` hold changed texts, such as descriptions (untrusted)."""

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
    """The new name of a tool that was renamed."""

    @property
    def where(self) -> str:
        """Return `server/name: place`."""
        return "/".join(part for part in (self.server, self.name) if part) + (self.place and f": {self.place}")


def changes(before: Snapshot, after: Snapshot) -> tuple[ToolChange, ...]:
    """Return the differences between two snapshots, the most serious first.

    If each has a single server, the two are compared even if their names differ.
    """
    old, new = before.servers, after.servers
    if len(old) == len(new) == 1:
        old = dict(zip(new, old.values(), strict=True))
    found = [change for name in old if name in new for change in _server_changes(name, old[name], new[name])]
    change = partial(ToolChange, part="server")
    gone, added = old.keys() - new, new.keys() - old
    found += [
        change(level="breaking", kind="server-removed", server=name, what="the server was removed") for name in gone
    ]
    found += [change(level="risky", kind="server-added", server=name, what="the server was added") for name in added]
    return tuple(sorted(found, key=lambda one: (CHANGE_LEVELS.index(one.level), one.server, one.part, one.name)))


def tool_changes(server: str, name: str, before: ToolEntry, after: ToolEntry) -> Iterator[ToolChange]:
    """Yield the differences in one tool."""
    change = partial(ToolChange, server=server, part="tool", name=name)
    for found in text_changes(before.description, after.description):
        texts = {"before": before.description, "after": after.description}
        yield change(level=_OF_INPUT[found.effect], kind=found.kind, what=found.what, **texts)
    if before.title != after.title:
        yield change(level="cosmetic", kind="title-changed", what="its title changed")
    for found in schema_changes(before.inputSchema, after.inputSchema):
        yield change(level=_OF_INPUT[found.effect], kind=found.kind, place=found.place, what=found.what)
    if before.outputSchema is not None and after.outputSchema is not None:
        for found in schema_changes(before.outputSchema, after.outputSchema):
            place = ".".join(filter(None, ("result", found.place)))
            yield change(level=_OF_OUTPUT[found.effect], kind=found.kind, place=place, what=found.what)
    elif after.outputSchema is not None:
        yield change(level="cosmetic", kind="output-schema-added", what="it has a schema of its result now")
    elif before.outputSchema is not None:
        yield change(level="breaking", kind="output-schema-removed", what="it has no schema of its result now")
    old, new = before.annotations, after.annotations
    hints = [
        f"{quoted(hint, 80)} {json.dumps(old.get(hint))} became {json.dumps(new.get(hint))}"
        for hint in sorted({*old, *new})
        if old.get(hint) != new.get(hint)
    ]
    if hints:
        # The tool is now declared destructive, or no longer read-only.
        destroys = new.get("destructiveHint") is True and old.get("destructiveHint") is not True
        worse = destroys or (old.get("readOnlyHint") is True and new.get("readOnlyHint") is not True)
        yield change(level="risky" if worse else "cosmetic", kind="hint-changed", what=", ".join(hints))


def _server_changes(server: str, before: ServerEntry, after: ServerEntry) -> Iterator[ToolChange]:
    """Yield the differences in one server: instructions, tools, resources and prompts."""
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
    yield from _others(server, "resource", before.resources, after.resources)
    yield from _others(server, "resource template", before.resourceTemplates, after.resourceTemplates)
    yield from _others(server, "prompt", before.prompts, after.prompts)


def _tools(server: str, before: Mapping[str, ToolEntry], after: Mapping[str, ToolEntry]) -> Iterator[ToolChange]:
    """Yield added, removed, renamed and changed tools."""
    change = partial(ToolChange, server=server, part="tool")
    renamed = dict(_renamed(before, after))
    for name, tool in before.items():
        if name in after:
            yield from tool_changes(server, name, tool, after[name])
        elif name in renamed:
            now = renamed[name]
            what = f"it is now called {quoted(now, 80)}"
            yield change(level="breaking", kind="tool-renamed", name=name, what=what, renamed=now)
            for each in tool_changes(server, name, tool, after[now]):
                yield each.model_copy(update={"renamed": now})
        else:
            yield change(level="breaking", kind="tool-removed", name=name, what="it was removed")
    for name in after:
        if name not in before and name not in renamed.values():
            what = "it is new: models may call it in place of others"
            yield change(level="risky", kind="tool-added", name=name, what=what)


def _renamed(before: Mapping[str, ToolEntry], after: Mapping[str, ToolEntry]) -> Iterator[tuple[str, str]]:
    """Yield old and new names of tools that have changed little except their name."""
    added = [name for name in after if name not in before]
    for name, tool in before.items():
        if name in after:
            continue
        same = next((each for each in added if _is_same_tool(tool, after[each])), None)
        if same is not None:
            added.remove(same)
            yield name, same


def _is_same_tool(one: ToolEntry, other: ToolEntry) -> bool:
    """Return True if two tools are probably the same tool under different names."""
    if one.inputSchema.get("properties") != other.inputSchema.get("properties"):
        return bool(one.description) and one.description == other.description
    if not one.description and not one.inputSchema.get("properties"):
        return False  # too little to compare
    matcher = SequenceMatcher(None, one.description[:1000], other.description[:1000], autojunk=False)
    return matcher.real_quick_ratio() >= _SAME_TOOL and matcher.ratio() >= _SAME_TOOL


def _others(
    server: str, kind: str, before: Mapping[str, FrozenModel], after: Mapping[str, FrozenModel]
) -> Iterator[ToolChange]:
    """Compare resources, resource templates or prompts. Removing one is a breaking change."""
    part: Part = "prompt" if kind == "prompt" else "resource"
    named = kind.replace(" ", "-")
    for name in dict.fromkeys((*before, *after)):
        change = partial(ToolChange, server=server, part=part, name=name)
        if name not in after:
            yield change(level="breaking", kind=f"{named}-removed", what=f"the {kind} was removed")
        elif name not in before:
            yield change(level="cosmetic", kind=f"{named}-added", what=f"the {kind} is new")
        elif before[name] != after[name]:
            old, new = (entry.model_dump(mode="json") for entry in (before[name], after[name]))
            fields = [field for field in old if old[field] != new[field]]
            level: ChangeLevel = "breaking" if {"mimeType", "arguments"} & set(fields) else "risky"
            yield change(level=level, kind=f"{named}-changed", what=f"its {' and '.join(fields)} changed")


MEANINGS: dict[ChangeLevel, str] = {
    "breaking": "Calls that worked are refused, or mean something else.",
    "risky": "Calls go on working, but models are told something else: evaluate again.",
    "cosmetic": "Nothing that models go by changed.",
}
