"""The questions about models: which ones, and whether their prices are right."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from bakeoff._kernel.environment import read_environment
from bakeoff.cli.console import out
from bakeoff.cli.wizard_prompts import Option, advice, agree, show_answer, tick, type_in
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.models.embedded.weights import KNOWN, check_name, is_here
from bakeoff.models.gateway import LOCAL, GatewayModels, kept_models, known_price, refresh_models
from bakeoff.models.names import GATEWAY, ModelName, parse_model_name
from bakeoff.models.prices import Price, format_mtok_cost, models_of_genai
from bakeoff.models.providers import known_providers
from bakeoff.report.words import UNKNOWN, visible

CONTROLS = {"oracle": "control: submits the reference", "nop": "control: does nothing"}

_OTHER = "\0other"  # no model can be called that
_WAIT_SECONDS = 4.0
_NARROW = 90  # columns, below which the prices of caches are left out


def ask_models(gateway: GatewayModels | None, before: tuple[str, ...]) -> tuple[str, ...]:
    """The names of at least one model or control, in the order they were offered in."""
    options = {option.value: option for option in _options(gateway)}
    typed = {name: Option(name, name) for name in before if name not in options and _problem(name) is None}
    other = Option(_OTHER, "another, whose name you type …")
    # What is ticked already comes first, where it is seen.
    offered = sorted([*typed.values(), *options.values()], key=lambda option: option.value not in before)
    chosen = tick("Models", [*offered, other], before)
    names = [name for name in chosen if name != _OTHER]
    show_answer("Models", ", ".join([*names, *(["another"] if _OTHER in chosen else [])]))
    if _OTHER in chosen:
        _say("as provider:model, or maker/model for the gateway; commas between several")
        names += _split(type_in("Their names", "", _problems))
    return tuple(dict.fromkeys(names))


def find_gateway_models() -> GatewayModels | None:
    """The gateway's list: fetched, if there is a key for it and the kept one is old, but never waited for long."""
    kept = kept_models()
    has_key = known_providers()[GATEWAY].key(read_environment())
    if not has_key:
        if kept is None:
            _say("the AI gateway's models are not listed: it has no key here (AI_GATEWAY_API_KEY)")
        return kept
    if kept is not None and kept.is_fresh:
        return kept
    _say("asking the AI gateway for its models …")
    asked = _Asked()
    asked.join(_WAIT_SECONDS)
    if asked.models is not None:
        return asked.models
    instead = f"its models are those of {kept.date}" if kept else "its models are not listed, but can be typed"
    _say(f"{asked.problem or 'the gateway takes too long'}; {instead}")
    return kept


class _Asked(threading.Thread):
    """A question to the gateway that nobody has to wait for."""

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
    for name, note in CONTROLS.items():
        yield Option(name, f"{name}  ({note})")
    for name, weights in KNOWN.items():
        note = "runs on this machine" if is_here(name) else f"{weights.bytes / 1e6:.0f} MB, fetched when first used"
        yield Option(f"{LOCAL}:{name}", f"{LOCAL}:{name}  ({note})")
    for model in gateway.models if gateway else ():
        if model.kind in (None, "language") and _problem(model.id) is None:
            yield _priced_option(ModelName(GATEWAY, model.id), gateway)
    yield from _options_with_keys()


def _options_with_keys() -> Iterator[Option]:
    """The models of providers whose keys are here, as far as a price list knows them."""
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
    rates = f"  ({_mtok(price, 'input')} in, {_mtok(price, 'output')} out)" if price else ""
    return Option(str(name), f"{visible(str(name))}{rates}")


def _problems(text: str) -> str | None:
    names = _split(text)
    return next(filter(None, map(_problem, names)), None) if names else "type at least one name"


def _split(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _problem(text: str) -> str | None:
    """What keeps a run from asking this model; its key is not looked for."""
    if _is_control(text):
        return None
    try:
        name = parse_model_name(text)
        if name.provider == LOCAL:
            check_name(name.model)
    except UsageError as error:
        return f"{visible(text, 30)}: {advice(error)}"
    if name.provider not in known_providers():
        return f"no provider is called {visible(name.provider, 30)}"
    return None if text.isprintable() else "a name has no control characters"


def _is_control(name: str) -> bool:
    """Whether a name stands for a subject that asks no model; a cheat, with its way to cheat, is never offered."""
    return name in CONTROLS or name.partition(":")[0] == "cheat"


@dataclass(frozen=True, slots=True)
class _Line:
    """One model's line in the table of prices."""

    name: str
    price: Price | None
    note: str


def ask_pricing(models: tuple[str, ...], gateway: GatewayModels | None, *, default: bool) -> bool:
    """Whether costs are to be computed at the prices that are shown."""
    asking = [name for name in models if not _is_control(name)]
    if not asking:
        return default  # nothing is bought
    out().print(_price_table([_line(name, gateway) for name in asking]))
    return agree("Compute costs at these prices?", default=default)


def _line(text: str, gateway: GatewayModels | None) -> _Line:
    price, problem = _price_of(parse_model_name(text), gateway)
    if price is None:
        return _Line(text, None, problem or "nobody says: no costs")
    return _Line(text, price, f"{price.source} {price.date}" if price.date else price.source)


def _price_of(name: ModelName, gateway: GatewayModels | None) -> tuple[Price | None, str]:
    provider = known_providers().get(name.provider)
    try:
        return known_price(gateway, (provider and provider.prices) or name.provider, name.model), ""
    except UsageError as error:  # a senseless price in the gateway's list
        return None, str(error)


def _price_table(lines: list[_Line]) -> Table:
    kinds = {"in": "input", "out": "output", "cache read": "cacheRead", "cache write": "cacheCreation"}
    if out().width < _NARROW:
        kinds = {heading: kind for heading, kind in kinds.items() if not kind.startswith("cache")}
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 2))
    table.add_column("USD per MTok", overflow="fold")
    for heading in kinds:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("according to", overflow="fold")
    for line in lines:
        cells = (line.name, *(_mtok(line.price, kind) for kind in kinds.values()), line.note)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def _mtok(price: Price | None, kind: str) -> str:
    """A `+` says that long prompts cost more."""
    cost = price.per_mtok().get(f"{kind}CostPerMTok") if price else None
    return UNKNOWN if cost is None or price is None else format_mtok_cost(cost) + "+" * bool(price.tiers)
