"""Authenticate at MCP servers with OAuth: with a login that was made before, with client credentials, or a token file.

Only `bakeoff.mcp.login` asks a person. Everything here works without one, or says that a login is needed.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ConfigDict, ValidationError

from bakeoff._kernel.files import MAX_FILE_SIZE, PRIVATE, open_file, os_errors_explained, write_atomically
from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.mcp.servers import ServerSpec, is_safe_endpoint, shown_url


class Login(BaseModel):
    """The tokens for one server, and what is needed to refresh them. The parts have the forms of OAuth."""

    model_config = ConfigDict(frozen=True)

    tokens: OAuthToken
    expires_at: float | None = None
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None


class _Logins(BaseModel):
    logins: dict[str, Login] = {}


def token_file() -> Path:
    """Return the place of the file: BAKEOFF_MCP_TOKENS, or in the user's folder of settings."""
    if given := os.environ.get("BAKEOFF_MCP_TOKENS"):
        return Path(given)
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "bakeoff" / "mcp-tokens.json"


class TokenStore:
    """The logins by the addresses of their servers, in one file that only its owner may read.

    Every method raises `UsageError` if the file cannot be read, is damaged, or can be read by others. A missing file
    holds no logins. Several processes may change the file at the same time.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or token_file()

    def get(self, url: str) -> Login | None:
        """Return the login at a server; None if there is none."""
        return self._read().logins.get(url)

    def put(self, url: str, login: Login) -> None:
        """Keep a login, in place of an earlier one at the same address."""
        with self._locked():
            self._write({**self._read().logins, url: login})

    def remove(self, url: str) -> bool:
        """Forget a login, and return True if there was one. The server is not told."""
        with self._locked():
            logins = self._read().logins
            if url not in logins:
                return False
            self._write({name: login for name, login in logins.items() if name != url})
            return True

    def _read(self) -> _Logins:
        try:
            with open_file(self.file) as opened:
                if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                    raise UsageError(f"{self.file} holds tokens and others can read it: `chmod 600 {self.file}`")
                return _Logins.model_validate_json(opened.read(MAX_FILE_SIZE))
        except FileNotFoundError:
            return _Logins()
        except ValidationError as error:
            raise UsageError(f"{self.file} is damaged: delete it, and log in again") from error
        except OSError as error:
            raise UsageError(f"{self.file} cannot be read: {error.strerror}") from error

    def _write(self, logins: Mapping[str, Login]) -> None:
        text = _Logins(logins=dict(logins)).model_dump_json(indent=1, exclude_none=True)
        write_atomically(self.file, text.encode(), PRIVATE)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time change the file: several may refresh their tokens."""
        with os_errors_explained(self.file, "written", kind=UsageError):
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self.file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield


_MAX_TOKEN_LENGTH = 100_000
_SPARE_SECONDS = 10.0  # a token that expires in this time is refreshed now


class LoginNeeded(OAuthFlowError):
    """Raised if a server wants a login that only a person can make."""


def auth_for(spec: ServerSpec, store: TokenStore | None = None) -> httpx2.Auth | None:
    """Return how to authenticate at a server, or None if nothing is known or its headers do it already.

    The settings of the server come first: a file with a token, or client credentials. Then the user's own logins are
    searched, which `store` has; None means the user's file.
    """
    if spec.url is None or any(name.lower() == "authorization" for name in spec.headers):
        return None
    if spec.oauth is not None:
        oauth = spec.oauth
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
    store = store or TokenStore()
    return StoredLogin(spec.url, store) if store.get(spec.url) is not None else None


def secrets_of_auth(auth: httpx2.Auth | None) -> dict[str, str]:
    """Return the tokens that are in use now. They must not be shown or written."""
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
    """Send the token of a file, which another program may renew: it is read for each request."""

    def __init__(self, file: Path) -> None:
        self._file = file.expanduser()
        self.token = ""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Add the token to a request. Raises `OAuthFlowError` if the file does not hold one."""
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
    """Keeps the tokens of one connection, as the SDK wants a storage. They are gone when it ends."""

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


class KeptLogin(OAuthClientProvider):
    """OAuth with a login that is kept in the user's file, together with the time at which its token expires.

    The SDK keeps neither that time nor the address to refresh a token at, and would ask for a new login.
    """

    def __init__(self, url: str, store: TokenStore, **handlers: Any) -> None:
        handlers.setdefault("redirect_uri", "http://127.0.0.1/callback")
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(handlers.pop("redirect_uri"))],
            token_endpoint_auth_method="none",  # noqa: S106 - a public client: PKCE takes the place of a secret
            client_name="Bakeoff",
            scope=handlers.pop("scope", None),
        )
        self._url, self._store, self._memory = url, store, MemoryStorage()
        super().__init__(url, metadata, self._memory, **handlers)

    async def _initialize(self) -> None:
        self._load()
        self._initialized = True

    def _load(self) -> None:
        kept = self._store.get(self._url)
        if kept is not None:
            context = self.context
            context.current_tokens, context.client_info = kept.tokens, kept.client
            context.token_expiry_time = None if kept.expires_at is None else kept.expires_at - _SPARE_SECONDS
            context.oauth_metadata = kept.metadata
            context.protected_resource_metadata = kept.resource

    def keep(self) -> None:
        """Write the tokens to the user's file."""
        context = self.context
        if context.current_tokens is None:
            return
        lifetime = context.current_tokens.expires_in
        login = Login(
            tokens=context.current_tokens,
            expires_at=None if lifetime is None else time.time() + lifetime,
            client=context.client_info,
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
        )
        self._store.put(self._url, login)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        before = self.context.current_tokens
        await super()._handle_token_response(response)
        now = self.context.current_tokens
        if now is not None and now.refresh_token is None and before is not None:
            now.refresh_token = before.refresh_token  # a server that does not rotate it leaves it out
        self.keep()

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        used = self.context.current_tokens
        if await super()._handle_refresh_response(response):
            self.keep()
            return True
        self._load()  # another process may have refreshed the token before us
        now = self.context.current_tokens
        if now is not None and used is not None and now.access_token != used.access_token:
            return True
        self.context.clear_tokens()
        return False

    async def _refresh_token(self) -> httpx2.Request:
        request = await super()._refresh_token()
        check_endpoint(str(request.url))
        return request

    async def _perform_authorization(self) -> httpx2.Request:
        metadata = self.context.oauth_metadata
        if metadata is not None:
            check_endpoint(str(metadata.token_endpoint))
        return await super()._perform_authorization()


class StoredLogin(KeptLogin):
    """A login that was made before. Its tokens are refreshed; if that fails, a person has to log in again."""

    async def _perform_authorization(self) -> httpx2.Request:
        # The server refused a token that should be valid still: it may have been revoked.
        if self.context.can_refresh_token():
            return await self._refresh_token()
        raise LoginNeeded("its login is no longer accepted")

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        try:
            await super()._handle_token_response(response)
        except OAuthTokenError as error:
            raise LoginNeeded("its login is no longer accepted") from error


def check_endpoint(url: str) -> None:
    """Raise `OAuthFlowError` for an endpoint that codes and tokens must not be sent to."""
    if not is_safe_endpoint(url):
        raise OAuthFlowError(f"the authorization server names {visible(shown_url(url), 120)!r}, which is not https")
