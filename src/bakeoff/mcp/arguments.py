"""Find the keys among the arguments of a program."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bakeoff.storage.redaction import SHORTEST, secrets_in, secrets_inside

USER = re.compile(r"(?<=://)[^/?#@]+(?=@)")
QUERY = re.compile(r"(?<=\?)[^#]+")
_NAMED = re.compile(r"(-*[\w.-]+)(?:=|:\s*)(?:(?:bearer|basic|token) +)?(.+)", re.IGNORECASE)
"""An argument with a name: `--api-key=…`, `API_KEY=…` or `Authorization: Bearer …`."""


def secret_arguments(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each argument of a program with the part of it that is secret by its name, or an empty text."""
    before = ""
    for argument in arguments:
        found = _NAMED.fullmatch(argument)
        option, value = found.groups() if found else (before if before.startswith("-") else "", argument)
        name = option.lstrip("-")
        named = name.lower() == "authorization" or secrets_in({name: value})
        address = USER.search(argument) or (QUERY.search(argument) if argument.startswith("http") else None)
        yield argument, value if named and not is_plain(value) else address[0] if address else ""
        before = argument


def inside_of(arguments: Iterable[str]) -> dict[str, str]:
    """Return the secrets inside of arguments, such as the passwords of URLs, which a program may repeat alone."""
    found: dict[str, str] = {}
    for number, argument in enumerate(arguments, start=1):
        named = _NAMED.fullmatch(argument)
        values = (argument, named[2]) if named else (argument,)
        found |= {
            part: secret for value in values for part, secret in secrets_inside(f"argument {number}", value).items()
        }
    return found


def is_plain(value: str) -> bool:
    """Return True for a value that is no key: a path, a number, another option, or too short for one."""
    return len(value) < SHORTEST or value.isdecimal() or value.startswith(("-", ".", "/", "~")) or "${" in value
