"""Show the exercises on the run pages of this door.

Every run page already has the matrix of exercises and agents, and the log and patch of each trial.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bakeoff.plan import Case
from bakeoff.report.blocks import Block, Code, Column, Datum, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN, visible

if TYPE_CHECKING:
    from bakeoff.report.html.run_data import RunData

_NAME = 120
_EXERCISES = 100  # whose texts are on the page; more would make it slow


def exercises_sections(run: "RunData") -> tuple[Section, ...]:
    return (_exercises_section(run),)


def _exercises_section(run: "RunData") -> Section:
    columns = (
        Column(title="Exercise"),
        Column(title="Track"),
        Column(title="Solution"),
        Column(title="Tests"),
        Column(title="Solved by", align="end", help="agents that solved it in every round, of those that were scored"),
    )
    rows = tuple(_row(run, case) for case in run.plan.cases)
    table = Table(columns=columns, rows=rows, caption="The exercises and how they are graded")
    texts = [block for case in run.plan.cases[:_EXERCISES] for block in _texts(case)]
    return Section(id="exercises", title="Exercises", blocks=(table, *texts))


def _row(run: "RunData", case: Case) -> tuple[Value, ...]:
    cells = [cells[case.id] for cells in run.cells.values() if case.id in cells]
    solved = sum(cell.total == cell.rounds for cell in cells)
    return (
        Datum(text=visible(case.id, _NAME), tone="strong"),
        visible(case.tags.get("track", ""), _NAME) or UNKNOWN,
        visible(", ".join(case.reference), _NAME) or UNKNOWN,
        visible(", ".join(case.hidden), _NAME) or UNKNOWN,
        Datum(text=f"{solved} of {len(cells)}", sort=solved / len(cells) if cells else None),
    )


def _texts(case: Case) -> Iterator[Block]:
    name = visible(case.id, _NAME)
    if case.prompt:
        yield Code(text=case.prompt, language="markdown", title=f"{name}: instructions")
    for path, text in case.reference.items():
        yield Code(text=text, language=case.tags.get("language", ""), title=f"{name}: example, {visible(path, _NAME)}")
