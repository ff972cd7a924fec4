"""Check the options of scorers: the fields of a scorer's dataclass are the options of its kind in a plan."""

from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from typing import Any, Self, get_type_hints

from pydantic import GetPydanticSchema, JsonValue, PlainValidator, ValidationInfo, create_model

from bakeoff._kernel.imports import import_target
from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Case, ScorerSpec, check_options, read_options
from bakeoff.protocols import ScoreInput
from bakeoff.record import Score

_NO_OPTIONS = ("name", "only_recordings", "suite")  # fields that a plan sets in other ways


class ConfigurableScorer:
    """A base class of scorers' dataclasses, which adds `from_spec` and checks the types of fields."""

    __slots__ = ()
    name: str

    @classmethod
    def from_spec(cls, spec: ScorerSpec) -> Self:
        """Build the scorer that a plan names. Raises UsageError with the names of all options."""
        return cls(**dict(read_options(spec, cls.options_model())))

    def scored(self, value: float | None, reason: str = "", /, **metadata: JsonValue) -> Score:
        """Return a score under the name of this scorer; None is unscored."""
        return Score(name=self.name, value=value, reason=reason, metadata=metadata)

    @classmethod
    def options_model(cls) -> type[FrozenModel]:
        """Return the model of the options that a plan may give."""
        return _options_model(cls)  # type: ignore[arg-type]  # mypy: a class has the hash of its objects

    def __post_init__(self) -> None:
        model = self.options_model()
        given = {name: getattr(self, name) for name in model.model_fields}
        for name, value in check_options(given, model, f"scorer {self.name!r}"):
            object.__setattr__(self, name, value)


@cache
def _options_model(cls: type[Any]) -> type[FrozenModel]:
    hints = get_type_hints(cls, include_extras=True)
    options: dict[str, Any] = {
        field.name: (hints[field.name], ... if field.default is MISSING else field.default)
        for field in fields(cls)
        if field.init and field.name not in _NO_OPTIONS
    }
    return create_model(cls.__name__, __base__=FrozenModel, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingScorer(ConfigurableScorer):
    """A base class of scorers that compare the output with the expected output of a case.

    An `expected` among the scorer's options replaces that of all cases.
    """

    expected: Any = None

    def expected_of(self, case: Case) -> Any:
        """Return the expected output of a case; None if there is none."""
        return case.expected_answer if self.expected is None else self.expected

    def can_score(self, case: Case) -> bool:
        """Return True if there is an expected output."""
        return self.expected_of(case) is not None

    def accepts_reference(self, case: Case) -> bool:
        """Return True if the expected output of the case is right: the scorer has none of its own."""
        return case.expected is not None and self.expected is None

    async def __call__(self, given: ScoreInput) -> Score:
        if self.expected is not None:
            given = replace(given, row={**given.row, "expected": self.expected})
        if given.expected is None:
            return self.scored(None, "the case has no expected output")
        return await self.compare(given)

    async def compare(self, given: ScoreInput) -> Score:
        """Score an output. Called only if the case has an expected output."""
        raise NotImplementedError


def checked_as(kind: Any) -> GetPydanticSchema:
    """Return the annotation of a field that accepts more types in Python than in a plan."""
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(kind))


def _imported(value: Any, info: ValidationInfo) -> Any:
    return import_target(value, str(info.context)) if isinstance(value, str) and ":" in value else value


NAMED_FUNCTION = PlainValidator(_imported)
"""The annotation of a field that accepts a function, which a plan names as `module:function`."""
