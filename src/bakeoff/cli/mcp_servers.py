"""Find the servers that a command is about: those of a configuration, or some that are named directly."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bakeoff.cli.flags import DirectFlags
from bakeoff.doors.mcp.client_files import client_specs, is_client_file
from bakeoff.doors.mcp.config import McpSuite, read_suite, suite_environment
from bakeoff.doors.mcp.headers import hidden_headers, suite_with_headers, with_headers
from bakeoff.doors.mcp.lint.report import servers_of
from bakeoff.doors.mcp.suites import find_configs
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec, parse_mcp_option
from bakeoff.mcp.servers import UNSANDBOXED, with_unique_names
from bakeoff.mcp.variables import with_variables


def direct_servers(servers: DirectFlags) -> list[ServerSpec]:
    """Return the servers that are named directly, ready to start."""
    found = [_parse("--command", "stdio", command) for command in servers.commands or ()]
    found += [_parse("--url", "http", url) for url in servers.urls or ()]
    if found and (servers.path is not None or servers.only):
        raise UsageError("--command and --url name a server instead of a configuration: use only one of them")
    headers, secrets = hidden_headers(servers.headers or ())
    if names_client_file(servers) and servers.path is not None:
        environment = {**suite_environment(servers.path.parent), **secrets}
        known = client_specs(servers.path, environment)
        found = [spec for spec in known if not servers.only or spec.name in servers.only]
        if missing := set(servers.only or ()) - {spec.name for spec in found}:
            names = ", ".join(spec.name for spec in known)
            raise UsageError(f"{servers.path} has no server {sorted(missing)[0]!r}: there are {names or 'none'}")
        if not found:
            raise UsageError(f"{servers.path} names no server that is enabled")
        return [with_variables(spec, environment) for spec in with_headers(found, headers)]
    environment = {**suite_environment(Path()), **secrets}
    return [with_variables(spec, environment) for spec in with_headers(found, headers)] if found and headers else found


def names_client_file(servers: DirectFlags) -> bool:
    """Return True if the path is the file of a client, such as .mcp.json, and no configuration."""
    return servers.path is not None and is_client_file(servers.path)


def read_suites_of(servers: DirectFlags) -> list[McpSuite]:
    """Return the suites of the configuration, with the headers that were given."""
    return [suite_with_headers(read_suite(file), servers.headers or ()) for file in find_configs(servers.path)]


def one_suite(servers: DirectFlags) -> tuple[Sequence[ServerSpec], McpSuite | None, Mapping[str, str]]:
    """Return the servers ready to start, the suite that has them, and the variables."""
    if direct := direct_servers(servers):
        _, secrets = hidden_headers(servers.headers or ())
        return with_unique_names(direct), None, {**suite_environment(Path()), **secrets}
    suites = read_suites_of(servers)
    if len(suites) > 1:
        raise UsageError(f"{servers.path} has {len(suites)} suites: name the file of one")
    suite = suites[0]
    return servers_of(suite, servers.only or ()), suite, suite.environment


def _parse(option: str, kind: str, text: str) -> ServerSpec:
    kind, text = (kind, text) if not text.startswith(f"{UNSANDBOXED}:") else (UNSANDBOXED, text.partition(":")[2])
    try:
        spec = parse_mcp_option(f"{kind}:{text}") if text.strip() else None
    except UsageError as error:
        raise UsageError(str(error).replace(f"--mcp '{kind}:", f"{option} '")) from error
    if spec is None:
        raise UsageError(f"{option} is empty: name a server")
    return spec
