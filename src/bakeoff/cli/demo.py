"""Carry out `bakeoff demo`: a small bundled plan, from plan to report."""

import importlib.util

from bakeoff.bundled.demo import demo_plan
from bakeoff.cli.console import say
from bakeoff.cli.dry_run import print_dry_run
from bakeoff.cli.flags import EndingFlags, OutputFlags, RunFlags
from bakeoff.cli.run_plan import FAILED, PASSED, check_plan, conclude, run_checked


def run_demo(*, flags: RunFlags, outputs: OutputFlags) -> int:
    """Run the demo. The exit code says whether it ran as it should, not whether its subjects passed."""
    ending = EndingFlags(**outputs.values())
    checked = check_plan(demo_plan(with_model=importlib.util.find_spec("xllamacpp") is not None), flags.options())
    if flags.dry_run:
        print_dry_run(checked, outputs)
        return PASSED
    ending.outputs()
    ended = run_checked(checked, ending)
    code = conclude([ended], ending)
    if ended.interrupted:
        return code
    summary = ended.run.summary
    scores = {subject.subject: subject.score for subject in summary.subjects}
    if not (summary.complete and scores["oracle"] == 1 and scores["nop"] == 0):
        say("The demo did not run as expected: `bakeoff doctor` shows what may be missing on this machine.")
        return FAILED
    say("")
    say("`oracle` submits the known answers and passes; `nop` does nothing and fails; `scripted` is in between.")
    say("Next: `bakeoff runs show` shows what failed, `bakeoff doctor` checks this machine.")
    return PASSED
