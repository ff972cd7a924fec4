"""The scorers of a suite as the core's, each under a name of its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bakeoff._kernel.threads import call
from bakeoff.engine.registry import NO_NEEDS
from bakeoff.errors import GraderError, InfraError
from bakeoff.protocols import Needs, NeedsNetwork, Scored, ScoreInput, Scorer
from bakeoff.record import Score

_NOT_FOR_A_LOOP = (SystemExit, KeyboardInterrupt, GeneratorExit)


@dataclass(frozen=True, slots=True)
class SuiteScorer:
    """A scorer of the user's. Whatever it raises is its own failure, and ends nothing else."""

    function: Callable[[ScoreInput], Any]
    name: str
    null_as_zero: bool = False
    offline: bool = False  # nothing but recordings may answer

    def lacks(self) -> list[str]:
        """What is missing for it to ask whom it asks."""
        function: object = self.function
        return function.lacks() if isinstance(function, NeedsNetwork) and not self.offline else []

    @property
    def needs(self) -> Needs:
        needs: Needs = getattr(self.function, "needs", NO_NEEDS)
        return needs

    async def __call__(self, given: ScoreInput) -> Scored:
        try:
            scored: Scored = await call(self.function, given)
        except _NOT_FOR_A_LOOP as error:
            raise GraderError(f"the scorer raised {type(error).__name__}: {error}") from error
        return self._as_zero(scored) if self.null_as_zero else scored

    def _as_zero(self, scored: Scored) -> Scored:
        if scored is None:
            return Score(name=self.name, value=0.0, reason="unscored, counted as 0")
        if isinstance(scored, Score) and scored.value is None and scored.failure is None:
            reason = f"unscored, counted as 0: {scored.reason}" if scored.reason else "unscored, counted as 0"
            return scored.model_copy(update={"value": 0.0, "reason": reason})
        return scored


def named_scorers(
    functions: Iterable[Callable[..., Any]], *, null_as_zero: bool, offline: bool = False
) -> dict[str, Scorer]:
    """By name; a second one of the same name has a number. `offline`: nothing but recordings may answer."""
    scorers: dict[str, Scorer] = {}
    for function in functions:
        name = unique = _name(function)
        number = 1
        while unique in scorers:
            number += 1
            unique = f"{name}-{number}"
        scorers[unique] = SuiteScorer(_offline(function) if offline else function, unique, null_as_zero, offline)
    return scorers


def _offline(scorer: Any) -> Any:
    return scorer.offline() if isinstance(scorer, NeedsNetwork) else scorer


def refuse_incomplete(scorers: Mapping[str, Scorer]) -> None:
    """A key or an address that is missing is said before a task is asked, and not once for each answer."""
    lacking = [
        f"scorer {name!r}: {lack}"
        for name, scorer in scorers.items()
        if isinstance(scorer, SuiteScorer)
        for lack in scorer.lacks()
    ]
    if lacking:
        raise InfraError("; ".join(lacking), permanent=True)


def _name(function: Callable[..., Any]) -> str:
    for name in (getattr(function, "name", None), getattr(function, "__name__", None)):
        if isinstance(name, str) and name.strip() and name.isprintable():
            return "scorer" if name == "<lambda>" else name
    return type(function).__name__
