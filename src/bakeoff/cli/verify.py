"""Print the checks of `bakeoff verify` and `bakeoff agents verify`, and honour `--require-audit`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.text import Text

from bakeoff._kernel.text import part_of, visible
from bakeoff.cli.console import add_row, out, print_json, table, warn
from bakeoff.errors import UsageError
from bakeoff.grading.audit import VerificationCheck, read_audit, unaudited
from bakeoff.plan import Case


def print_checks(
    checks: Sequence[VerificationCheck], noun: str, answers: Sequence[str], *, as_json: bool = False
) -> int:
    """Print checks as JSON, or as a table with the problems and the unproven tests below it.

    Return 1 if a case is not fit for use, else 0.

    Args:
        checks: The checked cases.
        noun: The word for a case, such as "suite".
        answers: The names of the answers, in the order of their columns. The first is the reference.
    """
    if as_json:
        print_json([_as_json(check) for check in checks])
        return int(not all(check.ok for check in checks))
    tracks = any("track" in check.case.tags for check in checks)
    headings = (noun, *(["track"] if tracks else []), "tests", "proven", *answers, "time", "")
    shown = table(*headings, right=("tests", "proven", "time"))
    for check in checks:
        grades = [check.grades.get(name) for name in answers]
        cells = [f"{grade.passed.total()}/{grade.total}" if grade else "–" for grade in grades]
        counts = [grades[0].total if grades[0] else 0, len(check.reference.proven) if check.reference else 0]
        track = [check.case.tags.get("track", "")] if tracks else []
        mark = Text("ok", style="green") if check.ok else Text("not fit", style="bold red")
        add_row(shown, check.case.id, *track, *map(str, counts), *cells, f"{check.seconds:.1f} s", mark)
    out().print(shown)
    for check in checks:
        for problem in check.problems:
            out().print(Text(f"{visible(check.case.id)}: {visible(problem, 2000)}"))
        for advice, names in (check.reference.advice if check.reference else {}).items():
            listed = ", ".join(visible(name) for name in names)
            out().print(Text(f"{visible(check.case.id)}: not proven, so an answer could forge: {listed} ({advice})"))
    unfit = sum(not check.ok for check in checks)
    out().print(f"{part_of(len(checks) - unfit, len(checks), noun, 'is/are')} fit for use")
    return int(unfit > 0)


def _as_json(check: VerificationCheck) -> dict[str, Any]:
    known, grades = check.reference, check.grades.items()
    answers = {name: {"passed": grade.passed.total(), "tests": grade.total} for name, grade in grades}
    return {
        "case": check.case.id,
        "ok": check.ok,
        "problems": list(check.problems),
        "answers": answers,
        "proven": len(known.proven) if known else 0,
        "unproven": list(known.unproven) if known else [],
        "seconds": round(check.seconds, 3),
    }


T = TypeVar("T")


def audited(items: Sequence[T], cases: Sequence[Case], file: Path) -> tuple[T, ...]:
    """Return the suites or exercises whose cases passed the audit in a file, and warn of the others.

    Raise `UsageError` if the file is not an audit, or if none of the cases may be used.
    """
    reasons = unaudited(cases, read_audit(file))
    warnings = [f"{case.id} is left out: {reasons[case.id]}" for case in cases if case.id in reasons]
    if len(warnings) == len(cases):
        refusal = f"--require-audit {file} allows none of the cases: run `bakeoff audit`"
        raise UsageError("\n".join([refusal, *warnings]))
    warn(warnings)
    return tuple(item for item, case in zip(items, cases, strict=True) if case.id not in reasons)
