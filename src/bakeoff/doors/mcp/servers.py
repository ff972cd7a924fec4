"""Prepare the servers of a suite: keep secrets out of plans, fill them in again, and add headers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.environment import variables_in
from bakeoff._kernel.files import with_home
from bakeoff._kernel.text import expectation
from bakeoff.doors.mcp.config import McpSuite, ProviderConfig, SuiteConfig
from bakeoff.errors import UsageError
from bakeoff.mcp import McpHub, ServerSpec, ServerTool
from bakeoff.mcp.servers import QUERY, USER, HubLimits, OAuth, is_plain, secret_arguments, with_variables
from bakeoff.plan import Plan
from bakeoff.storage.redacted_stream import printed_secrets
from bakeoff.storage.redaction import Redactor, known_secrets, secrets_in

PLACEHOLDER = "${bakeoff_mcp_"
"""The prefix of every placeholder for a secret that the configuration spells out."""


def split_secrets(config: SuiteConfig, folder: Path) -> tuple[SuiteConfig, dict[str, str]]:
    """Return the configuration with placeholders for the keys that it spells out, and these keys by variable.

    No file of a run may contain a key. Programs also get the configuration's folder as working folder.
    """
    secrets: dict[str, str] = {}

    def hide(text: str, name: str) -> str:
        if "${" in text:  # the configuration does not spell it out
            return text
        placeholder = f"{PLACEHOLDER}{name}}}"
        secrets[placeholder[2:-1]] = text
        return placeholder

    def without_secrets(at: int, server: ServerSpec) -> ServerSpec:
        named = secrets_in(server.env)
        secret = [name for name, value in server.env.items() if name in named or USER.search(value)]
        env = {name: hide(server.env[name], f"server_{at}_{place}") for place, name in enumerate(secret)}
        headers = {
            name: hide(value, f"server_{at}_{place}") for place, (name, value) in enumerate(server.headers.items())
        }
        changed: dict[str, object] = {"env": {**server.env, **env}, "headers": headers}
        if server.url is not None:
            url = USER.sub(lambda user: hide(user[0], f"server_{at}_user_secret"), server.url, count=1)
            changed["url"] = QUERY.sub(lambda query: hide(query[0], f"server_{at}_query_secret"), url, count=1)
        if server.oauth is not None:
            changed["oauth"] = oauth_in_folder(server.oauth, folder)
            if server.oauth.clientSecret is not None:
                hidden = hide(server.oauth.clientSecret, f"server_{at}_client_secret")
                changed["oauth"] = server.oauth.model_copy(update={"clientSecret": hidden})
        changed["args"] = tuple(
            hide(secret, f"server_{at}_argument_{place}_secret").join(argument.rsplit(secret, 1))
            if secret
            else argument
            for place, (argument, secret) in enumerate(secret_arguments(server.args))
        )
        if server.url is None and folder != Path():
            changed["cwd"] = folder / (server.cwd or "")
        return server.model_copy(update=changed)

    servers = tuple(without_secrets(at, server) for at, server in enumerate(config.mcpServers))
    providers: dict[str, ProviderConfig] = {}
    for name, given in config.providers.items():
        plain = re.sub(r"[^A-Za-z0-9]", "_", name)
        texts = {key: value for key, value in given.options.items() if isinstance(value, str)}
        hidden: dict[str, JsonValue] = {
            key: hide(value, f"provider_{plain}_{place}_secret")
            for place, (key, value) in enumerate(secrets_in(texts).items())
        }
        providers[name] = given.model_copy(update={"options": {**given.options, **hidden}})
    return config.model_copy(update={"mcpServers": servers, "providers": providers}), secrets


def values_of_arguments(servers: Sequence[ServerSpec], environment: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """Return the values of variables among the arguments of servers, which may repeat them in results.

    Leave out values that are not keys, such as paths, and those that the plan contains anyway.
    """
    names = {name for server in servers for name in variables_in(server.args) if name in environment}
    values = {name: environment[name] for name in names if not is_plain(environment[name])}
    return {name: value for name, value in values.items() if not Redactor({name: value}).names_in(plan)}


def oauth_in_folder(oauth: OAuth, folder: Path) -> OAuth:
    """Return the settings with the absolute path of the token file, which is given relative to the configuration."""
    if oauth.tokenFile is None:
        return oauth
    return oauth.model_copy(update={"tokenFile": folder.resolve() / with_home(oauth.tokenFile)})


def hub_of(servers: Sequence[ServerSpec], environment: Mapping[str, str], call_seconds: float = 60.0) -> McpHub:
    """Return a hub of the servers, with their secrets and absolute working folders."""
    return McpHub(expanded_servers(servers, environment), HubLimits(call_seconds=call_seconds))


def expanded_servers(servers: Sequence[ServerSpec], environment: Mapping[str, str]) -> tuple[ServerSpec, ...]:
    """Fill in the servers' secrets from the environment, and make their working folders absolute."""
    expanded = (with_variables(server, environment) for server in servers)
    return tuple(
        server if server.cwd is None else server.model_copy(update={"cwd": server.cwd.resolve()}) for server in expanded
    )


_SECRET = "BAKEOFF_SECRET_HEADER_"  # noqa: S105 - the beginning of a name, which says that its value is secret

_SCHEME = re.compile(r"(?:bearer|basic|token) +", re.IGNORECASE)


def parse_headers(given: Sequence[str]) -> dict[str, str]:
    """Read `Name: value`. Error messages do not show the value, which is probably a secret."""
    headers: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header needs a name and a value: write --header 'Authorization: Bearer ${TOKEN}'")
        headers[name.strip()] = value.strip()
    return headers


def with_headers(specs: Sequence[ServerSpec], headers: Mapping[str, str]) -> list[ServerSpec]:
    """Return the servers, with the headers added to those at a URL. They replace headers of the same name.

    An error does not show the values, which may be secret.
    """
    if headers and not any(spec.url for spec in specs):
        raise UsageError(f"--header {next(iter(headers))!r} is for a server at a URL, and there is none")
    replaced = {name.lower() for name in headers}
    changed: list[ServerSpec] = []
    for spec in specs:
        if spec.url and headers:
            kept = {name: value for name, value in spec.headers.items() if name.lower() not in replaced}
            try:
                spec = type(spec).model_validate({**spec.model_dump(), "headers": {**kept, **headers}})
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                raise UsageError(f"--header: {expectation(first)}") from None
        changed.append(spec)
    return changed


def suite_with_headers(suite: McpSuite, given: Sequence[str]) -> McpSuite:
    """Return the suite with headers for its servers.

    No file of a run may contain their values, so the servers get variables instead, which must be
    in the environment when the run is resumed.
    """
    headers, secrets = hidden_headers(given)
    servers = tuple(with_headers(suite.config.mcpServers, headers))
    config = suite.config.model_copy(update={"mcpServers": servers})
    return replace(suite, config=config, environment={**suite.environment, **secrets})


def hidden_headers(given: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers with variables in place of their values, and the values by variable."""
    headers: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for name, value in parse_headers(given).items():
        variable = _SECRET + re.sub(r"[^A-Z0-9]", "_", name.upper())
        if "${" in value:
            headers[name] = value
            continue
        scheme = _SCHEME.match(value)  # the token is a variable by itself, because a server may repeat it alone
        start = scheme.end() if scheme else 0
        headers[name] = f"{value[:start]}${{{variable}}}"
        secrets[variable] = value[start:]
    return headers, secrets


def servers_of(suite: McpSuite, only: Sequence[str] = ()) -> list[ServerSpec]:
    """Return the servers ready to start: in the configuration's folder, with their secrets filled in.

    `only` names those to return; empty means all. Raises `UsageError` for a name that the suite does not have.
    """
    names = [server.name for server in suite.config.mcpServers]
    for name in only:
        if name not in names:
            raise UsageError(f"{suite.file} has no server {name!r}: there are {', '.join(names)}")
    ready: list[ServerSpec] = []
    for server in suite.config.mcpServers:
        if not only or server.name in only:
            if server.command is not None:
                server = server.model_copy(update={"cwd": suite.folder.resolve() / (server.cwd or "")})
            elif server.oauth is not None:
                server = server.model_copy(update={"oauth": oauth_in_folder(server.oauth, suite.folder)})
            ready.append(with_variables(server, suite.environment))
    return ready


def redactor_of(specs: Sequence[ServerSpec]) -> Redactor:
    """Return a redactor for the secrets of servers and environment; hide these in later output."""
    own = {f"{spec.name} {name}": value for spec in specs for name, value in spec.shown_to_nobody.items()}
    printed_secrets().learn(own)
    return Redactor({**known_secrets(), **own})


async def redacted_tools(specs: Sequence[ServerSpec]) -> tuple[ServerTool, ...]:
    """Return the tools of servers, without the keys that their texts repeat."""
    async with McpHub(specs).open() as hub:
        return tuple(map(redactor_of(specs).model, await hub.tools()))
