"""An MCP server that wants a token, with its authorization server: `python guarded.py [SETTING=VALUE…]`.

It prints its port. `lifetime=SECONDS` of access tokens.
"""

import base64
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

SETTINGS = dict(word.split("=", 1) for word in sys.argv[1:])
LISTENER = socket.create_server(("127.0.0.1", 0))
BASE = f"http://127.0.0.1:{LISTENER.getsockname()[1]}"
LIFETIME = int(SETTINGS.get("lifetime", "3600"))
ACCESS: dict[str, float] = {}
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


@server.custom_route("/.well-known/oauth-authorization-server", methods=["GET"])  # type: ignore[untyped-decorator]
async def metadata(_: Request) -> Response:
    return JSONResponse(
        {
            "issuer": BASE,
            "authorization_endpoint": f"{BASE}/authorize",
            "token_endpoint": f"{BASE}/token",
            "registration_endpoint": f"{BASE}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
    )


@server.custom_route("/register", methods=["POST"])  # type: ignore[untyped-decorator]
async def register(request: Request) -> Response:
    return JSONResponse({**await request.json(), "client_id": "somebody"}, 201)


@server.custom_route("/token", methods=["POST"])  # type: ignore[untyped-decorator]
async def token(request: Request) -> Response:
    form = await request.form()
    grant = str(form.get("grant_type"))
    expected = base64.b64encode(b"robot:robots-secret").decode()
    if grant != "client_credentials" or request.headers.get("authorization") != f"Basic {expected}":
        return JSONResponse({"error": "invalid_grant"}, 400)
    GRANTS.append(grant)
    access = f"access-{secrets.token_urlsafe(24)}"
    ACCESS[access] = time.time() + LIFETIME
    server.remove_tool("whoami")
    server.add_tool(whoami, description=f"Tell the token that was used, such as {access}.")
    return JSONResponse({"access_token": access, "token_type": "Bearer", "expires_in": LIFETIME, "scope": "use"})


if __name__ == "__main__":
    sys.stdout.write(f"{LISTENER.getsockname()[1]}\n")
    sys.stdout.flush()
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[LISTENER])
