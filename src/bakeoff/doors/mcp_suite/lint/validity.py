"""Whether a server's schema allows a value. Schemas are hostile: none keeps us busy for long, or makes us stumble."""

from jsonschema.exceptions import UnknownType  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator, validator_for  # type: ignore[import-untyped]
from pydantic import JsonValue
from referencing.exceptions import Unresolvable

from bakeoff.doors.mcp_suite.lint.walk import Schema, without_patterns

# What a validator raises for a schema that the hub took: references that go round or nowhere, numbers that are too
# large to calculate with, and keywords of other versions than its own, which it uses though nothing has checked them.
_STUMBLES = (
    RecursionError,
    Unresolvable,
    ArithmeticError,
    UnknownType,
    AttributeError,
    TypeError,
    ValueError,
)


def allows(schema: Schema, value: JsonValue, root: Schema) -> bool | None:
    """By its keywords without patterns, in the version that `root` says; None where it cannot be told."""
    validator = validator_for(root, default=Draft202012Validator)
    try:
        return bool(validator(without_patterns(dict(schema))).is_valid(value))
    except _STUMBLES:
        return None
