"""The providers that a configuration adds, and whether its models can be asked; with file, line and key."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bakeoff._kernel.imports import import_object
from bakeoff._kernel.yaml_with_lines import Key, gathered
from bakeoff.doors.mcp_suite.config import ProviderConfig, Suite
from bakeoff.errors import UsageError
from bakeoff.models.check import what_is_missing
from bakeoff.models.providers import Provider, check_factory, compatible, known_model_name, known_providers


def added_providers(suite: Suite) -> dict[str, Provider]:
    """Each by its name; what cannot be imported, also from beside the configuration, is told with its place."""
    found: dict[str, Provider] = {}
    problems: list[str] = []
    for name, config in suite.config.providers.items():
        try:
            found[name.strip().lower()] = _provider(name, config, suite.folder)
        except UsageError as error:
            problems.append(suite.lines.problem(("providers", name), str(error)))
    gathered(problems)
    return found


def check_models(suite: Suite, environment: Mapping[str, str]) -> None:
    """Raise one error with every model, the judge among them, that cannot be asked: no provider, key or weights."""
    providers = known_providers(added_providers(suite))
    named: list[tuple[Key, str]] = [(("modelsToTest", at), name) for at, name in enumerate(suite.config.modelsToTest)]
    if suite.config.judge is not None:
        named.append((("judge",), suite.config.judge))
    problems: list[str] = []
    for key, text in named:
        try:
            name = known_model_name(text, providers)
            told = what_is_missing(name, providers[name.provider], environment)
        except UsageError as error:
            told = [str(error)]
        problems += [suite.lines.problem(key, problem) for problem in told]
    gathered(problems)


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Modules that lie beside a configuration can be imported, as they can beside a script."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


def _provider(name: str, config: ProviderConfig, folder: Path) -> Provider:
    if config.target is None:
        assert config.baseUrl is not None, "a provider has one of the two"
        return compatible(name, config.baseUrl, config.apiKeyVariable)
    with importable(folder):
        factory = import_object(config.target, f"provider {name!r}")
    check_factory(factory, f"provider {name!r}")
    keys = (config.apiKeyVariable,) if config.apiKeyVariable else ()
    return Provider(name, "custom", keys, factory=factory, options=config.options)
