"""All findings about the tools of some servers, the gravest first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp_suite.lint.cost import Cost, cost_findings, costs_of
from bakeoff.doors.mcp_suite.lint.hostile import hostile_findings
from bakeoff.doors.mcp_suite.lint.naming import naming_findings
from bakeoff.doors.mcp_suite.lint.rules import LEVELS, RULES, Finding, Level, Rule
from bakeoff.doors.mcp_suite.lint.schemas import dropped_findings, schema_findings
from bakeoff.mcp import ServerTool

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
