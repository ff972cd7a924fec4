"""Lint the tools of servers, and report the findings as text, data or SARIF."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.doors.mcp.config import McpSuite
from bakeoff.doors.mcp.lint.hostile import hostile_findings
from bakeoff.doors.mcp.lint.rules import LEVELS, RULES, Level, LintFinding, LintRule
from bakeoff.doors.mcp.lint.schemas import dropped_findings, schema_findings
from bakeoff.doors.mcp.lint.tools import ToolListCost, cost_findings, costs_of, naming_findings
from bakeoff.doors.mcp.sarif import SarifResult, sarif_log
from bakeoff.doors.mcp.servers import oauth_in_folder
from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.servers import with_unique_names
from bakeoff.mcp.variables import with_variables
from bakeoff.report.blocks import Block, BulletList, Quote, Table, Words, columns, heading, paragraph
from bakeoff.report.formatting import visible

_ORDER = {rule: at for at, rule in enumerate(RULES)}
_MAX_ROWS = 200
_MAX_REASON_LENGTH = 2000
_MAX_OF_A_RULE: dict[Level, int] = {"error": 50, "warning": 20, "note": 3}  # more findings share a row


class LintReport(FrozenModel):
    """All findings, the most serious first, and the cost of the tools."""

    servers: tuple[str, ...]
    tools: int
    findings: tuple[LintFinding, ...]
    costs: tuple[ToolListCost, ...] = ()

    def count(self, level: Level) -> int:
        return Counter(finding.level for finding in self.findings)[level]

    def fails(self, on: str) -> bool:
        """Return True if a finding is at least as serious as `on`, which is error, warning or never."""
        levels = {"error": LEVELS[:1], "warning": LEVELS[:2]}.get(on, ())
        return any(finding.level in levels for finding in self.findings)


@dataclass(frozen=True, slots=True)
class LintResult:
    """A report, with the configuration that names the servers and the line of each server."""

    report: LintReport
    file: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


def lint_tools(
    tools: Sequence[ServerTool],
    servers: Sequence[str],
    unusable: Mapping[str, str] | None = None,
    remarks: Mapping[str, str] | None = None,
) -> LintReport:
    """Lint all servers together, because models see their tools together.

    `unusable` says why some servers have no tools here, `remarks` what was wrong while they worked.
    """
    found = [LintFinding(rule="server-unusable", server=name, what=why) for name, why in (unusable or {}).items()]
    empty = set(servers) - {tool.server for tool in tools} - set(unusable or {})
    found += [
        LintFinding(rule="no-tools", server=name, what="its tool list is empty") for name in servers if name in empty
    ]
    found += [LintFinding(rule="stdout-text", server=name, what=remark) for name, remark in (remarks or {}).items()]
    found += naming_findings(tools)
    for tool in tools:
        found += schema_findings(tool)
        found += hostile_findings(tool, _names_elsewhere(tools, tool.server))
    found += dropped_findings(tools)
    found += cost_findings(tools)
    found.sort(key=lambda finding: (LEVELS.index(finding.level), finding.server, finding.tool, _ORDER[finding.rule]))
    return LintReport(servers=tuple(servers), tools=len(tools), findings=tuple(found), costs=costs_of(tools))


def _names_elsewhere(tools: Sequence[ServerTool], server: str) -> list[str]:
    """Return the names that only tools of other servers have, and that are no plain words."""
    own = {tool.name for tool in tools if tool.server == server}
    return sorted({tool.name for tool in tools if tool.name not in own and not tool.name.isalnum()})


async def lint_servers(specs: Sequence[ServerSpec]) -> LintReport:
    """Lint the tools of servers. A server that does not start becomes a finding."""
    specs = with_unique_names(specs)
    listed = await asyncio.gather(*map(_list_tools, specs))
    tools = [tool for one in listed for tool in one.tools]
    unusable = {spec.name: one.problem for spec, one in zip(specs, listed, strict=True) if one.problem}
    remarks = {name: remark for one in listed for name, remark in one.remarks.items()}
    return lint_tools(tools, [spec.name for spec in specs], unusable, remarks)


@dataclass(frozen=True, slots=True)
class _ListedFindings:
    """The tools of a server, or why it has none."""

    tools: tuple[ServerTool, ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


async def _list_tools(spec: ServerSpec) -> _ListedFindings:
    try:
        async with McpHub([spec]).open() as hub:
            return _ListedFindings(await hub.tools(), hub.remarks())
    except (InfraError, OSError) as error:
        return _ListedFindings(problem=str(error))


async def lint_suite(suite: McpSuite, only: Sequence[str] = ()) -> LintResult:
    """Lint the servers of a configuration, or those that `only` names."""
    lines = {
        server.name: suite.lines.lines.get(("mcpServers", at), 1) for at, server in enumerate(suite.config.mcpServers)
    }
    return LintResult(await lint_servers(servers_of(suite, only)), suite.file, lines)


def servers_of(suite: McpSuite, only: Sequence[str] = ()) -> list[ServerSpec]:
    """Return the servers ready to start: in the configuration's folder, with their secrets filled in."""
    names = [server.name for server in suite.config.mcpServers]
    for name in only:
        if name not in names:
            raise UsageError(f"{suite.file} has no server {name!r}: there are {', '.join(names)}")
    ready: list[ServerSpec] = []
    for server in suite.config.mcpServers:
        if not only or server.name in only:
            if server.command is not None:
                server = server.model_copy(update={"cwd": suite.folder.resolve() / (server.cwd or "")})
            elif server.oauth is not None:
                server = server.model_copy(update={"oauth": oauth_in_folder(server.oauth, suite.folder)})
            ready.append(with_variables(server, suite.environment))
    return ready


def rules_of(*reports: LintReport) -> list[LintRule]:
    """Return the rules that have findings."""
    broken = {finding.rule for report in reports for finding in report.findings}
    return [rule for rule in RULES.values() if rule.id in broken]


def lint_blocks(report: LintReport, *, notes: bool = True) -> Iterator[Block]:
    """Describe a report: a table of findings, the fix for each rule once, and the cost of the tools."""
    shown = [finding for finding in report.findings if notes or finding.level != "note"]
    if shown:
        rows = _rows(shown)
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
    counts = ", ".join(_counted(report.count(level), level) for level in LEVELS)
    hidden = len(report.findings) - len(shown)
    text = f"{_counted(report.tools, 'tool')} of {_counted(len(report.servers), 'server')}: {counts}"
    yield paragraph(f"{text} ({_counted(hidden, 'note')} not shown)" if hidden else text)


def _rows(findings: Sequence[LintFinding]) -> list[tuple[Words, ...]]:
    """Return a row for each finding, and one row for all of a rule if there are many."""
    rows: list[tuple[Words, ...]] = []
    for rule, group in groupby(sorted(findings, key=_by_rule), key=lambda one: one.rule):
        alike = list(group)
        level = alike[0].level
        if len(alike) > _MAX_OF_A_RULE[level]:
            places = ", ".join(one.place for one in alike[:3])
            rows.append(
                (level, rule, f"{len(alike):,} places", Quote(f"{places} and {len(alike) - 3:,} more: see --json"))
            )
        else:
            rows += [(one.level, one.rule, Quote(one.place), _what(one)) for one in alike]
    return rows


def _what(finding: LintFinding) -> Words:
    """Return what was found. The reason why a server cannot be used is not cut like a quote."""
    if finding.rule != "server-unusable":
        return Quote(finding.what)
    return visible(" ".join(finding.what.split()), _MAX_REASON_LENGTH)


def _by_rule(finding: LintFinding) -> tuple[int, int, str, str]:
    return LEVELS.index(finding.level), _ORDER[finding.rule], finding.server, finding.tool


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def as_sarif(linted: Sequence[LintResult]) -> dict[str, Any]:
    """Return all findings as one run of SARIF 2.1.0, which code hosts and editors show beside the file."""
    rules = [
        {
            "id": rule.id,
            "name": "".join(word.capitalize() for word in rule.id.split("-")),
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.why},
            "help": {"text": rule.how},
            "defaultConfiguration": {"level": rule.level},
        }
        for rule in rules_of(*(one.report for one in linted))
    ]
    results = [
        SarifResult(
            rule=finding.rule,
            level=finding.level,
            text=f"{finding.place}: {finding.what}. {RULES[finding.rule].why} {RULES[finding.rule].how}",
            names=(("module", finding.server), ("function", finding.tool), ("parameter", finding.parameter)),
            place=finding.place,
            fingerprint=fingerprint(finding.rule, finding.place),
            file=one.file,
            line=one.lines.get(finding.server, 1),
        )
        for one in linted
        for finding in one.report.findings
    ]
    return sarif_log("bakeoff mcp lint", rules, results)
