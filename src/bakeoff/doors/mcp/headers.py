"""Add headers that were given on the command line to servers at a URL."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from bakeoff._kernel.text import expectation
from bakeoff.doors.mcp.config import McpSuite
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec

_SECRET = "BAKEOFF_SECRET_HEADER_"  # noqa: S105 - the beginning of a name, which says that its value is secret

_SCHEME = re.compile(r"(?:bearer|basic|token) +", re.IGNORECASE)


def parse_headers(given: Sequence[str]) -> dict[str, str]:
    """Read `Name: value`. The message of an error does not show the value, which is likely a secret."""
    headers: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header needs a name and a value: write --header 'Authorization: Bearer ${TOKEN}'")
        headers[name.strip()] = value.strip()
    return headers


def with_headers(specs: Sequence[ServerSpec], headers: Mapping[str, str]) -> list[ServerSpec]:
    """Return the servers, with the headers added to those at a URL. They replace headers of the same name."""
    if headers and not any(spec.url for spec in specs):
        raise UsageError(f"--header {next(iter(headers))!r} is for a server at a URL, and there is none")
    return [_with_headers(spec, headers) if spec.url and headers else spec for spec in specs]


def suite_with_headers(suite: McpSuite, given: Sequence[str]) -> McpSuite:
    """Return the suite with headers for its servers.

    No file of a run may contain a value, so the servers get variables in their place. Whoever resumes the run sets
    them in the environment.
    """
    headers, secrets = hidden_headers(given)
    servers = tuple(with_headers(suite.config.mcpServers, headers))
    config = suite.config.model_copy(update={"mcpServers": servers})
    return replace(suite, config=config, environment={**suite.environment, **secrets})


def written_servers(specs: Sequence[ServerSpec], given: Sequence[str]) -> list[ServerSpec]:
    """Return servers for a file: the values of headers that were given are variables there."""
    return with_headers(specs, hidden_headers(given)[0])


def hidden_headers(given: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers with variables in place of values, and these values by variable."""
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


def _with_headers(spec: ServerSpec, headers: Mapping[str, str]) -> ServerSpec:
    replaced = {name.lower() for name in headers}
    kept = {name: value for name, value in spec.headers.items() if name.lower() not in replaced}
    try:
        return type(spec).model_validate({**spec.model_dump(), "headers": {**kept, **headers}})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"--header: {expectation(first)}") from None
