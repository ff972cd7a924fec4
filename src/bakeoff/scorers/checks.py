"""Check whether an output meets conditions, each with a weight: `checks`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, NonNegativeFloat, model_validator
from pydantic_core import from_json

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.scorers.configurable import ConfigurableScorer
from bakeoff.scorers.patterns import is_found
from bakeoff.scorers.registry import scorer
from bakeoff.scorers.text import as_text, json_in

_SECONDS = 10.0  # for one search for a pattern
_MAX_STEPS = 2_000_000  # of counting edits: a second
_NOT = "not-"

WITHOUT_VALUE = ("is-json", "contains-json")
_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")


class Check(FrozenModel):
    """One condition. `{contains: Paris}` is short for `{type: contains, value: Paris}`."""

    type: str
    value: JsonValue = Field(default=None, description="a text, a list of texts, a number, or a JSON Schema")
    weight: NonNegativeFloat = 1.0
    threshold: NonNegativeFloat = Field(default=5, description="for `levenshtein`: the most edits")
    strip: bool = Field(default=True, description="white space around the output does not count")

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"type": given}
        if not isinstance(given, dict) or "type" in given:
            return given
        kinds = [name for name in given if name not in cls.model_fields]
        if len(kinds) != 1 or "value" in given:
            return given
        return {"type": kinds[0], "value": given[kinds[0]], **{k: v for k, v in given.items() if k != kinds[0]}}

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        kind = self.type.removeprefix(_NOT)
        if self.type not in CONDITIONS:
            raise ValueError(f"{self.type!r} is no condition: write one of {', '.join(CONDITIONS)}")
        if kind in WITHOUT_VALUE:
            _refuse_wrong_schema(self.value)
        elif kind == "max-words":
            if not isinstance(self.value, int) or self.value < 0 or isinstance(self.value, bool):
                raise ValueError(f"{self.value!r} is not a number of words")
        else:
            _refuse_wrong_texts(self.type, kind, self.value)
        return self

    async def problem(self, output: str) -> str | None:
        """Return why the condition does not hold, or None if it does."""
        if not self.type.startswith(_NOT):
            return await self._problem(output)
        if await self._problem(output) is not None:
            return None
        return f"{self.type}: it does {_shown(self.value)}".rstrip()

    async def _problem(self, output: str) -> str | None:
        kind = self.type.removeprefix(_NOT)
        if kind == "regex":
            found = await is_found(re.compile(as_text(self.value)), output, _SECONDS)
            if found is None:
                raise GraderError(f"the search for {self.value!r} was stopped after {_SECONDS:g} s")
            return None if found else f"no match for {self.value!r}"
        return _CONDITIONS[kind](output, self)


def _refuse_wrong_texts(name: str, kind: str, value: JsonValue) -> None:
    if kind in _LISTS and (not isinstance(value, list) or not value):
        raise ValueError(f"{value!r} is not a list of texts: write [one, another]")
    if value is None or isinstance(value, dict):
        raise ValueError(f"{name} needs a text: write `{name}: text`")
    if kind != "equals" and "" in map(as_text, value if isinstance(value, list) else [value]):
        raise ValueError("an empty text is in every output: write what to look for")
    if kind == "regex":
        try:
            re.compile(as_text(value))
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from error


def _refuse_wrong_schema(schema: JsonValue) -> None:
    if schema is not None and not isinstance(schema, dict | bool):
        raise ValueError(f"{schema!r} is not a JSON Schema: write an object, or leave it out")
    if isinstance(schema, dict):
        from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
        from jsonschema.validators import validator_for  # type: ignore[import-untyped]

        try:
            validator_for(schema).check_schema(schema)
        except SchemaError as error:
            raise ValueError(f"this is not a JSON Schema: {error.message}") from error


def _texts(check: Check) -> list[str]:
    return [as_text(each) for each in (check.value if isinstance(check.value, list) else [check.value])]


def _missing(output: str, check: Check) -> list[str]:
    folded = "icontains" in check.type
    output = output.casefold() if folded else output
    return [text for text in _texts(check) if (text.casefold() if folded else text) not in output]


def _all(output: str, check: Check) -> str | None:
    return f"missing: {_shown(missing)}" if (missing := _missing(output, check)) else None


def _any(output: str, check: Check) -> str | None:
    wanted = _texts(check)
    return f"has none of {_shown(wanted)}" if len(_missing(output, check)) == len(wanted) else None


def _equals(output: str, check: Check) -> str | None:
    wanted = check.value
    texts = output, as_text(wanted)
    same = texts[0].strip() == texts[1].strip() if check.strip else texts[0] == texts[1]
    if not same and not isinstance(wanted, str):
        try:
            same = from_json(output) == wanted
        except ValueError:
            same = False
    return None if same else f"is not {_shown(wanted)}"


def _starts(output: str, check: Check) -> str | None:
    output = output.lstrip() if check.strip else output
    return None if output.startswith(as_text(check.value)) else f"does not start with {_shown(check.value)}"


def _ends(output: str, check: Check) -> str | None:
    output = output.rstrip() if check.strip else output
    return None if output.endswith(as_text(check.value)) else f"does not end with {_shown(check.value)}"


def _is_json(output: str, check: Check) -> str | None:
    try:
        found = from_json(output.strip())
    except ValueError as error:
        return f"is not JSON: {error}"
    return _misfit(found, check.value)


def _contains_json(output: str, check: Check) -> str | None:
    problem = "contains no JSON object or list"
    for found in json_in(output):
        misfit = _misfit(found, check.value)
        if misfit is None:
            return None
        problem = misfit
    return problem


def _misfit(value: Any, schema: JsonValue) -> str | None:
    """Return how a value violates a schema, or None if it fits."""
    if not isinstance(schema, dict):
        return None
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        validator_for(schema)(schema, registry=Registry()).validate(value)  # an own registry fetches nothing
    except Unresolvable as error:
        raise GraderError(f"the schema refers to {error.ref!r}, which is not in it: write it out") from error
    except ValidationError as error:
        return f"does not fit the schema: {error.json_path}: {error.message}"[:500]
    except RecursionError:
        return "is nested too deep for the schema"
    return None


def _levenshtein(output: str, check: Check) -> str | None:
    wanted, most = as_text(check.value), int(check.threshold)
    if max(len(output), len(wanted)) * (most + 1) > _MAX_STEPS:
        return f"has {len(output):,} characters, too many to count {most:,} edits"
    near = is_within(output, wanted, most)
    return None if near else f"more than {most} edits away from {_shown(wanted)}"


def is_within(one: str, other: str, most: int) -> bool:
    """Tell whether the edit distance between two texts is at most `most`."""
    if abs(len(one) - len(other)) > most:
        return False
    before = dict(enumerate(range(min(len(other), most) + 1)))  # edits by column, near the diagonal only
    for row, left in enumerate(one, 1):
        now = {0: row} if row <= most else {}
        for column in range(max(1, row - most), min(len(other), row + most) + 1):
            replaced = before.get(column - 1, most + 1) + (left != other[column - 1])
            now[column] = min(replaced, before.get(column, most + 1) + 1, now.get(column - 1, most + 1) + 1)
        before = now
    return before.get(len(other), most + 1) <= most


def _max_words(output: str, check: Check) -> str | None:
    words = len(output.split())
    return None if words <= int(as_text(check.value)) else f"has {words} words; at most {check.value}"


_CONDITIONS: Mapping[str, Callable[[str, Check], str | None]] = {
    "equals": _equals,
    **dict.fromkeys(("contains", "icontains", "contains-all", "icontains-all"), _all),
    **dict.fromkeys(("contains-any", "icontains-any"), _any),
    "starts-with": _starts,
    "ends-with": _ends,
    "is-json": _is_json,
    "contains-json": _contains_json,
    "levenshtein": _levenshtein,
    "max-words": _max_words,
}
_NOT_NEGATED = ("levenshtein", "max-words")
_KINDS = ("regex", *_CONDITIONS)
CONDITIONS = (*_KINDS, *(f"{_NOT}{kind}" for kind in _KINDS if kind not in _NOT_NEGATED))
"""The types of a `Check`."""


def _shown(value: object) -> str:
    text = "" if value is None else repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"


@scorer("checks", main="checks")
@dataclass(frozen=True, slots=True, kw_only=True)
class Checks(ConfigurableScorer):
    """Scores the share of conditions that hold, by weight. The expected output of the case is not used."""

    checks: Annotated[tuple[Check, ...], Field(min_length=1)]
    name: str = "checks"

    async def __call__(self, given: ScoreInput) -> Score:
        """Score an output. The reason names each condition that does not hold; a weight of 0 only reports."""
        output = as_text(given.output)
        problems = [await check.problem(output) for check in self.checks]
        total = sum(check.weight for check in self.checks)
        held = sum(check.weight for check, problem in zip(self.checks, problems, strict=True) if problem is None)
        wrong = [problem for problem in problems if problem is not None]
        value = (held / total) if total else float(not wrong)
        return self.scored(value, "; ".join(wrong), checks=len(self.checks), held=len(self.checks) - len(wrong))
