"""Run the server on a loopback socket."""

import logging
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from bakeoff._kernel.http_server import HOST, ServerLimits, no_proxy, server_config
from bakeoff.errors import UsageError
from bakeoff.report.render.html.run_page import Parts, no_parts
from bakeoff.report.view.app import make_app
from bakeoff.report.view.guard import TOKEN

Make = Callable[[int, str, Callable[[], None]], ASGIApp]
"""Make an application for a port and a token; calling the third argument stops the server."""


def serve(results: Path, port: int, ready: Callable[[str], None], *, parts: Parts = no_parts) -> None:
    """Serve until Ctrl-C. `ready` receives the address once it answers; `parts` gives what doors add to pages."""
    serve_app(lambda bound, token, _: make_app(results, bound, token, parts=parts), port, ready)


def serve_app(make: Make, port: int, ready: Callable[[str], None]) -> None:
    """Serve an application on a loopback socket until Ctrl-C, or until it stops the server itself."""
    with _listen(port) as listening:
        bound: int = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)

        def stop() -> None:
            server.should_exit = True

        # Event streams have no end of their own.
        app = no_proxy(make(bound, token, stop))
        config = server_config(app, ServerLimits(), log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        ready(f"http://{HOST}:{bound}/?{TOKEN}={token}")
        # Ctrl-C cuts off streams, and pages that are being made: no error that anybody should read of.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        server.run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"port {port} cannot be used: {reason}; leave --port out to take a free one") from error
