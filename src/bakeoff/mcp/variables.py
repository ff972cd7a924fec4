"""Replace `${VARIABLE}` in the settings of MCP servers, so that a plan holds no secrets."""

from collections.abc import Mapping

from pydantic import ValidationError

from bakeoff._kernel.environment import filled, variables_in
from bakeoff._kernel.plain_words import expectation
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.arguments import inside_of, secret_arguments
from bakeoff.storage.redaction import secrets_in


def with_variables(spec: ServerSpec, environment: Mapping[str, str]) -> ServerSpec:
    """Return the server with all variables replaced. Raises UsageError for a variable that is not set."""
    oauth = spec.oauth.model_dump(mode="json", exclude_none=True) if spec.oauth else {}
    given = (*spec.env.values(), *spec.headers.values(), *spec.args, spec.url or "", *oauth.values())
    missing = [name for name in variables_in(given) if name not in environment]
    if missing:
        raise UsageError(
            f"MCP server {spec.name!r} is given ${{{missing[0]}}}, which is not set: "
            f"set {missing[0]}, in the environment, in .env or in .env.local"
        )

    dumped = spec.model_dump()
    given_fields = {name: filled(dumped[name], environment) for name in ("env", "headers", "args", "url")}
    if oauth:
        given_fields["oauth"] = filled(oauth, environment)
    try:
        # Validated again: a value may not be allowed in a header.
        return type(spec).model_validate({**dumped, **given_fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(f"MCP server {spec.name!r}: {expectation(first)}") from None  # the cause would show the value


def secrets_of(given: ServerSpec, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the server's secrets: its settings, and the values of variables, which it may repeat on their own."""
    spec = with_variables(given, environment)
    named = {f"{spec.name}.{name}": value for name, value in spec.secrets.items()}  # servers may have the same headers
    inside = variables_in({**given.headers, **secrets_in(given.env)}.values())
    spelled = {name: environment[name] for name in variables_in((*given.args, given.url or ""))}
    keys = [secret for _, secret in secret_arguments(spec.args) if secret]
    among = {name: value for name, value in spelled.items() if any(value in key for key in keys)}
    filled_in = [text for text, was in zip(spec.args, given.args, strict=True) if text != was]
    among |= {f"{spec.name}.{name}": value for name, value in inside_of(filled_in).items()}
    return {**named, **{name: environment[name] for name in inside}, **secrets_in(spelled), **among}
