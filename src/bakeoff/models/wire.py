"""From a provider and a model's name to the pydantic-ai model that speaks its API."""

import ipaddress
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.request import getproxies

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.providers import Provider as Dialect

from bakeoff.errors import UsageError
from bakeoff.models.providers import Provider
from bakeoff.replay.http import RECORDED_ELSEWHERE

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CONNECT_SECONDS = 15.0
_NO_KEY = "none"  # the SDKs insist on a value, and servers of one's own do not look at it


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go and what opens the door."""

    base_url: str | None
    api_key: str | None


@asynccontextmanager
async def http_client(base_url: str | None, idle_seconds: float | None) -> AsyncIterator[httpx2.AsyncClient]:
    """One client for all models of a provider; honours proxies and certificates from the environment.

    `idle_seconds` is the longest silence on the wire, None where silence says nothing: who does not stream is silent
    until all is said. How long a whole call may take is the attempt's business.
    """
    async with _client(base_url, idle_seconds) as client:
        yield client


def _client(base_url: str | None, idle_seconds: float | None) -> httpx2.AsyncClient:
    try:
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(idle_seconds, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            follow_redirects=True,
            verify=httpx2.create_ssl_context(),  # an authority of one's own is believed on this machine too
            trust_env=not is_loopback(base_url),  # a proxy's own loopback is another one
            event_hooks={"request": [_mark]},
        )
    except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
        raise UsageError(f"the proxy or the certificates that the environment names are of no use: {error}") from error


async def _mark(request: httpx2.Request) -> None:
    """These calls have recordings of their own."""
    request.extensions[RECORDED_ELSEWHERE] = True


def client_problem(base_url: str | None) -> str | None:
    """Why no client can be made, where the environment has a say in it."""
    if not getproxies() and not any(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")):
        return None
    try:
        _client(base_url, None)
    except UsageError as error:
        return str(error)
    return None


def is_loopback(url: str | None) -> bool:
    host = httpx2.URL(url or "").host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def build_model(provider: Provider, model: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """The model. The SDKs' own retries are off: the gate counts and spaces every try."""
    match provider.wire:
        case "anthropic":
            return _anthropic(model, endpoint, client)
        case "google":
            return _google(model, endpoint, client)
        case _:
            return _openai(provider, model, endpoint, client)


def _openai(provider: Provider, model: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIResponsesModel

    from bakeoff.models.chat import ENDS_WITH_A_REASON, ChatModel

    key = endpoint.api_key or _NO_KEY
    sdk = AsyncOpenAI(base_url=endpoint.base_url, api_key=key, http_client=client, max_retries=0)
    if provider.wire == "responses":
        return OpenAIResponsesModel(model, provider=_dialect("openai", sdk))
    return ChatModel(model, provider=_dialect(provider.name, sdk), profile=ENDS_WITH_A_REASON)


def _dialect(name: str, sdk: "AsyncOpenAI") -> "Dialect[AsyncOpenAI]":
    """What pydantic-ai knows of how this provider differs from OpenAI."""
    from pydantic_ai.providers.deepseek import DeepSeekProvider
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openrouter import OpenRouterProvider
    from pydantic_ai.providers.vercel import VercelProvider
    from pydantic_ai.providers.vllm import VLLMProvider

    match name:
        case "gateway":
            return VercelProvider(openai_client=sdk)
        case "deepseek":
            return DeepSeekProvider(openai_client=sdk)
        case "openrouter":
            return OpenRouterProvider(openai_client=sdk)
        case "ollama":
            return OllamaProvider(openai_client=sdk)
        case "vllm":
            return VLLMProvider(openai_client=sdk)
        case _:
            return OpenAIProvider(openai_client=sdk)


def _anthropic(model: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(base_url=endpoint.base_url, api_key=endpoint.api_key, http_client=client, max_retries=0)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=sdk))


def _google(model: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    once = HttpRetryOptions(attempts=1)
    dialect = GoogleProvider(
        api_key=endpoint.api_key or _NO_KEY, base_url=endpoint.base_url, http_client=client, retry_options=once
    )
    return GoogleModel(model, provider=dialect)
