"""Read the scorers of a configuration, and check their options, each at its line."""

from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.imports import import_target, revision_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import shown
from bakeoff._kernel.yaml import ConfigError, Key, PlacedYaml
from bakeoff.doors.eval.config import ScorerEntry
from bakeoff.errors import UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ModelJudge, Scorer
from bakeoff.scorers.configurable import NAMED_FUNCTION
from bakeoff.scorers.model_judge import ModelScorer
from bakeoff.scorers.registry import scorer_kinds

_SMALL_JUDGE = (
    "no model is named, so that the small embedded one judges: it is for trying, not for verdicts that matter. "
    "Add `judge: MODEL` to the file"
)


class ScorerReader:
    """Read scorers of one file. Each distinct one is built once; problems are added to a list."""

    def __init__(self, judge: str | None, models: list[str], problems: list[str]) -> None:
        self.built: dict[str, Scorer] = {}
        self.warnings: list[str] = []
        self._judge, self._models, self._problems = judge, models, problems

    def read(
        self, entries: "tuple[ScorerEntry, ...]", placed: PlacedYaml, key: Key, *, is_data: bool = False
    ) -> tuple[ScorerSpec, ...]:
        """Return the specs of scorers that stand at a key, a list or a single one.

        Those of data (`is_data`) must not name code or models: nobody reads each row before it is used.
        """
        specs: list[ScorerSpec] = []
        names: dict[str, int] = {}
        for at, entry in enumerate(entries):
            own: Key = (*key, at) if (*key, at) in placed.lines else key
            if is_data and (named := _code_or_model(entry)):
                why = "names code or a model, which a row of data must not: write this scorer into bakeoff.yaml"
                self._problems.append(placed.problem((*key, at, *named), why))
                continue
            spec = self._spec(entry, placed, own)
            if spec is None:
                continue
            name = spec.name or self.built[spec.digest].name
            if names.setdefault(name, at) != at:
                self._problems.append(
                    placed.problem(own, f"two scorers are called {name!r}: add `name: …` beside one of them")
                )
            specs.append(spec)
        return tuple(specs)

    def _spec(self, entry: ScorerEntry, placed: PlacedYaml, key: Key) -> ScorerSpec | None:
        place: Key = (*key, entry.kind) if (*key, entry.kind) in placed.lines else key
        known = scorer_kinds().get(entry.kind)
        if known is None:
            near = get_close_matches(entry.kind, scorer_kinds(), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(scorer_kinds())}"
            self._problems.append(placed.problem(place, f"there is no scorer {entry.kind!r}: {hint}"))
            return None
        cls = known.load()
        options: Any = {} if entry.options is None else entry.options
        if not isinstance(options, dict):
            if known.main is None:
                what = f"{shown(options)}: write `- {entry.kind}`, or its options as an object"
                names = ", ".join(cls.options_model().model_fields)
                self._problems.append(placed.problem(place, f"{what} with {names}; cases say what is `expected`"))
                return None
            options = {known.main: options}
        spec_options: dict[str, JsonValue] = dict(options)
        if issubclass(cls, ModelScorer):
            if self._judge is not None:
                spec_options.setdefault("model", self._judge)
            elif "model" not in spec_options:
                self.warnings.append(placed.problem(place, _SMALL_JUDGE))
        try:
            _check(cls.options_model(), options, f"scorer {entry.kind!r}", placed, place)
            revision = ""
            if entry.kind == "function":  # an edited function is another scorer
                revision = revision_of(import_target(str(options.get("target")), "the scorer"))
            spec = ScorerSpec(kind=entry.kind, name=entry.name, options=spec_options, revision=revision)
            return self._built(spec, placed, place)
        except ConfigError as error:
            self._problems += error.problems
        except UsageError as error:
            self._problems.append(placed.problem(place, str(error)))
        return None

    def _built(self, spec: ScorerSpec, placed: PlacedYaml, place: Key) -> ScorerSpec:
        """Build a scorer, which checks what a model of its options cannot."""
        if spec.digest not in self.built:
            scorer = self.built[spec.digest] = scorer_kinds()[spec.kind].build(spec)
            if isinstance(scorer, ModelJudge):
                why = [problem for model in self._models if (problem := scorer.self_judging_problem(model))]
                if why:
                    self._problems.append(placed.problem(place, why[0]))
        return spec


def _code_or_model(entry: ScorerEntry) -> Key:
    """Return the key that names code or a model; empty if there is none."""
    if entry.kind in ("function", "command"):
        return (entry.kind,)
    known = scorer_kinds().get(entry.kind)
    fields = known.load().options_model().model_fields if known else {}
    for name, value in entry.options.items() if isinstance(entry.options, dict) else ():
        field = fields.get(name)
        imports = field is not None and NAMED_FUNCTION in field.metadata and isinstance(value, str) and ":" in value
        if imports or name == "model":
            return (entry.kind, name)
    return ()


def _check(model: type[FrozenModel], options: dict[str, JsonValue], who: str, placed: PlacedYaml, key: Key) -> None:
    try:
        model.model_validate(options, context=who)
    except ValidationError:  # only now, because lines are looked up among all of the file
        placed.part(key, options).read(model, context=who)
