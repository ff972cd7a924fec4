"""Read the scorers of a configuration, and check their options, each at its line."""

from difflib import get_close_matches
from typing import Any

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.imports import import_target, revision_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import shown
from bakeoff._kernel.yaml import ConfigError, Key, PlacedYaml
from bakeoff.doors.eval.config import ScorerEntry
from bakeoff.engine.registry import default_registry
from bakeoff.errors import UsageError
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import ModelJudge, Scorer
from bakeoff.scorers.configurable import NAMED_FUNCTION, ConfigurableScorer
from bakeoff.scorers.function import FunctionScorerOptions
from bakeoff.scorers.model_judge import ModelScorer

# The option that a value stands for which is not an object: `- judge: It is polite.`
MAIN_OPTIONS = {
    "checks": "checks",
    "command": "argv",
    "cost": "max_usd",
    "function": "target",
    "judge": "criteria",
    "latency": "max_ms",
    "regex": "pattern",
    "rubric": "criteria",
}
_LEFT_OUT = frozenset({"command"})  # it runs the hidden files of a case, and cases of this door have none
KINDS = tuple(sorted(default_registry().scorers.keys() - _LEFT_OUT))


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
        self._factories = default_registry().scorers
        self._seen: set[str] = set()

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
        if entry.kind not in KINDS:
            near = get_close_matches(entry.kind, KINDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(KINDS)}"
            self._problems.append(placed.problem(place, f"there is no scorer {entry.kind!r}: {hint}"))
            return None
        if entry.options is not None and not isinstance(entry.options, dict) and entry.kind not in MAIN_OPTIONS:
            known = options_model(entry.kind)
            some = f" with {', '.join(known.model_fields)}" if known else ""
            what = f"{shown(entry.options)}: write `- {entry.kind}`, or its options as an object{some}"
            self._problems.append(placed.problem(place, f"{what}; cases say what is `expected`"))
            return None
        options = self._options(entry)
        model, spec_options = options_model(entry.kind), dict(options)
        owner = getattr(self._factories[entry.kind], "__self__", None)
        if isinstance(owner, type) and issubclass(owner, ModelScorer):
            if self._judge is not None:
                spec_options.setdefault("model", self._judge)
            elif "model" not in spec_options:
                self.warnings.append(placed.problem(place, _SMALL_JUDGE))
        try:
            if model is not None:
                _check(model, options, f"scorer {entry.kind!r}", placed, place)
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
            scorer = self.built[spec.digest] = self._factories[spec.kind](spec)
            if isinstance(scorer, ModelJudge):
                why = [problem for model in self._models if (problem := scorer.self_judging_problem(model))]
                if why:
                    self._problems.append(placed.problem(place, why[0]))
        return spec

    def _options(self, entry: ScorerEntry) -> dict[str, JsonValue]:
        given: Any = entry.options
        if isinstance(given, dict):
            return given
        return {} if given is None else {MAIN_OPTIONS.get(entry.kind, "value"): given}


def _code_or_model(entry: ScorerEntry) -> Key:
    """Return the key that names code or a model; empty if there is none."""
    if entry.kind == "function":
        return (entry.kind,)
    model = options_model(entry.kind) if entry.kind in KINDS else None
    for name, value in entry.options.items() if isinstance(entry.options, dict) else ():
        field = model.model_fields.get(name) if model else None
        imports = field is not None and NAMED_FUNCTION in field.metadata and isinstance(value, str) and ":" in value
        if imports or name == "model":
            return (entry.kind, name)
    return ()


def options_model(kind: str) -> type[FrozenModel] | None:
    """Return the model of the options of a kind of scorer, if it has one."""
    owner = getattr(default_registry().scorers[kind], "__self__", None)
    if isinstance(owner, type) and issubclass(owner, ConfigurableScorer):
        return owner.options_model()
    return FunctionScorerOptions if kind == "function" else None


def _check(model: type[FrozenModel], options: dict[str, JsonValue], who: str, placed: PlacedYaml, key: Key) -> None:
    try:
        model.model_validate(options, context=who)
    except ValidationError:  # only now, because lines are looked up among all of the file
        placed.part(key, options).read(model, context=who)
