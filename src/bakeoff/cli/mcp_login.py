"""Carry out `bakeoff mcp login` and `logout`."""

import asyncio

from bakeoff.cli.console import out, say
from bakeoff.cli.flags import ServerOptions
from bakeoff.cli.mcp_servers import one_suite
from bakeoff.cli.run_plan import FAILED, PASSED
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.report.formatting import visible


def login(
    *,
    server: str | None = None,
    servers: ServerOptions,
    scope: str | None = None,
    client_id: str | None = None,
    port: int = 0,
    timeout: float = 300.0,
    no_open: bool = False,
) -> int:
    """Log in at one server with the browser; return 1 if the login is refused."""
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


def logout(*, server: str | None = None, servers: ServerOptions) -> int:
    """Forget the tokens of one server."""
    from bakeoff.mcp.oauth import TokenStore

    spec, store = _one(server, servers), TokenStore()
    known = spec.url is not None and store.remove(spec.url)
    say(f"{'forgot the login' if known else 'there is no login'} at {visible(spec.address)}")
    return PASSED


def _one(server: str | None, servers: ServerOptions) -> ServerSpec:
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
