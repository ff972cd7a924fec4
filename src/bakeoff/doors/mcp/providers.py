"""Load the providers that a configuration adds, and check that its models can be asked."""

import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff._kernel.imports import import_object
from bakeoff._kernel.yaml import Key, gathered
from bakeoff.doors.mcp.config import McpSuite, ProviderConfig
from bakeoff.errors import UsageError
from bakeoff.models.check import what_is_missing
from bakeoff.models.providers import Provider, check_factory, compatible, known_model_name, known_providers


def added_providers(suite: McpSuite) -> dict[str, Provider]:
    """Return the added providers by name. One error names the place of each that cannot be imported."""
    found: dict[str, Provider] = {}
    problems: list[str] = []
    for name, config in suite.config.providers.items():
        try:
            found[name.strip().lower()] = _provider(name, config, suite.folder)
        except UsageError as error:
            problems.append(suite.lines.problem(("providers", name), str(error)))
    gathered(problems)
    return found


def check_models(suite: McpSuite, models: Container[str] | None = None, *, offline: bool = False) -> None:
    """Raise one error for all of these models (None: all), and the judge, that lack a provider, a key or weights.

    With `offline`, only recorded answers are used, so that keys and weights are not needed.
    """
    providers = known_providers(added_providers(suite))
    named: list[tuple[Key, str]] = [
        (("modelsToTest", at), name)
        for at, name in enumerate(suite.config.modelsToTest)
        if models is None or name in models
    ]
    if suite.config.judge is not None:
        named.append((("judge",), suite.config.judge))
    problems: list[str] = []
    for key, text in named:
        try:
            name = known_model_name(text, providers)
            missing = [] if offline else what_is_missing(name, providers[name.provider], suite.environment)
        except UsageError as error:
            missing = [str(error)]
        problems += [suite.lines.problem(key, problem) for problem in missing]
    gathered(problems)


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Make modules beside a configuration importable, as they are beside a script."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


def _provider(name: str, config: ProviderConfig, folder: Path) -> Provider:
    if config.target is None:
        assert config.base_url is not None, "the configuration is checked: a provider has one of the two"
        return compatible(name, config.base_url, config.key_variable)
    with importable(folder):
        factory = import_object(config.target, f"provider {name!r}")
    check_factory(factory, f"provider {name!r}")
    keys = (config.key_variable,) if config.key_variable else ()
    return Provider(name, "custom", keys, factory=factory, options=config.options)
