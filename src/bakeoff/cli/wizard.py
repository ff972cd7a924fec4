"""Ask a person at a terminal what to do, and for a run which models, servers and tools to use.

Importing this module takes a moment, so commands import it only when they are about to ask.
"""

import shlex
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from rich.text import Text

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.text import visible
from bakeoff.cli.answers import LastAnswers, recall, remember
from bakeoff.cli.console import add_row, out, say, table
from bakeoff.cli.crash import shown
from bakeoff.cli.models import mtok
from bakeoff.cli.prompts import (
    Option,
    advice,
    confirm,
    is_repeating,
    select,
    select_several,
    show_answer,
    type_in,
    with_going_back,
)
from bakeoff.doors.components.plan import JOINED, ComponentsRequest, command_line
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.models.embedded.weights import KNOWN, check_name, is_here
from bakeoff.models.gateway import LOCAL, GatewayModels, kept_models, known_price, refresh_models
from bakeoff.models.prices import Price, models_of_genai
from bakeoff.models.providers import GATEWAY, ModelName, known_providers, parse_model_name
from bakeoff.report.formatting import percent
from bakeoff.report.render.html.index_page import read_entry
from bakeoff.storage.run_folder import run_folders

_MAX_JOBS = 256
CANCELLED = "cancelled; nothing was run"

ShowPlan = Callable[[ComponentsRequest], None]


@dataclass(frozen=True, slots=True)
class Answers:
    """Hold the selection of what to run, and how many trials run at the same time."""

    request: ComponentsRequest
    jobs: int


def ask_for_run(
    defaults: ComponentsRequest, show_plan: ShowPlan, *, jobs: int = 8, given: Collection[str] = ()
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


def _ask_run(defaults: ComponentsRequest, show_plan: ShowPlan, jobs: int, given: Collection[str]) -> Answers | None:
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


def _with_last_answers(defaults: ComponentsRequest, last: LastAnswers, given: Collection[str]) -> ComponentsRequest:
    answered = {
        name: value
        for name in ("models", "pricing", "mcp", "test_tool")
        if name not in given and (value := getattr(last, name)) not in (None, ())
    }
    return defaults.model_copy(update=answered)


def _ask_request(
    offered: ComponentsRequest, given: Collection[str], gateway: GatewayModels | None
) -> ComponentsRequest:
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


_CONTROLS = {"oracle": "control: submits the reference", "nop": "control: does nothing"}

_OTHER = "\0other"  # no model can have this name
_WAIT_SECONDS = 4.0
_NARROW = 90  # a terminal with fewer columns shows no cache prices

_NO_SERVER, _HTTP, _STDIO = "none", "http", "stdio"
_APART, _TOGETHER = "apart", "together"


def ask_models(gateway: GatewayModels | None, before: tuple[str, ...]) -> tuple[str, ...]:
    """Ask for models and controls, and return their names, at least one."""
    options = {option.value: option for option in _options(gateway)}
    typed = {
        name: Option(name, f"{name}{_key_note(name)}")
        for name in before
        if name not in options and _model_problem(name) is None
    }
    other = Option(_OTHER, "another: type its name …")
    # Those that are selected already come first.
    offered = sorted([*typed.values(), *options.values()], key=lambda option: option.value not in before)
    chosen = select_several("Models", [*offered, other], before)
    names = [name for name in chosen if name != _OTHER]
    show_answer("Models", ", ".join([*names, *(["another"] if _OTHER in chosen else [])]))
    if _OTHER in chosen:
        if not is_repeating():
            _say("type provider:model, or maker/model for the gateway; separate several by commas")
        names += _split(type_in("Names", "", _model_problems))
    return tuple(dict.fromkeys(names))


def find_gateway_models() -> GatewayModels | None:
    """Return the gateway's models. Fetch them if there is a key and the kept list is old, but wait only briefly."""
    kept = kept_models()
    has_key = known_providers()[GATEWAY].key(read_environment())
    if not has_key:
        if kept is None:
            _say("the AI gateway's models are not listed: AI_GATEWAY_API_KEY is not set")
        return kept
    if kept is not None and kept.is_fresh:
        return kept
    _say("fetching the AI gateway's models …")
    fetch = _Fetch()
    fetch.join(_WAIT_SECONDS)
    if fetch.models is not None:
        return fetch.models
    instead = f"using the list of {kept.date}" if kept else "its models are not listed, but you can type their names"
    _say(f"{fetch.problem or 'the gateway takes too long'}; {instead}")
    return kept


class _Fetch(threading.Thread):
    """A request to the gateway that may be abandoned."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.models: GatewayModels | None = None
        self.problem = ""
        self.start()

    def run(self) -> None:
        try:
            self.models = refresh_models()
        except BakeoffError as error:
            self.problem = str(error)


def _say(message: str) -> None:
    out().print(Text(visible(message, 300), style="italic"))


def _options(gateway: GatewayModels | None) -> Iterator[Option]:
    for name, note in _CONTROLS.items():
        yield Option(name, f"{name}  ({note})")
    for name, weights in KNOWN.items():
        note = "runs on this machine" if is_here(name) else f"{weights.bytes / 1e6:.0f} MB, downloaded on first use"
        yield Option(f"{LOCAL}:{name}", f"{LOCAL}:{name}  ({note})")
    for model in gateway.models if gateway else ():
        if model.kind in (None, "language") and _model_problem(model.id) is None:
            yield _priced_option(ModelName(GATEWAY, model.id), gateway)
    yield from _options_with_keys()


def _options_with_keys() -> Iterator[Option]:
    """Yield the models of providers whose API keys are set, as far as a price list has them."""
    environment = read_environment()
    usable = {
        provider.prices: provider.name
        for provider in reversed(known_providers().values())
        if provider.prices and provider.key(environment)
    }
    for provider, model, _ in models_of_genai():
        if provider in usable:
            yield _priced_option(ModelName(usable[provider], model.id), None)


def _priced_option(name: ModelName, gateway: GatewayModels | None) -> Option:
    price, _ = _price_of(name, gateway)
    rates = "  ({} in, {} out)".format(*mtok(price, ("input", "output"))) if price else ""
    return Option(str(name), f"{visible(str(name))}{rates}{_key_note(str(name))}")


def _key_note(model: str) -> str:
    """Return which key a model lacks, in the text of its option."""
    if _is_control(model):
        return ""
    provider = known_providers().get(parse_model_name(model).provider)
    if provider is None or not provider.key_required or provider.key(read_environment()):
        return ""
    return f"  no key: {provider.keys[0]} is not set" if provider.keys else ""


def _model_problems(text: str) -> str | None:
    names = _split(text)
    return next(filter(None, map(_model_problem, names)), None) if names else "type at least one name"


def _split(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _model_problem(text: str) -> str | None:
    """Return why a run cannot use this model, or None. API keys are not checked."""
    if _is_control(text):
        return None
    try:
        name = parse_model_name(text)
        if name.provider == LOCAL:
            check_name(name.model)
    except UsageError as error:
        return f"{visible(text, 30)}: {advice(error)}"
    if name.provider not in known_providers():
        return f"there is no provider {visible(name.provider, 30)}"
    return None if text.isprintable() else "a name cannot have control characters"


def _is_control(name: str) -> bool:
    """Return whether a name stands for a control subject, which uses no model."""
    return name in _CONTROLS or name.partition(":")[0] == "cheat"


def ask_pricing(models: tuple[str, ...], gateway: GatewayModels | None, *, default: bool) -> bool:
    """Show the prices of models, and ask whether to compute costs with them."""
    priced = [name for name in models if not _is_control(name)]
    if not priced:
        return default
    kinds = {"in": "input", "out": "output", "cache read": "cacheRead", "cache write": "cacheCreation"}
    if out().width < _NARROW:
        kinds = {heading: kind for heading, kind in kinds.items() if not kind.startswith("cache")}
    prices = table("USD per MTok", *kinds, "source", right=kinds)
    for name in priced:
        price, problem = _price_of(parse_model_name(name), gateway)
        source = f"{price.source} {price.date or ''}".strip() if price else problem or "unknown price: no costs"
        add_row(prices, name, *mtok(price, kinds.values()), source)
    if not is_repeating():
        out().print(prices)
    return confirm("Compute costs at these prices?", default=default)


def _price_of(name: ModelName, gateway: GatewayModels | None) -> tuple[Price | None, str]:
    provider = known_providers().get(name.provider)
    try:
        return known_price(gateway, (provider and provider.prices) or name.provider, name.model), ""
    except UsageError as error:  # the gateway's list has an invalid price
        return None, str(error)


def ask_mcp(before: tuple[str, ...]) -> tuple[str, ...]:
    """Ask for MCP servers. Each entry of the result is `none`, a server, or several joined by ` + `."""
    texts = (text.strip() for entry in before for text in entry.split(JOINED.strip()))
    offered = [text for text in dict.fromkeys(texts) if text != _NO_SERVER and _server_problem(text) is None]
    servers = _ask_servers(offered)
    if not servers:
        return (_NO_SERVER,)
    entries = _ask_grouping(servers, together=any(JOINED in entry for entry in before))
    # Yes, unless the last answer was no.
    without = confirm("Also without MCP, to see the difference?", default=_NO_SERVER in before or not offered)
    return (_NO_SERVER, *entries) if without else entries


def _ask_servers(offered: list[str]) -> list[str]:
    servers: list[str] = []
    for number in count():
        before = offered[number] if number < len(offered) else _NO_SERVER
        yes = "yes, " if number else ""
        options = [
            Option(_NO_SERVER, "no" if number else "none, built-in tools only"),
            Option(_HTTP, f"{yes}over HTTP"),
            Option(_STDIO, f"{yes}over stdio"),
        ]
        kind = select("Another server" if number else "MCP server", options, default=before.partition(":")[0])
        if kind == _NO_SERVER:
            return list(dict.fromkeys(servers))
        servers.append(_ask_server(kind, before))
    raise AssertionError("counting has no end")


def _ask_server(kind: str, before: str) -> str:
    from bakeoff.mcp.servers import DEFAULT_COMMAND, DEFAULT_URL

    question, usual = ("URL", DEFAULT_URL) if kind == _HTTP else ("Command", DEFAULT_COMMAND)
    kind_before, _, rest = before.partition(":")
    default = rest if kind_before == kind and rest else usual
    typed = type_in(question, default, lambda text: _server_problem(f"{kind}:{text}" if text else kind))
    return kind if typed in ("", usual) else f"{kind}:{typed}"


def _server_problem(text: str) -> str | None:
    from bakeoff.mcp.servers import parse_mcp_option  # takes a second to load: not before the first question

    kind, _, rest = text.partition(":")
    if kind not in (_HTTP, _STDIO) or not text.isprintable():
        return "control characters are not allowed"
    if JOINED in rest:
        return f"leave out {JOINED!r}, which separates servers"
    try:
        parse_mcp_option(text)
    except UsageError as error:
        return advice(error)
    return None


def _ask_grouping(servers: list[str], *, together: bool) -> tuple[str, ...]:
    if len(servers) == 1:
        return tuple(servers)
    options = [
        Option(_APART, "one at a time: which is better?"),
        Option(_TOGETHER, "all at once: models get the tools of all"),
    ]
    chosen = select("Several servers", options, default=_TOGETHER if together else _APART)
    return tuple(servers) if chosen == _APART else (JOINED.join(servers),)


_RECENT = 3
Words = list[str]


def choose_aim(results: Path) -> Words | None:
    """Ask what to find out, and return the words to type after `bakeoff`. None stands for a person who leaves."""
    _print_recent(results)
    try:
        words = with_going_back(lambda: _ask_aim(results))
    except KeyboardInterrupt:
        say(CANCELLED)
        return None
    out().print(Text(f"{shown(shlex.join(['bakeoff', *words]))}\n", style="cyan"), soft_wrap=True)
    return words


def _ask_aim(results: Path) -> Words:
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
    aims["Something else: all commands"] = lambda: ["--help"]
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
