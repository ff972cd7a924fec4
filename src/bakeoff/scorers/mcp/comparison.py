"""Compare the calls of a round and their results with the expected ones."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from bakeoff._kernel.text import count_of
from bakeoff.scorers.matchers import is_matcher, parameter_differences, value_differences
from bakeoff.scorers.mcp.calls import Call, CallRules, CaseExpectation, ExecutedCall, ExpectedMcpCall, text_of
from bakeoff.scorers.values import most_pairs, most_pairs_in_order


async def call_differences(expected: CaseExpectation, actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
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
    wanted: Sequence[ExpectedMcpCall], actual: Sequence[Call], rules: CallRules, *, extra_allowed: bool
) -> list[str]:
    """Compare the calls with one expectation, by its rules about order and other calls."""
    others = rules.extraCalls == "allow"
    if not wanted and actual:
        return [] if others else [f"no tool should be called, but {_labels(actual)} was"]
    if wanted and not actual:
        return [f"no tool was called, expected {_labels(wanted)}"]
    if rules.order == "exact" and not others:
        return await _one_by_one(wanted, actual, extra_allowed=extra_allowed)
    fits = [[not await _problems(want, call, extra_allowed=extra_allowed) for call in actual] for want in wanted]
    places = most_pairs(fits) if rules.order == "any" else most_pairs_in_order(fits)
    found: list[str] = []
    for want, place in zip(wanted, places, strict=True):
        if place is None:
            found += await _why_missing(want, actual, extra_allowed=extra_allowed)
    extra = [call for at, call in enumerate(actual) if at not in places]
    if extra and not others and not found:
        found.append(f"{_labels(extra)} was called too, which is not expected")
    return found


async def _one_by_one(wanted: Sequence[ExpectedMcpCall], actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    """Compare each call with the expected one in its place."""
    if len(wanted) != len(actual):
        made = count_of(len(actual), "call was", "calls were")
        return [f"{made} made ({_labels(actual)}), expected {len(wanted)} ({_labels(wanted)})"]
    found: list[str] = []
    for at, (want, call) in enumerate(zip(wanted, actual, strict=True)):
        place = f"call {at + 1}: " if len(wanted) > 1 else ""
        found += [f"{place}{problem}" for problem in await _problems(want, call, extra_allowed=extra_allowed)]
    return found


async def _problems(want: ExpectedMcpCall, call: Call, *, extra_allowed: bool) -> list[str]:
    """Return how one call differs: in its tool, or else in its parameters."""
    problems = [
        f"{key} is {getattr(call, key)!r}, expected {getattr(want, key)!r}"
        for key in ("serverName", "toolName")
        if getattr(call, key) != getattr(want, key)
    ]
    if problems:
        return problems  # another tool has other parameters
    differences = await parameter_differences(want.parameters, call.parameters, extra_allowed=extra_allowed)
    return [f"parameters: {difference}" for difference in differences]


async def _why_missing(want: ExpectedMcpCall, actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
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


_WRAPPED = "result"  # SDKs send a result that is not an object under this key: structured content must be an object


async def result_differences(case: CaseExpectation, executed: Sequence[ExecutedCall]) -> list[str]:
    """Return a sentence for each difference between the results and the expected ones.

    A list with one item for each of several calls is compared with all results, anything else with the last one. An
    expected text that a judge is shown is not compared: the judge decides if the meaning is the same.
    """
    expected, error = case.results, case.rules.expectedError
    if error and executed:
        last = executed[-1]
        if not last.is_error:
            return [f"the tool {last.tool!r} succeeded, but an error is expected"]
        missing = isinstance(error, str) and error not in last.text
        return [f"the error of {last.tool!r} does not contain {error!r}: {last.text[:300]}"] if missing else []
    if failed := [each for each in executed if each.is_error]:
        return [f"the tool {each.tool!r} answered with an error: {each.text[:300]}" for each in failed]
    if expected is None or not executed or (case.grading is not None and expected_text(expected) is not None):
        return []
    if isinstance(expected, list) and len(executed) > 1 and len(expected) == len(executed):
        pairs = list(zip(expected, executed, strict=True))
    else:
        pairs = [(expected, executed[-1])]
    return [
        f"result of {result.tool!r}: {problem}"
        for wanted, result in pairs
        for problem in await _result_problems(wanted, result)
    ]


def expected_text(expected: JsonValue) -> str | None:
    """Return the text of `{content: text}`, the form in which other tools write an expected text."""
    if isinstance(expected, dict) and expected.keys() == {"content"} and isinstance(expected["content"], str):
        return expected["content"]
    return None


async def _result_problems(expected: JsonValue, result: ExecutedCall) -> list[str]:
    """Return the differences to the most probable reading of a result, or none if any reading matches."""
    if isinstance(expected, str):
        found = expected in result.text or expected in text_of(result.structured)
        return [] if found else [f"{expected!r} is not in {result.text[:200]!r}"]
    first: list[str] | None = None
    for actual in _readings(expected, result):
        if isinstance(expected, dict) and isinstance(actual, dict) and not is_matcher(expected):
            differences = await parameter_differences(expected, actual, extra_allowed=True)
        else:
            differences = await value_differences(expected, actual)
        if not differences:
            return []
        first = first or differences
    return first or []


def _readings(expected: JsonValue, result: ExecutedCall) -> list[JsonValue]:
    """Return the possible values of a result, the most probable one first."""
    found: list[JsonValue] = []
    if result.structured is not None:
        found.append(result.structured)
        if isinstance(result.structured, dict) and result.structured.keys() == {_WRAPPED}:
            bare_first = not isinstance(expected, dict) or _WRAPPED not in expected
            found.insert(0 if bare_first else 1, result.structured[_WRAPPED])
    try:
        found.append(json.loads(result.text))
    except (ValueError, RecursionError):
        found.append(result.text)
    if is_matcher(expected) and result.text not in found:
        found.append(result.text)
    if expected_text(expected) is not None:
        found.append({"content": result.text})
    return found
