"""Draft test cases from the schemas of tools. See docs/reference/mcp-config.md."""

from bakeoff.doors.mcp_suite.generate.drafts import Draft, draft_cases, reworded
from bakeoff.doors.mcp_suite.generate.output import Frame, added_to, cases_text, whole_config

__all__ = ["Draft", "Frame", "added_to", "cases_text", "draft_cases", "reworded", "whole_config"]
