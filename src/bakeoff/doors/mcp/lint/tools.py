"""Lint tools: names and descriptions, and the tokens that tools use."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations, islice

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.doors.mcp.lint.rules import LintFinding
from bakeoff.doors.mcp.prompt import system_prompt
from bakeoff.mcp import ServerTool
from bakeoff.models.estimate import CHARS_PER_TOKEN

_MAX_DESCRIPTION_LENGTH = 1024  # of a function, at OpenAI
_SHORTEST_DESCRIPTION = 20
_ALIKE, _NEARLY_EQUAL = 0.85, 0.95
_MAX_COMPARED = 400  # tools; each is compared with each
_MAX_PAIRS = 50
_COMPARED = 600  # characters of a description

# The names that providers accept, from their documentation and their errors.
PROVIDER_NAMES = {
    "OpenAI": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "Anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "Google": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
}


def naming_findings(tools: Sequence[ServerTool]) -> Iterator[LintFinding]:
    first: dict[str, ServerTool] = {}
    for tool in tools:
        refusing = [who for who, names in PROVIDER_NAMES.items() if not names.fullmatch(tool.name)]
        if refusing:
            length = f" ({len(tool.name)} characters)" if len(tool.name) > 64 else ""
            listed = " and ".join(", ".join(part) for part in (refusing[:-1], refusing[-1:]) if part)
            what = f"{quoted(tool.name, 80)}{length} is refused by {listed}"
            yield LintFinding.of(tool, "tool-name-not-portable", what)
        text = tool.description.strip()
        if not text:
            yield LintFinding.of(tool, "tool-description-missing", "it has no description")
        elif len(text) > _MAX_DESCRIPTION_LENGTH:
            yield LintFinding.of(
                tool, "tool-description-long", f"its description has {len(text):,} characters, over 1,024"
            )
        elif len(text) < _SHORTEST_DESCRIPTION or _words(text) <= _words(tool.name):
            yield LintFinding.of(tool, "tool-description-short", f"it only says {quoted(text)}")
        other = first.setdefault(tool.name, tool)
        if other.server != tool.server:
            what = f"the server {quoted(other.server, 80)} also has a tool of this name"
            yield LintFinding.of(tool, "tool-name-clash", what)
    # Counting common words is fast, and excludes most pairs.
    pairs = combinations(map(_Text.of, tools[:_MAX_COMPARED]), 2)
    alike = (finding for pair in pairs if (finding := _likeness(*pair)))
    yield from islice(alike, _MAX_PAIRS)


@dataclass(frozen=True, slots=True)
class _Text:
    """The texts by which a tool is compared."""

    tool: ServerTool
    name: str
    description: str
    words: frozenset[str]

    @classmethod
    def of(cls, tool: ServerTool) -> "_Text":
        text = " ".join(tool.description.casefold().split())[:_COMPARED]
        return cls(tool, re.sub(r"[^a-z0-9]", "", tool.name.casefold()), text, frozenset(_words(text)))


def _likeness(one: _Text, other: _Text) -> LintFinding | None:
    if not one.description or not other.description:
        return None
    named = f"{quoted(one.tool.name, 80)} of {quoted(one.tool.server, 80)}"
    if one.description == other.description:
        return LintFinding.of(other.tool, "tool-description-duplicate", f"{named} has the same description")
    if one.name and one.name == other.name and one.tool.name != other.tool.name:
        return LintFinding.of(other.tool, "tools-alike", f"{named} differs only in case, `_` or `-`")
    if 2 * len(one.words & other.words) < len(one.words | other.words):
        return None
    described, called = _share(one.description, other.description), _share(one.name, other.name)
    if described < _ALIKE or (called < _ALIKE and described < _NEARLY_EQUAL):
        return None
    what = f"{named} is {called:.0%} the same in name and {described:.0%} in description"
    return LintFinding.of(other.tool, "tools-alike", what)


def _share(one: str, other: str) -> float:
    """Return how similar two texts are. The quick bounds come first, because most pairs differ."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() < 0.5 or matcher.quick_ratio() < _ALIKE:
        return min(matcher.quick_ratio(), 0.5)
    return matcher.ratio()


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.casefold().replace("_", " ")))


_EXPENSIVE_TOOL = 1_000
_EXPENSIVE_LIST = 20_000
_MAX_TOOLS = 128  # in one request, at OpenAI
_PREAMBLE = {"OpenAI": 0, "Anthropic": 346, "Google": 0, "json mode": 0}
"""Tokens that a provider documents to add if a request has any tools."""


class ToolListCost(FrozenModel):
    """The estimated tokens of one server's tools at one provider."""

    server: str
    provider: str
    tools: int
    tokens: int


def costs_of(tools: Sequence[ServerTool]) -> tuple[ToolListCost, ...]:
    servers = dict.fromkeys(tool.server for tool in tools)
    return tuple(
        ToolListCost(server=server, provider=provider, tools=len(own), tokens=tokens(own, provider))
        for server in servers
        for own in [[tool for tool in tools if tool.server == server]]
        for provider in _PREAMBLE
    )


def tokens(tools: Sequence[ServerTool], provider: str) -> int:
    """Estimate the tokens of tools in the provider's format, at four characters per token."""
    if provider == "json mode":
        text = len(system_prompt(tools, sequences=False)) if tools else 0
    else:
        text = sum(len(json.dumps(_wire(tool, provider), ensure_ascii=False)) for tool in tools)
    return text // CHARS_PER_TOKEN + (_PREAMBLE[provider] if tools else 0)


def cost_findings(tools: Sequence[ServerTool]) -> Iterator[LintFinding]:
    for tool in tools:
        count = tokens([tool], "OpenAI")
        if count > _EXPENSIVE_TOOL:
            what = f"it uses about {count:,} tokens in every request"
            yield LintFinding.of(tool, "tool-expensive", what)
    everyone = ", ".join(dict.fromkeys(tool.server for tool in tools))
    total = tokens(tools, "OpenAI")
    if total > _EXPENSIVE_LIST:
        what = f"{len(tools)} tools use about {total:,} tokens in every request"
        yield LintFinding(rule="list-expensive", server=everyone, what=what)
    if len(tools) > _MAX_TOOLS:
        yield LintFinding(
            rule="too-many-tools", server=everyone, what=f"there are {len(tools)} tools, over {_MAX_TOOLS}"
        )


def _wire(tool: ServerTool, provider: str) -> dict[str, object]:
    about = {"name": tool.name, "description": tool.description}
    if provider == "OpenAI":
        return {"type": "function", "function": {**about, "parameters": tool.input_schema}}
    return {**about, ("input_schema" if provider == "Anthropic" else "parameters"): tool.input_schema}
