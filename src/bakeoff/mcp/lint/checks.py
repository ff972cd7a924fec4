"""Lint tools of servers: names, descriptions, schemas, hostile texts and token costs."""

import asyncio
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import combinations, islice
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import quoted
from bakeoff.errors import InfraError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.lint import LEVELS, RULE_ORDER, Level, LintFinding
from bakeoff.mcp.lint.hostile import hostile_findings
from bakeoff.mcp.prompt import system_prompt
from bakeoff.mcp.schemas import Schema, SchemaPart, allows, parts_of, pointed_at, types_of
from bakeoff.mcp.servers import with_unique_names
from bakeoff.models.estimate import CHARS_PER_TOKEN

_MAX_DESCRIPTION_LENGTH = 1024  # OpenAI's limit for a function
_SHORTEST_DESCRIPTION = 20
_ALIKE, _NEARLY_EQUAL = 0.85, 0.95
_MAX_COMPARED = 400  # tools that are compared in pairs
_MAX_PAIRS = 50
_COMPARED = 600  # characters that are compared of a description

PROVIDERS = tomllib.loads(Path(__file__).with_name("providers.toml").read_text("utf-8"))
"""The limits of each provider on tools, and the text that it adds to a request."""


def naming_findings(tools: Sequence[ServerTool]) -> Iterator[LintFinding]:
    """Find invalid or clashing names, poor descriptions, and tools that are too similar."""
    first: dict[str, ServerTool] = {}
    for tool in tools:
        refusing = [who for who, names in PROVIDERS["names"].items() if not re.fullmatch(names, tool.name)]
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
    """The texts of a tool that are compared with other tools."""

    tool: ServerTool
    name: str
    description: str
    words: frozenset[str]

    @classmethod
    def of(cls, tool: ServerTool) -> "_Text":
        text = " ".join(tool.description.casefold().split())[:_COMPARED]
        return cls(tool, re.sub(r"[^a-z0-9]", "", tool.name.casefold()), text, frozenset(_words(text)))


def _likeness(one: _Text, other: _Text) -> LintFinding | None:
    """Return a finding if two tools are hard to tell apart."""
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
    """Return the similarity of two texts. Quick upper bounds first exclude most pairs."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() < 0.5 or matcher.quick_ratio() < _ALIKE:
        return min(matcher.quick_ratio(), 0.5)
    return matcher.ratio()


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.casefold().replace("_", " ")))


_EXPENSIVE_TOOL = 1_000
_EXPENSIVE_LIST = 20_000
_MAX_TOOLS = 128  # OpenAI's limit for one request


class ToolListCost(FrozenModel):
    """The estimated tokens of one server's tools for one provider."""

    server: str
    provider: str
    tools: int
    tokens: int


def costs_of(tools: Sequence[ServerTool]) -> tuple[ToolListCost, ...]:
    """Return the tokens of each server's tools for each provider."""
    servers = dict.fromkeys(tool.server for tool in tools)
    return tuple(
        ToolListCost(server=server, provider=provider, tools=len(own), tokens=tokens(own, provider))
        for server in servers
        for own in [[tool for tool in tools if tool.server == server]]
        for provider in PROVIDERS["preamble"]
    )


def tokens(tools: Sequence[ServerTool], provider: str) -> int:
    """Estimate the tokens of tools in the format of a provider, at four characters per token."""
    if provider == "json mode":
        text = len(system_prompt(tools, sequences=False)) if tools else 0
    else:
        text = sum(len(json.dumps(_wire(tool, provider), ensure_ascii=False)) for tool in tools)
    return text // CHARS_PER_TOKEN + (int(PROVIDERS["preamble"][provider]) if tools else 0)


def cost_findings(tools: Sequence[ServerTool]) -> Iterator[LintFinding]:
    """Find tools and lists with many tokens, and more tools than one request allows."""
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
    """Return a tool in the form of a provider's requests."""
    about = {"name": tool.name, "description": tool.description}
    if provider == "OpenAI":
        return {"type": "function", "function": {**about, "parameters": tool.input_schema}}
    return {**about, ("input_schema" if provider == "Anthropic" else "parameters"): tool.input_schema}


_MAX_DEPTH = 10
_MAX_PARAMETERS = 20
_AT_TOP = ("anyOf", "oneOf", "allOf", "not", "enum")
_DROPPED = ("$schema", "additionalProperties")
_REFERENCES = ("$ref", "$dynamicRef")
_BOUNDS = ("maxLength", "enum", "const", "format", "pattern")
_UNTYPED = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def schema_findings(tool: ServerTool) -> Iterator[LintFinding]:
    """Find schema parts that providers refuse or drop, and parameters that are hard to fill in."""
    parts = list(parts_of(tool))
    choices = [keyword for keyword in _AT_TOP if keyword in tool.input_schema]
    if choices:
        yield LintFinding.of(tool, "schema-union-at-top", f"its schema has {_quoted(choices)} at the top")
    if (count := len(tool.parameters)) > _MAX_PARAMETERS:
        yield LintFinding.of(tool, "many-parameters", f"it has {count} parameters, over {_MAX_PARAMETERS}")
    for part in parts:
        if part.name is not None:
            yield from _parameter(tool, part, part.name)
        yield from _part(tool, part)
    yield from _dangling(tool, parts)
    yield from _keywords(tool, parts)
    deepest = max(part.depth for part in parts)
    if deepest > _MAX_DEPTH:
        yield LintFinding.of(tool, "schema-deep", f"its parameters are nested {deepest} levels deep, over {_MAX_DEPTH}")


def dropped_findings(tools: Sequence[ServerTool]) -> Iterator[LintFinding]:
    """Yield one finding per server about dropped keywords, which libraries add everywhere."""
    for server in dict.fromkeys(tool.server for tool in tools):
        own = [tool for tool in tools if tool.server == server]
        for keyword in _DROPPED:
            using = [tool for tool in own if any(keyword in part.schema for part in parts_of(tool))]
            if using:
                what = f"the schemas of {len(using)} of {len(own)} tools use {quoted(keyword)}"
                yield LintFinding(rule="schema-keyword-dropped", server=server, what=what)


def _parameter(tool: ServerTool, part: SchemaPart, name: str) -> Iterator[LintFinding]:
    if not _PROPERTY.fullmatch(name):
        yield LintFinding.of(
            tool, "parameter-name-not-portable", f"{quoted(name, 80)} is refused by Anthropic", part.place
        )
    if not str(part.schema.get("description") or part.schema.get("title") or "").strip():
        yield LintFinding.of(tool, "parameter-description-missing", "it has no description", part.place)
    if not any(keyword in part.schema for keyword in _UNTYPED):
        yield LintFinding.of(tool, "parameter-type-missing", "it has no type", part.place)
    elif types_of(part.schema) == ["string"] and not any(bound in part.schema for bound in _BOUNDS):
        yield LintFinding.of(tool, "parameter-unbounded-string", "it accepts any text of any length", part.place)


def _part(tool: ServerTool, part: SchemaPart) -> Iterator[LintFinding]:
    schema = part.schema
    if "array" in types_of(schema) and "items" not in schema and "prefixItems" not in schema:
        yield LintFinding.of(tool, "array-items-missing", "it is a list without `items`", part.place)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    whole = "properties" in schema or "object" in types_of(schema)  # a union branch may describe the schema around it
    if whole and isinstance(properties, dict) and isinstance(required, list):
        missing = [str(name) for name in required if str(name) not in properties]
        if missing:
            what = f"{_quoted(missing)} is required but not among the properties"
            yield LintFinding.of(tool, "required-not-declared", what, part.place)
    # The target of a reference is not available here.
    fits = _refers(schema) or "default" not in schema or allows(schema, schema["default"], tool.input_schema)
    if fits is False:
        what = f"its default {quoted(repr(schema['default']), 80)} does not match its schema"
        yield LintFinding.of(tool, "default-does-not-fit", what, part.place)


def _refers(value: JsonValue | Schema) -> bool:
    if isinstance(value, dict):
        return any(name in value for name in _REFERENCES) or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


def _dangling(tool: ServerTool, parts: list[SchemaPart]) -> Iterator[LintFinding]:
    """Find references without a target in the schema. External references are not followed."""
    if any("$id" in part.schema for part in parts if part.place):  # `#` then refers to a separate document
        return
    for part in parts:
        reference = part.schema.get("$ref")
        within = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
        if within and pointed_at(tool.input_schema, str(reference)) is None:
            what = f"{quoted(str(reference), 80)} has no target in its schema"
            yield LintFinding.of(tool, "schema-reference-dangling", what, part.place)


def _keywords(tool: ServerTool, parts: list[SchemaPart]) -> Iterator[LintFinding]:
    """Yield one finding per kind of problem, with all keywords of the tool that have it."""
    used = {keyword for part in parts for keyword in part.schema}
    if references := sorted(used & set(_REFERENCES)):
        yield LintFinding.of(tool, "schema-reference", f"its schema uses {_quoted(references)}")
    refused = sorted(used - set(PROVIDERS["google"]["keywords"].split()) - set(_DROPPED) - set(_REFERENCES))
    refused += sorted({value for part in parts for value in _refused_values(part.schema)})
    if refused:
        yield LintFinding.of(tool, "schema-keyword-refused", f"Google refuses {_quoted(refused)} in its schema")


def _refused_values(schema: Schema) -> Iterator[str]:
    """Yield values that Google refuses, although it accepts the keywords."""
    if isinstance(schema.get("type"), list):
        yield "a list of types"
    text = schema.get("format")
    if isinstance(text, str) and text not in PROVIDERS["google"]["formats"].split():
        yield f"format: {text}"
    choices = schema.get("enum")
    if isinstance(choices, list) and not all(isinstance(choice, str) for choice in choices):
        yield "an enum with values that are not texts"


def _quoted(names: list[str]) -> str:
    return ", ".join(quoted(name, 60) for name in names[:12]) + ("…" if len(names) > 12 else "")


class LintReport(FrozenModel):
    """All findings, the most serious first, and the token cost of the tools."""

    servers: tuple[str, ...]
    tools: int
    findings: tuple[LintFinding, ...]
    costs: tuple[ToolListCost, ...] = ()

    def count(self, level: Level) -> int:
        """Return the number of findings of exactly this level."""
        return Counter(finding.level for finding in self.findings)[level]

    def fails(self, on: str) -> bool:
        """Return True if a finding is at least as serious as `on`: error, warning or never."""
        levels = {"error": LEVELS[:1], "warning": LEVELS[:2]}.get(on, ())
        return any(finding.level in levels for finding in self.findings)


def lint_tools(
    tools: Sequence[ServerTool],
    servers: Sequence[str],
    unusable: Mapping[str, str] | None = None,
    remarks: Mapping[str, str] | None = None,
) -> LintReport:
    """Lint all servers together, because models see their tools together.

    `unusable` maps servers without tools to reasons, `remarks` working servers to problems.
    """
    found = [LintFinding(rule="server-unusable", server=name, what=why) for name, why in (unusable or {}).items()]
    empty = set(servers) - {tool.server for tool in tools} - set(unusable or {})
    found += [
        LintFinding(rule="no-tools", server=name, what="its tool list is empty") for name in servers if name in empty
    ]
    found += [LintFinding(rule="stdout-text", server=name, what=remark) for name, remark in (remarks or {}).items()]
    found += naming_findings(tools)
    servers_of: dict[str, set[str]] = {}
    for tool in tools:
        servers_of.setdefault(tool.name, set()).add(tool.server)
    for tool in tools:
        found += schema_findings(tool)
        # Single words such as `search` do not point to another server.
        elsewhere = [name for name, own in servers_of.items() if tool.server not in own and not name.isalnum()]
        found += hostile_findings(tool, sorted(elsewhere))
    found += dropped_findings(tools)
    found += cost_findings(tools)
    found.sort(
        key=lambda finding: (LEVELS.index(finding.level), finding.server, finding.tool, RULE_ORDER[finding.rule])
    )
    return LintReport(servers=tuple(servers), tools=len(tools), findings=tuple(found), costs=costs_of(tools))


async def lint_servers(specs: Sequence[ServerSpec]) -> LintReport:
    """Lint the tools of servers. A server that does not start is reported as a finding."""
    specs = with_unique_names(specs)
    unusable: dict[str, str] = {}
    remarks: dict[str, str] = {}

    async def list_tools(spec: ServerSpec) -> tuple[ServerTool, ...]:
        try:
            async with McpHub([spec]).open() as hub:
                remarks.update(hub.remarks())
                return await hub.tools()
        except (InfraError, OSError) as error:
            unusable[spec.name] = str(error)
            return ()

    listed = await asyncio.gather(*map(list_tools, specs))
    return lint_tools([tool for own in listed for tool in own], [spec.name for spec in specs], unusable, remarks)


@dataclass(frozen=True, slots=True)
class LintResult:
    """A report with the configuration of the servers, and each server's line in it."""

    report: LintReport
    file: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
