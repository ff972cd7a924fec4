"""REPORT: pure functions from records to a summary, and from a summary to text, JSON and pages."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bakeoff.report.summary import SubjectSummary, Summary, summarise

_HOMES = {
    "summary": ("SubjectSummary", "Summary", "summarise"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["SubjectSummary", "Summary", "summarise"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'bakeoff.report' has no attribute {name!r}")
    return getattr(importlib.import_module(f"bakeoff.report.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
