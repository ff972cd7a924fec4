"""Show a plan for `--dry-run`: what would run, what it is likely to use, and how small a difference it can find."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import add_row, out, print_json, table
from bakeoff.cli.flags import OutputFlags
from bakeoff.cli.run_plan import CheckedPlan
from bakeoff.models.estimate import estimate_run
from bakeoff.plan import Plan
from bakeoff.report.compare.description import verdict_on
from bakeoff.report.formatting import cost
from bakeoff.stats.power import design_of

_CASES_SHOWN = 20


def print_dry_run(checked: CheckedPlan, ending: OutputFlags, **more: Any) -> None:
    """Print what a run would do, and that nothing was run; with `--json`, as JSON with `more` about the run."""
    if ending.as_json:
        print_json({**plan_json(checked), **more})
        return
    print_plan(out(), checked)
    out().print("nothing was run")


def plan_json(checked: CheckedPlan) -> dict[str, Any]:
    """Return what a run of this plan would do, for programs."""
    plan = checked.plan
    return {
        "plan": plan.name,
        "trials": plan.size,
        "cases": [{"id": case.id, "tags": case.tags} for case in plan.cases],
        "subjects": [{"name": spec.name, "kind": spec.kind} for spec in plan.subjects],
        "rounds": plan.rounds,
        "threshold": plan.threshold,
        "scorers": list(dict.fromkeys(scorer.kind for scorer in plan.every_scorer)),
        "estimates": [
            {"subject": one.subject, **one.usage.model_dump(), "basis": one.basis}
            for one in estimate_run(plan, checked.options.results)
        ],
        "power": verdict_on(design_of(len(plan.cases), plan.rounds)),
        "ran": False,
    }


def print_plan(console: Console, checked: CheckedPlan) -> None:
    """Print what a run of this plan would do."""
    plan = checked.plan
    console.print(
        f"plan {visible(plan.name)}: {count_of(plan.size, 'trial')} = {count_of(len(plan.cases), 'case')} × "
        f"{count_of(len(plan.subjects), 'subject')} × {count_of(plan.rounds, 'round')}"
    )
    if plan.shard is not None:
        console.print(f"shard {plan.shard} of a plan with {count_of(plan.shard.cases, 'case')}")
    if plan.until_decided is not None:
        margin = plan.until_decided.margin
        within = "" if margin is None else f", equivalent within ±{100 * margin:g} points"
        console.print(
            f"until decided: subjects are compared in pairs after every case{within}; this is the most it runs"
        )
    threshold = "none, scores are only recorded" if plan.threshold is None else f"{plan.threshold:g}"
    console.print(f"pass threshold: {threshold}")
    console.print(f"scorers: {', '.join(dict.fromkeys(scorer.kind for scorer in plan.every_scorer))}")
    console.print(f"subjects: {', '.join(visible(subject.name) for subject in plan.subjects)}")
    cases = table("case", "files", "hidden", "prompt")
    for case in plan.cases[:_CASES_SHOWN]:
        add_row(cases, case.id, str(len(case.files)), str(len(case.hidden)), Text(visible(case.prompt, 70)))
    console.print(cases)
    if len(plan.cases) > _CASES_SHOWN:
        console.print(f"… and {len(plan.cases) - _CASES_SHOWN:,} more cases")
    _print_estimates(console, plan, checked.options.results)
    console.print(verdict_on(design_of(len(plan.cases), plan.rounds)))


def _print_estimates(console: Console, plan: Plan, results: Path) -> None:
    if estimates := estimate_run(plan, results):
        console.print("estimated use of the whole run:")
    for estimate in estimates:
        used = f"{estimate.usage.input:,} tokens in, {estimate.usage.output:,} out, {cost(estimate.usage.cost)}"
        console.print(Text(f"  {visible(estimate.subject)}: {used} (assuming {estimate.basis})"))
