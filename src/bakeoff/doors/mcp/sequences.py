"""Compare the calls of a round with the expected ones: in order or in any order, with or without other calls."""

from collections.abc import Sequence

from bakeoff._kernel.text import count_of
from bakeoff.doors.mcp.calls import Call, CallRules, ExpectedCall, ExpectedMcpCall
from bakeoff.scorers.matchers import parameter_differences


async def call_differences(expected: ExpectedMcpCall, actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    """Return a sentence for each difference between the calls, or an empty list if they match.

    If the calls match no alternative either, the differences to the first expectation are returned.
    """
    most = expected.rules.maxCalls
    if most is not None and len(actual) > most:
        made = count_of(len(actual), "call was", "calls were")
        return [f"{made} made, at most {most} are allowed: {_labels(actual)}"]
    first: list[str] | None = None
    for wanted in (expected.calls, *expected.alternatives):
        found = await _differences(wanted or (), actual, expected.rules, extra_allowed=extra_allowed)
        if not found:
            return []
        first = first or found
    return first or []


async def _differences(
    wanted: Sequence[ExpectedCall], actual: Sequence[Call], rules: CallRules, *, extra_allowed: bool
) -> list[str]:
    others = rules.extraCalls == "allow"
    if not wanted and actual:
        return [] if others else [f"no tool should be called, but {_labels(actual)} was"]
    if wanted and not actual:
        return [f"no tool was called, expected {_labels(wanted)}"]
    if rules.order == "exact" and not others:
        return await _one_by_one(wanted, actual, extra_allowed=extra_allowed)
    fits = [
        {at for at, call in enumerate(actual) if not await _problems(want, call, extra_allowed=extra_allowed)}
        for want in wanted
    ]
    places = _any_order(fits) if rules.order == "any" else _in_order(fits)
    found: list[str] = []
    for want, place in zip(wanted, places, strict=True):
        if place is None:
            found += await _why_missing(want, actual, extra_allowed=extra_allowed)
    extra = [call for at, call in enumerate(actual) if at not in places]
    if extra and not others and not found:
        found.append(f"{_labels(extra)} was called too, which is not expected")
    return found


async def _one_by_one(wanted: Sequence[ExpectedCall], actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    if len(wanted) != len(actual):
        made = count_of(len(actual), "call was", "calls were")
        return [f"{made} made ({_labels(actual)}), expected {len(wanted)} ({_labels(wanted)})"]
    found: list[str] = []
    for at, (want, call) in enumerate(zip(wanted, actual, strict=True)):
        place = f"call {at + 1}: " if len(wanted) > 1 else ""
        found += [f"{place}{problem}" for problem in await _problems(want, call, extra_allowed=extra_allowed)]
    return found


async def _problems(want: ExpectedCall, call: Call, *, extra_allowed: bool) -> list[str]:
    problems = [
        f"{key} is {getattr(call, key)!r}, expected {getattr(want, key)!r}"
        for key in ("serverName", "toolName")
        if getattr(call, key) != getattr(want, key)
    ]
    if problems:
        return problems  # another tool has other parameters
    differences = await parameter_differences(want.parameters, call.parameters, extra_allowed=extra_allowed)
    return [f"parameters: {difference}" for difference in differences]


def _in_order(fits: Sequence[set[int]]) -> list[int | None]:
    """Assign to each expected call the first fitting one after the call before it."""
    places: list[int | None] = []
    after = -1
    for fitting in fits:
        place = min((at for at in fitting if at > after), default=None)
        after = after if place is None else place
        places.append(place)
    return places


def _any_order(fits: Sequence[set[int]]) -> list[int | None]:
    """Assign a fitting call of its own to as many expected calls as possible (augmenting paths)."""
    taken: dict[int, int] = {}

    def assign(want: int, tried: set[int]) -> bool:
        for at in sorted(fits[want] - tried):
            tried.add(at)
            if at not in taken or assign(taken[at], tried):
                taken[at] = want
                return True
        return False

    for want in range(len(fits)):
        assign(want, set())
    places = {want: at for at, want in taken.items()}
    return [places.get(want) for want in range(len(fits))]


async def _why_missing(want: ExpectedCall, actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    """Say how the nearest call of the same tool differs, or that there is none."""
    same = [call for call in actual if call.tool == want.tool]
    if not same:
        return [f"{want.tool!r} was not called, only {_labels(actual)}"]
    problems = [await _problems(want, call, extra_allowed=extra_allowed) for call in same]
    nearest = min(problems, key=len)
    if not nearest:
        return [f"{want.tool!r} was not called as often, or not in the order, that is expected"]
    return [f"{want.tool!r}: {problem}" for problem in nearest]


def _labels(calls: Sequence[Call]) -> str:
    return ", ".join(repr(call.tool) for call in calls)
