from dataclasses import dataclass


class ConfError(ValueError):
    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.line = line
        self.column = column


@dataclass(frozen=True)
class Line:
    number: int
    depth: int
    column: int
    text: str


def scan(text: str) -> list[Line]:
    lines = []
    for number, raw in enumerate(text.split("\n"), start=1):
        content = _without_comment(raw).rstrip(" \t\r")
        stripped = content.lstrip(" \t")
        if not stripped:
            continue
        indent = content[: len(content) - len(stripped)]
        if "\t" in indent:
            raise ConfError("tabs cannot indent", number, indent.index("\t") + 1)
        if len(indent) % 2:
            raise ConfError("a step is two spaces", number, len(indent) + 1)
        lines.append(Line(number, len(indent) // 2, len(indent) + 1, stripped))
    return lines


def _without_comment(raw: str) -> str:
    quoted = escaped = False
    for index, character in enumerate(raw):
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "#" and not quoted and (index == 0 or raw[index - 1] in " \t"):
            return raw[:index]
    return raw
