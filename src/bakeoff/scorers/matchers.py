"""Compare values, such as the parameters of a call, with expected values that may contain matchers.

Values are compared as JSON: 90 equals 90.0 but not "90", true does not equal 1, the order of keys
does not matter, and the order of lists does. An object anywhere in the expected value is a matcher
if it has only keys of `Matcher`, and not only `value`.
"""

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches

from pydantic import ConfigDict, Field, JsonValue, ValidationError, field_validator, model_validator

from bakeoff._kernel.json import is_number
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import in_our_words
from bakeoff._kernel.yaml import Key
from bakeoff.scorers.patterns import is_found

_SEARCH_SECONDS = 5.0
_MAX_SHOWN_LENGTH = 200
_NOISE = 1e-9  # relative error of a distance between floats


class Matcher(FrozenModel):
    """Say how to compare one value. Without any other key, the actual value must equal `value`."""

    model_config = ConfigDict(strict=True)  # "yes" is a text, not a boolean

    value: JsonValue = None
    optional: bool = Field(default=False, description="may be absent; if present, it must match")
    caseInsensitive: bool = Field(default=False, description="ignore case, also inside lists and objects")
    oneOf: list[JsonValue] | None = Field(default=None, min_length=1, description="any of these matches")
    regex: str | None = Field(default=None, description="a pattern that must occur in the text")
    approx: float | None = Field(default=None, ge=0, description="the largest distance of a number from `value`")
    any: bool = Field(default=False, description="any value matches, but it must be present")
    exact: bool = Field(default=False, description="compare `value` literally, even if it looks like a matcher")

    @field_validator("regex")
    @classmethod
    def _check_pattern(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return pattern

    @model_validator(mode="after")
    def _check_combination(self) -> "Matcher":
        if self.approx is not None and not is_number(self.value):
            raise ValueError(f"`approx` needs a number as `value`, not {self.value!r}")
        ways = [
            name for name in ("oneOf", "regex", "approx", "any", "exact") if getattr(self, name) not in (None, False)
        ]
        if len(ways) > 1:
            raise ValueError(f"{' and '.join(f'`{way}`' for way in ways)} exclude each other: keep one")
        unused = {"oneOf", "regex", "any"} & set(ways)
        if unused and "value" in self.model_fields_set:
            raise ValueError(f"`value` has no meaning beside `{unused.pop()}`: remove one")
        if self.is_open and (self.exact or not (self.optional or self.any)):
            raise ValueError(
                "this says how to compare but not with what: add `value`; "
                "to expect this object literally, write {value: {…}, exact: true}"
            )
        return self

    @property
    def is_open(self) -> bool:
        """Tell whether there is no value to compare with. A `value` of null counts as a value."""
        return "value" not in self.model_fields_set and self.oneOf is None and self.regex is None


_KEYS = frozenset(Matcher.model_fields)


def is_matcher(expected: JsonValue) -> bool:
    """Tell whether an expected value is a matcher, and not a value to compare with."""
    return isinstance(expected, dict) and bool(expected) and expected.keys() <= _KEYS and expected.keys() != {"value"}


def has_matcher(expected: JsonValue) -> bool:
    """Return True if a value, or any value inside it, is a matcher."""
    inner = expected.values() if isinstance(expected, dict) else expected if isinstance(expected, list) else ()
    return is_matcher(expected) or any(map(has_matcher, inner))


def matcher_problems(expected: JsonValue, place: Key = ()) -> list[tuple[Key, str]]:
    """Return the problems of all matchers inside an expected value, as (place, problem)."""
    found: list[tuple[Key, str]] = []
    if is_matcher(expected):
        assert isinstance(expected, dict)
        try:
            Matcher.model_validate(expected)
        except ValidationError as error:
            found = [((*place, *item["loc"]), in_our_words(item)) for item in error.errors(include_url=False)]
        if expected.get("exact") is True:
            return found
        inner: list[tuple[Key, JsonValue]] = [((*place, "value"), expected.get("value"))]
        choices = expected.get("oneOf")
        inner += _children(choices if isinstance(choices, list) else [], (*place, "oneOf"))
    else:
        found = [((*place, name), problem) for name, problem in _misspelt(expected)]
        inner = _children(expected, place)
    return found + [problem for key, value in inner for problem in matcher_problems(value, key)]


def _misspelt(expected: JsonValue) -> list[tuple[str, str]]:
    """Return the misspelt keys, with messages, of an object that would otherwise be a matcher."""
    if not isinstance(expected, dict) or not expected.keys() & _KEYS:
        return []
    near = {name: get_close_matches(name, _KEYS - {"value"}, n=1, cutoff=0.75) for name in expected.keys() - _KEYS}
    if not all(near.values()):
        return []  # an object of the tool's own, such as {value: 5, unit: kg}
    hint = "to expect this object literally, write {value: {…}, exact: true}"
    return [
        (name, f"{name!r} is no key of a matcher: did you mean {meant[0]!r}? {hint}") for name, meant in near.items()
    ]


def parameter_problems(expected: Mapping[str, JsonValue]) -> list[tuple[Key, str]]:
    """Return the problems of a call's parameters. Their names belong to the tool: one may be called `regex`."""
    return [problem for name, value in expected.items() for problem in matcher_problems(value, (name,))]


async def value_differences(
    expected: JsonValue, actual: JsonValue, place: str = "", *, ignore_case: bool = False, literal: bool = False
) -> list[str]:
    """Return a sentence for each place where a value differs from the expected one.

    With `literal`, the expected value contains no matchers, even if a part of it looks like one.
    """
    if not literal and is_matcher(expected):
        return await _by_matcher(Matcher.model_validate(expected), actual, place, ignore_case=ignore_case)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return await parameter_differences(expected, actual, place, ignore_case=ignore_case, literal=literal)
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [_at(place, f"has {len(actual)} items, expected {len(expected)}")]
        found: list[str] = []
        for at, (wanted, value) in enumerate(zip(expected, actual, strict=True)):
            found += await value_differences(wanted, value, f"{place}[{at}]", ignore_case=ignore_case, literal=literal)
        return found
    if ignore_case and isinstance(expected, str) and isinstance(actual, str):
        same = expected.casefold() == actual.casefold()
    else:
        same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return [] if same else [_at(place, f"is {_shown(actual)}, expected {_shown(expected)}")]


async def parameter_differences(
    expected: Mapping[str, JsonValue],
    actual: Mapping[str, JsonValue],
    place: str = "",
    *,
    ignore_case: bool = False,
    literal: bool = False,
    extra_allowed: bool = False,
) -> list[str]:
    """Return a sentence for each difference between an object's values and the expected ones.

    The object itself is never a matcher. The arguments are the same as for `value_differences`.
    """
    found: list[str] = []
    around = f"{place}." if place else ""
    for name, wanted in expected.items():
        if name in actual:
            found += await value_differences(
                wanted, actual[name], f"{around}{name}", ignore_case=ignore_case, literal=literal
            )
        elif literal or not _is_optional(wanted):
            found.append(_at(f"{around}{name}", f"is missing, expected {_shown(wanted)}"))
    extra = [] if extra_allowed else [name for name in actual if name not in expected]
    return found + [_at(f"{around}{name}", f"was not expected, is {_shown(actual[name])}") for name in extra]


async def _by_matcher(matcher: Matcher, actual: JsonValue, place: str, *, ignore_case: bool) -> list[str]:
    ignore_case = ignore_case or matcher.caseInsensitive
    value = matcher.value
    problem: str | None = None
    if matcher.is_open:  # `any`, or only `optional`
        return []
    if matcher.oneOf is not None:
        for choice in matcher.oneOf:
            if not await value_differences(choice, actual, ignore_case=ignore_case):
                return []
        problem = f"is {_shown(actual)}, expected one of {_shown(matcher.oneOf)}"
    elif matcher.regex is not None:
        problem = await _pattern_problem(matcher.regex, actual, ignore_case=ignore_case)
    elif matcher.approx is not None:
        if not _is_near(actual, value, matcher.approx):
            problem = f"is {_shown(actual)}, expected {value!r} ± {matcher.approx:g}"
    elif not matcher.exact:
        return await value_differences(value, actual, place, ignore_case=ignore_case)
    elif await value_differences(value, actual, ignore_case=ignore_case, literal=True):
        problem = f"is {_shown(actual)}, expected {_shown(value)}"
    return [_at(place, problem)] if problem else []


async def _pattern_problem(pattern: str, actual: JsonValue, *, ignore_case: bool) -> str | None:
    if not isinstance(actual, str):
        return f"is {_shown(actual)}, expected a text with {pattern!r}"
    found = await is_found(re.compile(pattern), actual, _SEARCH_SECONDS)
    if found is False and ignore_case:  # tried second: `[^a]` matches less when case is ignored
        found = await is_found(re.compile(pattern, re.IGNORECASE), actual, _SEARCH_SECONDS)
    if found is None:
        return f"the search for {pattern!r} was stopped after {_SEARCH_SECONDS:g} s"
    return None if found else f"is {_shown(actual)}, which does not contain {pattern!r}"


def _is_near(one: JsonValue, other: JsonValue, most: float) -> bool:
    if not is_number(one) or not is_number(other):
        return False
    try:
        far = abs(one - other)
        if isinstance(far, int):  # exact for any number of digits
            return far <= most
        rounding = 2 * math.ulp(max(abs(one), abs(other)))  # of floats, 1.8 is nearer to 1.9 than to 1.7
        return far <= most or math.isclose(far, most, rel_tol=_NOISE, abs_tol=rounding)
    except OverflowError:  # hundreds of digits, which no float can hold
        return False


def _is_optional(expected: JsonValue) -> bool:
    if not isinstance(expected, dict) or not is_matcher(expected):
        return False
    if expected.get("optional") is True:
        return True
    return expected.get("exact") is not True and _is_optional(expected.get("value"))


def _children(expected: JsonValue, place: Key) -> list[tuple[Key, JsonValue]]:
    if isinstance(expected, dict):
        return [((*place, name), value) for name, value in expected.items()]
    return [((*place, at), value) for at, value in enumerate(expected)] if isinstance(expected, list) else []


def _at(place: str, problem: str) -> str:
    return f"{place}: {problem}" if place else problem


def _shown(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[:_MAX_SHOWN_LENGTH]}…"
