"""Findings for people: a table of what was found, and how to mend it once for each rule."""

from collections.abc import Iterator

from bakeoff.doors.mcp_suite.lint.report import LintReport
from bakeoff.doors.mcp_suite.lint.rules import RULES, Level
from bakeoff.report.outputs import Block, Grid, Listing, Quote, Words, columns, heading, paragraph

_MOST_ROWS = 200


def lint_blocks(report: LintReport, *, notes: bool = True) -> Iterator[Block]:
    shown = [finding for finding in report.findings if notes or finding.level != "note"]
    if shown:
        rows = tuple((one.level, one.rule, Quote(one.place), Quote(one.what)) for one in shown[:_MOST_ROWS])
        yield Grid(columns("level", "rule", "where", "what"), rows)
        if len(shown) > _MOST_ROWS:
            yield paragraph(f"and {len(shown) - _MOST_ROWS:,} more, which --json and --sarif have")
        yield heading("How to mend it", level=3)
        broken = dict.fromkeys(finding.rule for finding in shown)
        yield Listing(tuple((f"{rule}: {RULES[rule].why} {RULES[rule].how}",) for rule in broken))
    if report.costs:
        yield heading("Tokens of the tool lists in every request, estimated", level=3)
        yield _costs(report)
    yield paragraph(_summary(report, hidden=len(report.findings) - len(shown)))


def _costs(report: LintReport) -> Grid:
    providers = list(dict.fromkeys(cost.provider for cost in report.costs))
    by_server = {cost.server: cost.tools for cost in report.costs}
    tokens = {(cost.server, cost.provider): cost.tokens for cost in report.costs}
    rows: list[tuple[Words, ...]] = []
    for server, count in by_server.items():
        counts = [f"{tokens[server, provider]:,}" for provider in providers]
        rows.append((Quote(server), f"{count:,}", *counts))
    return Grid(columns("server", "tools>", *(f"{provider}>" for provider in providers)), tuple(rows))


def _summary(report: LintReport, hidden: int) -> str:
    levels: tuple[Level, ...] = ("error", "warning", "note")
    counts = ", ".join(_counted(report.count(level), level) for level in levels)
    servers = _counted(len(report.servers), "server")
    told = f"{_counted(report.tools, 'tool')} of {servers}: {counts}"
    return f"{told} ({_counted(hidden, 'note')} not shown)" if hidden else told


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
