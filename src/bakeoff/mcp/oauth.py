"""Authenticate at MCP servers by OAuth without a person: client credentials or a token file."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from bakeoff._kernel.files import open_file
from bakeoff.mcp.servers import ServerSpec

_MAX_TOKEN_LENGTH = 100_000


def auth_for(spec: ServerSpec) -> httpx2.Auth | None:
    """Return the OAuth authentication for a server; None if it has none or its headers suffice."""
    oauth = spec.oauth
    if spec.url is None or oauth is None or any(name.lower() == "authorization" for name in spec.headers):
        return None
    if oauth.tokenFile is not None:
        return TokenFile(oauth.tokenFile)
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    return ClientCredentialsOAuthProvider(
        spec.url,
        MemoryStorage(),
        client_id=oauth.clientId or "",
        client_secret=oauth.clientSecret or "",
        scope=oauth.scope,
        issuer=oauth.issuer,
    )


def secrets_of_auth(auth: httpx2.Auth | None) -> dict[str, str]:
    """Return the current tokens, which must not be shown or written."""
    if isinstance(auth, TokenFile):
        return {"token": auth.token} if auth.token else {}
    if not isinstance(auth, OAuthClientProvider):
        return {}
    tokens, client = auth.context.current_tokens, auth.context.client_info
    found = {
        "access_token": tokens.access_token if tokens else None,
        "refresh_token": tokens.refresh_token if tokens else None,
        "client_secret": client.client_secret if client else None,
    }
    return {name: value for name, value in found.items() if value}


class TokenFile(httpx2.Auth):
    """Sends a token from a file, which is read for each request because it may be renewed."""

    def __init__(self, file: Path) -> None:
        self._file = file.expanduser()
        self.token = ""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Add the token to a request. Raise `OAuthFlowError` if the file has none."""
        self.token = self._read()
        request.headers["Authorization"] = f"Bearer {self.token}"
        yield request

    def _read(self) -> str:
        try:
            with open_file(self._file, pipes=True) as opened:
                text = opened.read(_MAX_TOKEN_LENGTH).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise OAuthFlowError(f"the token file {self._file} cannot be read: {why}") from error
        if text.startswith("{"):
            try:
                text = str(json.loads(text)["access_token"])
            except (ValueError, KeyError, RecursionError) as error:
                raise OAuthFlowError(f"the token file {self._file} has no `access_token`") from error
        if not text or not text.isascii() or not text.isprintable() or " " in text:
            raise OAuthFlowError(f"the token file {self._file} does not hold one token")
        return text


class MemoryStorage:
    """Keeps the tokens of one connection in memory. Implements the SDK's storage interface."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info
