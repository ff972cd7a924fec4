"""What bare `bakeoff` asks: which of its jobs. The list is made of the commands there are."""

import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from bakeoff.cli.console import out
from bakeoff.cli.crash import shown
from bakeoff.cli.wizard_prompts import Option, pick, type_in
from bakeoff.storage.run_folder import run_folders

# What most people come for, first; a command that is not among these comes after them.
_ORDER = ("run", "verify", "agents", "mcp", "demo", "view", "compare", "leaderboard", "report", "resume", "models")
_LAST = ("runs", "doctor")
_NEED_RESULTS = frozenset(
    {"view", "compare", "leaderboard", "report", "resume", "rescore", "export", "index", "build", "runs"}
)
_RUN_ARGUMENTS = {"run", "baseline", "candidate"}
_SAME_RUN = ""
_RUNS_SHOWN = 30


def ask_job(results: Path) -> list[str]:
    """The words after `bakeoff`."""
    from bakeoff.cli.main import app  # it imports us, when it has something to ask

    words: list[str] = []
    command = get_command(app)
    while isinstance(command, TyperGroup):
        word = _ask_command(command, results, first=not words)
        words.append(word)
        command = command.commands[word]
    words += _ask_arguments(command, results) if isinstance(command, TyperCommand) else []
    out().print(Text(f"{shown(shlex.join(['bakeoff', *words]))}\n", style="cyan"), soft_wrap=True)
    return words


def _ask_command(group: TyperGroup, results: Path, *, first: bool) -> str:
    commands = {name: command for name, command in group.commands.items() if not command.hidden}
    in_vain = _NEED_RESULTS if first and not _has_results(results) else frozenset()
    names = [name for name in (_sorted(commands) if first else commands) if name not in in_vain]
    wide = max(map(len, names)) + 2
    room = max(shutil.get_terminal_size().columns - wide - 4, 20)
    options = [Option(name, f"{name:<{wide}}{commands[name].get_short_help_str(room)}") for name in names]
    return pick("What would you like to do?" if first else f"bakeoff {group.name}", options, trace=False)


def _has_results(results: Path) -> bool:
    return bool(run_folders(results)) or any(results.glob("*.json"))


def _sorted(names: Iterable[str]) -> list[str]:
    """Curated ones in their order, the others between them and the last as they come."""
    there = list(names)
    middle = [name for name in there if name not in _ORDER and name not in _LAST]
    return [name for name in (*_ORDER, *middle, *_LAST) if name in there]


def _ask_arguments(command: TyperCommand, results: Path) -> Iterator[str]:
    """What the command cannot do without; and of a comparison both sides."""
    for argument in command.params:
        if not isinstance(argument, TyperArgument) or not (argument.required or argument.name == "candidate"):
            continue
        asked = (argument.name or "it").capitalize()
        runs = [folder.name for folder in reversed(run_folders(results))][:_RUNS_SHOWN]
        if argument.name in _RUN_ARGUMENTS and runs:
            same = [] if argument.required else [Option(_SAME_RUN, "the same: two subjects of one run")]
            answer = pick(asked, [*same, *(Option(run, shown(run)) for run in runs)])
        else:
            answer = type_in(asked, "", _empty, f"({argument.help})" if argument.help else None)
        yield from answer.split() if argument.nargs == -1 else [answer] if answer != _SAME_RUN else []


def _empty(text: str) -> str | None:
    return None if text else "this cannot be left out"
