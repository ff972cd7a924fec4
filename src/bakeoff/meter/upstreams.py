"""Describe providers behind the meter: addresses, allowed requests and headers, error formats."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from bakeoff.errors import UsageError
from bakeoff.meter.wire_formats import CHAT, GEMINI, MESSAGES, RESPONSES, WireFormat
from bakeoff.models.prices import Price
from bakeoff.models.providers import Provider

Family = Literal["openai", "anthropic", "google"]

_FAMILIES: Mapping[str, Family] = {
    "openai": "openai",
    "responses": "openai",
    "anthropic": "anthropic",
    "google": "google",
}
_BASE_ENDS: Mapping[Family, str] = {"openai": "/v1", "anthropic": "", "google": ""}
_KEY_HEADERS = {
    "openai": ("authorization", "Bearer "),
    "anthropic": ("x-api-key", ""),
    "google": ("x-goog-api-key", ""),
}


@dataclass(frozen=True, slots=True)
class Upstream:
    """One provider with its key, which never reaches the agent."""

    name: str  # the first part of its paths on the meter
    provider: Provider
    base_url: str = field(repr=False)  # may hold a password
    key: str | None = field(repr=False)
    key_name: str = "API_KEY"  # the name shown in place of the redacted key
    price: Price | None = None  # if None, it is looked up for the model of the request

    @property
    def family(self) -> Family:
        """Return the kind of API that the provider speaks."""
        return _FAMILIES[self.provider.wire]

    @property
    def base_path(self) -> str:
        """Return the path at the end of an agent's base URL."""
        return f"/{self.name}{_BASE_ENDS[self.family]}"


def upstream_of(provider: Provider, environment: Mapping[str, str], *, offline: bool = False) -> Upstream:
    """Return the provider with its key from the environment. With `offline`, no key is needed.

    Raise `UsageError` if the API is not supported, or if the address or key is missing.
    """
    if provider.wire not in _FAMILIES:
        raise UsageError(f"provider {provider.name!r} has no API that the meter supports")
    url, key = provider.url(environment), provider.key(environment)
    if url is None or not url.startswith(("http://", "https://")):
        raise UsageError(f"provider {provider.name!r} has no usable address: set {provider.base_url_variable}")
    if key is None and provider.key_required and not offline:
        raise UsageError(f"provider {provider.name!r} has no key: set {' or '.join(provider.keys)}")
    held = next((variable for variable in provider.keys if environment.get(variable, "").strip()), "API_KEY")
    return Upstream(re.sub(r"[^A-Za-z0-9._-]", "_", provider.name), provider, url, key, held)


def key_headers(upstream: Upstream) -> dict[str, str]:
    """Return the header with the key."""
    name, scheme = _KEY_HEADERS[upstream.family]
    return {name: f"{scheme}{upstream.key}"} if upstream.key else {}


@dataclass(frozen=True, slots=True)
class Route:
    """An allowed kind of request. Kinds without a format are free, such as counting tokens."""

    method: str
    path: str  # a regular expression
    format: WireFormat | None = None


_NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]*"  # one path component, which may not begin with a dot
_MODEL = rf"{_NAME}(?::{_NAME})*(?:/{_NAME}(?::{_NAME})*)*"


ROUTES: Mapping[Family, tuple[Route, ...]] = {
    "openai": (
        Route("POST", r"chat/completions", CHAT),
        Route("POST", r"responses(?:/compact)?", RESPONSES),
        Route("POST", r"responses/input_tokens"),
        Route("GET", rf"models(?:/{_MODEL})?"),
    ),
    "anthropic": (
        Route("POST", r"v1/messages", MESSAGES),
        Route("POST", r"v1/messages/count_tokens"),
        Route("GET", rf"v1/models(?:/{_MODEL})?"),
    ),
    "google": (
        Route("POST", rf"v1(?:alpha|beta)?/(?P<model>{_MODEL}):(?:stream)?[gG]enerateContent", GEMINI),
        Route("POST", rf"v1(?:alpha|beta)?/{_MODEL}:countTokens"),
        Route("GET", rf"v1(?:alpha|beta)?/models(?:/{_MODEL})?"),
    ),
}


def inner_path(upstream: Upstream, path: str) -> str:
    """Return the path below the provider's base URL, which for OpenAI includes the version."""
    inner = path.removeprefix(f"/{upstream.name}/")
    return inner.removeprefix("v1/") if upstream.family == "openai" else inner


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request that has passed all checks."""

    upstream: Upstream
    route: Route
    inner: str  # the path below the provider's base URL
    query: str
    headers: Mapping[str, str]
    body: bytes
    data: Mapping[str, Any]
    model: str
    streams: bool


def address_of(upstream: Upstream, inner: str, query: str) -> str:
    """Return the URL. It is always below the configured base URL."""
    base = upstream.base_url.rstrip("/")
    if base.endswith("/v1") and inner.startswith("v1/"):
        base = base.removesuffix("/v1")
    return f"{base}/{quote(inner, safe='/:@')}" + (f"?{query}" if query else "")


# Allow-lists, so that invented headers do not reach the provider.
_ASKING = re.compile(
    r"accept|content-type|user-agent|originator|x-title|http-referer|anthropic-(version|beta)|openai-beta"
    r"|x-stainless-[a-z0-9-]+|x-goog-api-client|x-app|x-codex-[a-z0-9-]+"
)
_ANSWERING = re.compile(
    r"content-type|retry-after(-ms)?|x-should-retry|(x-)?request-id|openai-(model|version|processing-ms)"
    r"|(x|anthropic)-ratelimit-[a-z0-9-]+"
)


def asking_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the agent's headers that may be passed to the provider."""
    plain = [(name.decode(), value.decode()) for name, value in headers if name.isascii() and value.isascii()]
    return _passing(_ASKING, plain)


def answering_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the provider's headers that may be passed to the agent."""
    return _passing(_ANSWERING, headers)


def _passing(passes: re.Pattern[str], headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers if passes.fullmatch(name.lower())}


# --- errors of the meter's own, in the format of each API ------------------------------------------------------------

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_OPENAI = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    404: "not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_WORTH_A_RETRY = (408, 429, 502)


@dataclass(frozen=True, slots=True)
class UpstreamReply:
    """A complete answer, sent in one piece."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(family: Family, status: int, message: str) -> UpstreamReply:
    """Return an error in the format of the agent's SDK, which tells it whether to retry."""
    headers = {"content-type": "application/json", "x-should-retry": str(status in _WORTH_A_RETRY).lower()}
    body: dict[str, object]
    match family:
        case "anthropic":
            body = {"type": "error", "error": {"type": _ANTHROPIC.get(status, "api_error"), "message": message}}
        case "google":
            body = {"error": {"code": status, "message": message, "status": _GOOGLE.get(status, "INTERNAL")}}
        case _:
            code = _OPENAI.get(status)
            kind = code if status == 402 else "invalid_request_error" if status < 500 else "server_error"
            body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return UpstreamReply(status, json.dumps(body).encode(), headers)
