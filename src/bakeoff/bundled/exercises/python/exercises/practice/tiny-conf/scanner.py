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
    raise NotImplementedError
