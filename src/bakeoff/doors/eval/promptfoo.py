"""Read a `promptfooconfig.yaml` as it is. A test with an unsupported part is left out, by name and line."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.text import free_name
from bakeoff._kernel.yaml import Key, PlacedYaml, gathered, parse_yaml, read_yaml
from bakeoff.doors.data_files import plain, read_text
from bakeoff.doors.eval.config import LimitsConfig, PromptCase, PromptSuite, SuitePrompt, path_in, printable
from bakeoff.doors.eval.promptfoo_assertions import AssertionRules, Assertions, csv_assertion
from bakeoff.doors.eval.promptfoo_providers import LeftOut, code_file, provider_subjects
from bakeoff.doors.eval.sources import DataRow, find_files, number_in, rows_of_file
from bakeoff.errors import UsageError
from bakeoff.models.prompt_templates import JsonTemplate, PromptTemplate, fill_all, messages_in
from bakeoff.plan import SubjectSpec
from bakeoff.toolchains.user_code import LANGUAGES, UserCode, split_path

_READ = (
    *("description", "prompts", "providers", "targets", "tests"),
    *("defaultTest", "scenarios", "evaluateOptions", "env"),
)
_NO_MATTER = (
    *("$schema", "schema", "outputPath", "sharing", "tags"),
    *("metadata", "writeLatestResults", "derivedMetrics", "commandLineOptions", "assertionTemplates"),
)
"""Keys that decide no verdict."""
_OF_A_SCENARIO = ("config", "tests")
_OF_A_TEST = ("description", "vars", "assert", "threshold", "metadata", "options")
_OPTIONS = (
    *("provider", "transform", "postprocess", "prefix", "suffix", "disableVarExpansion", "disableDefaultAsserts"),
    *("rubricPrompt", "factuality", "runSerially", "disableConversationVar"),
)
_CODE = (*LANGUAGES, ".ts", ".mts", ".rb", ".sh", ".go")
_TEXTS = (".txt", ".md", ".j2", ".json", ".jsonl", ".yaml", ".yml", ".csv")
_NO_TEXTS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".pdf", ".mp3", ".wav", ".mp4", ".docx", ".xlsx")
_PARTED = re.compile(r"^---\s*$", re.MULTILINE)
_ENV = re.compile(r"\{\{[^{}]*\benv[.\[][^{}]*\}\}")
_MAX_COMBINATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Usual:
    """The values and assertions of a test, combined with its defaults."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    asserted: "tuple[tuple[Key, Any, Notes], ...]" = ()
    threshold: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()  # parts, with their places


@dataclass(slots=True)
class Notes:
    """The unusable parts of a configuration: problems end the run, warnings do not."""

    placed: PlacedYaml
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    mapping: "Counter[tuple[str, str]]" = field(default_factory=Counter)

    def of(self, placed: PlacedYaml) -> "Notes":
        """Return the same notes, for parts that stand in another file."""
        return replace(self, placed=placed)

    def problem(self, key: Key, what: str) -> None:
        """Note a problem that prevents the use of the file."""
        self.problems.append(self.placed.problem(key, what))

    def warn(self, key: Key, what: str) -> None:
        """Note a part that is left out."""
        self.warnings.append(self.placed.problem(key, what))

    def mapped(self, theirs: str, ours: str) -> None:
        """Count a part that is used, and what it becomes."""
        self.mapping[theirs, ours] += 1

    def object(self, key: Key, value: Any) -> dict[str, Any]:
        """Return `value` if it is an object, else an empty object; note the problem."""
        if value and not isinstance(value, dict):
            self.problem(key, "has to be an object, with names and values")
        return value if isinstance(value, dict) else {}

    def unused(self, key: Key, value: Any, known: tuple[str, ...]) -> list[str]:
        """Return the keys of an object that are not supported, each with its place."""
        names = [name for name in value if name not in known] if isinstance(value, dict) else []
        return [self.placed.problem((*key, name), "is not supported") for name in names]


def suite_of_promptfoo(placed: PlacedYaml, judge: str | None = None) -> PromptSuite:
    """Read a promptfoo configuration. One error lists all problems; warnings name omitted parts.

    `judge` is the model of assertions that ask a model and name none.
    """
    if not isinstance(placed.value, dict):
        raise UsageError(f"{placed.file}:1: this is not a configuration: it needs prompts, providers and tests")
    return _PromptfooReader(placed, judge).suite()


@dataclass(frozen=True, slots=True)
class CodePrompt(PromptTemplate):
    """The prompts that a function of the user made before the run, by the values of their cases."""

    made: Mapping[str, str] = field(default_factory=dict)

    def fill(self, values: Mapping[str, Any]) -> str:
        return template_of(self.made[json.dumps(values, sort_keys=True)]).fill(values)


class _PromptfooReader:
    def __init__(self, placed: PlacedYaml, judge: str | None) -> None:
        assert isinstance(placed.value, dict)
        self.placed, self.folder = placed, placed.file.parent
        self.notes = Notes(placed)
        self.exported = dict(read_environment())
        env = placed.value.get("env")
        self.env = self.exported | (fill_all(env, {"env": self.exported}) if isinstance(env, dict) else {})
        self.config: dict[str, Any] = {
            name: value if name in ("providers", "targets") else self._with_env(value)
            for name, value in placed.value.items()
        }
        self.judge, self.sources = judge, list[Path]()

    def _with_env(self, value: Any) -> Any:
        """Fill in the variables of the environment, as `{{ env.NAME }}`."""
        if isinstance(value, str):
            return _ENV.sub(lambda found: str(fill_all(found[0], {"env": self.env})), value)
        if isinstance(value, list):
            return [self._with_env(each) for each in value]
        return {name: self._with_env(each) for name, each in value.items()} if isinstance(value, dict) else value

    def _referred(self, given: Any) -> Any:
        """Return an assertion, or the part of the file that its `$ref` names."""
        if not isinstance(given, dict) or not str(given.get("$ref")).startswith("#/"):
            return given
        found: Any = self.config
        for name in given["$ref"].removeprefix("#/").split("/"):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def suite(self) -> PromptSuite:
        notes, config = self.notes, self.config
        for name in config:
            if name == "redteam":
                said = notes.warn if {"tests", "scenarios"} & {*config} else notes.problem
                said((name,), "red teaming is not part of Bakeoff: it is left out")
            elif name == "extensions":
                notes.problem((name,), "hooks may change every test, and are not supported: remove them")
            elif name not in (*_READ, *_NO_MATTER):
                notes.warn((name,), "is not supported, and not used")
        if far := [name for name, value in self.env.items() if self.exported.get(name) != value]:
            told = f"{', '.join(far)}: templates use it, but providers and code see only variables that are exported"
            notes.warn(("env",), f"{told}: export it before the run")
        subjects = tuple(self._subjects())
        models = [str(spec.options["model"]) for spec in subjects if spec.kind == "model"]
        self.assertions = Assertions(notes, self.judge, models)
        cases = tuple(self._cases())
        prompts = tuple(self._prompts(cases, subjects))
        rounds, limits = self._options()
        for name, found in (("prompts", prompts), ("providers", subjects), ("tests", cases)):
            if not found and not notes.problems:
                notes.problem((name,), "none is left that can be used" if name in config else "is missing")
        if notes.problems:
            gathered([*notes.warnings, *notes.problems])  # the parts left out may be the reason that nothing is left
        return PromptSuite(
            file=self.placed.file,
            name=str(config.get("description") or self.placed.file.resolve().parent.name or "eval"),
            prompts=prompts,
            subjects=subjects,
            cases=cases,
            scorers=(),
            built=self.assertions.built,
            rounds=rounds,
            limits=limits,
            warnings=tuple(dict.fromkeys(notes.warnings)),
            sources=(self.placed.file, *self.sources),
            mapping=tuple((*parts, count) for parts, count in sorted(notes.mapping.items(), key=_order)),
        )

    def _options(self) -> tuple[int, LimitsConfig]:
        options = self.notes.object(("evaluateOptions",), self.config.get("evaluateOptions"))
        numbers: dict[str, int | None] = {}
        for name in ("repeat", "maxConcurrency"):
            given = options.get(name)
            if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
                self.notes.problem(("evaluateOptions", name), f"{given!r}: has to be a whole number above 0")
                given = None
            numbers[name] = given
        return numbers["repeat"] or 1, LimitsConfig(jobs=numbers["maxConcurrency"])

    def _listed(self, *names: str) -> Iterator[tuple[Key, Any]]:
        """Yield each item of a key with its place; a single value is a list of one."""
        for name in names:
            value = self.config.get(name)
            if isinstance(value, list):
                yield from (((name, at), item) for at, item in enumerate(value))
            elif value is not None:
                yield (name,), value

    # --- prompts and providers --------------------------------------------------------------------------------------

    def _prompts(self, cases: tuple[PromptCase, ...], subjects: tuple[SubjectSpec, ...]) -> Iterator[SuitePrompt]:
        taken: set[str] = set()
        items = list(self._listed("prompts"))
        if isinstance(files := self.config.get("prompts"), dict) and not {"raw", "id"} & {*files}:
            items = [(("prompts", name), {"id": name, "label": label}) for name, label in files.items()]
        for number, (key, item) in enumerate(items, 1):
            label = item.get("label") if isinstance(item, dict) else None
            text = (item.get("raw") or item.get("id")) if isinstance(item, dict) else item
            if unknown := self.notes.unused(key, item, ("raw", "id", "label")):
                self.notes.warnings += [f"{each}: the prompt is left out" for each in unknown]
                continue
            if not isinstance(text, str) or not text.strip():
                self.notes.problem(key, "has to be a text, or `file://` and a path")
                continue
            try:
                for template, where, name in self._templates(text, key, cases, subjects):
                    usual = label or name or (f"prompt {number}" if len(items) > 1 else "prompt")
                    taken.add(unique := free_name(printable(str(usual)) or "prompt", taken))
                    self.notes.mapped(f"prompt{_CHAT_OR_NOT[type(template)]}", "prompt")
                    yield SuitePrompt(unique, template, where)
            except (LeftOut, UsageError) as problem:
                self.notes.warn(key, f"{problem}: the prompt is left out")

    def _templates(
        self, text: str, key: Key, cases: tuple[PromptCase, ...], subjects: tuple[SubjectSpec, ...]
    ) -> Iterator[tuple[PromptTemplate, str, str | None]]:
        """Yield the template, place and name of each prompt that an item describes."""
        path = path_in(text)
        if path is None and len(text) < 200 and len(text.split()) == 1 and Path(split_path(text)[0]).suffix in _TEXTS:
            path = text if all(file.is_file() for file in find_files(text, self.folder)) else None
        if path is None:
            yield template_of(text), self.placed.problem(key, "").removesuffix(": "), None
        elif split_path(path)[1] or Path(path).suffix in _CODE:
            yield self._made_by_code(path, key, cases, subjects), f"{self.folder / split_path(path)[0]}:1", None
        else:
            files = find_files(path, self.folder)
            if not files:
                self.notes.problem(key, f"no file matches {path!r}")
            for file in files:
                self.sources.append(file)
                parts = _parts_of(file)
                for number, part in enumerate(parts, 1):
                    yield template_of(part), f"{file}:1", file.stem if len(parts) == 1 else f"{file.stem} {number}"

    def _made_by_code(
        self, path: str, key: Key, cases: tuple[PromptCase, ...], subjects: tuple[SubjectSpec, ...]
    ) -> CodePrompt:
        """Call a function for each case and provider. It must not depend on the provider."""
        text, language = code_file(path, key, self.folder)
        if language == "python" and not split_path(text)[1]:
            raise LeftOut(key, f"{path} names no function, and what it prints is not read: add `:function`")
        self.sources.append(Path(split_path(text)[0]))
        values = [dict(case.variables) for case in cases]
        calls = [({"vars": each, "provider": {"id": spec.name}},) for spec in subjects for each in values]
        made = [
            each if isinstance(each, str) else json.dumps(each) for each in UserCode(language, text).call_now(*calls)
        ]
        for at in range(0, len(made), len(values) or 1):
            if made[at : at + len(values)] != made[: len(values)]:
                raise LeftOut(key, f"{path} makes another prompt for each provider, which is not supported")
        return CodePrompt(
            "", None, {json.dumps(each, sort_keys=True): text for each, text in zip(values, made, strict=False)}
        )

    def _subjects(self) -> Iterator[SubjectSpec]:
        taken: set[str] = set()
        for key, item in self._listed("providers", "targets"):
            for spec in provider_subjects(item, key, self.notes, self._with_env):
                taken.add(name := free_name(spec.name, taken))
                self.notes.mapped(f"provider `{name}`", f"{spec.kind} {spec.options.get('model', '')}".strip())
                self.sources += [Path(split_path(str(spec.options["code"]))[0])] if spec.kind == "code" else []
                yield spec.model_copy(update={"name": name})

    # --- tests ------------------------------------------------------------------------------------------------------

    def _cases(self) -> Iterator[PromptCase]:
        usual = self._default_test()
        found = False
        for key, item in self._listed("tests"):
            found = True
            yield from self._of_item(item, self.placed, key, usual)
        for key, scenario in self._listed("scenarios"):
            found = True
            yield from self._scenario(scenario, key, usual)
        if not found:  # a prompt without variables needs no test
            yield from self._test({}, self.placed, ("tests",), usual)

    def _default_test(self) -> Usual:
        usual, notes = self.config.get("defaultTest"), self.notes
        if isinstance(usual, str):
            placed = read_yaml(self.folder / (path_in(usual) or usual))
            self.sources.append(placed.file)
            notes = notes.of(placed)
            return self._more_usual(notes.object((), placed.value), (), Usual(), notes)
        return self._more_usual(notes.object(("defaultTest",), usual), ("defaultTest",), Usual(), notes)

    def _more_usual(self, test: dict[str, Any], key: Key, usual: Usual, notes: Notes) -> Usual:
        """Return `usual` extended by a test, a default test, or a part of a scenario."""
        values = test.get("vars")
        values = self._data_of(values) if isinstance(values, str) else values
        parts = {name: notes.object((*key, name), test.get(name)) for name in ("options", "metadata")}
        asserted = test.get("assert") or []
        if not isinstance(asserted, list):
            notes.problem((*key, "assert"), "has to be a list")
            asserted = []
        unsupported = [*notes.unused(key, test, _OF_A_TEST)]
        unsupported += notes.unused((*key, "options"), parts["options"], _OPTIONS)
        inherited = () if parts["options"].get("disableDefaultAsserts") else usual.asserted
        return Usual(
            vars={**usual.vars, **notes.object((*key, "vars"), values)},
            asserted=(
                *(((*key, "assert", at), self._referred(each), notes) for at, each in enumerate(asserted)),
                *inherited,
            ),
            threshold=test.get("threshold", usual.threshold),
            options={**usual.options, **parts["options"]},
            metadata={**usual.metadata, **parts["metadata"]},
            unsupported=(*usual.unsupported, *unsupported),
        )

    def _scenario(self, scenario: Any, key: Key, usual: Usual) -> Iterator[PromptCase]:
        scenario = self._data_of(scenario) if isinstance(scenario, str) else scenario
        scenario = scenario if isinstance(scenario, dict) else {}
        parts = [
            self._data_of(part) if isinstance(part := scenario.get(name), str) else part for name in _OF_A_SCENARIO
        ]
        if not all(isinstance(part, list) for part in parts):
            self.notes.warn(key, "is not supported, and left out: a scenario has lists `config` and `tests`")
            return
        if unknown := self.notes.unused(key, scenario, (*_OF_A_SCENARIO, "description")):
            self.notes.warnings += [f"{each}: the scenario is left out" for each in unknown]
            return
        config, tests = parts
        for number, data in enumerate(config):
            place: Key = (*key, "config", number)
            if not isinstance(data, dict):
                self.notes.problem(place, "has to be an object, with `vars` or `assert`")
                continue
            base = self._more_usual(data, place, usual, self.notes)
            for at, test in enumerate(tests):
                yield from self._of_item(test, self.placed, (*key, "tests", at), base)

    def _data_of(self, text: str) -> Any:
        """Return what a file of YAML or JSON holds; another text as it is."""
        file = self.folder / (path_in(text) or text)
        if file.suffix not in (".yaml", ".yml", ".json"):
            return text
        self.sources.append(file)
        return self._with_env(read_yaml(file).value)

    def _of_item(self, item: Any, placed: PlacedYaml, key: Key, usual: Usual) -> Iterator[PromptCase]:
        """Yield the cases of a test, or of a file or function of tests."""
        given = {"path": item} if isinstance(item, str) else item
        if not isinstance(given, dict) or "path" not in given:
            yield from self._test(item, placed, key, usual)
            return
        path = path_in(str(given["path"])) or str(given["path"])
        try:
            if split_path(path)[1] or Path(path).suffix in _CODE:
                yield from self._generated(path, given.get("config"), key, usual)
            elif "://" in path or Path(path).suffix in _NO_TEXTS:
                raise LeftOut(key, f"{path} is not a file that can be read here")
            else:
                yield from self._tests_of_file(path, usual)
        except LeftOut as part:
            self.notes.warn(key, f"{part}: its tests are left out")
        except UsageError as error:
            self.notes.problem(key, str(error))

    def _generated(self, path: str, config: Any, key: Key, usual: Usual) -> Iterator[PromptCase]:
        text, language = code_file(path, key, self.folder)
        self.sources.append(Path(split_path(text)[0]))
        arguments = () if config is None else (config,)
        [tests] = UserCode(language, text, usual="generate_tests").call_now(arguments)
        if not isinstance(tests, list):
            raise LeftOut(key, f"{path} returned no list of tests")
        for number, test in enumerate(tests, 1):
            row = DataRow(f"{path}: item {number}", test if isinstance(test, dict) else {})
            yield from self._test(plain(test), row.placed(), (), usual, where=row.where)

    def _tests_of_file(self, path: str, usual: Usual) -> Iterator[PromptCase]:
        for file in find_files(path, self.folder):
            self.sources.append(file)
            if file.suffix in (".yaml", ".yml", ".json"):
                placed = parse_yaml(read_text(file), file)
                tests = placed.value if isinstance(placed.value, list) else [placed.value]
                for at, test in enumerate(tests):
                    yield from self._of_item(self._with_env(test), placed, (at,), usual)
            else:
                for row in rows_of_file(file):
                    test = _csv_test(row) if file.suffix in (".csv", ".tsv") else dict(row.values)
                    yield from self._test(test, row.placed(), (), usual, where=row.where)

    def _test(
        self, test: Any, placed: PlacedYaml, key: Key, usual: Usual, where: str | None = None
    ) -> Iterator[PromptCase]:
        """Yield the cases of a test: one for each combination of variables that are lists."""
        notes = self.notes.of(placed)
        if not isinstance(test, dict):
            notes.problem(key, "a test has to be an object, with `vars` and `assert`")
            return
        whole = self._more_usual(test, key, usual, notes)
        place = where or placed.problem(key, "").removesuffix(": ")
        if whole.unsupported:
            notes.warnings += [f"{part}: the test is left out" for part in whole.unsupported]
            return
        try:
            cases = list(self._combined(whole, notes, key, place, str(test.get("description") or "") or None))
        except (LeftOut, UsageError) as part:
            notes.warn(part.key if isinstance(part, LeftOut) else key, f"{part}: the test is left out")
            return
        notes.mapped("test", "case")
        yield from cases

    def _combined(self, test: Usual, notes: Notes, key: Key, place: str, name: str | None) -> Iterator[PromptCase]:
        values = {name: self._value(value, (*key, "vars", name)) for name, value in test.vars.items()}
        lists = {name: value for name, value in values.items() if isinstance(value, list)}
        if test.options.get("disableVarExpansion"):
            lists = {}
        combinations = prod(map(len, lists.values()))
        if combinations > _MAX_COMBINATIONS:
            told = f"its lists have {combinations:,} combinations: at most {_MAX_COMBINATIONS:,}"
            notes.problem((*key, "vars"), told)
            return
        for chosen in product(*lists.values()):
            variables = {**values, **dict(zip(lists, chosen, strict=True))}
            case = replace(self._case(test, variables, notes, key, place), name=name)
            yield case if combinations == 1 else _unnamed(case)

    def _case(self, test: Usual, given: dict[str, Any], notes: Notes, key: Key, where: str) -> PromptCase:
        variables = {name: fill_all(value, given) if isinstance(value, str) else value for name, value in given.items()}
        asserted, threshold, options = test.asserted, test.threshold, test.options
        only = asserted[0][1] if len(asserted) == 1 else None
        if threshold is None and isinstance(only, dict) and isinstance(only.get("assert"), list):
            place, _, own = asserted[0]  # the threshold of the only set is that of its test
            asserted = tuple(((*place, "assert", at), each, own) for at, each in enumerate(only["assert"]))
            threshold = only.get("threshold")
        if threshold is not None and (not isinstance(threshold, int | float) or not 0 <= threshold <= 1):
            notes.problem((*key, "threshold"), f"{threshold!r}: has to be a number from 0 to 1")
            threshold = None
        scorers = self.assertions.scorers(asserted, AssertionRules(variables, options, mean=threshold is not None))
        if "query" in variables and any(spec.kind.startswith(("context_", "faith")) for spec in scorers):
            variables.setdefault("input", variables["query"])  # the question for scorers
        return PromptCase(
            where=where,
            variables=variables,
            scorers=scorers,
            threshold=threshold,
            tags={str(name): str(value) for name, value in test.metadata.items() if _is_plain(value)},
            around=(str(options.get("prefix") or ""), str(options.get("suffix") or "")),
        )

    def _value(self, value: Any, key: Key) -> Any:
        """Return a variable. A file stands for its text, and one of YAML or JSON for its data, as JSON."""
        path = path_in(value) if isinstance(value, str) else None
        if path is None:
            return value
        file = self.folder / path
        if file.suffix in (*_CODE, *_NO_TEXTS) or split_path(path)[1]:
            raise LeftOut(key, f"{path} is not a file of text")
        if not file.is_file():
            raise LeftOut(key, f"there is no file {str(file)!r}")
        self.sources.append(file)
        if file.suffix in (".yaml", ".yml", ".json"):
            return json.dumps(read_yaml(file).value, ensure_ascii=False, separators=(",", ":"))
        return read_text(file).strip()


def _order(mapped: tuple[tuple[str, str], int]) -> int:
    return ("prompt", "provider", "test", "assertion").index(mapped[0][0].split()[0])


_CHAT_OR_NOT = {PromptTemplate: "", JsonTemplate: " of JSON or chat messages", CodePrompt: " made by code"}


def template_of(text: str) -> PromptTemplate:
    """Return the template of a prompt. The texts in JSON, or in a YAML list of messages, are templates each."""
    if "_conversation" in text:
        raise LeftOut((), "`_conversation` needs the answers to earlier tests, which is not supported")
    if text.lstrip().startswith("- role:"):
        text = json.dumps(parse_yaml(text, Path("prompt")).value, ensure_ascii=False)
    if not text.lstrip().startswith(("[", "{")) or text.lstrip().startswith(("{{", "{%", "{#")):
        return PromptTemplate.of(text, nunjucks=True)
    try:
        found = json.loads(text)
    except ValueError:
        return PromptTemplate.of(text, nunjucks=True)
    is_chat = isinstance(found, list) and found and all(isinstance(each, dict) and "role" in each for each in found)
    if is_chat and not messages_in(text):
        raise LeftOut((), "has messages with other parts than text, which are not supported")
    return JsonTemplate(text, None)


def _parts_of(file: Path) -> list[str]:
    """Return the prompts in a file, as its ending says."""
    if file.suffix in (".yaml", ".yml"):
        return [json.dumps(read_yaml(file).value, ensure_ascii=False)]
    if file.suffix == ".csv":
        rows = [row.values for row in rows_of_file(file)]
        return [str(row.get("prompt") or next(iter(row.values()))) for row in rows]
    whole = read_text(file)
    if file.suffix == ".json":
        return [whole.strip()]
    return [
        part.strip()
        for part in (whole.splitlines() if file.suffix == ".jsonl" else _PARTED.split(whole))
        if part.strip()
    ]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _unnamed(case: PromptCase) -> PromptCase:
    """Add the values of a case to its name, because a test may have several cases."""
    told = ", ".join(str(value) for value in case.variables.values() if _is_plain(value))
    return replace(case, name=f"{case.name}: {told}" if case.name else None)


def _csv_test(row: DataRow) -> dict[str, Any]:
    """Return the test in a row. Columns whose names begin with `__` are not variables."""
    own = {name: value for name, value in row.values.items() if name.startswith("__") and value != ""}
    test: dict[str, Any] = {"vars": {name: value for name, value in row.values.items() if not name.startswith("__")}}
    asserted = [csv_assertion(str(value)) for name, value in own.items() if re.fullmatch(r"__expected\d*", name)]
    metric = {"metric": own["__metric"]} if "__metric" in own else {}
    test["assert"] = [{**each, **metric} for each in asserted]
    test["options"] = {name[2:]: str(own[name]) for name in ("__prefix", "__suffix") if name in own}
    for name, value in own.items():
        if name == "__threshold":
            test["threshold"] = number_in(str(value))
        elif name == "__description" or name.startswith("__metadata:"):
            into = test if name == "__description" else test.setdefault("metadata", {})
            into[name.rpartition(":")[2].removeprefix("__")] = value
        elif not re.fullmatch(r"__expected\d*|__metric|__prefix|__suffix", name):
            test[name] = value  # named as not supported
    return test
