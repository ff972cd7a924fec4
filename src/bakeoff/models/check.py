"""Checking model names before anything runs: everything that is wrong with any of them, in one error."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import httpx2

from bakeoff.errors import InfraError, PlanError, UsageError
from bakeoff.models.gateway import gateway_base, kept_models, refresh_models
from bakeoff.models.in_process import read_script
from bakeoff.models.names import GATEWAY, ModelName, parse_model_name
from bakeoff.models.providers import Provider, known_providers
from bakeoff.models.wire import client_problem


def check_models(
    names: Iterable[str],
    environment: Mapping[str, str],
    *,
    added: Mapping[str, Provider] | None = None,
) -> list[ModelName]:
    """The names, parsed; or one error that lists each unknown provider, missing key and unknown model."""
    providers = known_providers(added)
    parsed: list[ModelName] = []
    problems: list[str] = []
    for text in names:
        try:
            name = known_model_name(text, providers)
        except UsageError as error:
            problems.append(str(error))
            continue
        parsed.append(name)
        problems += what_is_missing(name, providers[name.provider], environment)
    if problems:
        raise PlanError(problems)
    return parsed


def known_model_name(text: str, providers: Mapping[str, Provider]) -> ModelName:
    """The name, parsed, of a provider that there is."""
    name = parse_model_name(text)
    if name.provider not in providers:
        near = get_close_matches(name.provider, providers, n=1)
        hint = f"did you mean {near[0]}:{name.model}?" if near else f"there are {', '.join(sorted(providers))}"
        raise UsageError(f"model {text!r}: unknown provider {name.provider!r}; {hint}")
    return name


def what_is_missing(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> list[str]:
    """Why the model could not be asked: a key, an address, weights; or it is a model that its provider has not got."""
    problem = _problem(name, provider, environment) or _unknown_model(name, provider, environment)
    return [f"model {str(name)!r}: {problem}"] if problem else []


def _problem(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> str | None:
    if provider.keys and provider.key_required and provider.key(environment) is None:
        return f"no key: set {' or '.join(provider.keys)}, in the environment, in .env or in .env.local"
    problem = _unsendable_key(provider, environment) or _wrong_address(provider, provider.url(environment))
    if problem:
        return problem
    try:
        _check_file(name.model, provider)
    except UsageError as error:
        return str(error)
    return None


def _unsendable_key(provider: Provider, environment: Mapping[str, str]) -> str | None:
    for name in provider.keys:
        if key := environment.get(name, "").strip():
            fits = key.isascii() and key.isprintable()
            return None if fits else f"the key in {name} holds a line break or a letter outside ASCII: remove it"
    return None


def _wrong_address(provider: Provider, url: str | None) -> str | None:
    if provider.wire not in ("openai", "responses", "anthropic", "google"):
        return None  # what another makes of its address is its own business
    if url is None:
        return f"no address: set {provider.base_url_variable}"
    if not url.startswith(("http://", "https://")):
        return f"its address {url!r} does not begin with http:// or https://"
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL as error:
        return f"its address {url!r} cannot be read: {error}"
    return client_problem(url) if host else f"its address {url!r} names no host"


def _check_file(model: str, provider: Provider) -> None:
    """Some models are files, which may be missing or of no use."""
    match provider.wire:
        case "embedded":
            from bakeoff.models.embedded.weights import check_name

            check_name(model)
        case "scripted":
            read_script(model)


def _unknown_model(name: ModelName, provider: Provider, environment: Mapping[str, str]) -> str | None:
    """The kept list is believed when it has the model; that it has not may be news, so the gateway is asked again."""
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
        return None  # without the list nobody can tell
    if name.model in known:
        return None
    near = get_close_matches(name.model, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`bakeoff models list` shows what there is"
    return f"the gateway has no such model; {hint}"
