"""Break up the GitHub commands in what pytest itself prints of an eval: tracebacks, and what was captured.

What a task raises or prints may quote a model, and a line such as `::error::…` in the log is a command.
"""

from typing import Any

import pytest

from bakeoff._kernel.text import without_command


def break_up_commands(report: pytest.TestReport) -> None:
    """Change the texts of a report before anyone prints them."""
    report.sections[:] = [(title, _broken_up(text)) for title, text in report.sections]
    shown: Any = report.longrepr
    for trace, crash, _ in getattr(shown, "chain", ()):
        for entry in trace.reprentries:
            entry.lines[:] = map(_broken_up, entry.lines)
        if crash is not None:
            crash.message = _broken_up(crash.message)  # in CI, the short summary has all lines of it


def _broken_up(text: str) -> str:
    return "\n".join(map(without_command, text.split("\n")))
