"""Compare the results of tools with the expected ones."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from bakeoff.doors.mcp.calls import ExpectedMcpCall
from bakeoff.doors.mcp.execution import ExecutedCall, text_of
from bakeoff.scorers.matchers import is_matcher, parameter_differences, value_differences

_WRAPPED = "result"  # SDKs send a result that is not an object under this key: structured content must be an object


async def result_differences(case: ExpectedMcpCall, executed: Sequence[ExecutedCall]) -> list[str]:
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
