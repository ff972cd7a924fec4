"""Show the cases of a plan on the run pages of doors."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bakeoff._kernel.text import visible
from bakeoff.plan import Case
from bakeoff.report.blocks import Block, Code, Column, Datum, Section, Table, Value
from bakeoff.report.formatting import UNKNOWN

if TYPE_CHECKING:
    from bakeoff.report.render.html.run_data import RunData

NAME = 120
"""The longest name on a page, in characters."""
_MAX_TEXTS = 100  # cases whose prompts are on the page; more would make it slow


def cases_section(
    run: "RunData",
    noun: str,
    titles: tuple[Column, ...],
    cells: Callable[[Case], tuple[Value, ...]],
    *,
    prompt: str,
    described: bool = True,
) -> Section | None:
    """Return a section with a table of all cases, and with the prompts of the first ones.

    References are only named, because published pages would reveal them.

    Args:
        run: The run of the page.
        noun: The word for cases, such as "suites".
        titles: The columns after the name of a case.
        cells: Returns the cells of a case in these columns.
        prompt: The title of a prompt.
        described: False leaves out the table, for result files that do not describe their cases.
    """
    cases = run.plan.cases
    blocks: list[Block] = [
        Code(text=case.prompt, language="markdown", title=f"{visible(case.id, NAME)}: {prompt}")
        for case in cases[:_MAX_TEXTS]
        if case.prompt
    ]
    if described:
        rows = tuple((Datum(visible(case.id, NAME), tone="strong"), *cells(case)) for case in cases)
        columns = (Column(noun.removesuffix("s").capitalize()), *titles)
        blocks.insert(0, Table(columns, rows, f"The {noun} and how they are graded"))
    return Section(noun, noun.capitalize(), tuple(blocks)) if blocks else None


def named(*texts: str) -> Iterator[str]:
    """Yield names for cells of a table."""
    return (visible(text, NAME) or UNKNOWN for text in texts)
