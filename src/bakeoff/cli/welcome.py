"""Ask a person at a terminal what they want to find out, below their recent runs.

Importing this module takes a moment, so `bakeoff` imports it only when it is about to ask.
"""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from rich.text import Text

from bakeoff.cli.console import add_row, out, say, table
from bakeoff.cli.crash import shown
from bakeoff.cli.prompts import Option, select, with_going_back
from bakeoff.cli.wizard import CANCELLED, ask_words
from bakeoff.errors import BakeoffError
from bakeoff.report.formatting import percent
from bakeoff.report.render.html.index_page import read_entry
from bakeoff.storage.run_folder import run_folders

_RECENT = 3
Words = list[str]


def choose_aim(group: object, results: Path) -> Words | None:
    """Ask what to find out, and return the words to type after `bakeoff`. None stands for a person who leaves."""
    _print_recent(results)
    try:
        words = with_going_back(lambda: _ask(group, results))
    except KeyboardInterrupt:
        say(CANCELLED)
        return None
    out().print(Text(f"{shown(shlex.join(['bakeoff', *words]))}\n", style="cyan"), soft_wrap=True)
    return words


def _ask(group: object, results: Path) -> Words:
    aims: dict[str, Callable[[], Words]] = {
        "Which model answers my prompts best?": lambda: _or_start("eval", "bakeoff.yaml", "eval"),
        "Which model writes components that pass their tests?": lambda: ["run"],
        "Which coding agent does exercises best?": _ask_agent,
        "Do models understand my MCP server?": lambda: _or_start(
            "mcp", "mcp-testing-framework.yaml", "mcp", "evaluate"
        ),
        "Is my application still as good? (pytest evals)": lambda: ["init", "pytest"],
        "Show me everything, with a model on this machine": lambda: ["demo"],
    }
    if run_folders(results):
        aims["Look at past runs in the browser"] = lambda: ["view"]
    aims["Something else: all commands"] = lambda: ask_words(group, results)
    names = list(aims)
    chosen = select("What do you want to find out?", [Option(str(n), name) for n, name in enumerate(names)], keep=False)
    return aims[names[int(chosen)]]()


def _or_start(kind: str, file: str, *words: str) -> Words:
    """Return the command that evaluates what is here, or writes a start where nothing is."""
    return [*words] if Path(file).is_file() else ["init", kind]


def _ask_agent() -> Words:
    from bakeoff.doors.agents.agents import known_agents

    here = [name for name, agent in known_agents().items() if shutil.which(agent.command[0])]
    if not here:
        say("no known agent is installed (`bakeoff agents list` says how): here is one of your own")
        return ["init", "agents"]
    return ["agents", "run", "--agent", select("Agent", [Option(name, name) for name in here]), "--agent", "nop"]


def _print_recent(results: Path) -> None:
    """Print the last runs, newest first."""
    recent = run_folders(results)[: -_RECENT - 1 : -1]
    if not recent:
        return
    rows = table("recent runs", "state", "best")
    for folder in recent:
        try:
            entry = read_entry(folder)
        except BakeoffError:
            add_row(rows, folder.name, "cannot be read", "")
            continue
        best = max(
            (one for one in entry.summary.judged if one.score is not None), key=lambda one: one.score or 0, default=None
        )
        add_row(rows, folder.name, entry.state, f"{best.subject} {percent(best.score)}" if best else "")
    out().print(rows)
    out().print()
