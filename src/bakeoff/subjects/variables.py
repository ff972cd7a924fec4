"""`${VARIABLE}` in what an MCP server is given, so that a plan need not hold a secret."""

import re
from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.redact import secrets_in

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def with_variables(spec: ServerSpec, environment: Mapping[str, str]) -> ServerSpec:
    """The server with the environment's values in its `env` and `headers`; a variable that is not set is an error."""
    missing = [name for name in _variables((*spec.env.values(), *spec.headers.values())) if name not in environment]
    if missing:
        raise UsageError(
            f"MCP server {spec.name!r} is given ${{{missing[0]}}}, which is not set: "
            f"set {missing[0]}, in the environment, in .env or in .env.local"
        )

    def filled(given: Mapping[str, str]) -> dict[str, str]:
        return {name: _VARIABLE.sub(lambda found: environment[found[1]], value) for name, value in given.items()}

    given = {**spec.model_dump(), "env": filled(spec.env), "headers": filled(spec.headers)}
    try:
        return type(spec).model_validate(given)  # anew: a variable may hold what no header can
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"MCP server {spec.name!r}: {first['msg']}") from None  # the cause shows the value


def secrets_of(given: ServerSpec, environment: Mapping[str, str]) -> dict[str, str]:
    """What the server is told in confidence: the variables' values by themselves too, as it may repeat them alone."""
    spec = with_variables(given, environment)
    named = {f"{spec.name}.{name}": value for name, value in spec.secrets.items()}  # servers have headers in common
    inside = _variables({**given.headers, **secrets_in(given.env)}.values())
    return {**named, **{name: environment[name] for name in inside}}


def _variables(texts: Iterable[str]) -> list[str]:
    return [name for text in texts for name in _VARIABLE.findall(text)]
