"""Make harmless what pytest itself prints of an eval: tracebacks, and what was captured.

What a task raises or prints may quote a model. A line such as `::error::…` in the log is a command to GitHub, and
control characters in an error are commands to the terminal.
"""

from typing import Any

import pytest

from bakeoff._kernel.text import escaped, without_command


def break_up_commands(report: pytest.TestReport) -> None:
    """Change the texts of a report before anyone prints them."""
    report.sections[:] = [(title, _broken_up(text)) for title, text in report.sections]
    shown: Any = report.longrepr
    for trace, crash, _ in getattr(shown, "chain", ()):
        for entry in trace.reprentries:
            entry.lines[:] = map(_harmless, entry.lines)
            if getattr(entry, "reprlocals", None) is not None:
                entry.reprlocals.lines[:] = map(_harmless, entry.reprlocals.lines)
            if getattr(entry, "reprfuncargs", None) is not None:
                entry.reprfuncargs.args = [(name, _harmless(text)) for name, text in entry.reprfuncargs.args]
        if crash is not None:
            crash.message = _harmless(crash.message)  # in CI, the short summary has all lines of it
    if isinstance(shown, str):
        report.longrepr = _harmless(shown)


def _harmless(text: str) -> str:
    """Return the text of an error without commands to the terminal or to GitHub."""
    return _broken_up("".join(char if char in "\n\t" else escaped(char) for char in text))


def _broken_up(text: str) -> str:
    return "\n".join(map(without_command, text.split("\n")))
