"""Check the called tools, and the path to an answer: `tool_calls` and `trajectory`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score, ToolCall, Transcript
from bakeoff.scorers.configurable import NAMED_FUNCTION, ConfigurableScorer
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.values import (
    Tolerances,
    ValueComparison,
    a_few,
    comparison_of,
    most_pairs,
    most_pairs_in_order,
    plain,
    share,
    shown,
)

ROW_FIELD = "expected_tools"
_FEW = 20  # so few calls are compared faster than a thread starts

Params: TypeAlias = Annotated[Literal["strict", "fuzzy", "matchers"] | Callable[[Any, Any], Any], NAMED_FUNCTION]
"""How arguments are compared: a name, or a function of the expected and the actual arguments."""

CallTable: TypeAlias = Sequence[Sequence[str | None]]
"""The difference of each call, by column, to each expected call, by row; None where they match."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """An expected call. Without arguments, any arguments match."""

    name: str
    arguments: Any = None

    def __str__(self) -> str:
        return self.name if self.arguments is None else f"{self.name}({shown(self.arguments)})"


@scorer("tool_calls")
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls(ConfigurableScorer):
    """Compares the calls with the row's `expected_tools`, which are names or objects with `name` and `arguments`.

    In a plan, which has no rows, the case's `expected` is used. Each call matches at most one expected call, and as
    many as possible are matched; with `ordered`, only in the expected order.
    """

    ordered: bool = False
    require_all: bool = True
    allow_extras: bool = True
    params: Params = "strict"
    fuzzy: Tolerances = None
    name: str = "tool_calls"

    def __post_init__(self) -> None:
        ConfigurableScorer.__post_init__(self)
        self._comparison()  # checks the options

    def _comparison(self) -> ValueComparison:
        params = "strict" if self.params == "matchers" else self.params
        return comparison_of(f"scorer {self.name!r}", params, self.fuzzy)

    async def __call__(self, given: ScoreInput) -> Score:
        expected, calls = wanted_by(given), given.tool_calls
        if self.params == "matchers":
            return self._scored(expected, calls, await _table_by_matchers(expected, calls, given.case.id))
        quick = self.params == "strict" and len(calls) <= _FEW
        scored: Score = self._compared(expected, calls) if quick else await call(self._compared, expected, calls)
        return scored

    def _compared(self, expected: list[ExpectedCall], calls: Sequence[ToolCall]) -> Score:
        comparison = self._comparison()
        table = [[_difference(comparison, wanted, made) for made in calls] for wanted in expected]
        return self._scored(expected, calls, table)

    def _scored(self, expected: list[ExpectedCall], calls: Sequence[ToolCall], table: CallTable) -> Score:
        if not expected:
            too_many = bool(calls) and not self.allow_extras
            reason = f"no tool was to be called, but {_names(calls)}" if too_many else "no tool calls are expected"
            return self._score(float(not too_many), reason, 0, 0, len(calls) if too_many else 0)
        if not calls:
            return self._score(0.0, f"no tool was called; expected: {a_few(expected)}", 0, len(expected), 0)
        fits = [[difference is None for difference in row] for row in table]
        pairs = (most_pairs_in_order if self.ordered else most_pairs)(fits)
        missing = [at for at, partner in enumerate(pairs) if partner is None]
        unpaired = sorted(set(range(len(calls))) - set(pairs))
        extras = [calls[at] for at in unpaired]
        reasons = []
        if missing:
            why = ", ".join(_why(expected[at], table[at], unpaired, calls) for at in missing[:5])
            reasons.append(f"missing: {why}" + (f" and {len(missing) - 5} more" if len(missing) > 5 else ""))
        if extras and not self.allow_extras:
            reasons.append(f"not expected: {_names(extras)}")
        matched, counted = len(expected) - len(missing), 0 if self.allow_extras else len(extras)
        value = share(matched, len(expected), counted, require_all=self.require_all)
        reason = "; ".join(reasons) or f"all {len(expected)} expected calls were made"
        return self._score(value, reason, matched, len(expected), len(extras))

    def _score(self, value: float, reason: str, matched: int, expected: int, extra: int) -> Score:
        return self.scored(value, reason, rationale=reason, matched=matched, expected=expected, extra=extra)


def _why(
    wanted: ExpectedCall, differences: Sequence[str | None], unpaired: Sequence[int], calls: Sequence[ToolCall]
) -> str:
    """Explain a missing call: how the nearest call differs, or that the order was wrong."""
    for at in unpaired:
        if calls[at].name == wanted.name:
            return f"{wanted} ({differences[at] or 'it was called, but not in this order'})"
    return f"{wanted} once more" if any(made.name == wanted.name for made in calls) else str(wanted)


def wanted_by(given: ScoreInput) -> list[ExpectedCall]:
    """Return the expected calls of a row, or of the case in a plan; none if nothing is expected.

    Raises `GraderError` if they cannot be read, or if their field in the row is misspelled.
    """
    for key in given.row:  # a misspelled field would make every case pass
        if key != ROW_FIELD and re.sub("[_-]", "", key.lower()) in ("expectedtools", "expectedtool"):
            raise GraderError(f"case {given.case.id!r} has {key!r}: write `{ROW_FIELD}`")
    found = given.row.get(ROW_FIELD) if given.row else given.case.expected
    if found is None:
        return []
    items = [found] if isinstance(found, str | Mapping | ToolCall) else found
    if not isinstance(items, list | tuple):
        raise GraderError(f"case {given.case.id!r}: {ROW_FIELD} is {shown(found)}: write a list of tools")
    return [_wanted(item, given.case.id) for item in items]


def _wanted(item: Any, case: str) -> ExpectedCall:
    if isinstance(item, str) and item:
        return ExpectedCall(item)
    if isinstance(item, ToolCall):
        return ExpectedCall(item.name, item.arguments)
    if isinstance(item, Mapping) and isinstance(item.get("name"), str) and item.keys() <= {"name", "arguments"}:
        return ExpectedCall(item["name"], plain(item.get("arguments")))
    raise GraderError(
        f"case {case!r}: {shown(item)} is not a tool: write its name, or an object with `name` and `arguments`"
    )


def _difference(comparison: ValueComparison, wanted: ExpectedCall, made: ToolCall) -> str | None:
    if made.name != wanted.name:
        return f"{made.name} is another tool"
    if wanted.arguments is None:
        return None
    arguments = {} if made.arguments is None else made.arguments
    return comparison.difference(wanted.arguments, arguments, wanted.name)


async def _table_by_matchers(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], case: str) -> CallTable:
    from bakeoff.scorers.matchers import parameter_differences, parameter_problems, value_differences

    for wanted in expected:
        if isinstance(wanted.arguments, dict) and (problems := parameter_problems(wanted.arguments)):
            place, what = problems[0]
            raise GraderError(f"case {case!r}: {wanted.name}.{'.'.join(map(str, place))}: {what}")
    table: list[list[str | None]] = []
    for wanted in expected:
        table.append([])
        for made in calls:
            arguments: Any = {} if made.arguments is None else made.arguments
            if made.name != wanted.name:
                found = [f"{made.name} is another tool"]
            elif wanted.arguments is None:
                found = []
            elif isinstance(wanted.arguments, dict) and isinstance(arguments, dict):
                found = await parameter_differences(wanted.arguments, arguments)
            else:
                found = await value_differences(wanted.arguments, arguments, literal=True)
            table[-1].append("; ".join(found) or None)
    return table


def _names(calls: Sequence[ToolCall]) -> str:
    return a_few([f"{made.name} was called" for made in calls])


_OPTIONS = {
    "any_order": {},
    "in_order": {"ordered": True},
    "exact": {"ordered": True, "allow_extras": False},
    "subset": {"require_all": False, "allow_extras": False},
}


@scorer("trajectory")
@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(ConfigurableScorer):
    """Scores 1 when calls match the row's `expected_tools`, avoid forbidden tools, and keep limits.

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
        wanted_by(given)  # refuses rows with a misspelled field
        expected = given.row.get(ROW_FIELD) if given.row else given.case.expected
        checks_calls = self.match is not None and expected is not None
        if not checks_calls and not limits and not self.forbidden:
            raise GraderError(
                f"case {given.case.id!r}: there is nothing to check: give the row `{ROW_FIELD}`, or the scorer "
                "`forbidden` or a limit"
            )
        problems: list[str] = []
        if checks_calls:
            scored = await self._calls()(given)
            fine = scored.metadata["extra"] == 0 if self.match == "subset" else scored.value == 1.0
            problems = [] if fine else [scored.reason]
        names = dict.fromkeys(call.name for call in given.tool_calls)
        called = [name for name in names if any(fnmatchcase(name, pattern) for pattern in self.forbidden)]
        problems += [f"forbidden: {a_few(called)}"] if called else []
        over = ((what, used, most) for what, used, most in limits if used is not None and used > most)
        problems += [f"{used:.6g} {what}, at most {most:.6g} allowed" for what, used, most in over]
        unknown = [what for what, used, _ in limits if used is None]
        reason = "; ".join(problems) or (f"not known: {', '.join(unknown)}" if unknown else "as it should be")
        value = 0.0 if problems else None if unknown else 1.0
        return self.scored(value, reason, rationale=reason, **{what: used for what, used, _ in limits})

    def _calls(self) -> ToolCalls:
        return ToolCalls(params=self.params, fuzzy=self.fuzzy, name=self.name, **_OPTIONS[self.match or "any_order"])

    def _limits(self, transcript: Transcript) -> Iterator[tuple[str, float | None, float]]:
        """Yield the name, used amount (None if unknown) and allowed amount of each limit."""
        usage = transcript.usage
        used: tuple[tuple[str, float | None, float | None], ...] = (
            ("tool calls", len(transcript.tool_calls), self.max_calls),
            ("steps", steps_of(transcript), self.max_steps),
            ("tokens", usage.tokens or None, self.max_tokens),
            ("USD", usage.cost, self.max_usd),
        )
        yield from ((what, amount, most) for what, amount, most in used if most is not None)


def steps_of(transcript: Transcript) -> int | None:
    """Return how often the model was asked; None if unknown, as in results with only tool calls."""
    if transcript.usage.requests:
        return transcript.usage.requests
    return len(transcript.steps) if len(transcript.steps) > 1 else None
