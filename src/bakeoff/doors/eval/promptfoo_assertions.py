"""Turn the assertions of promptfoo into scorers. What has no equivalent here leaves its whole test out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from bakeoff._kernel.text import free_name, in_our_words
from bakeoff._kernel.yaml import Key, parse_yaml, read_yaml
from bakeoff.doors.data_files import read_text
from bakeoff.doors.eval.config import path_in, printable
from bakeoff.doors.eval.promptfoo_providers import LeftOut, code_file, did_you_mean, model_name, steps_of
from bakeoff.doors.eval.sources import number_in
from bakeoff.errors import UsageError
from bakeoff.models.prompt_templates import fill_all
from bakeoff.plan import ScorerSpec
from bakeoff.protocols import Scorer
from bakeoff.scorers.checks import CONDITIONS as CHECKS
from bakeoff.scorers.checks import Check
from bakeoff.scorers.registry import scorer_kinds
from bakeoff.toolchains.user_code import LANGUAGES, split_path

if TYPE_CHECKING:
    from bakeoff.doors.eval.promptfoo import Notes

CONDITIONS = frozenset(kind for kind in CHECKS if kind.removeprefix("not-") != "max-words")
"""The types of assertions that `checks` also has, with the same meaning."""

_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_EXACT = ("equals", "starts-with", "ends-with")
_OF_AN_ASSERTION = ("type", "value", "threshold", "weight", "provider", "metric", "transform", "config", "assert")
_CLOSED = {"The answer meets the criterion.": 1.0, "The answer does not meet the criterion.": 0.0}


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Our scorer for a type of assertion: its kind, and the options that stand for `value` and `threshold`."""

    kind: str
    value: str = ""
    limit: str = ""
    enough: float | None = None  # the usual threshold
    judge: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    binary: bool = False  # its threshold does not only say what passes, but what it scores
    needs: str = ""  # a variable


EQUIVALENTS = {
    "javascript": Equivalent("javascript", "code", "threshold"),
    "python": Equivalent("python", "code", "threshold"),
    "cost": Equivalent("cost", limit="max_usd"),
    "latency": Equivalent("latency", limit="max_ms"),
    **dict.fromkeys(("similar", "similar:cosine"), Equivalent("semantic", "expected", enough=0.75)),
    "llm-rubric": Equivalent("judge", "criteria", judge=True),
    "g-eval": Equivalent("judge", "criteria", enough=0.7, judge=True),
    "model-graded-closedqa": Equivalent("judge", "criteria", judge=True, options=(("choices", _CLOSED),)),
    **dict.fromkeys(
        ("factuality", "model-graded-factuality"),
        Equivalent("factuality", "expected", enough=0.4, judge=True, binary=True),
    ),
    "answer-relevance": Equivalent("answer_relevance", enough=0, judge=True),
    "context-faithfulness": Equivalent("faithfulness", enough=0, judge=True, needs="context"),
    "context-recall": Equivalent("context_recall", "expected", enough=0, judge=True, needs="context"),
    "context-relevance": Equivalent("context_relevance", enough=0, judge=True, needs="context"),
    "is-refusal": Equivalent("refusal", judge=True),
}

_CSV = re.compile(r"(?P<type>[a-z:-]+)(?:\((?P<threshold>[0-9.]+)\))?:\s*(?P<value>.*)", re.DOTALL)
_IN_CSV = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}
_OTHERS = (
    *("is-xml", "contains-xml", "is-sql", "contains-sql", "is-html", "contains-html", "rouge-n"),
    *("bleu", "gleu", "meteor", "word-count", "perplexity"),
    *("perplexity-score", "classifier", "moderation", "guardrails", "webhook", "ruby", "pi"),
    *("search-rubric", "select-best", "max-score"),
    *("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call", "tool-call-f1"),
)
"""Types of promptfoo that have no equivalent here. Elsewhere an unknown type is a typing error."""


def csv_assertion(text: str) -> dict[str, Any]:
    """Return the assertion in a cell of promptfoo's column `__expected`."""
    if text.removeprefix("not-") in ("is-json", "contains-json", "is-refusal", *_OTHERS):
        return {"type": text}
    if text.startswith("file://"):
        return {"type": "python" if split_path(text)[0].endswith(".py") else "javascript", "value": text}
    found = _CSV.fullmatch(text)
    kind = _IN_CSV.get(found["type"], found["type"]) if found else ""
    if found is None or kind.removeprefix("not-") not in {*CONDITIONS, *EQUIVALENTS, *_OTHERS}:
        return {"type": "equals", "value": text}
    value: Any = found["value"]
    limit = {"threshold": number_in(found["threshold"])} if found["threshold"] else {}
    if EQUIVALENTS.get(kind, Equivalent("")).limit.startswith("max_"):
        return {"type": kind, "threshold": number_in(value)}
    return {"type": kind, "value": value, **limit}


@dataclass(frozen=True, slots=True)
class AssertionRules:
    """The settings of a test that hold for all its assertions."""

    variables: Mapping[str, Any]
    options: Mapping[str, Any]
    mean: bool  # its threshold is for the mean of all scores


class Assertions:
    """A builder of the scorers of cases, which builds equal scorers only once."""

    def __init__(self, notes: "Notes", judge: str | None, models: Sequence[str]) -> None:
        self.built: dict[str, Scorer] = {}
        self._notes, self._judge, self._models = notes, judge, models

    def scorers(self, asserted: "Sequence[tuple[Key, Any, Notes]]", rules: AssertionRules) -> tuple[ScorerSpec, ...]:
        """Return the scorers of a case; without assertions, one that any answer passes. Raise LeftOut."""
        specs = [spec for key, given, notes in asserted for spec in self._of(given, key, notes, rules)]
        if not specs:
            specs = [
                ScorerSpec(kind="checks", name="answer", options={"checks": [{"type": "not-equals", "value": ""}]})
            ]
        taken: set[str] = set()
        named: list[ScorerSpec] = []
        for spec in specs:
            taken.add(name := free_name(spec.name or spec.kind, taken))
            named.append(spec.model_copy(update={"name": name}))
            if named[-1].digest not in self.built:
                self.built[named[-1].digest] = scorer_kinds()[spec.kind].build(named[-1])
        return tuple(named)

    def _of(self, given: Any, key: Key, notes: "Notes", rules: AssertionRules) -> Iterator[ScorerSpec]:
        """Yield the scorers of an assertion or a set."""
        if not isinstance(given, dict) or not isinstance(given.get("type"), str):
            notes.problem(key, "an assertion has to be an object with a `type`")
            return
        if unknown := [name for name in given if name not in _OF_AN_ASSERTION]:
            raise LeftOut((*key, unknown[0]), "is not supported")
        try:
            if given["type"] == "assert-set":
                yield from self._of_set(given, key, notes, rules)
            else:
                yield (spec := self._scorer(given, key, notes, rules))
                self._notes.mapped(f"assertion `{given['type']}`", f"scorer `{spec.kind}`")
        except ValidationError as error:
            raise LeftOut(key, in_our_words(error.errors(include_url=False)[0])) from error
        except UsageError as error:
            raise LeftOut(key, str(error)) from error

    def _of_set(self, given: dict[str, Any], key: Key, notes: "Notes", rules: AssertionRules) -> Iterator[ScorerSpec]:
        inner, threshold, weight = given.get("assert"), given.get("threshold"), _weight(given)
        if not isinstance(inner, list) or not inner:
            raise LeftOut((*key, "assert"), "has to be a list of assertions")
        specs = [spec for at, each in enumerate(inner) for spec in self._of(each, (*key, "assert", at), notes, rules)]
        total = sum(spec.weight for spec in specs) or 1.0
        if threshold is None or rules.mean:  # the set's score is the weighted mean of its assertions
            yield from (spec.model_copy(update={"weight": spec.weight * weight / total}) for spec in specs)
            return
        if any(spec.kind != "checks" or spec.transform or spec.negated or spec.threshold is not None for spec in specs):
            why = "a set with a threshold is supported for conditions on the text, or as the only one of its test"
            raise LeftOut((*key, "threshold"), why)
        checks = [{**spec.options["checks"][0], "weight": spec.weight} for spec in specs]  # type: ignore[index,dict-item]
        name = _name(given, rules)
        yield ScorerSpec(kind="checks", name=name, options={"checks": checks}, threshold=threshold, weight=weight)

    def _scorer(self, given: dict[str, Any], key: Key, notes: "Notes", rules: AssertionRules) -> ScorerSpec:
        kind, folder = given["type"], notes.placed.file.parent
        negated, plain = kind.startswith("not-"), kind.removeprefix("not-")
        transform = steps_of(rules.options.get("transform") or rules.options.get("postprocess"), key, folder)
        transform += steps_of(given.get("transform"), (*key, "transform"), folder)
        more: dict[str, Any] = {"name": _name(given, rules), "weight": _weight(given), "transform": transform}
        if kind in CONDITIONS or plain == "levenshtein":
            found = "" if kind in CONDITIONS else plain
            check = _condition(found or kind, _value(given, key, folder, rules), given)
            return ScorerSpec(kind="checks", options={"checks": [check]}, negated=bool(found), **more)
        known = EQUIVALENTS.get(plain)
        if known is None:
            near = did_you_mean(plain, [*EQUIVALENTS, *CONDITIONS])
            raise LeftOut((*key, "type"), f"{kind!r} is not supported{near}")
        if known.needs and not rules.variables.get(known.needs):
            raise LeftOut((*key, "type"), f"{kind!r} needs a variable `{known.needs}`")
        options = {**dict(known.options), **self._options(known, given, key, folder, rules)}
        enough = given.get("threshold", known.enough)
        if enough is not None and (not isinstance(enough, int | float) or isinstance(enough, bool)):
            raise LeftOut((*key, "threshold"), f"{enough!r}: has to be a number")
        if known.limit:
            options |= {} if enough is None else {known.limit: enough}
            options |= {"graded": rules.mean} if known.limit == "threshold" and rules.mean else {}
            enough = None
        enough = None if rules.mean and not known.binary else enough
        return ScorerSpec(kind=known.kind, options=options, threshold=enough, negated=negated, **more)

    def _options(
        self, known: Equivalent, given: dict[str, Any], key: Key, folder: Path, rules: AssertionRules
    ) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if known.kind in ("javascript", "python"):
            options |= {"config": given["config"]} if given.get("config") is not None else {}
            value = given.get("value")
            if isinstance(value, str) and path_in(value) is not None:
                code, language = code_file(value, key, folder)
                if language != known.kind:
                    raise LeftOut((*key, "value"), f"{code!r} is not {known.kind}")
                return {**options, "code": code}
        if known.value:
            value = _value(given, key, folder, rules)
            if value is None or isinstance(value, list):
                raise LeftOut((*key, "value"), "has to be a text")
            options[known.value] = value if isinstance(value, str) else fill_all("{{ v | dump }}", {"v": value})
        if known.judge:
            for name in ("rubricPrompt", "factuality"):
                if rules.options.get(name):
                    raise LeftOut(key, f"`options.{name}` is not supported")
            options |= self._judged_by(given.get("provider"), key, rules)
        if known.kind == "semantic":
            model = _provider_id(given.get("provider") or rules.options.get("provider"), "embedding") or _EMBEDDING
            options["model"] = re.sub(r":embeddings?:", ":", model)
        return options

    def _judged_by(self, own: Any, key: Key, rules: AssertionRules) -> dict[str, Any]:
        """Return the model that judges: the assertion's, `--judge`, the test's, or the first model that is compared."""
        given = own or self._judge or rules.options.get("provider")
        if given is None and not self._models:
            raise LeftOut((*key, "type"), "no model is named that judges: write --judge MODEL")
        text = _provider_id(given, "text")
        model = (model_name(text) if text else None) if given is not None else self._models[0]
        if model is None:
            raise LeftOut((*key, "type"), f"{text or given!r} is not a model that is known here: write --judge MODEL")
        if given is None:
            told = f"{model} judges, because it is the first provider and no other is named: write --judge MODEL"
            self._notes.warnings.append(f"{self._notes.placed.file}: {told}")
        if isinstance(given, dict) and given.get("config"):
            self._notes.warnings.append(f"{self._notes.placed.file}: the `config` of the judge {text} is not used")
        return {"model": model, **({"same_model": True} if model in self._models else {})}


_EMBEDDING = "openai:text-embedding-3-large"


def _name(given: Mapping[str, Any], rules: AssertionRules) -> str:
    metric = given.get("metric")
    return printable(str(fill_all(metric, rules.variables) if metric else given["type"])) or "assertion"


def _weight(given: Mapping[str, Any]) -> float:
    weight = given.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
        raise UsageError(f"weight: {weight!r}: has to be a number from 0")
    return float(weight)


def _provider_id(given: Any, part: str) -> str | None:
    """Return the id of a provider, which may be an object, or one of several for texts and embeddings."""
    if isinstance(given, dict):
        given = given.get(part) or given.get("id")
        return _provider_id(given, part) if isinstance(given, dict) else given
    return given if isinstance(given, str) and (part == "text" or ":embedding" in given) else None


def _condition(kind: str, value: Any, given: dict[str, Any]) -> dict[str, Any]:
    plain = kind.removeprefix("not-")
    if plain == "equals" and isinstance(value, dict | list):
        kind, value = kind.replace("equals", "is-json"), {"const": value}
    if plain in ("is-json", "contains-json") and isinstance(value, str):
        value = parse_yaml(value, Path("schema")).value
    if plain in _LISTS and isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if plain == "regex" and isinstance(value, str):
        value = re.sub(r"\(\?<(?![=!])", "(?P<", value)
    check: dict[str, Any] = {"type": kind, "value": value, "strip": plain not in _EXACT}
    if kind == "levenshtein" and given.get("threshold") is not None:
        check["threshold"] = given["threshold"]
    return Check.model_validate(check).model_dump(mode="json", exclude_defaults=True)


def _value(given: Mapping[str, Any], key: Key, folder: Path, rules: AssertionRules) -> Any:
    """Return the value of an assertion, from its file if it names one, with its templates filled."""
    value = given.get("value")
    path = path_in(value) if isinstance(value, str) else None
    if path is None:
        return fill_all(value, rules.variables)
    if split_path(path)[1] or Path(path).suffix in LANGUAGES:
        raise LeftOut((*key, "value"), f"{path!r} is code that computes a value, which is not supported")
    file = folder / str(fill_all(path, rules.variables))
    if file.suffix in (".json", ".yaml", ".yml"):
        return read_yaml(file).value
    return fill_all(read_text(file).strip(), rules.variables)
