import re
from collections.abc import Callable

from conf_values import Reference, Text, parse_value
from scanner import ConfError, Line, scan

KEY = re.compile(r"[a-zA-Z][\w-]*", re.ASCII)
SPACES = re.compile(r"[ \t]*")


def load(text: str) -> dict[str, object]:
    root: dict[str, object] = {}
    open_sections = [root]
    for line in scan(text):
        if line.depth >= len(open_sections):
            raise ConfError("this is too deep", line.number, line.column)
        del open_sections[line.depth + 1 :]
        key, value = _read(line)
        if key in open_sections[-1]:
            raise ConfError(f"{key} is there already", line.number, line.column)
        open_sections[-1][key] = value
        if isinstance(value, dict):
            open_sections.append(value)
    resolver = Resolver(root)
    return {key: resolver.resolve(value) for key, value in root.items()}


def _read(line: Line) -> tuple[str, object]:
    key = KEY.match(line.text)
    if not key:
        raise ConfError("a key is expected", line.number, line.column)
    position = _after_spaces(line.text, key.end())
    sign = line.text[position : position + 1]
    rest = _after_spaces(line.text, position + 1)
    if sign == "=":
        return key[0], parse_value(line.text[rest:], line.number, line.column + min(rest, len(line.text)))
    if sign == ":" and rest >= len(line.text):
        return key[0], {}
    raise ConfError("not expected", line.number, line.column + (rest if sign == ":" else position))


def _after_spaces(text: str, position: int) -> int:
    match = SPACES.match(text, position)
    return match.end() if match else position


class Resolver:
    """Looks up references. It remembers open ones by identity, to detect circles."""

    def __init__(self, root: dict[str, object]) -> None:
        self.root = root
        self.busy: list[object] = []

    def resolve(self, value: object) -> object:
        if isinstance(value, Reference):
            return self.within(value, lambda: self.resolve(self.target(value)), value)
        if isinstance(value, Text):
            return "".join(part if isinstance(part, str) else self.as_text(part) for part in value.parts)
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        return value

    def as_text(self, reference: Reference) -> str:
        value = self.resolve(reference)
        if isinstance(value, dict | list):
            raise ConfError("this cannot be part of a text", reference.line, reference.column)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def target(self, reference: Reference) -> object:
        found: object = self.root
        for key in reference.path:
            if isinstance(found, Reference):
                inner = found
                found = self.within(inner, lambda: self.target(inner), inner)
            if not isinstance(found, dict) or key not in found:
                raise ConfError("there is no such key", reference.line, reference.column)
            found = found[key]
        return found

    def within(self, thing: object, action: Callable[[], object], reference: Reference) -> object:
        if any(thing is other for other in self.busy):
            raise ConfError("this refers to itself", reference.line, reference.column)
        self.busy.append(thing)
        try:
            return action()
        finally:
            self.busy.pop()
