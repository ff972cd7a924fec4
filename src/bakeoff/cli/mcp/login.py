"""Implement `bakeoff mcp login` and `logout`."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.text import visible
from bakeoff.cli.console import out, say
from bakeoff.cli.declare import FAILED, PASSED, command, flag, group_of
from bakeoff.cli.flags import NoOpen, Port
from bakeoff.cli.mcp.servers import ServerOptions, one_suite
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.mcp import ServerSpec

app = group_of()
ServerName = Annotated[
    str | None, Argument(metavar="SERVER", help="A server of the configuration. Default: the only one at a URL.")
]


@command(app, "login")
def login(
    *,
    server: ServerName = None,
    servers: ServerOptions,
    scope: str | None = flag(None, "The scopes to ask for. Default: those that the server names.", metavar="TEXT"),
    client_id: str | None = flag(None, "A client that is registered already. Default: register one.", metavar="NAME"),
    port: Port = 0,
    timeout: float = flag(300.0, "How long to wait for the login.", min=1, metavar="SECONDS"),
    no_open: NoOpen = False,
) -> int:
    """Log in at a server that uses OAuth. The tokens are kept in a file that only you can read.

    Example: bakeoff mcp login --url https://mcp.example.com/mcp
    """
    import webbrowser

    from bakeoff.mcp.login import LoginRefused, LoginRequest, log_in
    from bakeoff.mcp.oauth import token_file

    spec = _one(server, servers)
    request = LoginRequest(
        show=lambda address: out().print(f"Open this address to log in:\n  {address}", soft_wrap=True),
        scope=scope,
        client_id=client_id,
        port=port,
        seconds=timeout,
        opens=None if no_open else webbrowser.open,
    )
    try:
        asyncio.run(log_in(spec, request))
    except LoginRefused as error:
        say(f"error: {error}")
        return FAILED
    say(f"logged in at {visible(spec.address)}; the tokens are in {token_file()}")
    return PASSED


@command(app, "logout")
def logout(*, server: ServerName = None, servers: ServerOptions) -> int:
    """Forget the tokens of a server.

    Example: bakeoff mcp logout --url https://mcp.example.com/mcp
    """
    from bakeoff.mcp.oauth import TokenStore

    spec, store = _one(server, servers), TokenStore()
    known = spec.url is not None and store.remove(spec.url)
    say(f"{'forgot the login' if known else 'there is no login'} at {visible(spec.address)}")
    return PASSED


def _one(server: str | None, servers: ServerOptions) -> "ServerSpec":
    """Return the one server at a URL that is meant."""
    if server is not None:
        servers = ServerOptions(**{**vars(servers), "only": [server]})
    specs, _, _ = one_suite(servers)
    at_urls = [spec for spec in specs if spec.url is not None]
    if not at_urls:
        raise UsageError(f"{', '.join(spec.name for spec in specs)} is a program: only servers at a URL have a login")
    if len(at_urls) > 1:
        raise UsageError(f"there are several servers at a URL: name one of {', '.join(spec.name for spec in at_urls)}")
    return at_urls[0]
