"""Ask which models and MCP servers a run uses, and whether to compute costs."""

import threading
from collections.abc import Iterator
from itertools import count

from rich.text import Text

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.text import visible
from bakeoff.cli.console import add_row, out, table
from bakeoff.cli.models import mtok
from bakeoff.cli.prompts import Option, advice, confirm, is_repeating, select, select_several, show_answer, type_in
from bakeoff.doors.components.request import JOINED
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.models.embedded.weights import KNOWN, check_name, is_here
from bakeoff.models.gateway import LOCAL, GatewayModels, kept_models, known_price, refresh_models
from bakeoff.models.prices import Price, models_of_genai
from bakeoff.models.providers import GATEWAY, ModelName, known_providers, parse_model_name

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
    for known in models_of_genai():
        if known.provider in usable:
            yield _priced_option(ModelName(usable[known.provider], known.model), None)


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
