"""A plan as text, for `--dry-run`: what would be done, what it would use, and what it could find."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bakeoff.cli.console import out
from bakeoff.doors import door_of
from bakeoff.engine.resume import read_progress
from bakeoff.errors import BakeoffError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.report.words import cost, visible
from bakeoff.storage.run_folder import RunFolder, find_run, run_folders

_SHOWN = 20
_RUNS_ASKED = 5  # of the past, for what a trial uses
_ASKING = ("model", "agent")


def print_rest(results: Path, name: str) -> None:
    """What going on with a run would do."""
    folder = find_run(results, name)
    plan = folder.read_plan()
    finished = read_progress(folder, plan, RunOptions(results=results)).finished.count()
    out().print(Text(f"run {visible(folder.name)}: {plan.size - finished:,} of {plan.size:,} trials are left to do"))
    print_dry_run(plan, results)


def print_dry_run(plan: Plan, results: Path) -> None:
    """What a run would do, and that it did not."""
    print_plan(out(), plan, results)
    out().print("nothing was run")


def print_plan(console: Console, plan: Plan, results: Path) -> None:
    """Check a plan as a run would, and show what that run would do."""
    door_of(plan).registry(plan, RunOptions(results=results)).resolve(plan)
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
    _print_estimates(console, plan, results)
    console.print(_detectable(plan))


def _print_estimates(console: Console, plan: Plan, results: Path) -> None:
    if not any(subject.kind in _ASKING for subject in plan.subjects):
        return
    from bakeoff.models.estimate import estimate_plan  # the SDKs behind it take a second to load
    from bakeoff.models.gateway import kept_models, known_price

    gateway = kept_models()
    console.print("likely to use, from its first trial to its last:")
    past = usage_before(results, plan)
    for estimate in estimate_plan(plan, lambda name: known_price(gateway, name.provider, name.model), past):
        used = f"{estimate.usage.input:,} tokens in, {estimate.usage.output:,} out, {cost(estimate.usage.cost)}"
        console.print(Text(f"  {visible(estimate.subject)}: {used} (assuming {estimate.basis})"))


def usage_before(results: Path, plan: Plan) -> dict[str, Usage]:
    """What a trial of each subject used on average, in the latest run that had it with the same model."""
    models = _models(plan)
    found: dict[str, Usage] = {}
    for folder in reversed(run_folders(results)[-_RUNS_ASKED:]):
        if models.keys() == found.keys():
            break
        try:
            found = {**_usage_in(folder, models), **found}
        except (BakeoffError, OSError):  # a guess does not depend on a run that cannot be read
            continue
    return found


def _usage_in(folder: RunFolder, models: dict[str, str]) -> dict[str, Usage]:
    plan = folder.read_plan()
    same = {name for name, model in _models(plan).items() if models.get(name) == model}
    return _means(folder.latest_records(plan), same) if same else {}


def _models(plan: Plan) -> dict[str, str]:
    return {spec.name: str(spec.options.get("model")) for spec in plan.subjects if spec.kind in _ASKING}


def _means(records: Iterable[Record], subjects: set[str]) -> dict[str, Usage]:
    sums: dict[str, Usage] = {}
    counts: dict[str, int] = {}
    for record in records:
        # A trial that was lost before it asked anything says nothing about one that was not.
        if record.subject in subjects and record.transcript and record.transcript.usage.tokens:
            sums[record.subject] = sums.get(record.subject, NO_USAGE) + record.transcript.usage
            counts[record.subject] = counts.get(record.subject, 0) + 1
    return {name: _divided(usage, counts[name]) for name, usage in sums.items()}


def _divided(usage: Usage, by: int) -> Usage:
    """Without the cost: what is to come has the prices of today."""
    counted = usage.model_dump(exclude={"cost"})
    return Usage(**{name: round(count / by) for name, count in counted.items()})


def _detectable(plan: Plan) -> str:
    from bakeoff.stats import Noise, minimum_detectable

    least = minimum_detectable(len(plan.cases), plan.rounds, Noise.guessed())
    if least is None:
        return "one case alone cannot tell two subjects apart"
    if least > 1:
        return f"{len(plan.cases)} cases × {plan.rounds} rounds are too few to tell any two subjects apart"
    return (
        f"likely to find (4 times in 5) a difference of {100 * least:.0f} points between two subjects, or a larger, "
        f"from {len(plan.cases):,} cases × {plan.rounds} rounds that scatter as such scores usually do"
    )
