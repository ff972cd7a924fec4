"""Turn the subjects of a configuration into those of a plan."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.imports import import_target, revision_of
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import free_name, shown
from bakeoff._kernel.yaml import ConfigError, Key, PlacedYaml
from bakeoff.doors.eval.config import KINDS, OF_KINDS, ScorerEntry, SubjectEntry, path_in, printable
from bakeoff.doors.eval.sources import read_text
from bakeoff.errors import UsageError
from bakeoff.mcp.servers import is_http_address
from bakeoff.models.providers import parse_model_name
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.protocols import ModelJudge, Scorer
from bakeoff.scorers.configurable import NAMED_FUNCTION
from bakeoff.scorers.model_judge import ModelScorer
from bakeoff.scorers.registry import scorer_kinds
from bakeoff.subjects.command import CommandSubject, command_revision
from bakeoff.subjects.controls import ScriptedSubject

_SETTINGS = (
    *("temperature", "max_tokens", "seed", "send_seed", "timeout", "stream", "output_schema", "price", "max_steps"),
)


def subject_specs(entries: Sequence[SubjectEntry], placed: PlacedYaml, problems: list[str]) -> tuple[SubjectSpec, ...]:
    """Return the subjects of a plan, each with a name of its own. Problems are added to a list."""
    specs: list[SubjectSpec] = []
    taken: set[str] = set()
    for at, entry in enumerate(entries):
        key = placed.known(("subjects", at))
        kind = next(name for name in KINDS if getattr(entry, name) is not None)
        foreign = {name for other, names in OF_KINDS.items() if other != kind for name in names}
        wrong = sorted(entry.model_fields_set & foreign)
        problems += [placed.problem((*key, name), f"has no meaning for a {kind}: remove it") for name in wrong]
        place = placed.known((*key, kind))
        try:
            spec = _spec(entry, kind, placed.file.parent)
        except UsageError as error:
            problems.append(placed.problem(place, str(error)))
            continue
        if spec.name in taken and entry.name is not None:
            problems.append(placed.problem((*key, "name"), f"{spec.name!r} is used twice: rename one"))
        elif spec.name in taken:
            what = f"{spec.name!r} is listed twice: remove one, or give it a `name` and settings of its own"
            problems.append(placed.problem(key, what))
        taken.add(name := free_name(spec.name, taken))
        specs.append(spec.model_copy(update={"name": name}))
    return tuple(specs)


def _spec(entry: SubjectEntry, kind: str, folder: Path) -> SubjectSpec:
    if kind == "model":
        return _model(entry, folder)
    if kind == "command":
        assert entry.command is not None
        options: dict[str, JsonValue] = {"argv": list(entry.command)}
        options |= entry.model_dump(include=set(OF_KINDS["command"]), exclude_defaults=True)
        if folder != Path():
            options["folder"] = str(folder)
        name = entry.name or " ".join(entry.command)
        revision = command_revision(entry.command, folder)
        spec = SubjectSpec(kind="command", name=printable(name), options=options, revision=revision)
        CommandSubject.from_spec(spec).check_program()  # the first raises for variables that are not set
        return spec
    if kind == "function":
        target = entry.function or ""
        revision, name = revision_of(import_target(target, "the subject")), printable(entry.name or target)
        return SubjectSpec(kind="function", name=name, options={"target": target}, revision=revision)
    if kind == "scripted":
        script: Any = entry.scripted
        if not isinstance(script, dict):
            script = {"default": script if isinstance(script, str) else str(script)}
        spec = SubjectSpec(kind="scripted", name=printable(entry.name or "scripted"), options=script)
        ScriptedSubject.from_spec(spec)  # raises for wrong options
        return spec
    assert entry.control is not None
    return SubjectSpec(kind=entry.control, name=printable(entry.name or entry.control))


def _model(entry: SubjectEntry, folder: Path) -> SubjectSpec:
    assert entry.model is not None
    name = parse_model_name(entry.model)
    options = entry.model_dump(mode="json", include=set(_SETTINGS), exclude_defaults=True)
    if entry.system is not None:
        path = path_in(entry.system)
        options["system"] = entry.system if path is None else read_text(folder / path).removesuffix("\n")
    if entry.base_url is not None:
        if not is_http_address(entry.base_url):
            raise UsageError(f"base_url: {entry.base_url!r} is not an address: write it as https://host/v1")
        provider = {"base_url": entry.base_url, "key_variable": entry.key_variable}
        options["providers"] = {name.provider: {key: value for key, value in provider.items() if value is not None}}
    elif entry.key_variable is not None:
        raise UsageError("key_variable is for a `base_url`: add one, or remove it")
    if entry.mcp:
        options["mcp"] = [server.model_dump(mode="json", exclude_defaults=True) for server in entry.mcp]
    elif entry.max_steps is not None:
        raise UsageError("max_steps is for a model with `mcp` servers: add some, or remove it")
    kind = "agent" if entry.mcp else "model"
    spec = SubjectSpec(kind=kind, name=printable(entry.name or entry.model), options={"model": entry.model, **options})
    from bakeoff.subjects.model import ModelSubject  # imports SDKs that take a second to load

    ModelSubject.from_spec(spec)  # raises for a provider that nobody knows, and variables that are not set
    return spec


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
            own = placed.known((*key, at))
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
        place = placed.known((*key, entry.kind))
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
