"""All findings about the tools of some servers, the gravest first."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._version import __version__
from bakeoff.doors.mcp_suite.config import Suite
from bakeoff.doors.mcp_suite.lint.rules import LEVELS, RULES, Finding, Level, Rule
from bakeoff.doors.mcp_suite.lint.schemas import dropped_findings, schema_findings
from bakeoff.doors.mcp_suite.lint.tools import Cost, cost_findings, costs_of, hostile_findings, naming_findings
from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.servers import told_apart
from bakeoff.report.blocks import Block, BulletList, Quote, Table, Words, columns, heading, paragraph
from bakeoff.subjects.variables import with_variables

_ORDER = {rule: at for at, rule in enumerate(RULES)}


class LintReport(FrozenModel):
    """What was found, and what the tools cost."""

    servers: tuple[str, ...]
    tools: int
    findings: tuple[Finding, ...]
    costs: tuple[Cost, ...] = ()

    def count(self, level: Level) -> int:
        return Counter(finding.level for finding in self.findings)[level]

    def fails(self, on: str) -> bool:
        """Whether something is as grave as `on`, which is error, warning or never."""
        grave = LEVELS[: LEVELS.index("warning") + 1] if on == "warning" else LEVELS[:1] if on == "error" else ()
        return any(finding.level in grave for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Linted:
    """A report, and the configuration that named the servers, with the line of each."""

    report: LintReport
    file: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


def lint_tools(
    tools: Sequence[ServerTool], servers: Sequence[str], unusable: Mapping[str, str] | None = None
) -> LintReport:
    """Of all servers together, for models get to see them together. `unusable` is why some have no tools here."""
    found = [Finding(rule="server-unusable", server=name, what=why) for name, why in (unusable or {}).items()]
    empty = set(servers) - {tool.server for tool in tools} - set(unusable or {})
    found += [Finding(rule="no-tools", server=name, what="its tool list is empty") for name in servers if name in empty]
    found += naming_findings(tools)
    for tool in tools:
        found += schema_findings(tool)
        found += hostile_findings(tool)
    found += dropped_findings(tools)
    found += cost_findings(tools)
    found.sort(key=lambda finding: (LEVELS.index(finding.level), finding.server, finding.tool, _ORDER[finding.rule]))
    return LintReport(servers=tuple(servers), tools=len(tools), findings=tuple(found), costs=costs_of(tools))


def rules_of(*reports: LintReport) -> list[Rule]:
    """Those that were broken."""
    broken = {finding.rule for report in reports for finding in report.findings}
    return [rule for rule in RULES.values() if rule.id in broken]


async def lint_servers(specs: Sequence[ServerSpec]) -> LintReport:
    """Start them, list their tools, end them, and look at the tools of all of them together."""
    specs = told_apart(specs)
    listed = await asyncio.gather(*map(_listed, specs))
    tools = [tool for found in listed if not isinstance(found, str) for tool in found]
    unusable = {spec.name: found for spec, found in zip(specs, listed, strict=True) if isinstance(found, str)}
    return lint_tools(tools, [spec.name for spec in specs], unusable)


async def lint_suite(suite: Suite, environment: Mapping[str, str], only: Sequence[str] = ()) -> Linted:
    """The servers that a configuration names, or some of them."""
    lines = {
        server.name: suite.lines.lines.get(("mcpServers", at), 1) for at, server in enumerate(suite.config.mcpServers)
    }
    return Linted(await lint_servers(servers_of(suite, environment, only)), suite.file, lines)


def servers_of(suite: Suite, environment: Mapping[str, str], only: Sequence[str] = ()) -> list[ServerSpec]:
    """As they are started: in the configuration's folder, with what they are told in confidence."""
    names = [server.name for server in suite.config.mcpServers]
    for name in only:
        if name not in names:
            raise UsageError(f"{suite.file} has no server {name!r}: there are {', '.join(names)}")
    chosen = [server for server in suite.config.mcpServers if not only or server.name in only]
    return [with_variables(_placed(server, suite), environment) for server in chosen]


def _placed(server: ServerSpec, suite: Suite) -> ServerSpec:
    if server.command is None:
        return server
    return server.model_copy(update={"cwd": suite.folder.resolve() / (server.cwd or "")})


async def _listed(spec: ServerSpec) -> tuple[ServerTool, ...] | str:
    try:
        async with McpHub([spec]).open() as hub:
            return await hub.tools()
    except (InfraError, OSError) as error:
        return str(error)


_MOST_ROWS = 200


def lint_blocks(report: LintReport, *, notes: bool = True) -> Iterator[Block]:
    shown = [finding for finding in report.findings if notes or finding.level != "note"]
    if shown:
        rows = tuple((one.level, one.rule, Quote(one.place), Quote(one.what)) for one in shown[:_MOST_ROWS])
        yield Table(columns("level", "rule", "where", "what"), rows)
        if len(shown) > _MOST_ROWS:
            yield paragraph(f"and {len(shown) - _MOST_ROWS:,} more, which --json and --sarif have")
        yield heading("How to mend it", level=3)
        broken = dict.fromkeys(finding.rule for finding in shown)
        yield BulletList(tuple((f"{rule}: {RULES[rule].why} {RULES[rule].how}",) for rule in broken))
    if report.costs:
        yield heading("Tokens of the tool lists in every request, estimated", level=3)
        yield _costs(report)
    yield paragraph(_summary(report, hidden=len(report.findings) - len(shown)))


def _costs(report: LintReport) -> Table:
    providers = list(dict.fromkeys(cost.provider for cost in report.costs))
    by_server = {cost.server: cost.tools for cost in report.costs}
    tokens = {(cost.server, cost.provider): cost.tokens for cost in report.costs}
    rows: list[tuple[Words, ...]] = []
    for server, count in by_server.items():
        counts = [f"{tokens[server, provider]:,}" for provider in providers]
        rows.append((Quote(server), f"{count:,}", *counts))
    return Table(columns("server", "tools>", *(f"{provider}>" for provider in providers)), tuple(rows))


def _summary(report: LintReport, hidden: int) -> str:
    levels: tuple[Level, ...] = ("error", "warning", "note")
    counts = ", ".join(_counted(report.count(level), level) for level in levels)
    servers = _counted(len(report.servers), "server")
    told = f"{_counted(report.tools, 'tool')} of {servers}: {counts}"
    return f"{told} ({_counted(hidden, 'note')} not shown)" if hidden else told


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(linted: Sequence[Linted]) -> dict[str, Any]:
    """One run with everything that was found."""
    used = rules_of(*(one.report for one in linted))
    places = {rule.id: at for at, rule in enumerate(used)}
    driver = {
        "name": "bakeoff mcp lint",
        "semanticVersion": _semantic(__version__),
        "rules": [_rule(rule) for rule in used],
    }
    results = [_result(finding, places, one) for one in linted for finding in one.report.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.how},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(finding: Finding, places: dict[str, int], linted: Linted) -> dict[str, Any]:
    rule = RULES[finding.rule]
    return {
        "ruleId": finding.rule,
        "ruleIndex": places[finding.rule],
        "level": finding.level,
        "message": {"text": f"{finding.place}: {finding.what}. {rule.why} {rule.how}"},
        "locations": [_location(finding, linted)],
        "partialFingerprints": {"tool/v1": fingerprint(finding.rule, finding.place)},
    }


def _location(finding: Finding, linted: Linted) -> dict[str, Any]:
    names = [("server", finding.server), ("tool", finding.tool), ("parameter", finding.parameter)]
    given = [(kind, name) for kind, name in names if name]
    logical: dict[str, Any] = {"name": given[-1][1], "fullyQualifiedName": finding.place}
    logical["kind"] = {"server": "module", "tool": "function", "parameter": "parameter"}[given[-1][0]]
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if linted.file is not None:
        region = {"startLine": linted.lines.get(finding.server, 1)}
        location["physicalLocation"] = {"artifactLocation": {"uri": _uri(linted.file)}, "region": region}
    return location


def _uri(file: Path) -> str:
    """Relative where it can be: it is looked up in a checkout that stands elsewhere."""
    here = Path.cwd()
    resolved = file.resolve()
    if resolved.is_relative_to(here):
        return quote(str(PurePosixPath(resolved.relative_to(here))))
    return resolved.as_uri()


def _semantic(version: str) -> str:
    return ".".join([*version.split("+")[0].split("."), "0", "0"][:3])
