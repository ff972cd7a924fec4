"""Turn the assertions of promptfoo into scorers, and its providers into subjects.

Assertions and providers that run code or have no equivalent here are reported.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from bakeoff._kernel.text import in_our_words
from bakeoff._kernel.yaml import Key
from bakeoff.doors.eval.config import printable
from bakeoff.doors.eval.sources import number_in
from bakeoff.errors import UsageError
from bakeoff.models.prompt_templates import PromptTemplate, TemplateProblem
from bakeoff.models.providers import known_providers, parse_model_name
from bakeoff.plan import ScorerSpec, SubjectSpec, check_options
from bakeoff.protocols import Scorer
from bakeoff.scorers.checks import CONDITIONS as CHECKS
from bakeoff.scorers.checks import Check
from bakeoff.scorers.judge import USUAL_CHOICES
from bakeoff.scorers.registry import scorer_kinds

if TYPE_CHECKING:
    from bakeoff.doors.eval.promptfoo import Notes


CONDITIONS = frozenset(CHECKS) - {"max-words", "ends-with", "not-ends-with"}
"""The types of assertions that `checks` also has, with the same meaning."""

_LISTS = ("contains-any", "contains-all", "icontains-any", "icontains-all")
_MEASURES = {"cost": "max_usd", "latency": "max_ms"}
_OF_AN_ASSERTION = ("type", "value", "threshold", "weight", "provider", "assert")
_CSV = re.compile(r"(?P<type>[a-z-]+)(?:\((?P<threshold>[0-9.]+)\))?:\s*(?P<value>.*)", re.DOTALL)
_IN_CSV = CONDITIONS | _MEASURES.keys() | {"llm-rubric", "similar", "javascript", "python", "factuality", "fn", "eval"}


def csv_assertion(text: str) -> dict[str, Any]:
    """Return the assertion in a cell of promptfoo's column `__expected`."""
    if text in ("is-json", "contains-json"):
        return {"type": text}
    found = _CSV.fullmatch(text)
    if found is None or (found["type"] not in _IN_CSV and found["type"] != "grade"):
        return {"type": "equals", "value": text}
    kind = "llm-rubric" if found["type"] == "grade" else found["type"]
    value: Any = found["value"]
    if kind.removeprefix("not-") in _LISTS:
        value = [part.strip() for part in value.split(",")]
    limit = {"threshold": number_in(found["threshold"])} if found["threshold"] else {}
    if kind in _MEASURES:
        return {"type": kind, "threshold": number_in(value)}
    return {"type": kind, "value": value, **limit}


class Assertions:
    """A builder of the scorers of cases, which builds equal scorers only once."""

    def __init__(self, notes: "Notes") -> None:
        self.built: dict[str, Scorer] = {}
        self._notes = notes

    def scorers(
        self,
        asserted: "Sequence[tuple[Key, Any, Notes]]",
        variables: dict[str, Any],
        judge: Any,
        where: str,
        *,
        mean: bool,
    ) -> tuple[ScorerSpec, ...] | None:
        """Return the scorers of a case, or None to leave it out. Without assertions, any answer passes.

        With `mean`, the test has a threshold for the mean of all its assertions.
        """
        made: list[tuple[Any, dict[str, Any] | ScorerSpec]] = []  # with their weights
        for key, given, notes in asserted:
            for place, each in _flattened(key, given, notes):
                scorer = self._scorer(each, place, notes, variables, judge, mean=mean)
                if scorer is not None:
                    made.append((each.get("weight", 1), scorer))
        checks = [each for _, each in made if isinstance(each, dict)]
        others = [each for _, each in made if isinstance(each, ScorerSpec)]
        if asserted and not made:
            self._notes.warnings.append(f"{where}: none of its assertions is left: the test is left out")
            return None
        if mean and others and any(weight != made[0][0] for weight, _ in made):
            self._notes.warnings.append(
                f"{where}: `threshold` with different weights is understood only for conditions on the text: the test "
                "is left out"
            )
            return None
        # With a threshold, each assertion is a separate score, so that all of them count for the mean.
        parts = [[check] for check in checks] if mean and others else [checks] if checks else []
        if not made:
            parts = [[{"type": "not-equals", "value": ""}]]
        conditions = [ScorerSpec(kind="checks", options={"checks": [*part]}) for part in parts]
        specs = _numbered([*conditions, *others])
        for spec in specs:
            if spec.digest not in self.built:
                self.built[spec.digest] = scorer_kinds()[spec.kind].build(spec)
        return specs

    def _scorer(
        self, given: Any, key: Key, notes: "Notes", variables: dict[str, Any], judge: Any, *, mean: bool
    ) -> dict[str, Any] | ScorerSpec | None:
        """Return the condition or scorer for an assertion; None if the assertion is not understood."""
        if not isinstance(given, dict) or not isinstance(given.get("type"), str):
            notes.problem(key, "an assertion has to be an object with a `type`")
            return None
        notes.unused(key, given, _OF_AN_ASSERTION)
        kind = given["type"]
        try:
            value = _filled(given.get("value"), variables)
            if kind in CONDITIONS:
                if "threshold" in given and kind != "levenshtein":
                    notes.warn((*key, "threshold"), f"has no meaning for {kind!r}, and is not used")
                return _condition(kind, value, given)
            if kind in _MEASURES:
                return self._checked(kind, {_MEASURES[kind]: given.get("threshold")}, given, key, notes)
            if kind == "llm-rubric":
                return self._judge(value, given.get("provider") or judge, given, key, notes, mean=mean)
        except ValidationError as error:
            notes.problem(key, in_our_words(error.errors(include_url=False)[0]))
            return None
        except (UsageError, TemplateProblem) as error:
            notes.problem(key, str(error))
            return None
        notes.warn((*key, "type"), f"{kind!r} is not supported: the assertion is left out")
        return None

    def _judge(
        self, value: Any, provider: Any, given: dict[str, Any], key: Key, notes: "Notes", *, mean: bool
    ) -> ScorerSpec | None:
        model = model_name(provider) if isinstance(provider, str) else None
        if model is None:
            why = "names no model here: write `provider: openai:…` beside it" if provider is None else "names no model"
            notes.warn((*key, "type"), f"'llm-rubric' {why}; the assertion is left out")
            return None
        options: dict[str, Any] = {"criteria": str(value), "model": model}
        enough = given.get("threshold")
        if enough is not None and (not isinstance(enough, int | float) or not 0 <= enough <= 1):
            raise UsageError(f"threshold: {enough!r}: has to be a number from 0 to 1")
        if enough is not None and not mean:  # otherwise the threshold of the test decides
            options["choices"] = {text: float(degree >= enough) for text, degree in USUAL_CHOICES.items()}
        return self._checked("judge", options, given, key, notes)

    def _checked(
        self, kind: str, options: dict[str, Any], given: dict[str, Any], key: Key, notes: "Notes"
    ) -> ScorerSpec | None:
        if given.get("weight", 1) != 1:
            notes.warn(
                (*key, "weight"), f"counts only among conditions on the text: {given['type']!r} has the weight 1"
            )
        spec = ScorerSpec(kind=kind, options=options)
        scorer_kinds()[kind].build(spec)  # raises for a wrong option
        return spec


def _numbered(specs: list[ScorerSpec]) -> tuple[ScorerSpec, ...]:
    """Return scorers under different names, by numbering those of the same kind."""
    kinds = [spec.kind for spec in specs]
    before = [kinds[:at].count(kind) for at, kind in enumerate(kinds)]
    names = [f"{kind} {number + 1}" if number else None for kind, number in zip(kinds, before, strict=True)]
    return tuple(spec.model_copy(update={"name": name}) for spec, name in zip(specs, names, strict=True))


def _flattened(key: Key, given: Any, notes: "Notes") -> "list[tuple[Key, Any]]":
    """Return the assertions of a set, or a single assertion as a list."""
    if not isinstance(given, dict) or given.get("type") != "assert-set":
        return [(key, given)]
    inner = given.get("assert")
    if "threshold" in given or given.get("weight", 1) != 1 or not isinstance(inner, list):
        notes.warn((*key, "type"), "an 'assert-set' with a threshold or weight is not supported: it is left out")
        return []
    return [((*key, "assert", at), each) for at, each in enumerate(inner)]


def _condition(kind: str, value: Any, given: dict[str, Any]) -> dict[str, Any]:
    if kind.removeprefix("not-") in _LISTS and isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    check: dict[str, Any] = {"type": kind, "value": value, "weight": given.get("weight", 1)}
    if kind == "levenshtein" and given.get("threshold") is not None:
        check["threshold"] = given["threshold"]
    return Check.model_validate(check).model_dump(mode="json", exclude_defaults=True)


def _filled(value: Any, variables: dict[str, Any]) -> Any:
    """Fill the templates in a value and in all values inside it."""
    if isinstance(value, str):
        if value.startswith("file:"):
            raise UsageError(f"{value!r}: assertions in files are not understood: write it out")
        return PromptTemplate.of(value).fill(variables)
    if isinstance(value, list):
        return [_filled(each, variables) for each in value]
    if isinstance(value, dict):
        return {name: _filled(each, variables) for name, each in value.items()}
    return value


_SETTINGS = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "seed": "seed",
    "apiBaseUrl": "base_url",
    "systemPrompt": "system",
}
_APIS = ("chat", "messages", "responses", "completion")  # between the provider and the model
_NO_CHAT = ("embedding", "embeddings", "image", "realtime", "assistant", "moderation", "speech")
_PROGRAMS = ("exec", "python", "file", "golang", "ruby", "script")


def model_name(text: str) -> str | None:
    """Return our name of a promptfoo model, or None if we do not have its provider."""
    provider, _, rest = text.partition(":")
    api, colon, model = rest.partition(":")
    if colon and api in _APIS:
        rest = model
    if not rest or api in _NO_CHAT or provider not in known_providers():
        return None
    return f"{provider}:{rest}"


def echo(prompt: str) -> str:
    """Answer with the prompt, as the provider `echo` does."""
    return prompt


def provider_subject(item: Any, key: Key, notes: "Notes") -> SubjectSpec | None:
    """Return the subject of a provider, or None after reporting that it is not understood."""
    if isinstance(item, dict) and "id" not in item and len(item) == 1:  # `openai:gpt-4o: {config: …}`
        name, inner = next(iter(item.items()))
        item = {"id": name, **(inner if isinstance(inner, dict) else {})}
    given: dict[str, Any] = item if isinstance(item, dict) else {"id": item}
    text = given.get("id")
    if not isinstance(text, str):
        notes.problem(key, "a provider has to be a text such as `openai:gpt-5`, or an object with an `id`")
        return None
    notes.unused(key, item, ("id", "label", "config"))
    label = printable(str(given.get("label") or text)) or "provider"
    if text == "echo":  # answers with the prompt
        return SubjectSpec(kind="function", name=label, options={"target": f"{__name__}:echo"})
    if text.partition(":")[0] in _PROGRAMS or text.startswith(("http:", "https:", "./", "/")):
        words = "runs a program or an address of its own, which is left out: put a `command` or `function` into"
        notes.warn(key, f"{text!r} {words} the `subjects` of a bakeoff.yaml")
        return None
    model = model_name(text)
    if model is None:
        notes.warn(key, f"{text!r} is not a model that is known here: it is left out")
        return None
    return _model(model, label, given.get("config"), key, notes)


def _model(model: str, label: str, config: Any, key: Key, notes: "Notes") -> SubjectSpec | None:
    settings = config if isinstance(config, dict) else {}
    notes.unused((*key, "config"), settings, tuple(_SETTINGS))
    given = {ours: settings.get(theirs) for theirs, ours in _SETTINGS.items() if settings.get(theirs) is not None}
    options: dict[str, Any] = {"model": model, **given}
    if (base := options.pop("base_url", None)) is not None:
        options["providers"] = {parse_model_name(model).provider: {"base_url": base}}
    from bakeoff.subjects.model import ModelOptions  # imports SDKs that take a second to load

    try:
        check_options(options, ModelOptions, label)
    except UsageError as error:
        notes.problem((*key, "config"), str(error))
        return None
    return SubjectSpec(kind="model", name=label, options=options)
