"""A judge that says what it is told to say, and remembers what it was asked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bakeoff.models.providers import register_provider


class Saying:
    """Gives these replies in turn: texts as they are, data as JSON."""

    def __init__(self, *replies: Any) -> None:
        self.replies = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
        self.asked: list[tuple[str, str]] = []

    def create_message(self, system: str, message: str) -> str:
        self.asked.append((system, message))
        return self.replies.pop(0)


@contextmanager
def saying(*replies: Any) -> Iterator[Saying]:
    """Register the judge as `says:x` for as long as the block lasts."""
    judge = Saying(*replies)
    take_back = register_provider("says", judge)
    try:
        yield judge
    finally:
        take_back()
