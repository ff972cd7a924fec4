"""Take the secrets out of a suite's servers and providers for the plan, and put them back to start the servers."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from bakeoff._kernel.environment import variables_in
from bakeoff._kernel.files import with_home
from bakeoff.doors.mcp.config import ProviderConfig, SuiteConfig
from bakeoff.mcp import McpHub, ServerSpec
from bakeoff.mcp.arguments import QUERY, USER, is_plain, secret_arguments
from bakeoff.mcp.servers import HubLimits, OAuth
from bakeoff.mcp.variables import with_variables
from bakeoff.plan import Plan
from bakeoff.storage.redaction import Redactor, secrets_in

PLACEHOLDER = "${bakeoff_mcp_"
"""Starts every placeholder for a secret that the configuration spells out."""


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

    Not those that are no keys, such as paths, and those that the plan contains anyway.
    """
    names = {name for server in servers for name in variables_in(server.args) if name in environment}
    values = {name: environment[name] for name in names if not is_plain(environment[name])}
    return {name: value for name, value in values.items() if not Redactor({name: value}).names_in(plan)}


def oauth_in_folder(oauth: OAuth, folder: Path) -> OAuth:
    """Return the settings with the place of the token file, which is relative to the configuration."""
    if oauth.tokenFile is None:
        return oauth
    return oauth.model_copy(update={"tokenFile": folder.resolve() / with_home(oauth.tokenFile)})


def hub_of(servers: Sequence[ServerSpec], environment: Mapping[str, str], call_seconds: float = 60.0) -> McpHub:
    """Return a hub of the servers, with their secrets and absolute working folders."""
    return McpHub(expanded_servers(servers, environment), HubLimits(call_seconds=call_seconds))


def expanded_servers(servers: Sequence[ServerSpec], environment: Mapping[str, str]) -> tuple[ServerSpec, ...]:
    """Return the servers with their secrets and absolute working folders."""
    expanded = (with_variables(server, environment) for server in servers)
    return tuple(
        server if server.cwd is None else server.model_copy(update={"cwd": server.cwd.resolve()}) for server in expanded
    )
