"""Collect the answer of a model from the events of a stream or from a complete body.

Implausible values of a provider are ignored, and texts are kept up to a limit.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite
from typing import Any, Literal, NoReturn

from pydantic import JsonValue

from bakeoff.models.estimate import CHARS_PER_TOKEN
from bakeoff.models.prices import Price, cost_of
from bakeoff.record import Part, Reasoning, Text, ToolCall, Usage
from bakeoff.storage.redaction import CUT

Kind = Literal["text", "reasoning", "tool"]

MAX_CHARACTERS = 200_000  # kept of one part
MAX_PARTS = 256  # kept of one answer
_DEEPEST = 50  # of a call's arguments
MAX_TOKENS = 100_000_000
# Longer than any text without a space: an image or another file, which is not billed by its characters.
_MAX_WORD_LENGTH = 20_000


@dataclass(slots=True)
class AnswerPiece:
    """A part of an answer while it grows."""

    kind: Kind
    name: str = ""
    id: str | None = None
    texts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        """Add text, and cut it at the limit of one part."""
        room = MAX_CHARACTERS - self.size
        self.size += len(text)
        if room > 0:
            self.texts.append(text if len(text) <= room else text[:room] + CUT)

    def part(self) -> Part:
        text = "".join(self.texts)
        match self.kind:
            case "tool":
                return ToolCall(name=self.name[:200], arguments=arguments_of(text), id=self.id and self.id[:200])
            case "reasoning":
                return Reasoning(text=text)
            case _:
                return Text(text=text)


@dataclass(slots=True)
class ModelAnswer:
    """The part of an answer that has arrived."""

    pieces: dict[Any, AnswerPiece] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    # The raw counts of a provider that reports them in several events.
    reported: dict[str, Any] = field(default_factory=dict)
    final: bool = False  # the counts are those of the complete answer
    whole: bool = False  # the answer is complete
    reported_cost: float | None = None
    finish: str | None = None
    model: str | None = None
    characters: int = 0

    def add(self, key: Any, kind: Kind, text: object, *, name: object = "", id: object = None) -> None:
        """Add text to the part with this key. Values that are not text are ignored."""
        piece = self.pieces.get(key)
        if piece is None:
            piece = AnswerPiece(kind)
            if len(self.pieces) < MAX_PARTS:
                self.pieces[key] = piece
        if isinstance(name, str) and name:
            piece.name = name
        if isinstance(id, str) and id:
            piece.id = id
        if isinstance(text, str) and text:
            self.characters += len(text)
            piece.add(text)

    def count(self, counted: Mapping[str, int] | None, *, final: bool) -> None:
        """Take over counts, which only grow. Counts that cannot be true are dropped, and the usage is estimated."""
        wrong = counted is None or any(count > MAX_TOKENS for count in counted.values())
        self.counts.update({name: max(value, self.counts.get(name, 0)) for name, value in (counted or {}).items()})
        cached = self.counts.get("cache_read", 0) + self.counts.get("cache_write", 0)
        wrong = wrong or cached > self.counts.get("input", 0)
        if wrong or not (self.counts.get("input") or self.counts.get("output")):
            self.counts.clear()
            self.final = False
        else:
            self.final = self.final or final

    def usage(self, price: Price | None, asked_characters: int) -> tuple[Usage, bool]:
        """Return tokens and cost, and whether any of it is estimated."""
        counts = dict(self.counts)
        estimated = not self.final or "input" not in counts
        counts.setdefault("input", ceil(asked_characters / CHARS_PER_TOKEN))
        if not self.final:
            counts["output"] = max(counts.get("output", 0), ceil(self.characters / CHARS_PER_TOKEN))
        usage = Usage(requests=1, **counts)
        cost = cost_of(usage, price) if price else self.reported_cost
        return usage.model_copy(update={"cost": cost}), estimated

    def parts(self) -> tuple[Part, ...]:
        return tuple(piece.part() for piece in self.pieces.values() if piece.size or piece.kind == "tool")

    def text(self) -> str:
        return "".join("".join(piece.texts) for piece in self.pieces.values() if piece.kind == "text")


def arguments_of(text: str) -> JsonValue:
    """Return a call's arguments as data, or as the original text if that is no usable JSON."""
    try:
        arguments: JsonValue = json.loads(text, parse_constant=_refuse, parse_float=_finite) if text else {}
    except (ValueError, RecursionError):
        return text
    return arguments if depth_of(arguments) <= _DEEPEST else text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    """Refuse numbers such as `1e999`, which are valid JSON and infinite in Python."""
    return value if isfinite(value := float(number)) else _refuse(number)


def depth_of(value: object) -> int:
    """Return the nesting depth of data, without recursion because it may be deep on purpose."""
    deepest, queue = 0, [(value, 1)]
    while queue:
        item, depth = queue.pop()
        deepest = max(deepest, depth)
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        queue.extend((child, depth + 1) for child in children)
    return deepest


def characters_in(value: object) -> int:
    """Count the characters of all texts in data, as a tokenizer would see them, without files."""
    total, queue = 0, [value]
    while queue:
        item = queue.pop()
        if isinstance(item, dict):
            queue.extend(item.keys())
            queue.extend(item.values())
        elif isinstance(item, list):
            queue.extend(item)
        elif isinstance(item, str) and (len(item) < _MAX_WORD_LENGTH or " " in item[:_MAX_WORD_LENGTH]):
            total += len(item)
    return total
