"""Ask a person at a terminal what to do, and for a run which models, servers and tools to use.

Importing this module takes a moment, so commands import it only when they are about to ask.
"""

import shlex
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup

from bakeoff.cli.console import out, say
from bakeoff.cli.crash import shown
from bakeoff.cli.prompts import Option, confirm, select, type_in, with_going_back
from bakeoff.storage.run_folder import run_folders

if TYPE_CHECKING:
    from bakeoff.cli.answers import LastAnswers
    from bakeoff.doors.components.plan import ComponentsRequest
    from bakeoff.models.gateway import GatewayModels

# The commands that most people want come first, these come last, and all others stand between them.
_FIRST = ("run", "verify", "agents", "mcp", "demo", "view", "compare", "leaderboard", "report", "resume", "models")
_LAST = ("runs", "doctor")
_NEED_RESULTS = frozenset(
    {"view", "compare", "leaderboard", "report", "resume", "rescore", "export", "index", "build", "runs", "pictures"}
)
_RUN_ARGUMENTS = {"run", "baseline", "candidate"}
_SAME_RUN = ""
_RUNS_SHOWN = 30
_MAX_JOBS = 256
CANCELLED = "cancelled; nothing was run"

ShowPlan = Callable[["ComponentsRequest"], None]


@dataclass(frozen=True, slots=True)
class Answers:
    """Hold the selection of what to run, and how many trials run at the same time."""

    request: "ComponentsRequest"
    jobs: int


def ask_words(command: object, results: Path) -> list[str]:
    """Ask for a command of a group, and for its arguments."""
    words: list[str] = []
    while isinstance(command, TyperGroup):
        words.append(_ask_command(command, results, first=not words))
        command = command.commands[words[-1]]
    return [*words, *(_ask_arguments(command, results) if isinstance(command, TyperCommand) else ())]


def _ask_command(group: TyperGroup, results: Path, *, first: bool) -> str:
    commands = {name: command for name, command in group.commands.items() if not command.hidden}
    has_results = bool(run_folders(results)) or any(results.glob("*.json"))
    useless = _NEED_RESULTS if first and not has_results else frozenset()
    names = [name for name in (_sorted(commands) if first else commands) if name not in useless]
    widest = max(map(len, names)) + 2
    room = max(shutil.get_terminal_size().columns - widest - 4, 20)
    options = [Option(name, f"{name:<{widest}}{commands[name].get_short_help_str(room)}") for name in names]
    return select("What would you like to do?" if first else f"bakeoff {group.name}", options, keep=False)


def _sorted(names: Iterable[str]) -> list[str]:
    there = list(names)
    middle = [name for name in there if name not in _FIRST and name not in _LAST]
    return [name for name in (*_FIRST, *middle, *_LAST) if name in there]


def _ask_arguments(command: TyperCommand, results: Path) -> Iterator[str]:
    """Ask for required arguments, and for both sides of a comparison."""
    for argument in command.params:
        if not isinstance(argument, TyperArgument) or not (argument.required or argument.name == "candidate"):
            continue
        question = (argument.name or "value").capitalize()
        runs = [folder.name for folder in reversed(run_folders(results))][:_RUNS_SHOWN]
        if argument.name in _RUN_ARGUMENTS and runs:
            same = [] if argument.required else [Option(_SAME_RUN, "the same run: compare two of its subjects")]
            answer = select(question, [*same, *(Option(run, shown(run)) for run in runs)])
        else:
            hint = f"({argument.help})" if argument.help else None
            answer = type_in(question, "", lambda text: None if text else "this is required", hint)
        yield from answer.split() if argument.nargs == -1 else [answer] if answer != _SAME_RUN else []


def ask_for_run(
    defaults: "ComponentsRequest", show_plan: ShowPlan, *, jobs: int = 8, given: Collection[str] = ()
) -> Answers | None:
    """Ask what a run needs to know. Return None if the person leaves, or does not want to start.

    `given` names what the command line has said already: fields of the request, or `jobs`.
    `show_plan` shows what would be run, and raises if that is impossible.
    """
    try:
        answers = _ask_run(defaults, show_plan, jobs, given)
    except KeyboardInterrupt:
        answers = None
    if answers is None:
        say(CANCELLED)
    return answers


def _ask_run(defaults: "ComponentsRequest", show_plan: ShowPlan, jobs: int, given: Collection[str]) -> Answers | None:
    from bakeoff.cli.answers import recall, remember
    from bakeoff.cli.wizard_questions import find_gateway_models
    from bakeoff.doors.components.plan import command_line

    last = recall(say)
    gateway = None if {"models", "pricing"} <= set(given) else find_gateway_models()

    def ask() -> Answers | None:
        request = _ask_request(_with_last_answers(defaults, last, given), given, gateway)
        wanted = jobs
        if "jobs" not in given:
            wanted = int(type_in("Trials at the same time", str(min(last.jobs or jobs, _MAX_JOBS)), _number_problem))
        out().print()
        show_plan(request)
        words = shown(shlex.join(command_line(request, jobs=wanted)))
        # One long line, so that it can be copied.
        out().print(Text("the same without questions:"), Text(f"  {words}", style="cyan"), sep="\n", soft_wrap=True)
        remember(request, wanted, say)  # also if the answer is no: the person may want to change a single answer
        return Answers(request, wanted) if confirm("Start?", default=True) else None

    return with_going_back(ask)


def _with_last_answers(
    defaults: "ComponentsRequest", last: "LastAnswers", given: Collection[str]
) -> "ComponentsRequest":
    answered = {
        name: value
        for name in ("models", "pricing", "mcp", "test_tool")
        if name not in given and (value := getattr(last, name)) not in (None, ())
    }
    return defaults.model_copy(update=answered)


def _ask_request(
    offered: "ComponentsRequest", given: Collection[str], gateway: "GatewayModels | None"
) -> "ComponentsRequest":
    from bakeoff.cli.wizard_questions import ask_mcp, ask_models, ask_pricing

    models = offered.models if "models" in given else ask_models(gateway, offered.models)
    questions: dict[str, Callable[[], Any]] = {
        "pricing": lambda: ask_pricing(models, gateway, default=offered.pricing),
        "mcp": lambda: ask_mcp(offered.mcp),
        "test_tool": lambda: confirm(
            "May models run the tests before they submit (TestComponent)?", default=offered.test_tool
        ),
    }
    answers = {name: ask() for name, ask in questions.items() if name not in given}
    return offered.model_copy(update={"models": models, **answers})


def _number_problem(text: str) -> str | None:
    fits = text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_JOBS
    return None if fits else f"type a number from 1 to {_MAX_JOBS}"
