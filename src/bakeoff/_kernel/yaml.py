"""Read YAML files as JSON values with line numbers, so that an error can name its line.

Scalars follow YAML 1.2: `yes`, `on` and `2024-01-01` are strings. Files hold only plain data.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import AliasChoices, BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from bakeoff._kernel.files import read_text
from bakeoff._kernel.text import in_our_words
from bakeoff.errors import PlanError

_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_EXPLAINED = 100_000  # longest text that is parsed again, slowly, for a better error


Model = TypeVar("Model", bound=BaseModel)
Key = tuple[str | int, ...]
"""The path of keys and list indexes that leads to a value."""

MAX_FILE_SIZE = 16 * 1024 * 1024
_MAX_VALUES = 200_000  # aliases could make large data of a small file
_MAX_DEPTH = 100

_WORDS = re.compile(r"(?P<null>~|null|Null|NULL|)|(?P<true>true|True|TRUE)|(?P<false>false|False|FALSE)")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAX_DIGITS = 400
# The types that pyyaml gives to plain scalars by default.
_PLAIN_TAGS = {"str", "int", "float", "bool", "null", "timestamp", "value", "merge"}


class ConfigError(PlanError):
    """All problems of a configuration, each with its place. Nothing has run yet."""


@dataclass(frozen=True, slots=True)
class PlacedYaml:
    """The value of a file, and the line on which each part of it begins."""

    file: Path
    value: JsonValue
    lines: dict[Key, int]
    at: Key = ()  # the key of this value inside the file

    def part(self, key: Key, value: JsonValue) -> "PlacedYaml":
        """Return one value of the file. `value` is its full form if the file has a short form."""
        lines = {place[len(key) :]: line for place, line in self.lines.items() if place[: len(key)] == key}
        return replace(self, value=value, lines=lines, at=(*self.at, *key))

    def where(self, key: Key) -> str:
        """Return `file:line` of the value, or of the nearest enclosing value in the file."""
        while key and key not in self.lines:
            key = key[:-1]
        return f"{self.file}:{self.lines.get(key, 1)}"

    def problem(self, key: Key, what: str) -> str:
        """Return a message with the file, line and key, then the problem."""
        whole = (*self.at, *key)
        named = f"{written(whole)}: " if whole else ""
        return f"{self.where(key)}: {named}{what}"

    def read(self, model: type[Model], examples: Mapping[str, str] | None = None, context: str | None = None) -> Model:
        """Return the value as the given model, or raise one error with all problems.

        `examples` maps names of keys to correct values; `context` is passed to validators.
        """
        try:
            return model.model_validate(self.value, context=context)
        except ValidationError as error:
            items = error.errors(include_url=False)
            told = [item for item in items if not _is_too_short_by_mistake(item, items)]
            raise ConfigError([self._unfit(item, model, examples or {}) for item in told]) from error

    def _unfit(self, item: ErrorDetails, model: type[BaseModel], examples: Mapping[str, str]) -> str:
        key = self.known(item["loc"])
        if item["type"] == "missing":
            key = (*key, item["loc"][-1])
            return self.problem(key, f"{in_our_words(item)}{_example(key, examples)}")
        if item["type"] == "extra_forbidden":
            if key[-1:] != item["loc"][-1:]:  # the line of the key itself is not known
                key = (*key, item["loc"][-1])
            return self.problem(key, f"{in_our_words(item)}{_near(key, model)}")
        return self.problem(key, f"{in_our_words(item)}{_example(key, examples, item['type'])}")

    def known(self, place: Key) -> Key:
        """Return a key without the parts that are not in the file.

        Such parts are union members, added by pydantic, and list items with a short form.
        """
        key: Key = ()
        for part in place:
            key = (*key, part) if (*key, part) in self.lines else key
        return key


def _is_too_short_by_mistake(item: ErrorDetails, items: Sequence[ErrorDetails]) -> bool:
    """Return True if pydantic calls a list too short only because some items are invalid."""
    place = item["loc"]
    if item["type"] != "too_short":
        return False
    wrong = any(other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in items)
    return wrong and len(item["input"]) >= item["ctx"]["min_length"]


def _example(key: Key, examples: Mapping[str, str], kind: str = "missing") -> str:
    """Return an example for a value that is missing, empty, too large or of the wrong type."""
    told = kind == "missing" or kind.endswith(("_type", "too_short", "less_than_equal"))
    return f": {examples[str(key[-1])]}" if told and key and str(key[-1]) in examples else ""


def _near(key: Key, model: type[BaseModel]) -> str:
    """Return a hint with the most similar key, or else with all allowed keys."""
    owner: type[BaseModel] | None = model
    for part in key[:-1]:
        if isinstance(part, int) or owner is None:
            continue  # items and values have the type that was already found
        fields = {name: info for field, info in owner.model_fields.items() for name in _spellings(field, info)}
        owner = _inner_model(fields[part].annotation) if part in fields else owner
    known = [name for field, info in owner.model_fields.items() for name in _spellings(field, info)] if owner else []
    near = get_close_matches(str(key[-1]), known, n=1)
    if not near:
        folded = {name.casefold().replace("_", ""): name for name in known}
        near = [name for bare, name in folded.items() if bare == re.sub("[_-]", "", str(key[-1])).casefold()]
    if near:
        return f": did you mean {near[0]!r}?"
    return f": there are {', '.join(known)}" if known else ""


def _spellings(field: str, info: FieldInfo) -> list[str]:
    alias = info.validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [alias] if isinstance(alias, str) else [field]


def _inner_model(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_inner_model(argument) for argument in get_args(annotation))
    return next((model for model in inner if model is not None), None)


def written(key: Key) -> str:
    """Format a path as `testCases[2].prompt`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".")


def read_yaml(file: Path) -> PlacedYaml:
    """Read one file, or a pipe such as `<(command)`. Syntax errors name the line."""
    return parse_yaml(read_text(file, MAX_FILE_SIZE, pipes=True), file)


def parse_yaml(text: str, file: Path, form: str = "YAML") -> PlacedYaml:
    """Return the value of a text. `form` names the language in errors, since JSON is YAML too."""
    try:
        try:  # the parser in C is ten times as fast, and the one in Python explains errors better
            node = _compose(text, file, _FAST_LOADER)
        except yaml.YAMLError:
            if len(text) > _MAX_EXPLAINED:
                raise
            node = _compose(text, file, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        said = error.problem or error.context or "the reason is unknown"
        advice = next((f": {advice}" for words, advice in _ADVICE.items() if words in said), "")
        raise ConfigError([f"{file}:{line}: this is not {form}: {said}{advice}"]) from error
    except yaml.YAMLError as error:
        raise ConfigError([f"{file}:1: this is not {form}: {str(error).splitlines()[0]}"]) from error
    builder = _Builder(file)
    value = builder.value(node, ()) if node is not None else None
    return PlacedYaml(file, value, builder.lines)


def _compose(text: str, file: Path, loader: Any) -> yaml.Node | None:
    """Return the tree of a text, or None if it is empty. Raise ConfigError if it is too large.

    The limits are checked first, because the parser in C recurses for each level.
    """
    made = depth = 0
    for event in yaml.parse(text, Loader=loader):
        line = event.start_mark.line + 1
        made += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if made > 2 * _MAX_VALUES:  # keys are nodes too
            raise ConfigError([f"{file}:{line}: this has more than {_MAX_VALUES:,} values"])
        if depth > _MAX_DEPTH + 1:
            raise ConfigError([f"{file}:{line}: this is nested more than {_MAX_DEPTH} levels deep"])
    composed: yaml.Node | None = yaml.compose(text, Loader=loader)
    return composed


_ADVICE = {
    "'\\t'": "a tab stands here, indent with spaces",
    "mapping values are not allowed": "put a text that has `: ` in it in quotes, and indent keys of one object alike",
    "found another document": "keep one of the documents that `---` parts",
    "expected <block end>": "lines of one list or object have to begin in the same column",
    "while scanning a quoted scalar": "close the quotes",
    "unexpected end of stream": "close the quotes",
    "cannot start any token": "put the text in quotes",
    "could not find expected ':'": "write a key as `key: value`",
}


class _Builder:
    """Turns nodes into values, and notes the line of each value."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[Key, int] = {}
        self._made = 0

    def value(self, node: yaml.Node, key: Key) -> JsonValue:
        """Return the value of a node with all inner nodes. Raise ConfigError if it is too large."""
        line = node.start_mark.line + 1
        self._made += 1
        self.lines.setdefault(key, line)
        if len(key) > _MAX_DEPTH:
            raise self._error(line, key, f"this is nested more than {_MAX_DEPTH} levels deep")
        if self._made > _MAX_VALUES:
            raise self._error(line, key, f"this has more than {_MAX_VALUES:,} values, aliases counted")
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, key))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*key, place)) for place, item in enumerate(node.value)]
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _PLAIN_TAGS:
            raise self._error(line, key, f"the tag {node.tag!r} has no meaning here: remove it")
        text: str = node.value
        quoted = isinstance(node, yaml.ScalarNode) and node.style in ("'", '"', "|", ">")
        return text if quoted else self._plain(text, line, key)

    def _pairs(self, node: yaml.MappingNode, key: Key) -> Iterator[tuple[str, JsonValue]]:
        seen: dict[str, int] = {}
        for name_node, value_node in node.value:
            line, name = name_node.start_mark.line + 1, name_node.value
            if not isinstance(name_node, yaml.ScalarNode):
                raise self._error(line, key, "a key must be a text")
            if name == "<<":
                raise self._error(line, key, "`<<` merges are not supported: write the keys out, or use an alias")
            if name in seen:
                raise self._error(line, (*key, name), f"is here twice, first on line {seen[name]}: remove one")
            seen[name] = self.lines[(*key, name)] = line
            yield name, self.value(value_node, (*key, name))

    def _plain(self, text: str, line: int, key: Key) -> JsonValue:
        """Return the value of an unquoted scalar, by the rules of YAML 1.2."""
        if word := _WORDS.fullmatch(text):
            return None if word["null"] is not None else word["true"] is not None
        if len(text) > _MAX_DIGITS:
            return text
        if _INTEGER.fullmatch(text):
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                raise self._error(line, key, f"{text} is too large for a number")
            return number
        return text

    def _error(self, line: int, key: Key, what: str) -> ConfigError:
        named = f"{written(key)}: " if key else ""
        return ConfigError([f"{self.file}:{line}: {named}{what}"])


def gathered(problems: Sequence[str]) -> None:
    """Raise all problems as one error; do nothing if there are none."""
    if problems:
        raise ConfigError(problems)
