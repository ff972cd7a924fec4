"""Print the checks of `bakeoff verify` and `bakeoff agents verify`."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from bakeoff._kernel.watch import WAITING, Watch
from bakeoff.cli.console import add_row, out, say, table
from bakeoff.doors.components.suites import FoundSuites, Suite
from bakeoff.errors import UsageError
from bakeoff.grading.verify import Check
from bakeoff.report.formatting import visible


def changed_suites(find: Callable[[], FoundSuites], checked: Sequence[Suite]) -> Iterator[Sequence[Suite]]:
    """Yield the suites that have changed since they were checked, whenever there are some. Never ends.

    Args:
        find: Reads the suites.
        checked: The suites as they were checked before.
    """
    told = ""  # what cannot be read, so that it is said once

    def look() -> dict[str, Suite]:
        nonlocal told
        try:
            found = find()
            suites, wrong = found.suites, "\n".join(found.warnings)
        except UsageError as error:  # half of a file, or a mistake in one
            suites, wrong = (), str(error)
        if wrong and wrong != told:
            say(wrong)
        told = wrong
        return {suite.name: suite for suite in suites}

    watch = Watch(look, {suite.name: suite for suite in checked})
    while True:
        say(WAITING)
        changed = watch.wait()
        yield [watch.known[name] for name in changed]


def print_checks(checks: Sequence[Check], noun: str, answers: Sequence[str]) -> int:
    """Print a table of checks, with the problems and the tests without twins below it.

    Return 1 if a case is not fit for use, else 0.

    Args:
        checks: The checked cases.
        noun: The users' word for a case.
        answers: The names of the answers, in the order of their columns. The first is the reference.
    """
    tracks = any("track" in check.case.tags for check in checks)
    headings = (noun, *(["track"] if tracks else []), "tests", "twins", *answers, "time", "")
    shown = table(*headings, right=("tests", "twins", "time"))
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
        if check.reference and check.reference.unproven:
            names = ", ".join(visible(name) for name in check.reference.unproven)
            out().print(Text(f"{visible(check.case.id)}: no perturbed twin, so an answer could forge: {names}"))
        if check.reference and check.reference.flipped:
            names = ", ".join(visible(name) for name in check.reference.flipped)
            out().print(Text(f"{visible(check.case.id)}: twins that only negate, which an answer could tell: {names}"))
    unfit = sum(not check.ok for check in checks)
    out().print(f"{len(checks) - unfit} of {len(checks)} {noun}s are fit for use")
    return int(unfit > 0)
