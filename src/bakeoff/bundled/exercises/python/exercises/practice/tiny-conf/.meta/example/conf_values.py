import re
from dataclasses import dataclass

from scanner import ConfError

REFERENCE = re.compile(r"\$\{([a-zA-Z][\w-]*(?:\.[a-zA-Z][\w-]*)*)\}", re.ASCII)
WORD = re.compile(r"[\w./:@-]+", re.ASCII)
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
CODE_POINT = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}")
ESCAPES = {'"': '"', "\\": "\\", "$": "$", "n": "\n", "t": "\t"}


@dataclass(frozen=True)
class Reference:
    path: tuple[str, ...]
    line: int
    column: int


@dataclass(frozen=True)
class Text:
    """A text with parts that are still to be looked up."""

    parts: tuple[str | Reference, ...]


def parse_value(text: str, line: int, column: int) -> object:
    """Returns a value without references as it is, or else as a Reference, a Text or a list."""
    reader = Reader(text, line, column)
    value = reader.value()
    reader.skip_spaces()
    if reader.position < len(text):
        raise reader.mistake("nothing more is expected")
    return value


class Reader:
    def __init__(self, text: str, line: int, column: int) -> None:
        self.text = text
        self.line = line
        self.column = column
        self.position = 0

    def value(self) -> object:
        self.skip_spaces()
        if self.accept("["):
            return self.list()
        if self.accept('"'):
            return self.quoted()
        return self.word()

    def list(self) -> list[object]:
        values: list[object] = []
        self.skip_spaces()
        if self.accept("]"):
            return values
        while True:
            values.append(self.value())
            self.skip_spaces()
            if self.accept("]"):
                return values
            if not self.accept(","):
                raise self.mistake("a comma or a bracket is expected")

    def quoted(self) -> object:
        opening = self.position - 1
        parts: list[str | Reference] = []
        while self.position < len(self.text):
            if self.accept('"'):
                return _joined(parts)
            if self.text[self.position :] == "\\":
                break
            parts.append(self.quoted_part())
        raise self.mistake("a quote has no end", opening)

    def quoted_part(self) -> str | Reference:
        character = self.text[self.position]
        if character == "\\":
            return self.escape()
        if character == "$":
            return self.reference()
        self.position += 1
        return character

    def escape(self) -> str:
        following = self.text[self.position + 1 : self.position + 2]
        if following in ESCAPES:
            self.position += 2
            return ESCAPES[following]
        match = CODE_POINT.match(self.text, self.position)
        code = int(match[1], 16) if match else -1
        if not match or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.mistake("no such escape")
        self.position = match.end()
        return chr(code)

    def reference(self) -> Reference:
        match = REFERENCE.match(self.text, self.position)
        if not match:
            raise self.mistake("not a reference")
        reference = Reference(tuple(match[1].split(".")), self.line, self.column + self.position)
        self.position = match.end()
        return reference

    def word(self) -> object:
        parts: list[str | Reference] = []
        while self.position < len(self.text):
            match = WORD.match(self.text, self.position)
            if match:
                parts.append(match[0])
                self.position = match.end()
            elif self.text[self.position] == "$":
                parts.append(self.reference())
            else:
                break
        if not parts:
            raise self.mistake("a value is expected")
        if len(parts) == 1:
            return _plain(parts[0]) if isinstance(parts[0], str) else parts[0]
        return _joined(parts)

    def accept(self, character: str) -> bool:
        found = self.text.startswith(character, self.position)
        self.position += found
        return found

    def skip_spaces(self) -> None:
        while self.text.startswith((" ", "\t"), self.position):
            self.position += 1

    def mistake(self, message: str, position: int | None = None) -> ConfError:
        place = self.position if position is None else position
        return ConfError(message, self.line, self.column + place)


def _joined(parts: list[str | Reference]) -> object:
    if all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    return Text(tuple(parts))


def _plain(word: str) -> object:
    if word in ("true", "false"):
        return word == "true"
    if INTEGER.fullmatch(word):
        return int(word)
    return float(word) if DECIMAL.fullmatch(word) else word
