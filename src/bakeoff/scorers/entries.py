"""Read, check and build the scorers that a file names by kind and options. Problems name their place."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue, ValidationError, model_serializer, model_validator

from bakeoff._kernel.imports import import_target, revision_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import free_name, near_names, shown
from bakeoff._kernel.yaml import ConfigError, Key, PlacedYaml
from bakeoff.errors import UsageError
from bakeoff.plan import Case, ScorerSpec
from bakeoff.protocols import Checking, ModelJudge, Scorer, SelectiveScorer
from bakeoff.scorers.checks import CONDITIONS
from bakeoff.scorers.configurable import NAMED_FUNCTION
from bakeoff.scorers.registry import ScorerKind, scorer_kinds
from bakeoff.scorers.transforms import FieldPath, Transform
from bakeoff.toolchains.user_code import code_revision

BESIDE_A_KIND = ("name", "transform", "path", "threshold", "weight")
"""The keys that any scorer in a file may have beside its kind."""


class ScorerEntry(FrozenModel):
    """A scorer: a kind, and its options or its main one. A condition of `checks` is a kind of its own."""

    kind: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        default=None, description="tells two of one kind apart"
    )
    options: JsonValue = None
    transform: Transform = Field(default=(), description="changes the answer for this scorer: JMESPath or Jinja")
    path: FieldPath | None = Field(default=None, description="a JMESPath: the field of a JSON answer to score")
    threshold: float | None = Field(default=None, ge=0, le=1, description="a score of at least this counts as 1")
    weight: float = Field(default=1.0, ge=0, description="in the mean of all scores; one with 0 is only shown")

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"kind": value}
        if not isinstance(value, dict):
            return value
        beside = {name: value[name] for name in BESIDE_A_KIND if name in value}
        kinds = [name for name in value if name not in beside]
        if len(kinds) != 1 or kinds == ["type"]:  # `type: is-json`, as other tools write it
            told = f"has {', '.join(map(str, kinds))}" if kinds else "has no kind"
            raise ValueError(f"a scorer is one kind with its options, and this {told}: write `- contains: {{…}}`")
        return {"kind": kinds[0], "options": value[kinds[0]], **beside}

    @model_serializer
    def _as_written(self) -> dict[str, JsonValue]:
        beside = {name: getattr(self, name) for name in BESIDE_A_KIND}
        given = {name: value for name, value in beside.items() if value != type(self).model_fields[name].default}
        return {self.kind: self.options, **given}


ScorerEntries = Annotated[
    tuple[ScorerEntry, ...], BeforeValidator(lambda value: value if isinstance(value, list | tuple) else [value])
]
"""The scorers of a file or a case: a list, or a single one."""


_NEEDS_HIDDEN_FILES = "command"


def kinds_for_files() -> dict[str, ScorerKind]:
    """Return the scorers that a file may name: all but `command`, which needs hidden files."""
    return {kind: known for kind, known in scorer_kinds().items() if kind != _NEEDS_HIDDEN_FILES}


def _no_such_kind(kind: str) -> str:
    if kind != _NEEDS_HIDDEN_FILES:
        return f"there is no scorer {kind!r}{near_names(kind, dict.fromkeys([*kinds_for_files(), *CONDITIONS]))}"
    return (
        "the scorer 'command' grades with the hidden files of a case, which cases of this file do not have: write a "
        "`function` scorer, or use `bakeoff run` or `bakeoff agents`"
    )


_SMALL_JUDGE = (
    "no model is named, so that the small embedded one judges: it is for trying, not for verdicts that matter. "
    "Add `judge: MODEL` to the file"
)


class ScorerReader:
    """A reader of the scorers of one file. Equal scorers are built once; problems are listed."""

    def __init__(self, judge: str | None, models: list[str], problems: list[str]) -> None:
        self.built: dict[str, Scorer] = {}
        self.warnings: list[str] = []
        self._judge, self._models, self._problems = judge, models, problems

    def read(
        self,
        entries: tuple[ScorerEntry, ...],
        placed: PlacedYaml,
        key: Key,
        *,
        transform: Transform = (),
        is_data: bool = False,
    ) -> tuple[ScorerSpec, ...]:
        """Return the specs of the scorers at a key: one scorer or a list of them.

        `transform` changes the answer before the transforms of the scorers do. Scorers in data (`is_data`) must not
        name code or models, because nobody reviews every row before it is used.
        """
        specs: list[ScorerSpec] = []
        names: dict[str, int] = {}
        for at, entry in enumerate(entries):
            own = placed.known((*key, at))
            if is_data and (named := _code_or_model(entry)):
                why = "names code or a model, which a row of data must not: write this scorer into bakeoff.yaml"
                self._problems.append(placed.problem((*key, at, *named), why))
                continue
            steps = (*transform, *entry.transform, *((entry.path,) if entry.path else ()))
            spec = self._spec(_written_out(entry), steps, placed, placed.known((*own, entry.kind)))
            if spec is None:
                continue
            name = spec.name or self.built[spec.digest].name
            if name in names and (entry.name is not None or entry == entries[names[name]]):
                self._problems.append(
                    placed.problem(own, f"two scorers are called {name!r}: add `name: …` beside one of them")
                )
            elif name in names:
                name, scorer = free_name(name, names), self.built[spec.digest]
                spec = spec.model_copy(update={"name": name})
                self.built[spec.digest] = scorer
            names[name] = at
            specs.append(spec)
        return tuple(specs)

    def _spec(self, entry: ScorerEntry, steps: Transform, placed: PlacedYaml, place: Key) -> ScorerSpec | None:
        known = kinds_for_files().get(entry.kind)
        if known is None:
            self._problems.append(placed.problem(place, _no_such_kind(entry.kind)))
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
        if issubclass(cls, ModelJudge):
            if self._judge is not None:
                spec_options.setdefault("model", self._judge)
            elif "model" not in spec_options:
                self.warnings.append(placed.problem(place, _SMALL_JUDGE))
        try:
            model, who = cls.options_model(), f"scorer {entry.kind!r}"
            try:
                model.model_validate(options, context=who)
            except ValidationError:  # only now, because looking up lines takes time
                placed.part(place, options).read(model, context=who)
            spec = ScorerSpec(
                kind=entry.kind,
                name=entry.name,
                options=spec_options,
                transform=steps,
                threshold=entry.threshold,
                weight=entry.weight,
            )
            spec = spec.model_copy(update={"revision": _revision(spec)})
            self._build(spec, placed, place)
            return spec
        except ConfigError as error:
            self._problems += error.problems
        except UsageError as error:
            self._problems.append(placed.problem(place, str(error)))
        return None

    def _build(self, spec: ScorerSpec, placed: PlacedYaml, place: Key) -> None:
        """Build a scorer, because that finds more problems than the model of its options."""
        if spec.digest not in self.built:
            scorer = self.built[spec.digest] = scorer_kinds()[spec.kind].build(spec)
            if isinstance(scorer, ModelJudge):
                why = [problem for model in self._models if (problem := scorer.self_judging_problem(model))]
                self._problems += [placed.problem(place, problem) for problem in why[:1]]


def _revision(spec: ScorerSpec) -> str:
    """Return a hash of a scorer's function or of the files with its code: an edited one is another scorer."""
    if spec.kind == "function":
        return revision_of(import_target(str(spec.options["target"]), "the scorer"))
    return code_revision(spec.code)


def _written_out(entry: ScorerEntry) -> ScorerEntry:
    """Return the scorer `checks` for an entry that is one of its conditions, or else the entry."""
    if entry.kind in kinds_for_files() or entry.kind not in CONDITIONS:
        return entry
    options = {"checks": [{"type": entry.kind, "value": entry.options}]}
    return entry.model_copy(update={"kind": "checks", "name": entry.name or entry.kind, "options": options})


def scoring_problem(case: Case, scorers: Sequence[Scorer]) -> str | None:
    """Say why a case cannot be scored; None if it can."""
    for scorer in scorers:
        if isinstance(scorer, Checking) and (problem := scorer.check(case)):
            return f"{scorer.name}: {problem}"
    selective = [scorer for scorer in scorers if isinstance(scorer, SelectiveScorer)]
    if scorers and len(selective) == len(scorers) and not any(scorer.can_score(case) for scorer in selective):
        names = ", ".join(scorer.name for scorer in selective)
        return f"has no `expected`, which {names} would compare the answer with: write one, or use another scorer"
    return None


def _code_or_model(entry: ScorerEntry) -> Key:
    """Return the key that names code or a model; empty if there is none."""
    if entry.kind in ("function", "command", "javascript", "python"):
        return (entry.kind,)
    if not all(isinstance(step, str) for step in entry.transform):
        return ("transform",)
    known = scorer_kinds().get(entry.kind)
    fields = known.load().options_model().model_fields if known else {}
    for name, value in entry.options.items() if isinstance(entry.options, dict) else ():
        field = fields.get(name)
        imports = field is not None and NAMED_FUNCTION in field.metadata and isinstance(value, str) and ":" in value
        if imports or name == "model":
            return (entry.kind, name)
    return ()
