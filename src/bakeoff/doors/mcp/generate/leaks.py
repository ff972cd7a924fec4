"""Find what a prompt gives away: words in a row of the tool's description, the tool's name, names of parameters."""

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from bakeoff.mcp import ServerTool

LENGTH = 4
"""So many words in a row that a prompt shares with a description give the tool away."""

_BETWEEN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def name_words(name: str) -> list[str]:
    """Return the words of a name such as `set_timer`, `setTimer` or `set-timer`, in lower case."""
    return [word.lower() for word in _BETWEEN.split(name) if word]


def grams(text: str, length: int = LENGTH) -> set[tuple[str, ...]]:
    """Return every `length` words in a row of a text."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def leaks(prompt: str, tool: ServerTool, values: Mapping[str, JsonValue]) -> list[str]:
    """Return a sentence for each thing that a prompt gives away. What the values themselves say is no secret."""
    own = prompt
    for value in sorted(_texts(values.values()), key=len, reverse=True):
        own = own.replace(value, " \N{BULLET} ")
    found = [f"shares {' '.join(gram)!r} with the description" for gram in sorted(grams(own) & grams(tool.description))]
    if len(name_words(tool.name)) > 1 and spells(own, tool.name):
        found.append(f"spells the name {tool.name!r}")
    return found + [f"spells the parameter {name!r}" for name in values if _is_telling(name) and spells(own, name)]


def spells(prompt: str, name: str) -> bool:
    """Return True if a prompt contains a name, or its words in a row."""
    words = " ".join(name_words(name))
    said = " ".join(re.findall(r"[a-z0-9]+", prompt.casefold()))
    return name.casefold() in re.findall(r"[\w-]+", prompt.casefold()) or (bool(words) and f" {words} " in f" {said} ")


def _is_telling(name: str) -> bool:
    """Return True for names that nobody would say: several words, or one that is no English word of its own."""
    return len(name_words(name)) > 1


def _texts(values: Iterable[JsonValue]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value:
            yield value
        elif isinstance(value, dict):
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)
