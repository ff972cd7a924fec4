"""Make HTTP clients for providers, and pydantic-ai models for their APIs."""

import ipaddress
import json
import os
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple
from urllib.request import getproxies

import httpx2
from openai import AsyncOpenAI
from openai.types import CompletionUsage, chat
from openai.types.chat import ChatCompletionChunk
from pydantic import ValidationError
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIStreamedResponse
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.usage import RequestUsage

from bakeoff.errors import UsageError
from bakeoff.models.providers import GATEWAY, Provider
from bakeoff.replay.http import RECORDED_ELSEWHERE

_CONNECT_SECONDS = 15.0
_NO_KEY = "none"  # SDKs require a value, which local servers ignore
_DIALECTS = {GATEWAY: "vercel", **{name: name for name in ("deepseek", "openrouter", "ollama", "vllm")}}


class Endpoint(NamedTuple):
    """The address and key of a provider's API."""

    base_url: str | None
    api_key: str | None


def http_client(base_url: str | None, idle_seconds: float | None) -> httpx2.AsyncClient:
    """Return a client for a provider, with the proxies and certificates of the environment.

    `idle_seconds` is the longest silence on a connection. Use None without streaming, since nothing
    arrives before the whole answer. Raise UsageError for an unusable proxy or certificate.
    """
    try:
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(idle_seconds, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            follow_redirects=True,
            verify=httpx2.create_ssl_context(),  # includes certificates added to this machine
            trust_env=not is_loopback(base_url),  # a proxy's loopback is not ours
            event_hooks={"request": [_mark_as_recorded_elsewhere]},
        )
    except (ValueError, ImportError, OSError, httpx2.InvalidURL) as error:
        raise UsageError(f"the proxy or certificate settings of the environment cannot be used: {error}") from error


async def _mark_as_recorded_elsewhere(request: httpx2.Request) -> None:
    request.extensions[RECORDED_ELSEWHERE] = True


def client_problem(base_url: str | None) -> str | None:
    """Return why the proxy or certificate settings are unusable; None if they work."""
    if not getproxies() and not any(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")):
        return None
    try:
        http_client(base_url, None)
    except UsageError as error:
        return str(error)
    return None


def is_loopback(url: str | None) -> bool:
    """Return True if the address is on this machine."""
    host = httpx2.URL(url or "").host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def build_model(provider: Provider, model: str, endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """Build a model without the SDK's own retries, because the rate limiter retries."""
    url, key = endpoint
    match provider.wire:
        case "anthropic":
            from anthropic import AsyncAnthropic
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            sdk = AsyncAnthropic(base_url=url, api_key=key, http_client=client, max_retries=0)
            return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=sdk))
        case "google":
            from google.genai.types import HttpRetryOptions
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            once = HttpRetryOptions(attempts=1)
            google = GoogleProvider(api_key=key or _NO_KEY, base_url=url, http_client=client, retry_options=once)
            return GoogleModel(model, provider=google)
        case _:
            # pydantic-ai knows the differences of some providers from OpenAI.
            dialect: Any = infer_provider_class(_DIALECTS.get(provider.name, "openai"))
            openai = AsyncOpenAI(base_url=url, api_key=key or _NO_KEY, http_client=client, max_retries=0)
            if provider.wire == "responses":
                return OpenAIResponsesModel(model, provider=dialect(openai_client=openai))
            return ChatModel(model, provider=dialect(openai_client=openai), profile=REQUIRE_FINISH_REASON)


def inferred_model(provider: Provider, model: str, endpoint: Endpoint) -> Model:
    """Return a model of a provider that only pydantic-ai knows. Raise UsageError if an SDK or a setting is missing."""

    def connected(name: str) -> Any:
        made = infer_provider_class(name)
        accepted = signature(made).parameters
        given = {"api_key": endpoint.api_key, "azure_endpoint": endpoint.base_url, **provider.options}
        return made(**{key: value for key, value in given.items() if value and key in accepted})

    try:
        return infer_model(f"{provider.name}:{model}", connected)
    except Exception as error:  # of any SDK
        raise UsageError(" ".join(str(error).split())) from error


_MODULES = {"anthropic": "pydantic_ai.models.anthropic", "google": "pydantic_ai.models.google"}


def preload(provider: Provider) -> None:
    """Import a provider's SDK early, because this takes seconds."""
    if provider.wire not in ("scripted", "custom"):
        import_module(_MODULES.get(provider.wire, "bakeoff.models.clients"))


REQUIRE_FINISH_REASON = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""The profile that treats a stream without a finish reason as cut off: half an answer must not be scored."""


class _Stream(OpenAIStreamedResponse):
    def _map_usage(self, response: ChatCompletionChunk) -> RequestUsage:
        response.usage = _valid_usage(response.usage)
        return super()._map_usage(response)


class ChatModel(OpenAIChatModel):
    """A chat model that ignores implausible usage and refuses answers without choices."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _Stream

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        if not response.choices:
            raise UnexpectedModelBehavior(_without_choices(response))
        response.usage = _valid_usage(response.usage)
        return super()._validate_completion(response)


def _without_choices(response: chat.ChatCompletion) -> str:
    """Describe a reply that has no answer, with the provider's own error first."""
    sent = response.model_dump(mode="json", exclude_none=True, warnings=False)
    error = sent.pop("error", None)
    found = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    said = f"{found} (code {code})" if found and code is not None else found
    rest = {name: value for name, value in sent.items() if value}
    what = f"an answer without choices{f': {json.dumps(rest)[:500]}' if rest else ''}"
    return f"{str(said)[:500]}: {what}" if said else what


def _valid_usage(usage: CompletionUsage | None) -> CompletionUsage | None:
    """Return the usage with its total, which some servers omit; None if it is invalid."""
    if usage is None:
        return None
    given = usage.model_dump(warnings=False)
    counts = [given.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return None
    try:
        return CompletionUsage.model_validate({**given, "total_tokens": sum(counts)})
    except ValidationError:
        return None
