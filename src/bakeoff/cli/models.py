"""Implement `bakeoff models`: list models, show prices, download and serve a local model."""

import asyncio
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text
from typer import Argument, Option

from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import add_row, err, out, print_json, say, table, warn
from bakeoff.cli.declare import INTERRUPTED, PASSED, UNDECIDED, command, flag, group_of
from bakeoff.cli.flags import AsJson
from bakeoff.errors import InfraError, UsageError

if TYPE_CHECKING:
    from bakeoff.models.catalogue import ListedModel
    from bakeoff.models.embedded.launch import EmbeddedEndpoint
    from bakeoff.models.gateway import GatewayModels
    from bakeoff.models.prices import Rates

app = group_of("List models, show prices, download a model.", "bakeoff models list --provider local")

Refresh = Annotated[bool, Option("--refresh", help="Fetch the AI Gateway's list of models again.")]
_NEAR = 5
_KINDS = ("input", "output", "cacheRead", "cacheCreation")
_NUMBERS = ("context", "in", "out", "cache read", "cache write")


@command(app, "list")
def list_models(
    *,
    provider: str | None = flag(
        None, "Only models of this provider, such as local, gateway or openai.", metavar="NAME"
    ),
    search: str | None = flag(None, "Only models with this text in the name.", metavar="TEXT"),
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> int:
    """List models with their prices. Uses the network only with --refresh.

    Example: bakeoff models list --provider local
    """

    from bakeoff.models.catalogue import listed_models
    from bakeoff.report.formatting import UNKNOWN

    gateway, code = _ask_gateway(refresh=refresh)
    rows = list(listed_models(gateway))
    if provider is not None:
        rows = _of_provider(rows, provider)
    if search is not None:
        rows = [row for row in rows if search.lower() in row.name.lower()]
    if as_json:
        print_json([row.as_json() for row in rows])
        return code
    if rows:
        shown = table("model", "context", "in", "out", "source", right=_NUMBERS)
        for row in rows:
            context = f"{row.context:,}" if row.context else UNKNOWN
            add_row(shown, row.name, context, *mtok(row.price, _KINDS[:2]), _source(row))
        out().print(shown)
    err().print(f"{count_of(len(rows), 'model')}; prices are in USD per million tokens")
    if not refresh:
        known = f"the gateway's models are as of {gateway.date}; --refresh fetches them again" if gateway else None
        err().print(known or "the list lacks the gateway's models: `bakeoff models list --refresh` fetches them")
    return code


def _ask_gateway(*, refresh: bool) -> "tuple[GatewayModels | None, int]":
    """Return the gateway's models and an exit code; if a refresh fails, use the kept list."""

    from bakeoff.models.gateway import kept_models, refresh_models
    from bakeoff.models.prices import GENAI

    if not refresh:
        return kept_models(), PASSED
    try:
        return refresh_models(say=lambda problem: warn([problem])), PASSED
    except InfraError as error:
        kept = kept_models()
        missing = f"there is no kept list of the gateway's models; prices come from {GENAI}, which needs no network"
        warn([str(error)])
        say(f"using the gateway's list of {kept.date}" if kept else missing)
        return kept, UNDECIDED


def _of_provider(rows: "list[ListedModel]", typed: str) -> "list[ListedModel]":
    from bakeoff.models.catalogue import _OUR_NAMES
    from bakeoff.models.providers import GATEWAY, known_providers

    wanted = _OUR_NAMES.get(typed.lower(), typed.lower())
    providers = known_providers()
    if wanted not in providers:
        raise UsageError(f"--provider {typed!r} is not one of {', '.join(sorted(providers))}")
    prices = providers[wanted].prices  # some providers are listed under another name, such as gemini under google
    listed = _OUR_NAMES.get(prices, prices) if prices else wanted
    rows = [replace(row, provider=wanted) for row in rows if row.provider == listed]
    if not rows and wanted != GATEWAY:  # the last lines say more about the gateway
        err().print(Text(f"no list of {wanted}'s models is known: name one as {wanted}:NAME"))
    return rows


def mtok(rates: "Rates | None", kinds: Iterable[str]) -> Iterator[str]:
    """Yield prices per million tokens. A `+` means that long prompts cost more."""

    from bakeoff.models.prices import Price, format_mtok_cost
    from bakeoff.report.formatting import UNKNOWN

    costs = rates.per_mtok() if rates else {}
    more = "+" if isinstance(rates, Price) and rates.tiers else ""
    for kind in kinds:
        cost = costs.get(f"{kind}CostPerMTok")
        yield UNKNOWN if cost is None else format_mtok_cost(cost) + more


def _source(row: "ListedModel") -> str:
    source = f"{row.source} {row.date}" if row.date else row.source
    return f"{source}: {row.note}" if row.note else source


@command(app, "prices")
def show_prices(
    *,
    names: Annotated[list[str], Argument(metavar="MODEL", help="Models, such as anthropic/claude-sonnet-4.")],
    refresh: Refresh = False,
    as_json: AsJson = False,
) -> int:
    """Show what models cost per million tokens, with the source and the date of each price.

    Example: bakeoff models prices anthropic/claude-sonnet-4
    """

    from bakeoff.models.catalogue import listed_models, priced_model

    gateway, code = _ask_gateway(refresh=refresh)
    found = {name: priced_model(name, gateway) for name in names}
    rows = [row for row in found.values() if row is not None]
    if as_json:
        print_json([row.as_json() for row in rows])
    elif rows:
        shown = table("model", "in", "out", "cache read", "cache write", "source", "listed as", right=_NUMBERS)
        for row in rows:
            assert row.price is not None
            add_row(shown, row.name, *mtok(row.price, _KINDS), _source(row), row.price.key)
            for tier in row.price.tiers:
                add_row(shown, Text(f"  prompts over {tier.above:,} tokens"), *mtok(tier, _KINDS))
        out().print(shown)
        err().print("USD per million tokens; where a cache price is missing, the input price applies")
    if unknown := [name for name, row in found.items() if row is None]:
        everything = list(listed_models(gateway))
        raise UsageError("\n".join(_unknown(name, everything) for name in unknown))
    return code


def _unknown(name: str, rows: "list[ListedModel]") -> str:
    """Say that a name has no known price, and suggest similar names."""
    whole = {row.name.lower(): row.name for row in rows}
    last = {_last_part(row.model): row.name for row in reversed(rows)}
    close = [whole[like] for like in get_close_matches(name.lower(), whole, _NEAR)]
    close += [last[like] for like in get_close_matches(_last_part(name), last, _NEAR)]
    near = list(dict.fromkeys(close))[:_NEAR]
    advice = f"similar names: {', '.join(near)}" if near else "`bakeoff models list --search TEXT` finds names"
    return f"no price is known for {name!r}; {advice}"


def _last_part(name: str) -> str:
    return re.split("[:/]", name.lower())[-1]


Transferred = Callable[[int, int | None], None]


@command(app, "pull")
def pull_model(
    *, name: Annotated[str, Argument(metavar="MODEL", help="A local model from `bakeoff models list`.")]
) -> int:
    """Download a model that runs on this machine, so that runs need no network.

    Example: bakeoff models pull smollm2
    """

    from bakeoff.models.embedded.weights import pull
    from bakeoff.models.gateway import LOCAL

    try:
        with show_transfer(err()) as (progress, say):
            pull(name.removeprefix(f"{LOCAL}:"), progress=progress, say=say)
    except InfraError as error:
        err().print(Text(f"error: {error}"))
        return UNDECIDED
    return PASSED


@contextmanager
def show_transfer(console: Console) -> Iterator[tuple[Transferred, Callable[[str], None]]]:
    """Show a download; yield a function to call with the bytes done, and one to print messages."""
    if not console.is_terminal:
        told = 0

        def line(done: int, total: int | None) -> None:
            """Print a line whenever another quarter is done."""
            nonlocal told
            quarter = 4 * done // total if total else 0
            if quarter > told:
                console.print(f"{25 * quarter} % of {(total or 0) / 1e6:.0f} MB")
            told = quarter

        yield line, lambda message: console.print(Text(message))
        return
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def progress(done: int, total: int | None) -> None:
            if done < bar.tasks[0].completed:  # the next file has begun
                bar.reset(task)
            bar.update(task, completed=done, total=total)

        yield progress, lambda message: bar.console.print(Text(message))


_PREFIXES = ("OPENAI", "OPENAI_COMPATIBLE")


@command(app, "serve")
def serve_model(
    *,
    model: str = flag("smollm2", "A local model from `bakeoff models list`.", metavar="MODEL"),
    command: Annotated[
        list[str] | None,
        Argument(metavar="COMMAND", help="Serve while this runs, with variables that name the server."),
    ] = None,
) -> int:
    """Serve a model that runs on this machine to other programs, as a server of the OpenAI API.

    Example: bakeoff models serve
    """

    from bakeoff.models.embedded import EmbeddedServer

    async def serve() -> int:
        async with EmbeddedServer(model.removeprefix("local:"), say=say).open() as endpoint:
            if command:
                environment = {**os.environ, **variables(endpoint)}
                return (await asyncio.to_thread(subprocess.run, command, env=environment, check=False)).returncode
            for name, value in variables(endpoint).items():
                out().print(f"export {name}={visible(value)}", soft_wrap=True)
            say(f"{endpoint.model_name} is served until Ctrl-C; the lines above are for another terminal")
            await asyncio.Event().wait()
            return 0

    try:
        return asyncio.run(serve())
    except KeyboardInterrupt:
        return INTERRUPTED if command else 0
    except OSError as error:
        if not command:
            raise
        raise UsageError(f"{command[0]!r} cannot be started: {error.strerror}") from error


def variables(endpoint: "EmbeddedEndpoint") -> dict[str, str]:
    """Return the environment variables by which clients find the server."""
    values = {"BASE_URL": endpoint.base_url, "API_KEY": endpoint.api_key}
    return {f"{prefix}_{name}": value for prefix in _PREFIXES for name, value in values.items()}
