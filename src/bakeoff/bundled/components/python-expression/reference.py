"""Arithmetic expressions: a recursive-descent parser that checks syntax, then builds closures."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping

Thunk = Callable[[], float]

TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign>[-+*/%^(),])|(?P<end>\Z))",
    re.ASCII,
)
BLANKS = re.compile(r"[ \t\r\n]*")
ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


def _least(*values: float) -> float:
    return min(values)


def _greatest(*values: float) -> float:
    return max(values)


FUNCTIONS: dict[str, Callable[..., float]] = {"abs": abs, "sqrt": math.sqrt, "min": _least, "max": _greatest}
ONE_ARGUMENT = {"abs", "sqrt"}
LARGEST_EXPONENT = 10_000


class ExpressionError(ValueError):
    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} at {position}")
        self.position = position


def evaluate(text: str, variables: Mapping[str, float] | None = None) -> float:
    return _Parser(text, variables or {}).whole()()


class _Parser:
    def __init__(self, text: str, variables: Mapping[str, float]) -> None:
        self._text = text
        self._variables = variables
        self._at = 0
        self._advance()

    def whole(self) -> Thunk:
        result = self._sum()
        if self._kind != "end":
            raise self._unexpected()
        return result

    def _advance(self) -> None:
        match = TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            blanks = BLANKS.match(self._text, self._at)
            raise ExpressionError("unknown character", blanks.end() if blanks else self._at)
        self._kind, self._token = match.lastgroup, match[match.lastgroup]
        self._start, self._at = match.start(match.lastgroup), match.end()

    def _unexpected(self) -> ExpressionError:
        return ExpressionError("unexpected end" if self._kind == "end" else f"unexpected {self._token}", self._start)

    def _take(self, signs: str) -> tuple[str, int] | None:
        if self._kind != "sign" or self._token not in signs:
            return None
        taken = self._token, self._start
        self._advance()
        return taken

    def _sum(self) -> Thunk:
        left = self._product()
        while taken := self._take("+-"):
            left = _binary(*taken, left, self._product())
        return left

    def _product(self) -> Thunk:
        left = self._signed()
        while taken := self._take("*/%"):
            left = _binary(*taken, left, self._signed())
        return left

    def _signed(self) -> Thunk:
        negative = False
        while taken := self._take("+-"):
            negative ^= taken[0] == "-"
        value = self._power()
        return (lambda: -value()) if negative else value

    def _power(self) -> Thunk:
        base = self._operand()
        if taken := self._take("^"):
            return _raised(taken[1], base, self._signed())
        return base

    def _operand(self) -> Thunk:
        kind, token, start = self._kind, self._token, self._start
        if kind == "number":
            self._advance()
            number = int(token) if token.isdigit() and len(token) < 4000 else float(token)
            return lambda: number
        if kind == "name":
            self._advance()
            return self._call(token, start) if self._take("(") else lambda: self._variable(token, start)
        if self._take("("):
            inner = self._sum()
            self._close()
            return inner
        raise self._unexpected()

    def _close(self) -> None:
        if not self._take(")"):
            raise self._unexpected()

    def _call(self, name: str, start: int) -> Thunk:
        arguments: list[Thunk] = []
        if not self._take(")"):
            arguments.append(self._sum())
            while self._take(","):
                arguments.append(self._sum())
            self._close()
        return lambda: _called(name, start, arguments)

    def _variable(self, name: str, start: int) -> float:
        if name not in self._variables:
            raise ExpressionError(f"unknown variable {name}", start)
        return self._variables[name]


def _binary(sign: str, position: int, left: Thunk, right: Thunk) -> Thunk:
    def value() -> float:
        a, b = left(), right()
        try:
            return ARITHMETIC[sign](a, b)
        except ArithmeticError as error:
            raise ExpressionError(str(error), position) from None

    return value


def _raised(position: int, base: Thunk, exponent: Thunk) -> Thunk:
    def value() -> float:
        a, b = base(), exponent()
        if b > LARGEST_EXPONENT:
            raise ExpressionError("exponent too large", position)
        try:
            result: float | complex = a**b
        except ArithmeticError as error:
            raise ExpressionError(str(error), position) from None
        if isinstance(result, complex):
            raise ExpressionError("not a real number", position)
        return result

    return value


def _called(name: str, start: int, arguments: list[Thunk]) -> float:
    if name not in FUNCTIONS:
        raise ExpressionError(f"unknown function {name}", start)
    if not arguments or (name in ONE_ARGUMENT and len(arguments) != 1):
        raise ExpressionError(f"wrong number of arguments of {name}", start)
    values = [argument() for argument in arguments]
    try:
        return FUNCTIONS[name](*values)
    except (ValueError, OverflowError) as error:
        raise ExpressionError(str(error), start) from None
