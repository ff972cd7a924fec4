"""Ask a person at a terminal what to do, and which models, servers and tools a run should use.

Importing this module takes a moment, so commands import it only when they are about to ask.
"""

import shlex
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.text import escaped_lines, visible
from bakeoff.cli.console import add_row, out, say, table
from bakeoff.cli.models import mtok
from bakeoff.cli.prompts import confirm, select, select_several, type_in
from bakeoff.doors.components.plan import JOINED, ComponentsRequest, command_line
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.models.embedded.weights import KNOWN, check_name, is_here
from bakeoff.models.gateway import LOCAL, GatewayModels, kept_models, known_price, refresh_models
from bakeoff.models.prices import Price, models_of_genai
from bakeoff.models.providers import GATEWAY, ModelName, known_providers, parse_model_name
from bakeoff.report.formatting import percent
from bakeoff.report.render.html.index_page import read_entry
from bakeoff.storage.run_folder import run_folders

CANCELLED = "cancelled; nothing was run"
_MAX_JOBS = 256
_CONTROLS = {"oracle": "control: submits the reference", "nop": "control: does nothing"}
_OTHER = "another"  # no model has a name without a provider
_WAIT_SECONDS = 4.0
_NARROW = 90  # a terminal with fewer columns shows no cache prices
_NO_SERVER, _HTTP, _STDIO = "none", "http", "stdio"
_RECENT = 3
_MAY_TEST = "May models run the tests before they submit (TestComponent)?"
_MAY_COST, _MAY_START = ("eval", "mcp", "agents"), "Start? Models may cost money; add --dry-run to see the plan only."
Words = list[str]


def ask_for_run(
    request: ComponentsRequest,
    show_plan: Callable[[ComponentsRequest], None],
    *,
    jobs: int = 8,
    given: Collection[str] = (),
) -> tuple[ComponentsRequest, int] | None:
    """Ask what to run, and how many trials to run at the same time.

    Return None if the person leaves or does not want to start.

    Args:
        request: What the command line asks for, and the answers to offer for the rest.
        show_plan: Shows what would be run, and raises if that is impossible.
        jobs: The number of trials to offer.
        given: The names that the command line has already set: fields of the request, or `jobs`.
    """
    gateway = None if {"models", "pricing"} <= set(given) else find_gateway_models()
    questions: dict[str, Callable[[ComponentsRequest], Any]] = {
        "models": lambda _: ask_models(gateway),
        "pricing": lambda request: ask_pricing(request.models, gateway, default=request.pricing),
        "mcp": lambda _: ask_mcp(),
        "test_tool": lambda request: confirm(_MAY_TEST, default=request.test_tool),
    }
    try:
        for name, question in questions.items():
            if name not in given:
                request = request.model_copy(update={name: question(request)})
        if "jobs" not in given:
            jobs = int(type_in("Trials at the same time", str(min(jobs, _MAX_JOBS)), _number_problem))
        out().print()
        show_plan(request)
        words = escaped_lines(shlex.join(command_line(request, jobs=jobs)))
        # One long line, so that it can be copied.
        out().print(Text("the same without questions:"), Text(f"  {words}", style="cyan"), sep="\n", soft_wrap=True)
        free = all(_is_control(name) or name.startswith(f"{LOCAL}:") for name in request.models)
        wanted = confirm("Start?", default=free)  # Enter alone must not spend money
    except KeyboardInterrupt:
        wanted = False
    if not wanted:
        say(CANCELLED)
    return (request, jobs) if wanted else None


def _number_problem(text: str) -> str | None:
    fits = text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_JOBS
    return None if fits else f"type a number from 1 to {_MAX_JOBS}"


def ask_models(gateway: GatewayModels | None) -> tuple[str, ...]:
    """Ask for at least one model or control, and return the names."""
    chosen = select_several("Models", {**dict(_options(gateway)), _OTHER: "another: type its name …"})
    names = [name for name in chosen if name != _OTHER]
    if _OTHER in chosen:
        _say("type provider:model, or maker/model for the gateway; separate several by commas")
        names += _split(type_in("Names", "", _model_problems))
    return tuple(dict.fromkeys(names))


def find_gateway_models() -> GatewayModels | None:
    """Return the gateway's models. With a key, try briefly to refresh an old list first."""
    kept = kept_models()
    if not known_providers()[GATEWAY].key(read_environment()):
        if kept is None:
            _say("the AI gateway's models are not listed: AI_GATEWAY_API_KEY is not set")
        return kept
    if kept is not None and kept.is_fresh:
        return kept
    _say("fetching the AI gateway's models …")
    found: list[GatewayModels] = []
    problems: list[str] = []

    def fetch() -> None:
        try:
            found.append(refresh_models())
        except BakeoffError as error:
            problems.append(str(error))

    thread = threading.Thread(target=fetch, daemon=True)  # it may be abandoned
    thread.start()
    thread.join(_WAIT_SECONDS)
    if found:
        return found[0]
    instead = f"using the list of {kept.date}" if kept else "its models are not listed, but you can type their names"
    _say(f"{problems[0] if problems else 'the gateway takes too long'}; {instead}")
    return kept


def _say(message: str) -> None:
    out().print(Text(visible(message, 300), style="italic"))


def _options(gateway: GatewayModels | None) -> Iterator[tuple[str, str]]:
    """Yield controls and models (local, gateway, other providers) with the texts to show."""
    for name, note in _CONTROLS.items():
        yield name, f"{name}  ({note})"
    for name, weights in KNOWN.items():
        note = "runs on this machine" if is_here(name) else f"{weights.bytes / 1e6:.0f} MB, downloaded on first use"
        yield f"{LOCAL}:{name}", f"{LOCAL}:{name}  ({note})"
    for model in gateway.models if gateway else ():
        if model.kind in (None, "language") and _model_problem(model.id) is None:
            yield _priced_option(ModelName(GATEWAY, model.id), gateway)
    environment = read_environment()
    keyed = [each for each in reversed(known_providers().values()) if each.prices and each.key(environment)]
    usable = {provider.prices: provider.name for provider in keyed}
    for provider, known, _ in models_of_genai():
        if provider in usable:
            yield _priced_option(ModelName(usable[provider], known.id), None)


def _priced_option(name: ModelName, gateway: GatewayModels | None) -> tuple[str, str]:
    price, _ = _price_of(name, gateway)
    rates = "  ({} in, {} out)".format(*mtok(price, ("input", "output"))) if price else ""
    return str(name), f"{visible(str(name))}{rates}{_key_note(str(name))}"


def _key_note(model: str) -> str:
    """Return a note for a model's option if its key is missing, or else an empty string."""
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
        return f"{visible(text, 30)}: {_advice(error)}"
    if name.provider not in known_providers():
        return f"there is no provider {visible(name.provider, 30)}"
    return None if text.isprintable() else "a name cannot have control characters"


def _advice(error: UsageError) -> str:
    """Return the advice at the end of an error message, because a prompt has room for one line."""
    return visible(str(error).rpartition(": ")[2])


def _is_control(name: str) -> bool:
    """Tell whether a name stands for a control, which uses no model."""
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
    out().print(prices)
    return confirm("Compute costs at these prices?", default=default)


def _price_of(name: ModelName, gateway: GatewayModels | None) -> tuple[Price | None, str]:
    provider = known_providers().get(name.provider)
    try:
        return known_price(gateway, (provider and provider.prices) or name.provider, name.model), ""
    except UsageError as error:  # the gateway's list has an invalid price
        return None, str(error)


def ask_mcp() -> tuple[str, ...]:
    """Ask for MCP servers. Each entry of the result is `none`, a server, or several joined by ` + `."""
    servers: list[str] = []
    while (server := _ask_server(is_first=not servers)) is not None:
        servers.append(server)
    if not servers:
        return (_NO_SERVER,)
    entries = tuple(dict.fromkeys(servers))
    if len(entries) > 1:
        groups = {"apart": "one at a time: which is better?", "together": "all at once: models get the tools of all"}
        if select("Several servers", groups) == "together":
            entries = (JOINED.join(entries),)
    without = confirm("Also without MCP, to see the difference?", default=True)
    return (_NO_SERVER, *entries) if without else entries


def _ask_server(*, is_first: bool) -> str | None:
    """Ask for one more server. Return None if there are no more."""
    from bakeoff.mcp.servers import DEFAULT_COMMAND, DEFAULT_URL

    yes = "" if is_first else "yes, "
    options = {
        _NO_SERVER: "none, built-in tools only" if is_first else "no",
        _HTTP: f"{yes}over HTTP",
        _STDIO: f"{yes}over stdio",
    }
    kind = select("MCP server" if is_first else "Another server", options)
    if kind == _NO_SERVER:
        return None
    question, usual = ("URL", DEFAULT_URL) if kind == _HTTP else ("Command", DEFAULT_COMMAND)
    typed = type_in(question, usual, lambda text: _server_problem(f"{kind}:{text}" if text else kind))
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
        return _advice(error)
    return None


def choose_aim(results: Path) -> Words | None:
    """Ask what to find out; return the words to type after `bakeoff`, or None if cancelled."""
    _print_recent(results)
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
    try:
        words = aims[select("What do you want to find out?", {name: name for name in aims}, keep=False)]()
        out().print(Text(f"{escaped_lines(shlex.join(['bakeoff', *words]))}\n", style="cyan"), soft_wrap=True)
        if words[0] not in _MAY_COST or confirm(_MAY_START, default=False):
            return words
    except KeyboardInterrupt:
        pass
    say(CANCELLED)
    return None


def _or_start(kind: str, file: str, *words: str) -> Words:
    """Return the command that evaluates the configuration here or, without one, writes one."""
    return [*words] if Path(file).is_file() else ["init", kind]


def _ask_agent() -> Words:
    from bakeoff.doors.agents.agents import known_agents

    here = {name: name for name, agent in known_agents().items() if shutil.which(agent.command[0])}
    if not here:
        say("no known agent is installed (`bakeoff agents list` says how): here is one of your own")
        return ["init", "agents"]
    return ["agents", "run", "--agent", select("Agent", here), "--agent", "nop"]


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
        scores = {one.subject: one.score for one in entry.summary.judged if one.score is not None}
        best = max(scores, key=lambda subject: scores[subject], default=None)
        add_row(rows, folder.name, entry.state, f"{best} {percent(scores[best])}" if best else "")
    out().print(rows)
    out().print()
