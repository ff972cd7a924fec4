"""Draft test cases from the schemas of tools. See docs/mcp-config.md."""

from bakeoff.doors.mcp_suite.generate.cases import Draft, draft_cases
from bakeoff.doors.mcp_suite.generate.output import Frame, added_to, cases_text, whole_config
from bakeoff.doors.mcp_suite.generate.wording import reworded

__all__ = ["Draft", "Frame", "added_to", "cases_text", "draft_cases", "reworded", "whole_config"]
