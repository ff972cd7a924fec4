"""Log in at an MCP server: the browser opens the authorization server, which sends its answer to a local address."""

import asyncio
import os
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from mcp.client import Client
from mcp.client.auth import OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull
from mcp_types import Implementation
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from bakeoff._kernel.http_server import HOST, ServerLimits, serving
from bakeoff._kernel.text import visible
from bakeoff._version import __version__
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.mcp.oauth import KeptLogin, TokenStore, check_endpoint
from bakeoff.mcp.servers import HubLimits, ServerSpec
from bakeoff.mcp.session import FAILURES, leaves
from bakeoff.mcp.transports import HttpServer

_PATH = "/callback"
_LIMITS = ServerLimits(connections=32)
_DONE = "You are logged in. You can close this page."
_NOT_DONE = "The login was refused. The terminal says why."
_UNKNOWN = "This is not the answer that is waited for."


class LoginRefused(UsageError):
    """Raised if the authorization server, or the person, said no."""


@dataclass(frozen=True, slots=True)
class LoginRequest:
    """The settings of a login. `show` gets the address that a person has to open."""

    show: Callable[[str], None]
    scope: str | None = None
    client_id: str | None = None
    port: int = 0
    seconds: float = 300.0
    opens: Callable[[str], object] | None = webbrowser.open


@dataclass(slots=True)
class _Callback:
    """The local address that the browser is sent to, and the answer that arrived there."""

    answer: "asyncio.Future[AuthorizationCodeResult]"
    state: str = ""  # of the request that was made: an answer with another one is somebody else's

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of a browser."""
        request = Request(scope)
        if request.headers.get("host") != f"{HOST}:{scope['server'][1]}":  # a name of someone else's leads here
            status, text = HTTPStatus.FORBIDDEN, _UNKNOWN
        elif request.method != "GET" or scope["path"] != _PATH:
            status, text = HTTPStatus.NOT_FOUND, _UNKNOWN
        else:
            status, text = self._answer(dict(request.query_params))
        headers = {"Connection": "close", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        await PlainTextResponse(text, status, headers)(scope, receive, send)

    def _answer(self, given: Mapping[str, str]) -> tuple[HTTPStatus, str]:
        if not self.state or not secrets.compare_digest(given.get("state", "").encode(), self.state.encode()):
            return HTTPStatus.BAD_REQUEST, _UNKNOWN
        if self.answer.done():
            return HTTPStatus.BAD_REQUEST, _UNKNOWN
        if "error" in given or "code" not in given:
            said = ": ".join(given[name] for name in ("error", "error_description") if name in given)
            self.answer.set_exception(LoginRefused(f"the authorization server refused: {visible(said or 'no code')}"))
            return HTTPStatus.OK, _NOT_DONE
        self.answer.set_result(AuthorizationCodeResult(code=given["code"], state=given["state"], iss=given.get("iss")))
        return HTTPStatus.OK, _DONE


async def log_in(spec: ServerSpec, request: LoginRequest, store: TokenStore | None = None) -> None:
    """Log in at a server, and keep the tokens in the user's file.

    Raise `LoginRefused` if the login is refused, and `InfraError` if the server or the flow fails.
    """
    assert spec.url is not None
    async with open_callback(request.port) as (callback, port):
        redirect = f"http://{HOST}:{port}{_PATH}"
        provider = _provider(spec.url, store or TokenStore(), callback, redirect, request)
        peer = HttpServer(spec, HubLimits(), provider)
        problem: BaseException | None = None
        try:
            async with asyncio.timeout(request.seconds):
                info = Implementation(name="bakeoff", version=__version__)
                async with Client(peer.connect(), cache=None, client_info=info):
                    pass
        except* (LoginRefused, *FAILURES) as group:
            problem = group
    if problem is not None and provider.context.current_tokens is None:
        raise _explained(problem, peer, spec, request.seconds)
    if provider.context.current_tokens is None:
        raise UsageError(f"{spec.address} wants no login: it answers without one")


def _explained(problem: BaseException, peer: HttpServer, spec: ServerSpec, seconds: float) -> BakeoffError:
    """Say why a login failed, in one sentence."""
    causes = list(leaves(problem))
    for cause in causes:
        if isinstance(cause, LoginRefused):
            return cause
        if isinstance(cause, OAuthFlowError):
            return InfraError(f"the login at {spec.address} failed: {visible(str(cause), 500)}")
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return InfraError(f"nobody logged in at {spec.address} within {seconds:g} s")
    return InfraError(f"the login at {spec.address} failed: {peer.explain() or visible(str(causes[0]), 500)}")


def _provider(url: str, store: TokenStore, callback: _Callback, redirect: str, request: LoginRequest) -> KeptLogin:
    async def redirected(address: str) -> None:
        """Show and open the address, if it is one that a browser may be sent to."""
        check_endpoint(address)
        callback.state = parse_qs(urlsplit(address).query).get("state", [""])[0]
        request.show(visible(address, 4000))
        if request.opens is not None:
            await asyncio.to_thread(request.opens, address)

    async def answered() -> AuthorizationCodeResult:
        return await callback.answer

    provider = _NewLogin(
        url,
        store,
        redirect_uri=redirect,
        scope=request.scope,
        redirect_handler=redirected,
        callback_handler=answered,
    )
    provider.client_id = request.client_id
    return provider


class _NewLogin(KeptLogin):
    """A login that starts from nothing: older tokens are not used."""

    client_id: str | None = None

    def _load(self) -> None:
        if self.client_id is not None:
            redirects = self.context.client_metadata.redirect_uris
            self.context.client_info = OAuthClientInformationFull(
                client_id=self.client_id,
                redirect_uris=[AnyUrl(str(each)) for each in redirects or ()],
                token_endpoint_auth_method="none",  # noqa: S106 - a public client
            )


@asynccontextmanager
async def open_callback(port: int) -> AsyncIterator[tuple[_Callback, int]]:
    """Serve the address that the browser is sent to after the login, and yield its handler and its port.

    Port 0 takes a free one. Raises `UsageError` if the port cannot be used.
    """
    callback = _Callback(asyncio.get_running_loop().create_future())
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"--port {port} cannot be used: {os.strerror(error.errno or 0)}") from error
    async with serving(callback, [listening], _LIMITS):
        yield callback, int(listening.getsockname()[1])
    if callback.answer.done() and not callback.answer.cancelled():
        callback.answer.exception()  # it was told, or is no longer of interest
