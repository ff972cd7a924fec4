"""Check the options of scorers: the fields of a scorer's dataclass are the options of its kind in a plan."""

from dataclasses import MISSING, fields
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
    """Adds `from_spec` to a scorer's dataclass, and checks the fields of every object against their types."""

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


class ComparingScorer(ConfigurableScorer):
    """Scores cases that have an expected output, by `compare`."""

    __slots__ = ()

    def can_score(self, case: Case) -> bool:
        """Return True if the case has an expected output."""
        return case.expected_answer is not None

    def accepts_reference(self, case: Case) -> bool:
        """Return True if an answer equal to the expected one is right."""
        return case.expected is not None

    async def __call__(self, given: ScoreInput) -> Score:
        if given.expected is None:
            return self.scored(None, "the case has no expected output")
        return await self.compare(given)

    async def compare(self, given: ScoreInput) -> Score:
        """Score an output. It is called only where the case has an expected output."""
        raise NotImplementedError


def checked_as(kind: Any) -> GetPydanticSchema:
    """Return the annotation of a field that accepts more types in Python than in a plan."""
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(kind))


def _imported(value: Any, info: ValidationInfo) -> Any:
    return import_target(value, str(info.context)) if isinstance(value, str) and ":" in value else value


NAMED_FUNCTION = PlainValidator(_imported)
"""The annotation of a field that accepts a function, which a plan names as `module:function`."""
