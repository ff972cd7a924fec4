"""REPORT: pure functions from records to a summary, and from a summary to text, JSON and pages."""

from typing import TYPE_CHECKING

from bakeoff._kernel.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from bakeoff.report.summary import SubjectSummary, Summary, summarise

_HOMES = {
    "bakeoff.report.summary": ("SubjectSummary", "Summary", "summarise"),
}

__all__ = ["SubjectSummary", "Summary", "summarise"]

__getattr__, __dir__ = lazy_imports(__name__, _HOMES)
