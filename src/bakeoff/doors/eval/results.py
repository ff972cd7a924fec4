"""Show prompts × subjects: the score of each cell with its interval, and which prompt is better."""

from collections.abc import Iterable

from bakeoff._kernel.text import visible
from bakeoff.doors.eval.config import PromptSuite
from bakeoff.doors.eval.plan import EvalPlanSettings
from bakeoff.plan import PROMPT_TAG, Plan
from bakeoff.record import Record
from bakeoff.report.blocks import BulletList, Column, Datum, Quote, Section, Table, paragraph
from bakeoff.report.compare.factors import compare_levels, describe_pair, factors_of
from bakeoff.report.compare.within_run import CellsOf, score_groups
from bakeoff.report.formatting import cost
from bakeoff.report.summary import Summary

_MAX_SUBJECTS = 8


def prompt_section(
    plan: Plan, settings: EvalPlanSettings, summary: Summary, cells_of: CellsOf, records: Iterable[Record]
) -> Section | None:
    """Describe the scores of prompts × subjects, and compare the prompts in pairs; None if there is one prompt."""
    if len(settings.prompts) < 2:
        return None
    groups: dict[str, list[str]] = {prompt: [] for prompt in settings.prompts}
    for case in plan.cases:
        groups[case.tags.get(PROMPT_TAG, "")].append(case.id)
    subjects = [one.subject for one in summary.judged][:_MAX_SUBJECTS]
    spent = _costs(plan, records)
    rows = tuple(
        (
            Quote(one.tag),
            Quote(one.subject),
            *one.values(),
            one.cases,
            Datum(cost(spent.get((one.tag, one.subject)))),
        )
        for one in score_groups(groups, cells_of, subjects)
    )
    titles = (
        Column("Prompt"),
        Column("Subject"),
        Column("Score", align="end", help="the mean over the cases with this prompt"),
        Column("95 % interval", align="end", short="95 %\ninterval"),
        Column("Cases", align="end"),
        Column("Cost", align="end", drop=2),
    )
    table = Table(titles, rows, "Score of each prompt and subject, with its interval")
    pairs = compare_levels(factors_of(plan, summary, cells_of))
    told = [paragraph(f"{describe_pair(pair)}.") for pair in pairs if pair.factor == "prompt"]
    lead = "Prompts are compared on the same cases and subjects."
    if len(pairs) > 1:
        lead += f" p is adjusted for all {len(pairs)} comparisons of prompts and subjects (Holm)."
    return Section("prompts", "Prompts", (table, *told), lead)


def _costs(plan: Plan, records: Iterable[Record]) -> dict[tuple[str, str], float]:
    prompts = {case.id: case.tags.get(PROMPT_TAG, "") for case in plan.cases}
    found: dict[tuple[str, str], float] = {}
    for record in records:
        if record.spent.cost is not None:
            key = (prompts[record.case], record.subject)
            found[key] = found.get(key, 0.0) + record.spent.cost
    return found


def mapping_sections(suite: PromptSuite) -> tuple[Section, ...]:
    """List what the parts of another tool's file are here, and what is left out."""
    rows = tuple((Quote(theirs), Quote(ours), count) for theirs, ours, count in suite.mapping)
    titles = (Column("In the file"), Column("Here"), Column("Count", align="end"))
    read = Section("read", "What is read", (Table(titles, rows, "The parts of the file, and what they are here"),))
    warnings = tuple(visible(warning, 500) for warning in suite.warnings)
    return (read, Section("left-out", "Left out, or assumed", (BulletList(warnings),))) if warnings else (read,)


def left_out_section(settings: EvalPlanSettings) -> Section | None:
    """List the parts of a configuration that were not understood or not run; None if there are none."""
    if not settings.warnings:
        return None
    shown = tuple(visible(warning, 500) for warning in settings.warnings)
    return Section("left-out", "Left out", (BulletList(shown),), "Parts of the configuration that were not used.")
