"""Honour `--require-audit`: use only cases that passed their audit and have not changed since."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from bakeoff.cli.console import warn
from bakeoff.errors import UsageError
from bakeoff.grading.audit import read_audit, unaudited
from bakeoff.plan import Case

T = TypeVar("T")


def audited(items: Sequence[T], cases: Sequence[Case], file: Path) -> tuple[T, ...]:
    """Return the suites or exercises whose cases passed the audit in a file, and warn of the others.

    Raise `UsageError` if the file is no audit, or if none of the cases may be used.
    """
    reasons = unaudited(cases, read_audit(file))
    warnings = [f"{case.id} is left out: {reasons[case.id]}" for case in cases if case.id in reasons]
    if len(warnings) == len(cases):
        raise UsageError(
            "\n".join([f"--require-audit {file} allows none of the cases: run `bakeoff audit`", *warnings])
        )
    warn(warnings)
    return tuple(item for item, case in zip(items, cases, strict=True) if case.id not in reasons)
