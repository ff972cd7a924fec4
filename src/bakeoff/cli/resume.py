"""Implement `bakeoff resume` and `bakeoff rescore`: continue a run, or score its attempts again."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from rich.text import Text

from bakeoff._kernel.choices import SandboxName
from bakeoff._kernel.text import part_of, visible
from bakeoff.cli.console import out, say
from bakeoff.cli.declare import PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import EndingFlags, JobFlags, Jobs, NoOpen, Results, RunName, Sandbox, Trust
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.plan import ScorerSpec
    from bakeoff.storage.run_folder import RunFolder

app = group_of()


class ResumeFlags(JobFlags):
    """The options of `bakeoff resume`."""

    results: Results = Path("results")
    sandbox: SandboxName | None = flag(None, "The sandbox that commands run in. Default: the one of the run.")
    trust: Trust = False


class RescoreFlags(Flags):
    """The options of `bakeoff rescore`."""

    results: Results = Path("results")
    scorers: list[str] | None = flag(
        None,
        'A scorer to use instead of those of the run: a kind (`exact`) or JSON (`{"kind": …}`).',
        "--scorer",
        metavar="SCORER",
    )
    rescore_all: bool = flag(False, "Also score attempts that these scorers have scored before.", "--all")
    jobs: Jobs = None
    sandbox: Sandbox = "auto"
    trust: Trust = False


@command(app, "resume")
def resume_run(*, run: RunName = "latest", flags: ResumeFlags, no_open: NoOpen = False, ending: EndingFlags) -> int:
    """Continue a stopped run, and retry trials that were lost to infra, budget or grader problems.

    Example: bakeoff resume latest --max-cost 5
    """

    from bakeoff.cli.run_plan import carry_out, check_plan, print_dry_run, trusted_plan
    from bakeoff.engine.run import read_progress, trials_left
    from bakeoff.storage.own_runs import why_unknown
    from bakeoff.storage.run_folder import find_run

    folder = find_run(flags.results, run)
    options = replace(flags.options(), results=results_of(folder, flags.results))
    plan = trusted_plan(folder, trust=flags.trust, doing="bakeoff resume")
    if flags.dry_run:
        left = trials_left(plan, read_progress(folder, plan, options))
        if not ending.as_json:
            out().print(Text(f"run {visible(folder.name)}: {part_of(left, plan.size, 'trial', 'is/are')} left to do"))
        print_dry_run(check_plan(plan, options), ending, run=folder.name, left=left)
        return PASSED
    if flags.sandbox is None and why_unknown(folder.path, folder.read_plan_bytes()) is None:
        before: SandboxName = folder.beginning().get("sandbox_wanted", "auto")  # another user's choice does not count
        options = replace(options, sandbox=before if before in get_args(SandboxName) else "auto")
    checked = check_plan(plan, options)
    tell_of_signature(folder)
    return carry_out(checked, ending, folder=folder, opened=not no_open)


@command(app, "rescore")
def rescore_run(*, run: RunName = "latest", flags: RescoreFlags, ending: EndingFlags) -> int:
    """Score the recorded attempts of a run again, without making new attempts.

    Example: bakeoff rescore latest --scorer exact
    """

    from bakeoff.cli.run_plan import carry_out, check_plan, trusted_plan
    from bakeoff.storage.run_folder import find_run

    folder = find_run(flags.results, run)
    plan = trusted_plan(folder, trust=flags.trust, doing="bakeoff rescore")
    if flags.scorers:
        plan = plan.with_scorers(tuple(map(_read_scorer, flags.scorers)))
    options = replace(flags.options(rescore_only=True), results=results_of(folder, flags.results))
    checked = check_plan(plan, options)
    tell_of_signature(folder)
    return carry_out(checked, ending, folder=folder)


def tell_of_signature(folder: "RunFolder") -> None:
    """Warn that a signed run is about to be changed."""
    if folder.signature_file.exists():
        say(f"{visible(folder.name)} is signed, and changes now: its signature no longer holds until you sign it again")


def results_of(folder: "RunFolder", given: Path) -> Path:
    """Return the results folder of a run. It may differ from `--results` for a run given by path."""
    found = folder.path.parent.parent
    return given if folder.path.parent.name != "runs" or found.resolve() == given.resolve() else found


def _read_scorer(text: str) -> "ScorerSpec":
    """Return the scorer that `--scorer` names by its kind, or by its specification in JSON."""

    from pydantic import ValidationError

    from bakeoff._kernel.model import first_problem
    from bakeoff.plan import ScorerSpec

    try:
        return ScorerSpec.model_validate_json(text) if text.lstrip().startswith("{") else ScorerSpec(kind=text)
    except ValidationError as error:
        raise UsageError(f"--scorer {text!r}: {first_problem(error)}") from error
