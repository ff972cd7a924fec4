"""Check the way to an answer: order of tools, forbidden tools, and limits: `trajectory`."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from pydantic import JsonValue, NonNegativeFloat, NonNegativeInt, PositiveInt

from bakeoff.errors import GraderError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score, Transcript
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.tool_calls import ROW_FIELD, Params, ToolCalls, wanted_by
from bakeoff.scorers.values import Tolerances, a_few

_OPTIONS = {
    "any_order": {},
    "in_order": {"ordered": True},
    "exact": {"ordered": True, "allow_extras": False},
    "subset": {"require_all": False, "allow_extras": False},
}


@scorer("trajectory")
@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(ConfigurableScorer):
    """Scores 1 when the calls come as the row's `expected_tools` say, no forbidden tool is called, and limits are kept.

    Forbidden tools are names or patterns such as `delete_*`. A limit that cannot be checked leaves the case unscored.
    """

    match: Literal["any_order", "in_order", "exact", "subset"] | None = "in_order"  # None: whatever is called
    params: Params = "matchers"
    fuzzy: Tolerances = None
    forbidden: tuple[str, ...] = ()
    max_calls: NonNegativeInt | None = None
    max_steps: PositiveInt | None = None  # turns of the model
    max_tokens: NonNegativeInt | None = None
    max_usd: NonNegativeFloat | None = None
    name: str = "trajectory"

    def __post_init__(self) -> None:
        ConfigurableScorer.__post_init__(self)
        self._calls()  # checks the options

    async def __call__(self, given: ScoreInput) -> Score:
        limits = list(self._limits(given.transcript))
        checks_calls = self.match is not None and _expects_calls(given)
        if not checks_calls and not limits and not self.forbidden:
            raise GraderError(
                f"case {given.case.id!r}: there is nothing to check: give the row `{ROW_FIELD}`, or the scorer "
                "`forbidden` or a limit"
            )
        problems = await self._sequence_problems(given) if checks_calls else []
        problems += self._forbidden_calls(given)
        over = ((what, used, most) for what, used, most in limits if used is not None and used > most)
        problems += [f"{used:.6g} {what}, at most {most:.6g} allowed" for what, used, most in over]
        unknown = [what for what, used, _ in limits if used is None]
        reason = "; ".join(problems) or (f"not known: {', '.join(unknown)}" if unknown else "as it should be")
        value = 0.0 if problems else None if unknown else 1.0
        measured: dict[str, JsonValue] = {what: used for what, used, _ in limits}
        return Score(name=self.name, value=value, reason=reason, metadata={"rationale": reason, **measured})

    def _calls(self) -> ToolCalls:
        return ToolCalls(params=self.params, fuzzy=self.fuzzy, name=self.name, **_OPTIONS[self.match or "any_order"])

    async def _sequence_problems(self, given: ScoreInput) -> list[str]:
        scored = await self._calls()(given)
        fine = scored.metadata["extra"] == 0 if self.match == "subset" else scored.value == 1.0
        return [] if fine else [scored.reason]

    def _forbidden_calls(self, given: ScoreInput) -> list[str]:
        names = [call.name for call in given.tool_calls]
        called = [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.forbidden)]
        return [f"forbidden: {a_few(list(dict.fromkeys(called)))}"] if called else []

    def _limits(self, transcript: Transcript) -> Iterator[tuple[str, float | None, float]]:
        """Yield each limit that is set: its name, what was used if that is known, and how much is allowed."""
        usage = transcript.usage
        used: tuple[tuple[str, float | None, float | None], ...] = (
            ("tool calls", len(transcript.tool_calls), self.max_calls),
            ("steps", steps_of(transcript), self.max_steps),
            ("tokens", usage.tokens or None, self.max_tokens),
            ("USD", usage.cost, self.max_usd),
        )
        yield from ((what, amount, most) for what, amount, most in used if most is not None)


def _expects_calls(given: ScoreInput) -> bool:
    wanted_by(given)  # refuses rows with a misspelled field
    return (given.row.get(ROW_FIELD) if given.row else given.case.expected) is not None


def steps_of(transcript: Transcript) -> int | None:
    """Return how often the model was asked; None if nothing tells, as where a result holds only the tool calls."""
    if transcript.usage.requests:
        return transcript.usage.requests
    return len(transcript.steps) if len(transcript.steps) > 1 else None
