"""`bakeoff demo`: the bundled plan, from plan to report."""

import importlib.util

from rich.console import Console

from bakeoff.bundled.demo import demo_plan
from bakeoff.cli.console import err
from bakeoff.cli.plans import print_dry_run
from bakeoff.cli.running import INTERRUPTED, PASSED, Ending, carry_out
from bakeoff.options import RunOptions
from bakeoff.report import Summary, summarise
from bakeoff.storage.run_folder import new_run_folder


def run_demo(options: RunOptions, ending: Ending, *, dry_run: bool) -> int:
    """The exit code says whether the demo ran as it should, not whether its subjects are any good."""
    plan = demo_plan(with_model=importlib.util.find_spec("xllamacpp") is not None)
    if dry_run:
        print_dry_run(plan, options.results)
        return PASSED
    folder = new_run_folder(options.results, plan.name)
    if carry_out(plan, folder, options, ending) == INTERRUPTED:
        return INTERRUPTED
    return _explain(err(), summarise(plan, folder.latest_records(plan)))


def _explain(console: Console, summary: Summary) -> int:
    scores = {subject.subject: subject.score for subject in summary.subjects}
    as_it_should = summary.complete and scores["oracle"] == 1 and scores["nop"] == 0
    if not as_it_should:
        console.print("The demo did not come out as it should: `bakeoff doctor` says what may be missing here.")
        return 1
    console.print(
        "\n`oracle` gives the known answers and passes; `nop` does nothing and fails; `scripted` is in between.\n"
        "Next: `bakeoff runs show` for what failed, `bakeoff doctor` for what this machine can do."
    )
    return PASSED
