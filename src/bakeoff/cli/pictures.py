"""Carry out `bakeoff pictures`: pictures of the components of a run that is over."""

from pathlib import Path

from bakeoff._kernel.choices import SandboxName
from bakeoff.cli.console import say
from bakeoff.cli.pages import show, write_pages_of
from bakeoff.cli.run_plan import PASSED, UNDECIDED
from bakeoff.cli.trust import trusted_plan
from bakeoff.doors.components.pictures import take_pictures
from bakeoff.doors.components.plan import DOOR
from bakeoff.engine.sandbox_choice import sandbox_of
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.storage.run_folder import find_run


def picture_run(*, run: str, results: Path, sandbox: SandboxName, no_open: bool, trust: bool) -> int:
    """Take the pictures that a run lacks, and write its page again; return 3 if there is none."""
    folder = find_run(results, run)
    plan = trusted_plan(folder, trust=trust, doing="bakeoff pictures")
    if plan.door != DOOR:
        raise UsageError(f"run {folder.name} has no components: pictures are taken of the runs of `bakeoff run`")
    if folder.is_being_written():
        raise UsageError(f"run {folder.name} is being written: take its pictures when it has ended")
    taken = take_pictures(folder, plan, sandbox_of(RunOptions(sandbox=sandbox)), say, again=True)
    if not taken:
        say("there is no component that a picture could be taken of")
        return UNDECIDED
    for page in (pages := write_pages_of(folder)):
        say(f"wrote {page}")
    if not no_open:
        show(pages[0])
    return PASSED
