"""The questions before a run, in their order, and what is shown before the last of them."""

import shlex
from collections.abc import Callable, Collection
from typing import Any

from rich.text import Text

from bakeoff.cli.answers import Remembered, recall, remember
from bakeoff.cli.console import out
from bakeoff.cli.wizard import Answers, ShowPlan
from bakeoff.cli.wizard_models import ask_models, ask_pricing, find_gateway_models
from bakeoff.cli.wizard_prompts import agree, type_in
from bakeoff.doors.components.request import ComponentsRequest, command_line
from bakeoff.report.words import visible

_MOST_JOBS = 256


def ask_run(defaults: ComponentsRequest, show_plan: ShowPlan, jobs: int, given: Collection[str]) -> Answers | None:
    """None if the last question, whether to start, was answered with no."""
    last = recall(_say)
    request = _ask_request(_as_last_time(defaults, last, given), given)
    jobs = jobs if "jobs" in given else _ask_jobs(last.jobs or jobs)
    out().print()
    show_plan(request)
    show_command("the same without questions:", command_line(request, jobs=jobs))
    remember(request, jobs, _say)  # now, for one who says no may want to change a single answer
    return Answers(request, jobs) if agree("Start?", default=True) else None


def _as_last_time(defaults: ComponentsRequest, last: Remembered, given: Collection[str]) -> ComponentsRequest:
    """What the questions offer: what was given now, else what was answered last time, else what is usual."""
    answered = {
        name: value
        for name in ("models", "pricing", "mcp", "test_tool")
        if name not in given and (value := getattr(last, name)) not in (None, ())
    }
    return defaults.model_copy(update=answered)


def _ask_request(offered: ComponentsRequest, given: Collection[str]) -> ComponentsRequest:
    gateway = None if {"models", "pricing"} <= set(given) else find_gateway_models()
    models = offered.models if "models" in given else ask_models(gateway, offered.models)
    questions: dict[str, Callable[[], Any]] = {
        "pricing": lambda: ask_pricing(models, gateway, default=offered.pricing),
        "mcp": lambda: _ask_mcp(offered.mcp),
        "test_tool": lambda: agree("May models try the tests first (TestComponent)?", default=offered.test_tool),
    }
    answers = {name: ask() for name, ask in questions.items() if name not in given}
    return offered.model_copy(update={"models": models, **answers})


def _ask_mcp(before: tuple[str, ...]) -> tuple[str, ...]:
    from bakeoff.cli.wizard_mcp import ask_mcp  # what it needs takes a second to load: not before the first question

    return ask_mcp(before)


def _ask_jobs(default: int) -> int:
    return int(type_in("Trials at one time", str(min(default, _MOST_JOBS)), _number_problem))


def _number_problem(text: str) -> str | None:
    fits = text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_JOBS
    return None if fits else f"type a number from 1 to {_MOST_JOBS}"


def show_command(introduction: str, words: list[str]) -> None:
    """What to type for the same; on one long line if need be, so that it can be copied."""
    out().print(
        Text(introduction), Text(f"  {visible(shlex.join(words), 2000)}", style="cyan"), sep="\n", soft_wrap=True
    )


def _say(message: str) -> None:
    out().print(Text(visible(message, 300), style="italic"))
