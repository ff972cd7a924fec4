"""Evals inside of tests that were called and are to be awaited. One that nobody awaits would test nothing."""

import sys
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Evaluation(Coroutine[Any, Any, Result], Generic[Result]):
    """An eval that was called and is to be awaited. It knows whether anyone did.

    Args:
        coroutine: the eval itself.
        way_out: how the call is written right, for an error.
        caller: how many frames the test is away.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Result], way_out: str, caller: int = 2) -> None:
        frame = sys._getframe(caller)
        self._place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        self._way_out = way_out
        self._coroutine = coroutine
        self._started = False

    def __await__(self) -> Generator[Any, Any, Result]:
        self._started = True
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        self._started = True
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        self._started = True
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def abandon(self) -> str | None:
        """Close the eval if nobody has started it, and say so."""
        if self._started:
            return None
        self._coroutine.close()
        return f"{self._place}: this eval was called and never awaited: {self._way_out}"


@dataclass(slots=True)
class Evaluations:
    """The evals that a test has called."""

    _made: list[Evaluation[Any]] = field(default_factory=list)

    def add(self, evaluation: Evaluation[Result]) -> Evaluation[Result]:
        self._made.append(evaluation)
        return evaluation

    def forget(self) -> list[str]:
        """Return a sentence for each eval that nobody has awaited, and forget all."""
        made, self._made = self._made, []
        return [said for one in made if (said := one.abandon()) is not None]
