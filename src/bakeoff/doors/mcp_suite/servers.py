"""The servers of a suite as a plan may hold them, and as they are started: with what they are told in confidence."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bakeoff.doors.mcp_suite.config import SuiteConfig
from bakeoff.mcp import McpHub, ServerSpec
from bakeoff.redact import secrets_in
from bakeoff.subjects.variables import with_variables

_SEAL = "bakeoff_mcp_server_"


def sealed(config: SuiteConfig, folder: Path) -> SuiteConfig:
    """The same, where keys that the file spells out have become `${…}`: no file of a run may hold one.

    Programs are started in the configuration's folder, wherever one evaluates it from.
    """
    servers = tuple(_sealed(at, _placed(server, folder)) for at, server in enumerate(config.mcpServers))
    return config.model_copy(update={"mcpServers": servers})


def confided(servers: Sequence[ServerSpec], environment: Mapping[str, str]) -> dict[str, str]:
    """What `sealed` took out, by the names it put in its place."""
    found: dict[str, str] = {}
    for at, server in enumerate(servers):
        filled = with_variables(server, environment)
        for field, name, variable in _secret_places(at, server):
            found[variable] = getattr(filled, field)[name]
    return found


def has_seals(servers: Sequence[ServerSpec]) -> bool:
    """Whether something was taken out."""
    return any(_SEAL in value for server in servers for value in (*server.env.values(), *server.headers.values()))


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
    return server.model_copy(update=changed)


def _secret_places(at: int, server: ServerSpec) -> Iterator[tuple[str, str, str]]:
    """Where a value stands that is secret and is no variable's: (field, name, the variable that stands for it)."""
    given = [("env", name, value) for name, value in secrets_in(server.env).items()]
    given += [("headers", name, value) for name, value in server.headers.items()]
    for place, (field, name, value) in enumerate(given):
        if "${" not in value:
            yield field, name, f"{_SEAL}{at}_{place}"
