"""The servers of a suite as a plan may hold them, and as they are started: with what they are told in confidence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from bakeoff.doors.mcp_suite.config import ProviderConfig, SuiteConfig
from bakeoff.mcp import McpHub, ServerSpec
from bakeoff.storage.redaction import secrets_in
from bakeoff.subjects.variables import with_variables

_SEAL = "bakeoff_mcp_"
_USER = re.compile(r"(?<=://)[^/?#@]+(?=@)")
_QUERY = re.compile(r"(?<=\?)[^#]+")


def sealed(config: SuiteConfig, folder: Path) -> SuiteConfig:
    """The same, where keys that the file spells out have become `${…}`: no file of a run may hold one.

    Programs are started in the configuration's folder, wherever one evaluates it from.
    """
    servers = tuple(_sealed(at, _placed(server, folder)) for at, server in enumerate(config.mcpServers))
    providers = {name: _sealed_provider(name, given) for name, given in config.providers.items()}
    return config.model_copy(update={"mcpServers": servers, "providers": providers})


def confided(config: SuiteConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """What `sealed` took out, by the names it put in its place."""
    found: dict[str, str] = {}
    for at, server in enumerate(config.mcpServers):
        told = with_variables(server, environment)
        for field, name, variable in _secret_places(at, server):
            found[variable] = getattr(told, field)[name]
        found.update(_secret_parts(at, server.url or ""))
    for name, provider in config.providers.items():
        found.update({variable: value for _, variable, value in _secret_options(name, provider)})
    return found


def has_seals(config: SuiteConfig) -> bool:
    """Whether something was taken out."""
    servers = [text for server in config.mcpServers for text in (*server.env.values(), *server.headers.values())]
    servers += [server.url or "" for server in config.mcpServers]
    options = [value for provider in config.providers.values() for value in provider.options.values()]
    return any(_SEAL in text for text in (*servers, *options) if isinstance(text, str))


def hub_of(servers: Sequence[ServerSpec], environment: Mapping[str, str]) -> McpHub:
    """Ready to be started, from wherever we are."""
    return McpHub([_at_home(with_variables(server, environment)) for server in servers])


def _at_home(server: ServerSpec) -> ServerSpec:
    return server if server.cwd is None else server.model_copy(update={"cwd": server.cwd.resolve()})


def _placed(server: ServerSpec, folder: Path) -> ServerSpec:
    if server.command is None or folder == Path():
        return server
    return server.model_copy(update={"cwd": folder / (server.cwd or "")})


def _sealed(at: int, server: ServerSpec) -> ServerSpec:
    changed = {"env": dict(server.env), "headers": dict(server.headers)}
    for field, name, variable in _secret_places(at, server):
        changed[field][name] = f"${{{variable}}}"
    url = server.url
    for variable, text in _secret_parts(at, server.url or "").items():
        url = (url or "").replace(text, f"${{{variable}}}", 1)
    return server.model_copy(update={**changed, "url": url})


def _secret_places(at: int, server: ServerSpec) -> Iterator[tuple[str, str, str]]:
    """Where a value stands that is secret and is no variable's: (field, name, the variable that stands for it)."""
    secret = secrets_in(server.env)
    given = [("env", name, value) for name, value in server.env.items() if name in secret or _USER.search(value)]
    given += [("headers", name, value) for name, value in server.headers.items()]
    for place, (field, name, value) in enumerate(given):
        if "${" not in value:
            yield field, name, f"{_SEAL}server_{at}_{place}"


def _secret_parts(at: int, url: str) -> dict[str, str]:
    """A user with a password, and a query, either of which is where keys stand in an address."""
    found = {"user": _USER.search(url), "query": _QUERY.search(url)}
    return {
        f"{_SEAL}server_{at}_{part}_secret": match[0] for part, match in found.items() if match and "${" not in match[0]
    }


def _sealed_provider(name: str, provider: ProviderConfig) -> ProviderConfig:
    hidden: dict[str, JsonValue] = {key: f"${{{variable}}}" for key, variable, _ in _secret_options(name, provider)}
    return provider.model_copy(update={"options": {**provider.options, **hidden}})


def _secret_options(name: str, provider: ProviderConfig) -> Iterator[tuple[str, str, str]]:
    """(option, the variable that stands for it, its value)"""
    texts = {key: value for key, value in provider.options.items() if isinstance(value, str)}
    for place, (key, value) in enumerate(secrets_in(texts).items()):
        if "${" not in value:
            yield key, f"{_SEAL}provider_{re.sub(r'[^A-Za-z0-9]', '_', name)}_{place}_secret", value
