"""Score with a Python function of the user."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Self

from bakeoff._kernel.imports import import_target, revision_of, target_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError
from bakeoff.plan import ScorerSpec, describe, read_options
from bakeoff.protocols import Needs, Scored, ScoreInput
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.registry import scorer


class FunctionScorerOptions(FrozenModel):
    target: str


@scorer("function", main="target")
@dataclass(frozen=True, slots=True)
class Function(ConfigurableScorer):
    """A callable `(ScoreInput) -> Score | float | bool | None`, sync or async."""

    function: Callable[[ScoreInput], Scored | Awaitable[Scored]]
    name: str
    needs: ClassVar[Needs] = Needs()  # it may ask a judge, whose usage is counted apart

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        target = read_options(spec, FunctionScorerOptions).target
        return cls(import_target(target, describe(spec)), target.rpartition(":")[2])

    @classmethod
    def options_model(cls) -> type[FrozenModel]:
        return FunctionScorerOptions

    def __post_init__(self) -> None:
        """Check nothing: in Python, a function is given instead of the options of a plan."""

    async def __call__(self, given: ScoreInput) -> Scored:
        # In a task of its own: a function may cancel its task, and this one has a trial to finish.
        return await asyncio.create_task(self._scored(given))

    async def _scored(self, given: ScoreInput) -> Scored:
        try:
            scored: Scored = await call(self.function, given)
        except SystemExit as error:
            raise GraderError(f"called sys.exit({error.code!r})") from error
        return scored


def function_scorer(function: Callable[[ScoreInput], Scored | Awaitable[Scored]]) -> ScorerSpec:
    """Return the spec of a function that can be imported by name."""
    return ScorerSpec(kind="function", options={"target": target_of(function)}, revision=revision_of(function))
