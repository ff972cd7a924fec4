"""Show prompts × subjects: the score of each cell with its interval, and which prompt is better."""

from collections.abc import Iterable, Sequence

from bakeoff._kernel.text import visible
from bakeoff.doors.eval.plan import PROMPT_TAG, EvalPlanSettings
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.blocks import BulletList, Column, Datum, Quote, Section, Table, paragraph
from bakeoff.report.compare.within_run import CellsOf, compare_groups, score_groups
from bakeoff.report.formatting import cost

_MAX_SUBJECTS = 8


def prompt_section(
    plan: Plan, settings: EvalPlanSettings, cells_of: CellsOf, subjects: Sequence[str], records: Iterable[Record]
) -> Section | None:
    """Describe the scores of prompts × subjects, and compare the prompts in pairs; None if there is one prompt."""
    if len(settings.prompts) < 2:
        return None
    groups: dict[str, list[str]] = {prompt: [] for prompt in settings.prompts}
    for case in plan.cases:
        groups[case.tags.get(PROMPT_TAG, "")].append(case.id)
    # Cases with the same name in the file but different prompts form a pair.
    named = {prompt: {settings.names.get(case, case): case for case in cases} for prompt, cases in groups.items()}
    spent = _costs(plan, records)
    rows = tuple(
        (
            Quote(one.tag),
            Quote(one.subject),
            *one.values(),
            one.cases,
            Datum(cost(spent.get((one.tag, one.subject)))),
        )
        for one in score_groups(groups, cells_of, subjects[:_MAX_SUBJECTS])
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
    told = [paragraph(sentence) for sentence in compare_groups(named, cells_of, subjects)]
    lead = "Prompts are compared on the same cases and subjects; p is not adjusted for the number of pairs."
    return Section("prompts", "Prompts", (table, *told), lead)


def _costs(plan: Plan, records: Iterable[Record]) -> dict[tuple[str, str], float]:
    prompts = {case.id: case.tags.get(PROMPT_TAG, "") for case in plan.cases}
    found: dict[tuple[str, str], float] = {}
    for record in records:
        if record.spent.cost is not None:
            key = (prompts[record.case], record.subject)
            found[key] = found.get(key, 0.0) + record.spent.cost
    return found


def left_out_section(settings: EvalPlanSettings) -> Section | None:
    """List the parts of a configuration that were not understood or not run; None if there are none."""
    if not settings.warnings:
        return None
    shown = tuple(visible(warning, 500) for warning in settings.warnings)
    return Section("left-out", "Left out", (BulletList(shown),), "Parts of the configuration that were not used.")


def without_prompt_tags(plan: Plan) -> Plan:
    """Return the plan without the tags that name prompts, which have a table of their own."""
    tags = ({name: value for name, value in case.tags.items() if name != PROMPT_TAG} for case in plan.cases)
    cases = (case.model_copy(update={"tags": own}) for case, own in zip(plan.cases, tags, strict=True))
    return plan.with_changes(cases=tuple(cases))
