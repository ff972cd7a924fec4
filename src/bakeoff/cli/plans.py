"""A plan as text, for `--dry-run`."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bakeoff.catalogue import default_catalogue
from bakeoff.plan import Plan
from bakeoff.report.words import cost, visible

_SHOWN = 20


def print_plan(console: Console, plan: Plan) -> None:
    """Check a plan as a run would, and show what that run would do."""
    default_catalogue().cast(plan)
    console.print(
        f"plan {visible(plan.name)}: {plan.size:,} trials = "
        f"{len(plan.cases):,} cases × {len(plan.subjects)} subjects × {plan.rounds} rounds"
    )
    threshold = "none, scores are only recorded" if plan.threshold is None else f"{plan.threshold:g}"
    console.print(f"pass threshold: {threshold}")
    console.print(f"scorers: {', '.join(scorer.kind for scorer in plan.scorers)}")
    console.print(f"subjects: {', '.join(visible(subject.name) for subject in plan.subjects)}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("case", "files", "hidden", "prompt"):
        table.add_column(heading)
    for case in plan.cases[:_SHOWN]:
        cells = (case.id, str(len(case.files)), str(len(case.hidden)), visible(case.prompt, 70))
        table.add_row(*map(Text, cells))
    console.print(table)
    if len(plan.cases) > _SHOWN:
        console.print(f"… and {len(plan.cases) - _SHOWN:,} more cases")
    _print_estimates(console, plan)
    console.print("nothing was run")


def _print_estimates(console: Console, plan: Plan) -> None:
    if not any(subject.kind in ("model", "agent") for subject in plan.subjects):
        return
    from bakeoff.models.estimate import estimate_plan  # the SDKs behind it take a second to load
    from bakeoff.models.gateway import kept_models, known_price

    gateway = kept_models()
    console.print("likely to use:")
    for estimate in estimate_plan(plan, lambda name: known_price(gateway, name.provider, name.model)):
        used = f"{estimate.usage.input:,} tokens in, {estimate.usage.output:,} out, {cost(estimate.usage.cost)}"
        console.print(Text(f"  {visible(estimate.subject)}: {used} (assuming {estimate.basis})"))
