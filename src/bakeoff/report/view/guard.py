"""Decide which requests are answered. Any web page that is open in the same browser can send requests here, so

- `Host` must be one of our own names: a foreign name that was made to point here (DNS rebinding) is refused;
- `Origin` and `Sec-Fetch-Site`, where a browser sends them, must say that our own page asks, or the person;
- the token of this process must come along: once in the address that is printed, then in a cookie that other sites'
  requests never carry. Ports share cookies, so its name holds the port.

The server answers GET and HEAD only, unless it takes labels: then a POST must name our own page as its `Origin` and
carry JSON, which no other site can send without being asked first.
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
TOKEN = "token"  # noqa: S105 - the name of the parameter


@dataclass(frozen=True, slots=True)
class Guard:
    """Let only authorised requests through to the application."""

    app: ASGIApp
    port: int
    token: str
    command: str = "bakeoff view"  # that printed the address
    takes_posts: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no websockets here

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._answer(Request(scope))
        with suppress(ClientDisconnect):
            await (answer or self.app)(scope, receive, send_guarded)

    def _answer(self, request: Request) -> Response | None:
        """Return the refusal, or None to let the request through."""
        if refusal := self._refusal(request):
            return PlainTextResponse(f"refused: {refusal}\n", HTTPStatus.FORBIDDEN)
        given = request.query_params.get(TOKEN)
        if given is not None and self._is_token(given):
            # Replace the token in the address by a cookie, so that it stays out of history and links.
            rest = urlencode([(name, value) for name, value in parse_qsl(request.url.query) if name != TOKEN])
            # Two slashes at the start would be another site's address.
            path = "/" + request.url.path.lstrip("/")
            response = RedirectResponse(path + (f"?{rest}" if rest else ""), HTTPStatus.SEE_OTHER)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        if self._is_token(request.cookies.get(self.cookie, "")):
            return None
        return PlainTextResponse(f"refused: open the address that `{self.command}` printed\n", HTTPStatus.FORBIDDEN)

    def _refusal(self, request: Request) -> str | None:
        posts = self.takes_posts and request.method == "POST"
        if request.method not in ("GET", "HEAD") and not posts:
            return "this server only shows"
        if request.headers.getlist("host") not in [[name] for name in self.names]:
            return "the Host header is not this server's name"
        origin = request.headers.get("origin")
        if origin is not None and origin not in [f"http://{name}" for name in self.names]:
            return "another site asked"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "another site asked"
        if posts and (origin is None or request.headers.get("content-type") != "application/json"):
            return "only this page may change anything"
        return None

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    @property
    def cookie(self) -> str:
        """Return the name of the cookie that holds the token."""
        return f"bakeoff-{self.port}"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the host names under which this server may be asked."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
