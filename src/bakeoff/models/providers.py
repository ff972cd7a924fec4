"""Who serves models: the providers that ship, and the ones that users add."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, Literal, Protocol, runtime_checkable

from bakeoff.errors import UsageError

Wire = Literal["openai", "responses", "anthropic", "google", "embedded", "scripted", "custom"]


@runtime_checkable
class SimpleProvider(Protocol):
    """The least a custom provider must offer."""

    def create_message(self, system: str, message: str) -> Any:
        """The model's reply; may be a coroutine function."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What a custom provider's factory is given."""

    model: str
    api_key: str | None = None
    base_url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


Factory = Callable[[ProviderSettings], Any] | Callable[[], Any] | SimpleProvider
"""A `SimpleProvider`, or what makes one, from settings or from nothing: a class or a function. It may also make a
pydantic-ai `Model`, for one who wants tools and usage too."""


def check_factory(factory: object, who: str) -> None:
    """Raise UsageError for what can neither be asked nor called."""
    if not _is_ready(factory) and not callable(factory):
        raise UsageError(f"{who}: {factory!r} has no `create_message(system, message)`, and is nothing that makes one")
    if not _is_ready(factory) and not _takes(factory, 1) and not _takes(factory, 0):
        raise UsageError(f"{who}: {factory!r} cannot be called with the settings alone, nor with nothing")


def made_by(factory: Factory, settings: ProviderSettings) -> Any:
    make: Any = factory
    if _is_ready(make):
        return make
    return make(settings) if _takes(make, 1) else make()


def _is_ready(factory: object) -> bool:
    """Whether it can be asked as it is. A class has the method too, but no `self` for it."""
    return not isinstance(factory, type) and isinstance(factory, SimpleProvider)


def _takes(factory: Any, count: int) -> bool:
    try:
        signature(factory).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # some that are written in C do not tell
        return count == 1
    return True


@dataclass(frozen=True, slots=True)
class Provider:
    """How to reach one provider; any one of `keys` will do."""

    name: str
    wire: Wire
    keys: tuple[str, ...] = ()
    base_url: str | None = None
    base_url_variable: str | None = None
    key_required: bool = True
    prices: str | None = None  # what genai-prices calls it
    factory: Factory | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)  # for the factory

    def key(self, environment: Mapping[str, str]) -> str | None:
        return next((key for name in self.keys if (key := environment.get(name, "").strip())), None)

    def url(self, environment: Mapping[str, str]) -> str | None:
        """The address, without the end that some documentation writes it with."""
        given = environment.get(self.base_url_variable, "").strip() if self.base_url_variable else ""
        url = given or self.base_url
        return url and url.rstrip("/").removesuffix("/chat/completions")


def _provider(name: str, wire: Wire, key: str, url: str, variable: str, prices: str | None = None) -> Provider:
    return Provider(name, wire, tuple(key.split()), url, variable, prices=prices)


def _server(name: str, prefix: str, url: str | None) -> Provider:
    """A server of one's own, which may or may not ask for a key."""
    return Provider(name, "openai", (f"{prefix}_API_KEY",), url, f"{prefix}_BASE_URL", key_required=False)


_GEMINI = _provider(
    "google",
    "google",
    "GEMINI_API_KEY GOOGLE_API_KEY",
    "https://generativelanguage.googleapis.com",
    "GEMINI_BASE_URL",
    "google",
)

BUILT_IN: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        _provider(
            "gateway",
            "openai",
            "AI_GATEWAY_API_KEY VERCEL_OIDC_TOKEN",
            "https://ai-gateway.vercel.sh/v1",
            "AI_GATEWAY_BASE_URL",
        ),
        _provider("openai", "openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL", "openai"),
        _provider(
            "openai-responses", "responses", "OPENAI_API_KEY", "https://api.openai.com/v1", "OPENAI_BASE_URL", "openai"
        ),
        _provider(
            "anthropic",
            "anthropic",
            "ANTHROPIC_API_KEY",
            "https://api.anthropic.com",
            "ANTHROPIC_BASE_URL",
            "anthropic",
        ),
        _GEMINI,
        replace(_GEMINI, name="gemini"),
        _provider("deepseek", "openai", "DEEPSEEK_API_KEY", "https://api.deepseek.com", "DEEPSEEK_API_URL", "deepseek"),
        _provider(
            "openrouter",
            "openai",
            "OPENROUTER_API_KEY",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_BASE_URL",
            "openrouter",
        ),
        _provider("groq", "openai", "GROQ_API_KEY", "https://api.groq.com/openai/v1", "GROQ_BASE_URL", "groq"),
        _provider("mistral", "openai", "MISTRAL_API_KEY", "https://api.mistral.ai/v1", "MISTRAL_BASE_URL", "mistral"),
        _provider("xai", "openai", "XAI_API_KEY", "https://api.x.ai/v1", "XAI_BASE_URL", "x-ai"),
        _server("ollama", "OLLAMA", "http://127.0.0.1:11434/v1"),
        _server("lmstudio", "LMSTUDIO", "http://127.0.0.1:1234/v1"),
        _server("vllm", "VLLM", "http://127.0.0.1:8000/v1"),
        _server("openai-compatible", "OPENAI_COMPATIBLE", None),
        Provider("local", "embedded"),
        Provider("scripted", "scripted"),
    )
}


def provider_name(text: str) -> str:
    """A name that can stand before the colon of `provider:model`, where case does not matter."""
    name = text.strip().lower()
    if not name or ":" in name or "/" in name:
        raise UsageError(f"{text!r} cannot name a provider: leave out colons and slashes")
    return name


def compatible(name: str, base_url: str, key_variable: str | None = None) -> Provider:
    """A provider that speaks the OpenAI API somewhere else, as a config may declare."""
    return Provider(name, "openai", (key_variable,) if key_variable else (), base_url)


_registered: dict[str, Provider] = {}


def register_provider(name: str, factory: Factory) -> Callable[[], None]:
    """Add a provider for this process; call what is returned to take it back, and to have what it hid again."""
    name = provider_name(name)
    check_factory(factory, f"provider {name!r}")
    hidden = _registered.get(name)
    provider = _registered[name] = Provider(name, "custom", factory=factory)

    def take_back() -> None:
        if _registered.get(name) is provider:
            _registered.pop(name)
            if hidden is not None:
                _registered[name] = hidden

    return take_back


def known_providers(added: Mapping[str, Provider] | None = None) -> dict[str, Provider]:
    """All providers by name: built in, from installed packages, registered, added by a config; the later wins."""
    return {**BUILT_IN, **_from_entry_points(), **_registered, **(added or {})}


def _from_entry_points() -> dict[str, Provider]:
    if os.environ.get("BAKEOFF_NO_PLUGINS"):
        return {}
    return {
        (name := point.name.lower()): Provider(name, "custom", factory=_loaded_when_called(point))
        for point in entry_points(group="bakeoff.providers")
    }


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
