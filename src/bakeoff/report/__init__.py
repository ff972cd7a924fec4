"""REPORT: pure functions from records to a summary, and from a summary to text, JSON and pages."""

from bakeoff.report.summary import SubjectSummary, Summary, summarise

__all__ = ["SubjectSummary", "Summary", "summarise"]
