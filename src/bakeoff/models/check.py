"""Checking model names before anything runs: everything that is wrong with any of them, in one error."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from bakeoff.errors import PlanError, UsageError
from bakeoff.models.names import GATEWAY, ModelName, parse_model_name
from bakeoff.models.providers import Provider, known_providers


def check_models(
    names: Iterable[str],
    environment: Mapping[str, str],
    *,
    added: Mapping[str, Provider] | None = None,
    gateway_models: Iterable[str] | None = None,
) -> list[ModelName]:
    """The names, parsed; or one error that lists each unknown provider, missing key and unknown model."""
    providers = known_providers(added)
    known_models = list(gateway_models) if gateway_models is not None else None
    parsed: list[ModelName] = []
    problems: list[str] = []
    for text in names:
        try:
            name = parse_model_name(text)
        except UsageError as error:
            problems.append(str(error))
            continue
        parsed.append(name)
        problem = _problem(name, providers, environment) or _unknown_model(name, known_models)
        if problem:
            problems.append(f"model {text!r}: {problem}")
    if problems:
        raise PlanError(problems)
    return parsed


def _problem(name: ModelName, providers: Mapping[str, Provider], environment: Mapping[str, str]) -> str | None:
    provider = providers.get(name.provider)
    if provider is None:
        near = get_close_matches(name.provider, providers, n=1)
        hint = f"did you mean {near[0]}:{name.model}?" if near else f"there are {', '.join(sorted(providers))}"
        return f"unknown provider {name.provider!r}; {hint}"
    if provider.keys and provider.key_required and provider.key(environment) is None:
        return f"no key: set {' or '.join(provider.keys)}, in the environment, in .env or in .env.local"
    if provider.wire == "openai" and provider.url(environment) is None:
        return f"no address: set {provider.base_url_variable}"
    if provider.wire == "embedded":
        return _no_weights(name.model)
    return None


def _no_weights(model: str) -> str | None:
    from bakeoff.models.embedded.weights import check_name

    try:
        check_name(model)
    except UsageError as error:
        return str(error)
    return None


def _unknown_model(name: ModelName, known: list[str] | None) -> str | None:
    if name.provider != GATEWAY or known is None or name.model in known:
        return None
    near = get_close_matches(name.model, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`bakeoff models list` shows what there is"
    return f"the gateway has no such model; {hint}"
