"""Ask a person at a terminal what to do, and for a run which models, servers and tools to use.

The answers for a run are kept, without secrets, and offered the next time in the same project.
Importing this module takes a moment, so commands import it only when they are about to ask.
"""

import os
import shlex
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PositiveInt, ValidationError
from pydantic.types import StringConstraints
from rich.text import Text

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.files import open_file, write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import visible
from bakeoff.cli.console import add_row, out, say, table
from bakeoff.cli.crash import shown
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
from bakeoff.storage.redaction import Redactor, known_secrets, secrets_in
from bakeoff.storage.run_folder import run_folders

CANCELLED = "cancelled; nothing was run"
_MAX_JOBS = 256
_CONTROLS = {"oracle": "control: submits the reference", "nop": "control: does nothing"}
_OTHER = "another"  # no model has a name without a provider
_WAIT_SECONDS = 4.0
_NARROW = 90  # a terminal with fewer columns shows no cache prices
_NO_SERVER, _HTTP, _STDIO = "none", "http", "stdio"
_RECENT = 3
_MAX_BYTES = 64 * 1024
# The answers are shown on the screen, and anybody may have edited the file: no control characters.
_Shown = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Words = list[str]


class LastAnswers(FrozenModel):
    """The answers for the last run; None or empty where there are none."""

    model_config = ConfigDict(extra="ignore")  # a newer version may have written more

    models: tuple[_Shown, ...] = Field(default=(), max_length=100)
    pricing: bool | None = None
    mcp: tuple[_Shown, ...] = Field(default=(), max_length=20)
    test_tool: bool | None = None
    jobs: PositiveInt | None = None


def answers_file() -> Path:
    """Return the path of the file of this project, in the user's configuration folder. It need not exist."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification says to ignore relative paths.
    folder = (base if base.is_absolute() else Path.home() / ".config") / "bakeoff"
    return folder / f"answers-{fingerprint(str(Path.cwd()))[:16]}.json"


def recall() -> LastAnswers:
    """Return the last answers. A file that cannot be read counts as none; the next answers replace it."""
    path = answers_file()
    try:
        with open_file(path) as file:
            return LastAnswers.model_validate_json(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return LastAnswers()
    except (OSError, ValidationError):
        say(f"{path} cannot be read: the last answers are ignored")
        return LastAnswers()


def remember(request: ComponentsRequest, jobs: int) -> None:
    """Keep the answers without their secrets: an MCP entry with a secret in a command is left out."""
    remembered = LastAnswers(
        models=request.models,
        pricing=request.pricing,
        mcp=tuple(filter(None, map(_without_secrets, request.mcp))),
        test_tool=request.test_tool,
        jobs=jobs,
    )
    try:
        write_atomically(answers_file(), remembered.model_dump_json(indent=2).encode())
    except OSError as error:
        say(f"the answers cannot be saved in {answers_file().parent}: {error.strerror or error}")


def _without_secrets(entry: str) -> str | None:
    """Return servers without the secrets in their URLs, or None if one has a secret in its command."""
    from bakeoff.mcp.servers import parse_mcp_option, shown_url  # takes a second to load

    kept: list[str] = []
    known = Redactor(known_secrets())
    for text in (each.strip() for each in entry.split(JOINED.strip())):
        try:
            spec = parse_mcp_option(text)
        except UsageError:
            return None
        if spec is None or text in (_HTTP, _STDIO):
            kept.append(text)
            continue
        if spec.url is not None:
            kept.append(f"{_HTTP}:{shown_url(spec.url)}")
            continue
        words = [spec.command or "", *spec.args]
        named = dict(_named_values(words))
        addresses = [word for word in words if "://" in word]
        if known.finds(shlex.join(words).encode()) or secrets_in(named) or "bearer" in text.lower():
            return None
        if any(shown_url(address) != address for address in addresses):
            return None
        kept.append(text)
    return JOINED.join(kept)


def _named_values(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of words that look like `NAME=value`, `--name=value` or `--name value`."""
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if equals or word.startswith("-"):
            yield name.lstrip("-"), value if equals else following


def ask_for_run(
    defaults: ComponentsRequest,
    show_plan: Callable[[ComponentsRequest], None],
    *,
    jobs: int = 8,
    given: Collection[str] = (),
) -> tuple[ComponentsRequest, int] | None:
    """Ask what to run, and how many trials at the same time.

    Return None if the person leaves, or does not want to start; what was answered is offered the next time.

    Args:
        defaults: What to offer where there is no earlier answer.
        show_plan: Shows what would be run, and raises if that is impossible.
        jobs: The number of trials to offer.
        given: What the command line has said already: fields of the request, or `jobs`.
    """
    last = recall()
    gateway = None if {"models", "pricing"} <= set(given) else find_gateway_models()
    questions: dict[str, Callable[[ComponentsRequest], Any]] = {
        "models": lambda request: ask_models(gateway, request.models),
        "pricing": lambda request: ask_pricing(request.models, gateway, default=request.pricing),
        "mcp": lambda request: ask_mcp(request.mcp),
        "test_tool": lambda request: confirm(
            "May models run the tests before they submit (TestComponent)?", default=request.test_tool
        ),
    }
    asked = [name for name in questions if name not in given]
    answered = {name: getattr(last, name) for name in asked if getattr(last, name) not in (None, ())}
    request = defaults.model_copy(update=answered)
    try:
        for name in asked:
            request = request.model_copy(update={name: questions[name](request)})
        if "jobs" not in given:
            jobs = int(type_in("Trials at the same time", str(min(last.jobs or jobs, _MAX_JOBS)), _number_problem))
        out().print()
        show_plan(request)
        words = shown(shlex.join(command_line(request, jobs=jobs)))
        # One long line, so that it can be copied.
        out().print(Text("the same without questions:"), Text(f"  {words}", style="cyan"), sep="\n", soft_wrap=True)
        wanted = confirm("Start?", default=True)
    except KeyboardInterrupt:
        wanted = False
    remember(request, jobs)
    if not wanted:
        say(CANCELLED)
    return (request, jobs) if wanted else None


def _number_problem(text: str) -> str | None:
    fits = text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_JOBS
    return None if fits else f"type a number from 1 to {_MAX_JOBS}"


def ask_models(gateway: GatewayModels | None, before: tuple[str, ...]) -> tuple[str, ...]:
    """Ask for models and controls, and return their names, at least one. Those in `before` are selected already."""
    known = dict(_options(gateway))
    typed = {name: f"{name}{_key_note(name)}" for name in before if name not in known and _model_problem(name) is None}
    options = {**typed, **known}
    first = {name: options[name] for name in options if name in before}
    chosen = select_several("Models", {**first, **options, _OTHER: "another: type its name …"}, before)
    names = [name for name in chosen if name != _OTHER]
    if _OTHER in chosen:
        _say("type provider:model, or maker/model for the gateway; separate several by commas")
        names += _split(type_in("Names", "", _model_problems))
    return tuple(dict.fromkeys(names))


def find_gateway_models() -> GatewayModels | None:
    """Return the gateway's models. Fetch them if there is a key and the kept list is old, but wait only briefly."""
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
    """Yield controls, local models, the gateway's, and those of providers whose keys are set, with their texts."""
    for name, note in _CONTROLS.items():
        yield name, f"{name}  ({note})"
    for name, weights in KNOWN.items():
        note = "runs on this machine" if is_here(name) else f"{weights.bytes / 1e6:.0f} MB, downloaded on first use"
        yield f"{LOCAL}:{name}", f"{LOCAL}:{name}  ({note})"
    for model in gateway.models if gateway else ():
        if model.kind in (None, "language") and _model_problem(model.id) is None:
            yield _priced_option(ModelName(GATEWAY, model.id), gateway)
    environment = read_environment()
    usable = {
        provider.prices: provider.name
        for provider in reversed(known_providers().values())
        if provider.prices and provider.key(environment)
    }
    for provider, known, _ in models_of_genai():
        if provider in usable:
            yield _priced_option(ModelName(usable[provider], known.id), None)


def _priced_option(name: ModelName, gateway: GatewayModels | None) -> tuple[str, str]:
    price, _ = _price_of(name, gateway)
    rates = "  ({} in, {} out)".format(*mtok(price, ("input", "output"))) if price else ""
    return str(name), f"{visible(str(name))}{rates}{_key_note(str(name))}"


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
        return f"{visible(text, 30)}: {_advice(error)}"
    if name.provider not in known_providers():
        return f"there is no provider {visible(name.provider, 30)}"
    return None if text.isprintable() else "a name cannot have control characters"


def _advice(error: UsageError) -> str:
    """Return the advice at the end of an error message: a prompt has room for one line."""
    return visible(str(error).rpartition(": ")[2])


def _is_control(name: str) -> bool:
    """Return True if a name stands for a control subject, which uses no model."""
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


def ask_mcp(before: tuple[str, ...]) -> tuple[str, ...]:
    """Ask for MCP servers. Each entry of the result is `none`, a server, or several joined by ` + `."""
    texts = (text.strip() for entry in before for text in entry.split(JOINED.strip()))
    offered = [text for text in dict.fromkeys(texts) if text != _NO_SERVER and _server_problem(text) is None]
    servers: list[str] = []
    while (server := _ask_server(offered, len(servers))) is not None:
        servers.append(server)
    if not servers:
        return (_NO_SERVER,)
    entries = tuple(dict.fromkeys(servers))
    if len(entries) > 1:
        groups = {"apart": "one at a time: which is better?", "together": "all at once: models get the tools of all"}
        joined = any(JOINED in entry for entry in before)
        if select("Several servers", groups, default="together" if joined else "apart") == "together":
            entries = (JOINED.join(entries),)
    # Yes, unless the last answer was no.
    without = confirm("Also without MCP, to see the difference?", default=_NO_SERVER in before or not offered)
    return (_NO_SERVER, *entries) if without else entries


def _ask_server(offered: list[str], number: int) -> str | None:
    """Ask for one more server, with the last used one as the default. Return None if there are no more."""
    from bakeoff.mcp.servers import DEFAULT_COMMAND, DEFAULT_URL

    before = offered[number] if number < len(offered) else _NO_SERVER
    kind_before, _, rest = before.partition(":")
    yes = "yes, " if number else ""
    options = {
        _NO_SERVER: "no" if number else "none, built-in tools only",
        _HTTP: f"{yes}over HTTP",
        _STDIO: f"{yes}over stdio",
    }
    kind = select("Another server" if number else "MCP server", options, default=kind_before)
    if kind == _NO_SERVER:
        return None
    question, usual = ("URL", DEFAULT_URL) if kind == _HTTP else ("Command", DEFAULT_COMMAND)
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
        return _advice(error)
    return None


def choose_aim(results: Path) -> Words | None:
    """Ask what to find out, and return the words to type after `bakeoff`. Return None if the person leaves."""
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
    except KeyboardInterrupt:
        say(CANCELLED)
        return None
    out().print(Text(f"{shown(shlex.join(['bakeoff', *words]))}\n", style="cyan"), soft_wrap=True)
    return words


def _or_start(kind: str, file: str, *words: str) -> Words:
    """Return the command that evaluates what is here, or writes a start where nothing is."""
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
