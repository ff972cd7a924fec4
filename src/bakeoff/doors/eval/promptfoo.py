"""Read the deterministic parts of a `promptfooconfig.yaml`. Other parts are reported, and never run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from bakeoff._kernel.text import free_name
from bakeoff._kernel.yaml import Key, PlacedYaml, gathered, parse_yaml
from bakeoff.doors.data_files import read_text
from bakeoff.doors.eval.config import LimitsConfig, PromptCase, PromptSuite, SuitePrompt, path_in, printable
from bakeoff.doors.eval.promptfoo_parts import Assertions, csv_assertion, provider_subject
from bakeoff.doors.eval.sources import DataRow, find_files, number_in, read_texts, rows_of_file
from bakeoff.errors import UsageError
from bakeoff.models.prompt_templates import PromptTemplate, TemplateProblem
from bakeoff.plan import SubjectSpec

_KNOWN = ("description", "prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "evaluateOptions")
_OF_A_TEST = ("description", "vars", "assert", "threshold", "metadata", "options")
_CODE = (".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".sh")
_PARTED = re.compile(r"^---\s*$", re.MULTILINE)
_MAX_COMBINATIONS = 10_000
_NOT_RUN = "is code, which is not run"


@dataclass(frozen=True, slots=True)
class Usual:
    """The values and assertions of a test, combined with its defaults."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    asserted: "tuple[tuple[Key, Any, Notes], ...]" = ()
    threshold: Any = None
    judge: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Notes:
    """The unusable parts of a configuration: problems end the run, warnings do not."""

    placed: PlacedYaml
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def problem(self, key: Key, what: str) -> None:
        """Note a problem that prevents the use of the file."""
        self.problems.append(self.placed.problem(key, what))

    def warn(self, key: Key, what: str) -> None:
        """Note a part that is left out."""
        self.warnings.append(self.placed.problem(key, what))

    def object(self, key: Key, value: Any, known: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return `value` if it is an object, else an empty object; note problems and unknown keys."""
        if value and not isinstance(value, dict):
            self.problem(key, "has to be an object, with names and values")
        found: dict[str, Any] = value if isinstance(value, dict) else {}
        if known:
            self.unused(key, found, known)
        return found

    def unused(self, key: Key, value: Any, known: tuple[str, ...]) -> None:
        """Report the keys of an object that are not understood."""
        for name in value if isinstance(value, dict) else ():
            if name not in known:
                self.warn((*key, name), "is not supported and is ignored")


def suite_of_promptfoo(placed: PlacedYaml) -> PromptSuite:
    """Read a promptfoo configuration. One error lists all problems; warnings name omitted parts."""
    if not isinstance(placed.value, dict):
        raise UsageError(f"{placed.file}:1: this is not a configuration: it needs prompts, providers and tests")
    return _PromptfooReader(placed).suite()


class _PromptfooReader:
    def __init__(self, placed: PlacedYaml) -> None:
        assert isinstance(placed.value, dict)
        self.config: dict[str, Any] = placed.value
        self.placed, self.folder = placed, placed.file.parent
        self.notes = Notes(placed)
        self.assertions = Assertions(self.notes)
        self.sources: list[Path] = []

    def suite(self) -> PromptSuite:
        notes, config = self.notes, self.config
        notes.unused((), config, _KNOWN)
        prompts = tuple(self._prompts())
        subjects = tuple(self._subjects())
        cases = tuple(self._cases())
        rounds, limits = self._options()
        for name, found in (("prompts", prompts), ("providers", subjects)):
            if not found and not notes.problems:
                notes.problem((name,), "none is left that can be used" if name in config else "is missing")
        if not cases and not notes.problems:
            notes.problem(("tests",), "none is left that can be used")
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
        )

    def _options(self) -> tuple[int, LimitsConfig]:
        known = ("repeat", "maxConcurrency", "showProgressBar", "cache")
        options = self.notes.object(("evaluateOptions",), self.config.get("evaluateOptions"), known)
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

    def _prompts(self) -> Iterator[SuitePrompt]:
        taken: set[str] = set()
        items = list(self._listed("prompts"))
        for number, (key, item) in enumerate(items, 1):
            label = item.get("label") if isinstance(item, dict) else None
            text = (item.get("raw") or item.get("id")) if isinstance(item, dict) else item
            self.notes.unused(key, item, ("raw", "id", "label"))
            if not isinstance(text, str) or not text.strip():
                self.notes.problem(key, "has to be a text, or `file://` and a path")
                continue
            for found, where, name in self._texts(text, key):
                if found.lstrip().startswith("[") and '"role"' in found:
                    self.notes.warn(key, "is a list of chat messages, which is not supported: it is left out")
                    continue
                usual = label or name or (f"prompt {number}" if len(items) > 1 else "prompt")
                taken.add(unique := free_name(printable(str(usual)) or "prompt", taken))
                try:
                    yield SuitePrompt(unique, PromptTemplate.of(found), where)
                except TemplateProblem as problem:
                    self.notes.problem(key, str(problem))

    def _texts(self, text: str, key: Key) -> Iterator[tuple[str, str, str | None]]:
        """Yield the text, place and name of each prompt that an item describes."""
        path = path_in(text)
        if path is None and len(text) < 200 and "\n" not in text and (self.folder / text).is_file():
            path = text
        if path is None:
            yield text, self.placed.problem(key, "").removesuffix(": "), None
            return
        if Path(path.partition(":")[0]).suffix in _CODE:
            self.notes.warn(key, f"{path} {_NOT_RUN}: the prompt is left out")
            return
        for file, whole in read_texts(path, self.folder, self.sources, partial(self.notes.problem, key)):
            parts = [part for part in _PARTED.split(whole) if part.strip()]
            for number, part in enumerate(parts, 1):
                yield part.strip("\n"), f"{file}:1", file.stem if len(parts) == 1 else f"{file.stem} {number}"

    def _subjects(self) -> Iterator[SubjectSpec]:
        taken: set[str] = set()
        for key, item in self._listed("providers", "targets"):
            spec = provider_subject(item, key, self.notes)
            if spec is not None:
                taken.add(name := free_name(spec.name, taken))
                yield spec.model_copy(update={"name": name})

    # --- tests ------------------------------------------------------------------------------------------------------

    def _cases(self) -> Iterator[PromptCase]:
        usual = self._default_test()
        found = False
        for key, item in self._listed("tests"):
            found = True
            if isinstance(item, str):
                yield from self._tests_of_file(item, key, usual)
            else:
                yield from self._test(item, self.placed, key, usual)
        for key, scenario in self._listed("scenarios"):
            found = True
            yield from self._scenario(scenario, key, usual)
        if not found:  # a prompt without variables needs no test
            yield from self._test({}, self.placed, ("tests",), usual)

    def _default_test(self) -> Usual:
        usual = self.config.get("defaultTest")
        if isinstance(usual, str):
            self.notes.warn(("defaultTest",), "is a file, which is not supported and is ignored")
            return Usual()
        return self._more_usual(self.notes.object(("defaultTest",), usual), ("defaultTest",), Usual(), self.notes)

    def _more_usual(self, test: dict[str, Any], key: Key, usual: Usual, notes: Notes) -> Usual:
        """Return `usual` extended by a test, a default test, or a part of a scenario."""
        notes.unused(key, test, _OF_A_TEST)
        notes.unused((*key, "options"), test.get("options"), ("provider",))
        names = ("vars", "options", "metadata")
        parts = {name: notes.object((*key, name), test.get(name)) for name in names}
        asserted = test.get("assert") or []
        if not isinstance(asserted, list):
            notes.problem((*key, "assert"), "has to be a list")
            asserted = []
        return Usual(
            vars={**usual.vars, **parts["vars"]},
            asserted=(*(((*key, "assert", at), each, notes) for at, each in enumerate(asserted)), *usual.asserted),
            threshold=test.get("threshold", usual.threshold),
            judge=parts["options"].get("provider") or usual.judge,
            metadata={**usual.metadata, **parts["metadata"]},
        )

    def _scenario(self, scenario: Any, key: Key, usual: Usual) -> Iterator[PromptCase]:
        parts: list[Any] = [scenario.get(name) for name in ("config", "tests")] if isinstance(scenario, dict) else []
        if not parts or not all(isinstance(part, list) for part in parts):
            self.notes.warn(key, "is not supported and is ignored: a scenario has lists `config` and `tests`")
            return
        self.notes.unused(key, scenario, ("config", "tests", "description"))
        config, tests = parts
        for number, data in enumerate(config):
            place: Key = (*key, "config", number)
            if not isinstance(data, dict):
                self.notes.problem(place, "has to be an object, with `vars` or `assert`")
                continue
            base = self._more_usual(data, place, usual, self.notes)
            for at, test in enumerate(tests):
                yield from self._test(test, self.placed, (*key, "tests", at), base)

    def _tests_of_file(self, text: str, key: Key, usual: Usual) -> Iterator[PromptCase]:
        path = path_in(text) or text
        if "://" in path or Path(path.partition(":")[0]).suffix in _CODE:
            why = _NOT_RUN if "://" not in path else "is not on this machine"
            self.notes.warn(key, f"{path} {why}: its tests are left out")
            return
        try:
            for file in find_files(path, self.folder):
                self.sources.append(file)
                if file.suffix in (".yaml", ".yml"):
                    placed = parse_yaml(read_text(file), file)
                    tests = placed.value if isinstance(placed.value, list) else [placed.value]
                    for at, test in enumerate(tests):
                        yield from self._test(test, placed, (at,), usual)
                else:
                    for row in rows_of_file(file):
                        placed = row.placed()
                        test = _csv_test(row) if file.suffix in (".csv", ".tsv") else dict(row.values)
                        yield from self._test(test, placed, (), usual, where=row.where)
        except UsageError as error:
            self.notes.problem(key, str(error))

    def _test(
        self, test: Any, placed: PlacedYaml, key: Key, usual: Usual, where: str | None = None
    ) -> Iterator[PromptCase]:
        """Yield the cases of a test: one for each combination of variables that are lists."""
        notes = Notes(placed, self.notes.problems, self.notes.warnings)
        if not isinstance(test, dict):
            notes.problem(key, "a test has to be an object, with `vars` and `assert`")
            return
        whole = self._more_usual(test, key, usual, notes)
        values = {name: self._value(value, notes, (*key, "vars", name)) for name, value in whole.vars.items()}
        lists = {name: value for name, value in values.items() if isinstance(value, list)}
        place = where or placed.problem(key, "").removesuffix(": ")
        combinations = prod(map(len, lists.values()))
        if combinations > _MAX_COMBINATIONS:
            notes.problem(
                (*key, "vars"), f"its lists have {combinations:,} combinations: at most {_MAX_COMBINATIONS:,}"
            )
            return
        for chosen in product(*lists.values()):
            variables = {**values, **dict(zip(lists, chosen, strict=True))}
            case = self._case(whole, variables, notes, key, place)
            if case is not None:
                named = replace(case, name=str(test["description"]) if test.get("description") else None)
                yield named if combinations == 1 else _unnamed(named)

    def _case(self, test: Usual, variables: dict[str, Any], notes: Notes, key: Key, where: str) -> PromptCase | None:
        threshold = test.threshold
        if threshold is not None and (not isinstance(threshold, int | float) or not 0 <= threshold <= 1):
            notes.problem((*key, "threshold"), f"{threshold!r}: has to be a number from 0 to 1")
            threshold = None
        scorers = self.assertions.scorers(test.asserted, variables, test.judge, where, mean=threshold is not None)
        if scorers is None:
            return None
        return PromptCase(
            where=where,
            variables=variables,
            scorers=scorers,
            threshold=threshold,
            tags={str(name): str(value) for name, value in test.metadata.items() if _is_plain(value)},
        )

    def _value(self, value: Any, notes: Notes, key: Key) -> Any:
        path = path_in(value) if isinstance(value, str) else None
        if path is None:
            return value
        if Path(path).suffix in _CODE:
            notes.problem(key, f"{path} {_NOT_RUN}: write the value out")
            return ""
        try:
            self.sources.append(file := self.folder / path)
            return read_text(file).removesuffix("\n")
        except UsageError as error:
            notes.problem(key, str(error))
            return ""


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
    asserted = [value for name, value in own.items() if re.fullmatch(r"__expected\d*", name)]
    if asserted:
        test["assert"] = [csv_assertion(str(value)) for value in asserted]
    for name, value in own.items():
        if name == "__description":
            test["description"] = value
        elif name == "__threshold":
            test["threshold"] = number_in(str(value))
        elif not re.fullmatch(r"__expected\d*", name):
            test[name] = value  # named as not understood
    return test
