"""Find what makes tools hard to choose, to call or to offer, without asking a model. See docs/reference/mcp-lint.md."""

from bakeoff.doors.mcp_suite.lint.report import (
    Linted,
    LintReport,
    as_sarif,
    lint_blocks,
    lint_servers,
    lint_suite,
    lint_tools,
    rules_of,
    servers_of,
)
from bakeoff.doors.mcp_suite.lint.rules import RULES, Finding, Level, Rule

__all__ = [
    "RULES",
    "Finding",
    "Level",
    "LintReport",
    "Linted",
    "Rule",
    "as_sarif",
    "lint_blocks",
    "lint_servers",
    "lint_suite",
    "lint_tools",
    "rules_of",
    "servers_of",
]
