"""Check before a run that a model can be called: its key, address, files and name."""

from collections.abc import Mapping
from difflib import get_close_matches

import httpx2

from bakeoff.errors import InfraError, UsageError
from bakeoff.models.clients import client_problem
from bakeoff.models.gateway import gateway_base, kept_models, refresh_models
from bakeoff.models.in_process import read_script
from bakeoff.models.providers import GATEWAY, ModelName, Provider


def what_is_missing(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> list[str]:
    """Return why the model cannot be called, in one sentence, or an empty list if it can.

    The reason may be a missing key, address or weights file, or a name that the provider does not know.
    """
    problem = _key_problem(provider, environment) or _address_problem(provider, environment)
    problem = problem or _file_problem(name.model, provider) or _unknown_model(name, provider, environment)
    return [f"model {str(name)!r}: {problem}"] if problem else []


def _key_problem(provider: Provider, environment: Mapping[str, str]) -> str | None:
    for name in provider.keys:
        if key := environment.get(name, "").strip():
            if key.isascii() and key.isprintable():
                return None
            return f"the key in {name} contains a line break or a character outside ASCII: remove it"
    if provider.keys and provider.key_required:
        return f"no key: set {' or '.join(provider.keys)} in the environment, in .env or in .env.local"
    return None


def _address_problem(provider: Provider, environment: Mapping[str, str]) -> str | None:
    if provider.wire not in ("openai", "responses", "anthropic", "google"):
        return None
    url = provider.url(environment)
    if url is None:
        return f"no address: set {provider.base_url_variable}"
    if not url.startswith(("http://", "https://")):
        return f"its address {url!r} does not begin with http:// or https://"
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        return f"its address {url!r} cannot be read: {error}"
    return client_problem(url) if host else f"its address {url!r} names no host"


def _file_problem(model: str, provider: Provider) -> str | None:
    try:
        if provider.wire == "embedded":
            from bakeoff.models.embedded.weights import check_name

            check_name(model)
        elif provider.wire == "scripted":
            read_script(model)
    except UsageError as error:
        return str(error)
    return None


def _unknown_model(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> str | None:
    """Look the model up in the gateway's list. Fetch a new list if the stored one lacks the model."""
    if name.provider != GATEWAY or provider.wire == "custom":
        return None
    try:
        base = gateway_base(environment)
        kept = kept_models(base)
        if kept is not None and kept.find(name.model):
            return None
        known = [model.id for model in refresh_models(base).models]
    except UsageError as error:
        return str(error)
    except InfraError:
        return None  # unknown without the list
    if name.model in known:
        return None
    near = get_close_matches(name.model, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`bakeoff models list` shows all models"
    return f"the gateway has no such model; {hint}"
