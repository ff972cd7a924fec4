"""Show a plan for `--dry-run`: what would run, what it is likely to use, and how small a difference it can find."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.compare import verdict_on
from bakeoff.cli.console import add_row, out, print_json, table
from bakeoff.cli.flags import OutputFlags
from bakeoff.cli.run_plan import CheckedPlan
from bakeoff.errors import BakeoffError
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.report.formatting import cost
from bakeoff.stats.design import design_of
from bakeoff.storage.run_folder import run_folders

if TYPE_CHECKING:
    from bakeoff.models.estimate import CostEstimate

_CASES_SHOWN = 20
_PAST_RUNS = 5  # that are searched for what a trial uses
_MODEL_KINDS = ("model", "agent")


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
            for one in _estimates(plan, checked.options.results)
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


def _estimates(plan: Plan, results: Path) -> "Sequence[CostEstimate]":
    """Return what each model is likely to use."""
    if not any(subject.kind in _MODEL_KINDS for subject in plan.subjects):
        return ()
    from bakeoff.models.estimate import estimate_plan  # takes a second to load
    from bakeoff.models.gateway import kept_models, known_price

    gateway, past = kept_models(), usage_before(results, plan)
    return [*estimate_plan(plan, lambda name: known_price(gateway, name.provider, name.model), past)]


def _print_estimates(console: Console, plan: Plan, results: Path) -> None:
    if estimates := _estimates(plan, results):
        console.print("estimated use of the whole run:")
    for estimate in estimates:
        used = f"{estimate.usage.input:,} tokens in, {estimate.usage.output:,} out, {cost(estimate.usage.cost)}"
        console.print(Text(f"  {visible(estimate.subject)}: {used} (assuming {estimate.basis})"))


def usage_before(results: Path, plan: Plan) -> dict[str, Usage]:
    """Return the mean usage of a trial of each subject, from the latest run that has it with the same model."""
    models = _models(plan)
    found: dict[str, Usage] = {}
    for folder in reversed(run_folders(results)[-_PAST_RUNS:]):
        if models.keys() == found.keys():
            break
        try:
            before = folder.read_plan()
            same = {name for name, model in _models(before).items() if models.get(name) == model}
            found = {**(_mean_usage(folder.latest_records(before), same) if same else {}), **found}
        except (BakeoffError, OSError):  # an unreadable run only makes the estimate less precise
            continue
    return found


def _models(plan: Plan) -> dict[str, str]:
    return {spec.name: str(spec.options.get("model")) for spec in plan.subjects if spec.kind in _MODEL_KINDS}


def _mean_usage(records: Iterable[Record], subjects: set[str]) -> dict[str, Usage]:
    """Return mean token counts without costs: prices may have changed since."""
    used: dict[str, list[Usage]] = {}
    for record in records:
        # A trial that was lost before its first request says nothing about the others.
        if record.subject in subjects and record.transcript and record.transcript.usage.tokens:
            used.setdefault(record.subject, []).append(record.transcript.usage)
    means = {}
    for subject, usages in used.items():
        counted = sum(usages, NO_USAGE).model_dump(exclude={"cost"})
        means[subject] = Usage(**{name: round(count / len(usages)) for name, count in counted.items()})
    return means
