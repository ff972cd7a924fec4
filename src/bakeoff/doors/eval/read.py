"""Read and check `bakeoff.yaml`, or `[tool.bakeoff]` of pyproject.toml."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from bakeoff._kernel.files import with_home
from bakeoff._kernel.imports import command_revision, import_target, revision_of
from bakeoff._kernel.text import free_name, near_names
from bakeoff._kernel.yaml import ConfigError, Key, PlacedYaml, gathered
from bakeoff.doors.data_files import read_text
from bakeoff.doors.eval.config import (
    EXAMPLES,
    KINDS,
    OF_A_CASE,
    OF_A_SOURCE,
    OF_KINDS,
    SOURCES,
    CaseEntry,
    EvalConfig,
    PromptCase,
    PromptEntry,
    PromptSuite,
    SubjectEntry,
    SuitePrompt,
    path_in,
    printable,
)
from bakeoff.doors.eval.sources import (
    MAX_CASES,
    DataRow,
    dataset_rows,
    find_files,
    function_rows,
    number_in,
    read_texts,
    rows_of_file,
)
from bakeoff.errors import UsageError
from bakeoff.mcp.servers import is_http_address
from bakeoff.models.prompt_templates import PromptTemplate, TemplateProblem
from bakeoff.models.providers import known_model_name, known_providers, parse_model_name
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.scorers.entries import ScorerReader
from bakeoff.scorers.transforms import Transform
from bakeoff.subjects.command import CommandSubject
from bakeoff.subjects.controls import ScriptedSubject

_OF_A_ROW = (*OF_A_CASE, "tags")
_SINGLE_BRACES = re.compile(r"(?<!\{)\{ ?(\w+) ?\}(?!\})")
_RESERVED = ("input", "expected")
_PROMPT_SUFFIXES = (".txt", ".md", ".j2", ".jinja", ".jinja2", ".prompt")


def suite_of(placed: PlacedYaml, judge: str | None = None) -> PromptSuite:
    """Check a configuration, and read all files that it names. One error lists all problems.

    `judge` replaces the model that the file names as judge.
    """
    if not isinstance(placed.value, dict):
        raise UsageError(f"{placed.file}:1: this is not a configuration: it needs `cases` or `prompts`, and `scorers`")
    value = placed.value if judge is None else {**placed.value, "judge": judge}
    placed = replace(placed, value=value)
    try:
        return _SuiteReader(placed, placed.read(EvalConfig, EXAMPLES)).suite()
    except ConfigError as error:
        if not isinstance(error.__cause__, ValidationError):
            raise
        wrong = {str(item["loc"][0]) for item in error.__cause__.errors()}
        return _SuiteReader(placed, _rest_of(value, wrong), error.problems).suite()


def _rest_of(value: dict[str, JsonValue], wrong: set[str]) -> EvalConfig:
    """Return a configuration without the keys that have problems, so that problems of the other keys are found, too."""
    if "judge" in wrong:  # another judge might have other problems
        wrong = {*wrong, "scorers", "cases"}
    kept = {name: part for name, part in value.items() if name not in wrong}
    return EvalConfig.model_validate({**kept, **({"subjects": ["oracle"]} if "subjects" in wrong else {})})


class _SuiteReader:
    """A reader of one configuration, which adds its problems to those already known."""

    def __init__(self, placed: PlacedYaml, config: EvalConfig, problems: Sequence[str] = ()) -> None:
        self.placed, self.config = placed, config
        self.folder = placed.file.parent
        self.problems = list(problems)
        self.sources: list[Path] = []
        models = [entry.model for entry in config.subjects if entry.model is not None]
        self._specs: dict[str, tuple[ScorerSpec, ...]] = {}
        self.scorers = ScorerReader(config.judge, models, self.problems)

    def suite(self) -> PromptSuite:
        placed, config = self.placed, self.config
        subjects = subject_specs(config.subjects, placed, self.problems)
        prompts = tuple(self._prompts())
        specs = self._of_file(config.transform)
        if config.judge is not None:
            try:
                known_model_name(config.judge, known_providers())
            except UsageError as error:
                self._problem(("judge",), str(error))
        cases = tuple(islice(self._cases(), MAX_CASES + 1))
        if len(cases) > MAX_CASES:
            self._problem(("cases",), f"there are more than {MAX_CASES:,}: write `limit: …`")
        self._check_whole(cases)
        gathered(sorted(self.problems, key=self._line))
        return PromptSuite(
            file=placed.file,
            name=config.name or placed.file.resolve().parent.name or "eval",
            prompts=prompts or (SuitePrompt("", PromptTemplate.of("{{ input }}"), str(placed.file)),),
            subjects=subjects,
            cases=cases,
            scorers=specs,
            built=self.scorers.built,
            threshold=config.threshold,
            rounds=config.rounds,
            seed=config.seed,
            limits=config.limits,
            warnings=(*_single_braces(prompts, cases), *dict.fromkeys(self.scorers.warnings)),
            sources=(placed.file, *self.sources),
        )

    def _of_file(self, transform: Transform) -> tuple[ScorerSpec, ...]:
        """Return the scorers of the file for answers that a transform changes."""
        key = repr(transform)
        if key not in self._specs:
            specs = self.scorers.read(self.config.scorers, self.placed, ("scorers",), transform=transform)
            self._specs[key] = specs
        return self._specs[key]

    def _own(
        self, entry: CaseEntry, placed: PlacedYaml, key: Key, *, is_data: bool = False
    ) -> tuple[ScorerSpec, ...] | None:
        """Return the scorers of a case with scorers or a transform of its own; None for any other case."""
        transform = self.config.transform if entry.transform is None else entry.transform
        if is_data and not all(isinstance(step, str) for step in entry.transform or ()):
            why = "names code, which a row of data must not: write this transform into bakeoff.yaml"
            self.problems.append(placed.problem((*key[:-1], "transform"), why))
        if entry.scorers is not None:
            return self.scorers.read(entry.scorers, placed, key, transform=transform, is_data=is_data)
        return None if entry.transform is None else self._of_file(transform)

    def _problem(self, key: Key, what: str) -> None:
        self.problems.append(self.placed.problem(key, what))

    def _line(self, problem: str) -> int:
        """Return the line of a problem in the configuration, for sorting: problems of other files come last."""
        line = problem.removeprefix(f"{self.placed.file}:").partition(":")[0]
        return int(line) if line.isdecimal() else sys.maxsize

    def _check_whole(self, cases: tuple[PromptCase, ...]) -> None:
        config = self.config
        if self.problems:
            return
        if not config.prompts and not config.cases:
            self._problem(("cases",), f"is missing: {EXAMPLES['cases']}")
        elif not cases and config.cases:
            self._problem(("cases",), "has no case: the files are empty")
        elif not config.prompts:
            without = next((case for case in cases if case.input is None), None)
            if without is not None:
                self.problems.append(f"{without.where}: has no `input`: write one, or write `prompts` for all cases")
        if not config.scorers and not all(case.scorers for case in cases):
            self._problem(("scorers",), f"is missing: {EXAMPLES['scorers']}")

    # --- prompts ----------------------------------------------------------------------------------------------------

    def _prompts(self) -> Iterator[SuitePrompt]:
        taken: set[str] = set()
        entries = self.config.prompts
        for at, entry in enumerate(entries):
            key = self.placed.known(("prompts", at))
            for name, text, where in self._texts(entry, key):
                usual = name or ("prompt" if len(entries) == 1 else f"prompt {at + 1}")
                if usual in taken and entry.name is not None:
                    self._problem((*key, "name"), f"{usual!r} is used twice: rename one")
                taken.add(name := free_name(printable(usual) or "prompt", taken))
                try:
                    yield SuitePrompt(name, PromptTemplate.of(text), where)
                except TemplateProblem as problem:
                    place = where if entry.file is None else f"{where.rpartition(':')[0]}:{problem.line or 1}"
                    self.problems.append(f"{place}: {problem}")

    def _texts(self, entry: PromptEntry, key: Key) -> Iterator[tuple[str | None, str, str]]:
        """Yield the name, text and place of each prompt that an entry describes."""
        if entry.text is not None:
            place = self.placed.known((*key, "text"))
            like_a_path = entry.text.endswith(_PROMPT_SUFFIXES) and len(entry.text.split()) == 1
            found = find_files(entry.text, self.folder) if like_a_path and len(entry.text) < 200 else []
            if any(file.is_file() for file in found):
                self._problem(place, f"{entry.text!r} is a file here: write `file:{entry.text}`")
            yield entry.name, entry.text, self.placed.problem(place, "").removesuffix(": ")
            return
        place = self.placed.known((*key, "file"))
        alone = len(find_files(entry.file or "", self.folder)) == 1
        for file, text in read_texts(entry.file or "", self.folder, self.sources, partial(self._problem, place)):
            name = entry.name if alone else f"{entry.name} {file.stem}" if entry.name else None
            yield name or file.stem, text, f"{file}:1"

    # --- cases ------------------------------------------------------------------------------------------------------

    def _cases(self) -> Iterator[PromptCase]:
        if not self.config.cases:
            yield PromptCase(self.placed.where(("prompts",)))
            return
        names: dict[str, str] = {}
        for at, entry in enumerate(self.config.cases):
            key = self.placed.known(("cases", at))
            for case in self._of_entry(entry, key):
                if case.name is not None and case.name in names:
                    self.problems.append(
                        f"{case.where}: name: {case.name!r} is used twice, first at {names[case.name]}"
                    )
                elif case.name is not None:
                    names[case.name] = case.where
                yield case

    def _of_entry(self, entry: CaseEntry, key: Key) -> Iterator[PromptCase]:
        source = entry.source
        given = entry.model_fields_set
        if source is None:
            for name in given & set(OF_A_SOURCE):
                self._problem((*key, name), "is for cases that come from a `file`, `dataset` or `function`: remove it")
            yield self._inline(entry, key)
            return
        others = [name for name in SOURCES if name in given and name != source]
        for name in (*others, *(name for name in OF_A_CASE if name in given)):
            self._problem((*key, name), f"does not go with `{source}`: remove it, or make it a case of its own")
        if "split" in given and source != "dataset":
            self._problem((*key, "split"), "is for a `dataset`: remove it")
        place = self.placed.known((*key, source))
        try:
            for row in islice(self._rows(entry, place), entry.limit):
                yield self._of_row(_renamed(row, entry.columns), entry)
        except UsageError as error:
            self._add(error, place)

    def _add(self, error: UsageError, key: Key) -> None:
        """Add a problem at a key. Problems of other files already name their own place."""
        text = str(error)
        own = any(text.startswith(f"{file}:") for file in self.sources)
        self.problems.append(text if own else self.placed.problem(key, text))

    def _rows(self, entry: CaseEntry, key: Key) -> Iterator[DataRow]:
        if entry.function is not None:
            yield from function_rows(entry.function)
        elif entry.dataset is not None:
            yield from dataset_rows(self.folder / with_home(entry.dataset), entry.split)
        else:
            files = find_files(entry.file or "", self.folder)
            if not files:
                self._problem(key, f"no file matches {entry.file!r}")
            for file in files:
                self.sources.append(file)
                yield from rows_of_file(file)

    def _inline(self, entry: CaseEntry, key: Key) -> PromptCase:
        for name in _RESERVED:
            if name in entry.vars:
                self._problem((*key, "vars", name), f"is a key of the case itself: write `{name}` beside `vars`")
        own = self._own(entry, self.placed, (*key, "scorers"))
        return _case(entry, self.placed.problem(key, "").removesuffix(": "), own)

    def _of_row(self, row: DataRow, source: CaseEntry) -> PromptCase:
        """Turn a row into a case: known columns become its keys, all others its variables."""
        known = {name: value for name, value in row.values.items() if name in _OF_A_ROW and value not in (None, "")}
        more = {name: value for name, value in row.values.items() if name not in _OF_A_ROW}
        if isinstance(tags := known.get("tags"), str):
            known["tags"] = [tag.strip() for tag in tags.split(",") if tag.strip()]
        if isinstance(threshold := known.get("threshold"), str):
            known["threshold"] = number_in(threshold)
        if isinstance(known.get("name"), int | float):
            known["name"] = str(known["name"])
        nested = known.get("vars") or {}
        if isinstance(nested, dict):
            known["vars"] = {**more, **nested}
        placed = DataRow(row.where, known).placed
        try:
            try:
                entry = CaseEntry.model_validate(known)
            except ValidationError:  # only now, because places cost time
                entry = placed().read(CaseEntry, EXAMPLES)
        except ConfigError as error:
            self.problems.append(error.problems[0])
            return PromptCase(row.where)
        own = None
        if entry.scorers is not None or entry.transform is not None:
            is_data = source.function is None  # rows of a function are made by code of the user's own
            own = self._own(entry, placed(), ("scorers",), is_data=is_data)
        return _case(entry, row.where, own, _tags(source))


def _single_braces(prompts: Sequence[SuitePrompt], cases: Sequence[PromptCase]) -> Iterator[str]:
    """Yield a warning for each `{name}` in a prompt that was probably meant as `{{name}}`, a value of the cases."""
    values = {name for case in cases for name in (*case.variables, *(["input"] if case.input is not None else []))}
    for prompt in prompts:
        for name in dict.fromkeys(_SINGLE_BRACES.findall(prompt.template.text)):
            if name in values:
                yield f"{prompt.where}: `{{{name}}}` is not filled: write `{{{{ {name} }}}}`"


def _tags(entry: CaseEntry) -> dict[str, str]:
    given = entry.tags
    return dict(given) if isinstance(given, Mapping) else {f"tag {at}": tag for at, tag in enumerate(given, 1)}


def _case(entry: CaseEntry, where: str, scorers: Any, more_tags: Mapping[str, str] | None = None) -> PromptCase:
    own, more = _tags(entry), more_tags or {}
    if more and not isinstance(entry.tags, Mapping):  # numbered after those of the source
        own = {f"tag {at}": tag for at, tag in enumerate(entry.tags, 1 + len(more))}
    return PromptCase(
        where=where,
        name=entry.name,
        input=entry.input,
        variables=entry.vars,
        expected=entry.expected,
        scorers=scorers,
        threshold=entry.threshold,
        tags={**more, **own},
    )


def _renamed(row: DataRow, columns: Mapping[str, str]) -> DataRow:
    """Return a row whose columns have the names that a configuration gives them."""
    for name, column in columns.items():
        if column not in row.values:
            hint = near_names(column, row.values)
            raise UsageError(f"columns.{name}: {row.where} has no column {column!r}{hint}")
    taken = set(columns.values())
    values: dict[str, JsonValue] = {name: value for name, value in row.values.items() if name not in taken}
    return DataRow(row.where, {**values, **{name: row.values[column] for name, column in columns.items()}})


_SETTINGS = {*OF_KINDS["model"]} - {"system", "base_url", "key_variable", "mcp"}  # passed on as they are


def subject_specs(entries: Sequence[SubjectEntry], placed: PlacedYaml, problems: list[str]) -> tuple[SubjectSpec, ...]:
    """Return the subjects of a plan under unique names. Problems are added to a list."""
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
    options = entry.model_dump(mode="json", include=_SETTINGS, exclude_defaults=True)
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
