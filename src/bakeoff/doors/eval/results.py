"""Show prompts × subjects: the score of each cell with its interval, and which prompt is better."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum
from statistics import fmean

from bakeoff._kernel.text import visible
from bakeoff.doors.eval.plan import PROMPT_TAG, EvalPlanSettings
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.blocks import Block, BulletList, Column, Datum, Quote, Section, Table, Value, paragraph
from bakeoff.report.formatting import UNKNOWN, cost, percent, span
from bakeoff.report.scores import interval_datum
from bakeoff.stats.cells import CaseKey, Cell
from bakeoff.stats.comparison import compare
from bakeoff.stats.intervals import score_interval

CellsOf = Callable[[str], Mapping[str, Cell]]
_MAX_SUBJECTS = 8
_MAX_PAIRS = 10


def prompt_section(
    plan: Plan, settings: EvalPlanSettings, cells_of: CellsOf, subjects: Sequence[str], records: Iterable[Record]
) -> Section | None:
    """Describe the scores of prompts × subjects, and compare the prompts in pairs; None if there is one prompt."""
    if len(settings.prompts) < 2:
        return None
    cells = {subject: cells_of(subject) for subject in subjects}
    blocks: list[Block] = [_table(plan, settings, cells, records)]
    blocks += [paragraph(told) for told in _comparisons(plan, settings, cells)]
    lead = "Prompts are compared on the same cases and subjects; p is not adjusted for the number of pairs."
    return Section("prompts", "Prompts", tuple(blocks), lead)


def _table(
    plan: Plan, settings: EvalPlanSettings, cells: Mapping[str, Mapping[str, Cell]], records: Iterable[Record]
) -> Table:
    ids = _cases_by_prompt(plan)
    spent = _costs(plan, records)
    rows: list[tuple[Value, ...]] = []
    for prompt in settings.prompts:
        for subject in list(cells)[:_MAX_SUBJECTS]:
            found = [cells[subject][case] for case in ids[prompt] if case in cells[subject]]
            score = fmean(cell.mean for cell in found) if found else None
            interval = score_interval(found)
            rows.append(
                (
                    Quote(prompt),
                    Quote(subject),
                    Datum(percent(score), sort=score, tone="strong"),
                    interval_datum(score, interval) if interval else Datum(UNKNOWN, note=span(None)),
                    len(found),
                    Datum(cost(spent.get((prompt, subject)))),
                )
            )
    titles = (
        Column("Prompt"),
        Column("Subject"),
        Column("Score", align="end", help="the mean over the cases with this prompt"),
        Column("95 % interval", align="end", short="95 %\ninterval"),
        Column("Cases", align="end"),
        Column("Cost", align="end", drop=2),
    )
    return Table(titles, tuple(rows), "Score of each prompt and subject, with its interval")


def _cases_by_prompt(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for case in plan.cases:
        found.setdefault(case.tags.get(PROMPT_TAG, ""), []).append(case.id)
    return found


def _costs(plan: Plan, records: Iterable[Record]) -> dict[tuple[str, str], float]:
    prompts = {case.id: case.tags.get(PROMPT_TAG, "") for case in plan.cases}
    found: dict[tuple[str, str], float] = {}
    for record in records:
        if record.spent.cost is not None:
            key = (prompts[record.case], record.subject)
            found[key] = found.get(key, 0.0) + record.spent.cost
    return found


def _joined(cells: Sequence[Cell]) -> Cell:
    """Return the rounds of all subjects on one case as one cell."""
    total, squares = fsum(cell.total for cell in cells), fsum(cell.squares for cell in cells)
    return Cell(sum(cell.rounds for cell in cells), total, squares)


def _comparisons(plan: Plan, settings: EvalPlanSettings, cells: Mapping[str, Mapping[str, Cell]]) -> Iterator[str]:
    """Yield a sentence about each pair of prompts, over all subjects: a case is paired with itself."""
    by_prompt: dict[str, dict[CaseKey, Cell]] = {prompt: {} for prompt in settings.prompts}
    for case in plan.cases:
        prompt, name = case.tags.get(PROMPT_TAG, ""), settings.names.get(case.id, case.id)
        found = [own[case.id] for own in cells.values() if case.id in own]
        if found and len(found) == len(cells):
            by_prompt[prompt][CaseKey(name)] = _joined(found)
    pairs = list(combinations(settings.prompts, 2))
    for one, other in pairs[:_MAX_PAIRS]:
        found_pair = compare(by_prompt[one], by_prompt[other])
        if found_pair.difference is None or found_pair.interval is None or not found_pair.paired:
            continue
        gain, better, worse = found_pair.difference, other, one
        if gain < 0:
            gain, better, worse = -gain, one, other
        sure = found_pair.p_value is not None and found_pair.p_value < found_pair.alpha
        p = "" if found_pair.p_value is None else f", p = {found_pair.p_value:.2g}"
        names = (visible(repr(better), 60), visible(repr(worse), 60))
        if sure:
            yield f"{names[0]} is better than {names[1]} by {100 * gain:.1f} points{p}."
        else:
            yield f"{names[0]} and {names[1]} cannot be told apart: {100 * gain:+.1f} points{p}."
    if len(pairs) > _MAX_PAIRS:
        yield f"… and {len(pairs) - _MAX_PAIRS:,} more pairs."


def left_out_section(settings: EvalPlanSettings) -> Section | None:
    """List what a configuration has that was not understood or not run; None if there is nothing."""
    if not settings.warnings:
        return None
    shown = tuple(visible(warning, 500) for warning in settings.warnings)
    return Section("left-out", "Left out", (BulletList(shown),), "Parts of the configuration that were not used.")


def without_prompt_tags(plan: Plan) -> Plan:
    """Return the plan without the tags that name prompts, which have a table of their own."""
    cases = [case.model_copy(update={"tags": _without(case.tags)}) for case in plan.cases]
    return plan.with_changes(cases=tuple(cases))


def _without(tags: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in tags.items() if name != PROMPT_TAG}
