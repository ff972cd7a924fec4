"""Show the exercises on the run pages of this door.

Every run page already has the matrix of exercises and agents, and the log and patch of each trial.
"""

from typing import TYPE_CHECKING

from bakeoff.doors.case_section import cases_section, named
from bakeoff.plan import Case
from bakeoff.report.blocks import Column, Datum, Section, Value, columns

if TYPE_CHECKING:
    from bakeoff.report.render.html.run_data import RunData


def exercises_sections(run: "RunData") -> tuple[Section, ...]:
    """Return the table of exercises, with their instructions."""

    def cells(case: Case) -> tuple[Value, ...]:
        tried = [by_case[case.id] for by_case in run.cells.values() if case.id in by_case]
        solved = sum(cell.total == cell.rounds for cell in tried)
        texts = named(case.tags.get("track", ""), ", ".join(case.reference), ", ".join(case.hidden))
        return (*texts, Datum(f"{solved} of {len(tried)}", sort=solved / len(tried) if tried else None))

    titles = (
        *columns("Track", "Solution", "Tests"),
        Column("Solved by", align="end", help="agents that solved it in every round, of those that were scored"),
    )
    section = cases_section(run, "exercises", titles, cells, prompt="instructions")
    return (section,) if section else ()
