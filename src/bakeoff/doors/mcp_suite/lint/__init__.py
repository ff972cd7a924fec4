"""What makes tools hard to choose, to call or to offer. No model is asked. See docs/mcp-lint.md."""

from bakeoff.doors.mcp_suite.lint.blocks import lint_blocks
from bakeoff.doors.mcp_suite.lint.opening import lint_servers, lint_suite, servers_of
from bakeoff.doors.mcp_suite.lint.report import Linted, LintReport, lint_tools, rules_of
from bakeoff.doors.mcp_suite.lint.rules import RULES, Finding, Level, Rule
from bakeoff.doors.mcp_suite.lint.sarif import as_sarif

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
