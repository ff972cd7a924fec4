"""`json` compares the output, as JSON, with what the case expects."""

import re
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self

from pydantic import JsonValue
from pydantic_core import from_json

from bakeoff.frozen import Frozen
from bakeoff.plan import Case, ScorerSpec
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score
from bakeoff.specs import read_options

_FENCE = re.compile(r"```(?:json)?[ \t]*\n")


class JsonOptions(Frozen):
    match: Literal["equal", "subset"] = "equal"


@dataclass(frozen=True, slots=True)
class JsonMatch:
    """1 when the output is the expected JSON, or, with `subset`, has at least what is expected of objects."""

    options: JsonOptions = field(default_factory=JsonOptions)
    name: ClassVar[str] = "json"

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        return cls(read_options(spec, JsonOptions))

    def can_score(self, case: Case) -> bool:
        return case.expected is not None

    async def __call__(self, given: ScoreInput) -> Score:
        expected = given.case.expected
        if expected is None:
            return Score(name=self.name, reason="the case expects no particular output")
        try:
            actual, fenced = read_json(given.transcript.output)
        except ValueError as error:
            return Score(name=self.name, value=0.0, reason=f"the output is not JSON: {error}")
        difference = first_difference(expected, actual, subset=self.options.match == "subset")
        metadata: dict[str, JsonValue] = {"fenced": True} if fenced else {}
        return Score(name=self.name, value=float(difference is None), reason=difference or "", metadata=metadata)


def read_json(output: JsonValue) -> tuple[JsonValue, bool]:
    """The output as JSON, and whether it had to be taken out of a code fence."""
    if not isinstance(output, str):
        return output, False
    opening = _FENCE.search(output)
    closing = output.find("\n```", opening.end()) if opening else -1  # one search: a lazy pattern would be quadratic
    if opening is None or closing < 0:
        return from_json(output), False
    return from_json(output[opening.end() : closing]), True


def first_difference(expected: JsonValue, actual: JsonValue, *, subset: bool, place: str = "$") -> str | None:
    """Where two values part, or None. `True` is not 1, 1 equals 1.0, key order does not matter, list order does."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = expected.keys() if subset else expected.keys() | actual.keys()
        for key in sorted(keys):
            if key not in actual or key not in expected:
                return f"{place}.{key} is {'missing' if key in expected else 'not expected'}"
            if found := first_difference(expected[key], actual[key], subset=subset, place=f"{place}.{key}"):
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return f"{place} has {len(actual)} items, not {len(expected)}"
        pairs = enumerate(zip(expected, actual, strict=True))
        found_any = (first_difference(a, b, subset=subset, place=f"{place}[{i}]") for i, (a, b) in pairs)
        return next((found for found in found_any if found), None)
    same = expected == actual and isinstance(expected, bool) == isinstance(actual, bool)
    return None if same else f"{place} is {actual!r}, not {expected!r}"
