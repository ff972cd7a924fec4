"""An MCP server that wants a token, with its authorization server: `python guarded.py [SETTING=VALUE…]`.

It prints its port. `lifetime=SECONDS` of access tokens; `deny=1`: people say no; `authorize=URL` and `token=URL`: the
endpoints that the metadata names; `refresh=0`: refresh tokens are not accepted.
"""

import base64
import hashlib
import secrets
import socket
import sys
import time
from typing import Any
from urllib.parse import urlencode

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

SETTINGS = dict(word.split("=", 1) for word in sys.argv[1:])
LISTENER = socket.create_server(("127.0.0.1", 0))
BASE = f"http://127.0.0.1:{LISTENER.getsockname()[1]}"
LIFETIME = int(SETTINGS.get("lifetime", "3600"))
ACCESS: dict[str, float] = {}
REFRESH: set[str] = set()
CODES: dict[str, str] = {}
GRANTS: list[str] = []


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        if ACCESS.get(token, 0) <= time.time():
            return None
        return AccessToken(token=token, client_id="somebody", scopes=["use"])


server = MCPServer(
    "guarded",
    log_level="ERROR",
    token_verifier=Verifier(),
    auth=AuthSettings(
        issuer_url=BASE,  # an address object would get a slash at its end
        resource_server_url=AnyHttpUrl(f"{BASE}/mcp"),
        required_scopes=["use"],
        validate_token_resource=False,
    ),
)


@server.tool()
def whoami() -> str:
    """Tell the token that was used."""
    token = get_access_token()
    assert token is not None
    return f"you are {token.token}"


@server.tool()
def grants() -> list[str]:
    """Tell how tokens were granted."""
    return GRANTS


@server.tool()
def revoke() -> str:
    """Forget all access tokens."""
    ACCESS.clear()
    return "revoked"


@server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])  # type: ignore[untyped-decorator]
async def metadata(_: Request) -> Response:
    return JSONResponse(
        {
            "issuer": BASE,
            "authorization_endpoint": SETTINGS.get("authorize", f"{BASE}/authorize"),
            "token_endpoint": SETTINGS.get("token", f"{BASE}/token"),
            "registration_endpoint": f"{BASE}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
    )


@server.custom_route("/register", methods=["POST"])  # type: ignore[untyped-decorator]
async def register(request: Request) -> Response:
    return JSONResponse({**await request.json(), "client_id": "somebody"}, 201)


@server.custom_route("/authorize", methods=["GET"])  # type: ignore[untyped-decorator]
async def authorize(request: Request) -> Response:
    asked = request.query_params
    answer = {"state": asked["state"]}
    if "deny" in SETTINGS:
        answer |= {"error": "access_denied", "error_description": "they said \x1b[31mno"}
    else:
        answer["code"] = secrets.token_urlsafe(16)
        CODES[answer["code"]] = asked["code_challenge"]
    return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", 302)


@server.custom_route("/token", methods=["POST"])  # type: ignore[untyped-decorator]
async def token(request: Request) -> Response:
    form = await request.form()
    grant = str(form.get("grant_type"))
    if not _granted(grant, form, request):
        return JSONResponse({"error": "invalid_grant"}, 400)
    GRANTS.append(grant)
    access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
    ACCESS[access] = time.time() + LIFETIME
    server.remove_tool("whoami")
    server.add_tool(whoami, description=f"Tell the token that was used, such as {access}.")
    answer: dict[str, Any] = {"access_token": access, "token_type": "Bearer", "expires_in": LIFETIME, "scope": "use"}
    if grant != "client_credentials":
        REFRESH.add(refresh)
        answer["refresh_token"] = refresh
    return JSONResponse(answer)


def _granted(grant: str, form: Any, request: Request) -> bool:
    if grant == "authorization_code":
        challenge = CODES.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        return challenge == base64.urlsafe_b64encode(digest).decode().rstrip("=")
    if grant == "refresh_token":
        known = str(form["refresh_token"]) in REFRESH
        REFRESH.discard(str(form["refresh_token"]))  # each can be used once
        return known and SETTINGS.get("refresh") != "0"
    expected = base64.b64encode(b"robot:robots-secret").decode()
    return grant == "client_credentials" and request.headers.get("authorization") == f"Basic {expected}"


if __name__ == "__main__":
    sys.stdout.write(f"{LISTENER.getsockname()[1]}\n")
    sys.stdout.flush()
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[LISTENER])
