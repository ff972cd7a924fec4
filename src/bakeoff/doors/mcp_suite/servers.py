"""Take the secrets out of a suite's servers and providers for the plan, and put them back to start the servers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from bakeoff.doors.mcp_suite.config import ProviderConfig, SuiteConfig
from bakeoff.mcp import McpHub, ServerSpec
from bakeoff.storage.redaction import secrets_in
from bakeoff.subjects.variables import with_variables

PLACEHOLDER = "${bakeoff_mcp_"
"""Starts every placeholder for a secret that the configuration spells out."""

_PREFIX = PLACEHOLDER.removeprefix("${")
_USER = re.compile(r"(?<=://)[^/?#@]+(?=@)")
_QUERY = re.compile(r"(?<=\?)[^#]+")


def without_secrets(config: SuiteConfig, folder: Path) -> SuiteConfig:
    """Replace the keys that a configuration spells out by placeholders: no file of a run may contain one.

    Programs also get the configuration's folder as working folder.
    """
    servers = tuple(_without_secrets(at, _in_folder(server, folder)) for at, server in enumerate(config.mcpServers))
    providers: dict[str, ProviderConfig] = {}
    for name, given in config.providers.items():
        hidden: dict[str, JsonValue] = {key: f"${{{variable}}}" for key, variable, _ in _secret_options(name, given)}
        providers[name] = given.model_copy(update={"options": {**given.options, **hidden}})
    return config.model_copy(update={"mcpServers": servers, "providers": providers})


def removed_secrets(config: SuiteConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that `without_secrets` replaces, by the variables of its placeholders."""
    found: dict[str, str] = {}
    for at, server in enumerate(config.mcpServers):
        expanded = with_variables(server, environment)
        for field, name, variable in _secret_fields(at, server):
            found[variable] = getattr(expanded, field)[name]
        found.update(_secret_parts(at, server.url or ""))
    for name, provider in config.providers.items():
        found.update({variable: value for _, variable, value in _secret_options(name, provider)})
    return found


def hub_of(servers: Sequence[ServerSpec], environment: Mapping[str, str]) -> McpHub:
    """Return a hub of the servers, with their secrets and absolute working folders."""
    expanded = (with_variables(server, environment) for server in servers)
    return McpHub(
        [
            server if server.cwd is None else server.model_copy(update={"cwd": server.cwd.resolve()})
            for server in expanded
        ]
    )


def _in_folder(server: ServerSpec, folder: Path) -> ServerSpec:
    if server.command is None or folder == Path():
        return server
    return server.model_copy(update={"cwd": folder / (server.cwd or "")})


def _without_secrets(at: int, server: ServerSpec) -> ServerSpec:
    changed = {"env": dict(server.env), "headers": dict(server.headers)}
    for field, name, variable in _secret_fields(at, server):
        changed[field][name] = f"${{{variable}}}"
    url = server.url
    for variable, text in _secret_parts(at, server.url or "").items():
        url = (url or "").replace(text, f"${{{variable}}}", 1)
    return server.model_copy(update={**changed, "url": url})


def _secret_fields(at: int, server: ServerSpec) -> Iterator[tuple[str, str, str]]:
    """Yield (field, name, placeholder variable) of each secret value that is not a variable already."""
    secret = secrets_in(server.env)
    given = [("env", name, value) for name, value in server.env.items() if name in secret or _USER.search(value)]
    given += [("headers", name, value) for name, value in server.headers.items()]
    for place, (field, name, value) in enumerate(given):
        if "${" not in value:
            yield field, name, f"{_PREFIX}server_{at}_{place}"


def _secret_parts(at: int, url: str) -> dict[str, str]:
    """Return the user with password and the query of a URL, which may contain keys, by placeholder variables."""
    found = {"user": _USER.search(url), "query": _QUERY.search(url)}
    return {
        f"{_PREFIX}server_{at}_{part}_secret": match[0]
        for part, match in found.items()
        if match and "${" not in match[0]
    }


def _secret_options(name: str, provider: ProviderConfig) -> Iterator[tuple[str, str, str]]:
    """Yield (option, placeholder variable, value) of each secret option of a provider."""
    texts = {key: value for key, value in provider.options.items() if isinstance(value, str)}
    for place, (key, value) in enumerate(secrets_in(texts).items()):
        if "${" not in value:
            yield key, f"{_PREFIX}provider_{re.sub(r'[^A-Za-z0-9]', '_', name)}_{place}_secret", value
