"""Print the checks of `bakeoff verify` and `bakeoff agents verify`."""

from collections.abc import Sequence

from rich.text import Text

from bakeoff.cli.console import add_row, out, table
from bakeoff.grading.verify import Check
from bakeoff.report.formatting import visible


def print_checks(checks: Sequence[Check], noun: str, answers: Sequence[str]) -> int:
    """Print a table of checks and the problems below it. Return 1 if a case is not fit for use, else 0.

    Args:
        checks: The checked cases.
        noun: The users' word for a case.
        answers: The names of the answers, in the order of their columns. The first is the reference.
    """
    tracks = any("track" in check.case.tags for check in checks)
    headings = (noun, *(["track"] if tracks else []), "tests", *answers, "time", "")
    shown = table(*headings, right=("tests", "time"))
    for check in checks:
        grades = [check.grades.get(name) for name in answers]
        cells = [f"{grade.passed.total()}/{grade.total}" if grade else "–" for grade in grades]
        tests = str(grades[0].total if grades[0] else 0)
        track = [check.case.tags.get("track", "")] if tracks else []
        mark = Text("ok", style="green") if check.ok else Text("not fit", style="bold red")
        add_row(shown, check.case.id, *track, tests, *cells, f"{check.seconds:.1f} s", mark)
    out().print(shown)
    for check in checks:
        for problem in check.problems:
            out().print(Text(f"{visible(check.case.id)}: {visible(problem, 2000)}"))
    unfit = sum(not check.ok for check in checks)
    out().print(f"{len(checks) - unfit} of {len(checks)} {noun}s are fit for use")
    return int(unfit > 0)
