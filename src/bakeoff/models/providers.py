"""Define providers of models, built in or added by users, and parse model names."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, Literal, Protocol, runtime_checkable

from bakeoff.errors import UsageError

GATEWAY = "gateway"
Wire = Literal["openai", "responses", "anthropic", "google", "pydantic-ai", "embedded", "scripted", "custom"]
"""The API that a provider speaks."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name: its provider, and the name that the provider uses."""

    provider: str
    model: str

    def __str__(self) -> str:
        routed = self.provider == GATEWAY and "/" in self.model
        return self.model if routed else f"{self.provider}:{self.model}"


def parse_model_name(text: str) -> ModelName:
    """Parse `provider:model`, or `maker/model` for a model behind the gateway.

    The first colon ends the provider; a model may contain more, as in `ollama:qwen3:0.6b`. With a
    slash before the colon, it is a gateway model, as in `openai/gpt-oss:free`.
    """
    name = text.strip()
    provider, colon, model = (part.strip() for part in name.partition(":"))
    maker, slash, made = provider.partition("/")
    if slash and maker and made and (model or not colon):
        return ModelName(GATEWAY, name)
    if colon and provider and model and not slash:
        return ModelName(provider.lower(), model)
    raise UsageError(
        f"{text!r} is not a model name: write `provider:model`, such as `local:smollm2`, "
        "or `maker/model` for the gateway, such as `anthropic/claude-sonnet-4`"
    )


@runtime_checkable
class SimpleProvider(Protocol):
    """The minimal interface of a custom provider."""

    def create_message(self, system: str, message: str) -> Any:
        """Return the model's reply. This may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The settings that a custom provider's factory receives."""

    model: str
    api_key: str | None = None
    base_url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


Factory = Callable[[ProviderSettings], Any] | Callable[[], Any] | SimpleProvider
"""A `SimpleProvider`, or a class or function that makes one, with or without settings. It may also make a pydantic-ai
`Model`, which supports tools and reports usage."""


def check_factory(factory: object, owner: str) -> None:
    """Raise UsageError unless the object is a provider or makes one. `owner` starts the message."""
    if not _is_provider(factory) and not callable(factory):
        raise UsageError(f"{owner}: {factory!r} has no `create_message(system, message)` and cannot be called")
    if not _is_provider(factory) and not _takes(factory, 1) and not _takes(factory, 0):
        raise UsageError(f"{owner}: {factory!r} cannot be called with the settings alone, nor without arguments")


def made_by(factory: Factory, settings: ProviderSettings) -> Any:
    """Return the provider or model made by the factory."""
    make: Any = factory
    if _is_provider(make):
        return make
    return make(settings) if _takes(make, 1) else make()


def _is_provider(factory: object) -> bool:
    """Return True if the object is already a provider, and not a class of providers."""
    return not isinstance(factory, type) and isinstance(factory, SimpleProvider)


def _takes(factory: Any, count: int) -> bool:
    try:
        signature(factory).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # some callables written in C have no signature
        return count == 1
    return True


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider and how to reach it. Of the variables in `keys`, the first that is set is used."""

    name: str
    wire: Wire
    keys: tuple[str, ...] = ()
    base_url: str | None = None
    base_url_variable: str | None = None
    key_required: bool = True
    prices: str | None = None  # its name in genai-prices
    factory: Factory | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)  # for the factory

    @property
    def price_name(self) -> str:
        """Return the provider's name in price lists."""
        return self.prices or self.name

    def key(self, environment: Mapping[str, str]) -> str | None:
        """Return the API key from the environment."""
        return next((key for name in self.keys if (key := environment.get(name, "").strip())), None)

    def url(self, environment: Mapping[str, str]) -> str | None:
        """Return the base address, without the `/chat/completions` that some documentation adds.

        The gateway's address may end with the `/v1` of its API or not.
        """
        given = environment.get(self.base_url_variable, "").strip() if self.base_url_variable else ""
        url = given or self.base_url
        url = url and url.rstrip("/").removesuffix("/chat/completions")
        return f"{url.removesuffix('/v1')}/v1" if url and self.name == GATEWAY else url


def _hosted(name: str, wire: Wire, prefix: str, url: str, prices: str | None, *keys: str) -> Provider:
    """Return a provider with the variables `PREFIX_API_KEY`, or `keys`, and `PREFIX_BASE_URL`."""
    return Provider(name, wire, (f"{prefix}_API_KEY", *keys), url, f"{prefix}_BASE_URL", prices=prices)


def _local_server(name: str, prefix: str, url: str | None) -> Provider:
    """Return a server run by the user, whose key is optional."""
    return Provider(name, "openai", (f"{prefix}_API_KEY",), url, f"{prefix}_BASE_URL", key_required=False)


def _inferred(name: str, prices: str | None, *keys: str, url: str | None = None) -> Provider:
    """Return a provider that pydantic-ai reaches with an SDK of its own, which says what it needs."""
    return Provider(name, "pydantic-ai", keys, None, url, key_required=False, prices=prices)


_OPENAI_URL = "https://api.openai.com/v1"
_GOOGLE_URL = "https://generativelanguage.googleapis.com"

BUILT_IN: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        _hosted(GATEWAY, "openai", "AI_GATEWAY", "https://ai-gateway.vercel.sh/v1", None, "VERCEL_OIDC_TOKEN"),
        _hosted("openai", "openai", "OPENAI", _OPENAI_URL, "openai"),
        _hosted("openai-responses", "responses", "OPENAI", _OPENAI_URL, "openai"),
        _hosted("anthropic", "anthropic", "ANTHROPIC", "https://api.anthropic.com", "anthropic"),
        _hosted("google", "google", "GEMINI", _GOOGLE_URL, "google", "GOOGLE_API_KEY"),
        _hosted("gemini", "google", "GEMINI", _GOOGLE_URL, "google", "GOOGLE_API_KEY"),
        replace(
            _hosted("deepseek", "openai", "DEEPSEEK", "https://api.deepseek.com", "deepseek"),
            base_url_variable="DEEPSEEK_API_URL",
        ),
        _hosted("openrouter", "openai", "OPENROUTER", "https://openrouter.ai/api/v1", "openrouter"),
        _hosted("groq", "openai", "GROQ", "https://api.groq.com/openai/v1", "groq"),
        _hosted("mistral", "openai", "MISTRAL", "https://api.mistral.ai/v1", "mistral"),
        _hosted("xai", "openai", "XAI", "https://api.x.ai/v1", "x-ai"),
        _hosted("perplexity", "openai", "PERPLEXITY", "https://api.perplexity.ai", "perplexity"),
        _inferred("azure", "azure", "AZURE_OPENAI_API_KEY", "AZURE_API_KEY", url="AZURE_OPENAI_ENDPOINT"),
        _inferred("bedrock", "aws", "AWS_BEARER_TOKEN_BEDROCK"),
        _inferred("google-cloud", "google"),
        _inferred("cohere", "cohere", "CO_API_KEY", "COHERE_API_KEY"),
        _inferred("huggingface", None, "HF_TOKEN", "HF_API_TOKEN"),
        _inferred("cerebras", "cerebras", "CEREBRAS_API_KEY"),
        _inferred("together", "together", "TOGETHER_API_KEY"),
        _inferred("fireworks", "fireworks", "FIREWORKS_API_KEY"),
        _inferred("alibaba", None, "ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
        _local_server("ollama", "OLLAMA", "http://127.0.0.1:11434/v1"),
        _local_server("lmstudio", "LMSTUDIO", "http://127.0.0.1:1234/v1"),
        _local_server("vllm", "VLLM", "http://127.0.0.1:8000/v1"),
        _local_server("openai-compatible", "OPENAI_COMPATIBLE", None),
        Provider("local", "embedded"),
        Provider("scripted", "scripted"),
    )
}

OPENTELEMETRY_NAMES = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "openai-responses": "openai",
}
"""The names that OpenTelemetry gives to providers, where they differ from ours."""


def provider_name(text: str) -> str:
    """Return the text in lower case. Raise UsageError if it cannot be a provider's name."""
    name = text.strip().lower()
    if not name or ":" in name or "/" in name:
        raise UsageError(f"{text!r} cannot be the name of a provider: leave out colons and slashes")
    return name


def compatible(name: str, base_url: str, key_variable: str | None = None) -> Provider:
    """Return a provider with the OpenAI API at another address, as configurations declare it."""
    return Provider(name, "openai", (key_variable,) if key_variable else (), base_url)


_registered: dict[str, Provider] = {}


def register_provider(name: str, factory: Factory) -> Callable[[], None]:
    """Add a provider for this process.

    `factory` is an object with `create_message(system, message)`, or a class or function that makes
    one. Calling the returned function removes the provider, and restores the replaced one.
    """
    name = provider_name(name)
    check_factory(factory, f"provider {name!r}")
    replaced = _registered.get(name)
    provider = _registered[name] = Provider(name, "custom", factory=factory)

    def remove() -> None:
        if _registered.get(name) is provider:
            _registered.pop(name)
            if replaced is not None:
                _registered[name] = replaced

    return remove


def known_providers(added: Mapping[str, Provider] | None = None) -> dict[str, Provider]:
    """Return all providers by name: built in, installed, registered, added. Later ones win."""
    points = () if os.environ.get("BAKEOFF_NO_PLUGINS") else entry_points(group="bakeoff.providers")
    installed = {
        (name := point.name.lower()): Provider(name, "custom", factory=_loaded_when_called(point)) for point in points
    }
    return {**BUILT_IN, **installed, **_registered, **(added or {})}


def known_model_name(text: str, providers: Mapping[str, Provider]) -> ModelName:
    """Parse a model name. Raise UsageError if its provider is unknown."""
    name = parse_model_name(text)
    if name.provider not in providers:
        near = get_close_matches(name.provider, providers, n=1)
        hint = f"did you mean {near[0]}:{name.model}?" if near else f"there are {', '.join(sorted(providers))}"
        raise UsageError(f"model {text!r}: unknown provider {name.provider!r}; {hint}")
    return name


@cache
def _loaded_when_called(point: EntryPoint) -> Factory:
    def factory(settings: ProviderSettings) -> Any:
        try:
            made = point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            raise UsageError(f"provider {point.name!r}: {point.value!r} cannot be imported: {error}") from error
        check_factory(made, f"provider {point.name!r}")
        return made_by(made, settings)

    return factory
