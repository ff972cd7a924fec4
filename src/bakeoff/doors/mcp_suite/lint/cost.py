"""How much room the tools take in every request; an estimate, for nobody's tokenizer is at hand for all."""

import json
from collections.abc import Iterator, Sequence

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.lint.rules import Finding
from bakeoff.doors.mcp_suite.prompt import system_prompt
from bakeoff.mcp import ServerTool
from bakeoff.models.estimate import CHARS_PER_TOKEN

_DEAR_TOOL = 1_000
_DEAR_LIST = 20_000
_MOST_TOOLS = 128  # in one request, at OpenAI
_PREAMBLE = {"OpenAI": 0, "Anthropic": 346, "Google": 0, "json mode": 0}
"""Tokens that a provider adds for having tools at all, where it documents them."""


class Cost(FrozenModel):
    """The tokens that one provider is likely to count for one server's tools."""

    server: str
    provider: str
    tools: int
    tokens: int


def costs_of(tools: Sequence[ServerTool]) -> tuple[Cost, ...]:
    servers = dict.fromkeys(tool.server for tool in tools)
    return tuple(
        Cost(server=server, provider=provider, tools=len(own), tokens=tokens(own, provider))
        for server in servers
        for own in [[tool for tool in tools if tool.server == server]]
        for provider in _PREAMBLE
    )


def tokens(tools: Sequence[ServerTool], provider: str) -> int:
    """As the provider's own form of a tool spells it, at four characters a token."""
    if provider == "json mode":
        text = len(system_prompt(tools, sequences=False)) if tools else 0
    else:
        text = sum(len(json.dumps(_wire(tool, provider), ensure_ascii=False)) for tool in tools)
    return text // CHARS_PER_TOKEN + (_PREAMBLE[provider] if tools else 0)


def cost_findings(tools: Sequence[ServerTool]) -> Iterator[Finding]:
    for tool in tools:
        count = tokens([tool], "OpenAI")
        if count > _DEAR_TOOL:
            what = f"it takes about {count:,} tokens of every request"
            yield Finding(rule="tool-expensive", server=tool.server, tool=tool.name, what=what)
    everyone = ", ".join(dict.fromkeys(tool.server for tool in tools))
    total = tokens(tools, "OpenAI")
    if total > _DEAR_LIST:
        what = f"{len(tools)} tools take about {total:,} tokens of every request"
        yield Finding(rule="list-expensive", server=everyone, what=what)
    if len(tools) > _MOST_TOOLS:
        yield Finding(rule="too-many-tools", server=everyone, what=f"there are {len(tools)} tools, over {_MOST_TOOLS}")


def _wire(tool: ServerTool, provider: str) -> dict[str, object]:
    about = {"name": tool.name, "description": tool.description}
    if provider == "OpenAI":
        return {"type": "function", "function": {**about, "parameters": tool.input_schema}}
    return {**about, ("input_schema" if provider == "Anthropic" else "parameters"): tool.input_schema}
