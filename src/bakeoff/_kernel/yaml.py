"""Read YAML files as JSON values with line numbers, so that an error can name its line.

Scalars follow YAML 1.2: `yes`, `on` and `2024-01-01` are texts. A file can only produce plain data.
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
from yaml.composer import ComposerError

from bakeoff._kernel.files import read_text
from bakeoff._kernel.text import in_our_words
from bakeoff.errors import PlanError

_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_EXPLAINED = 100_000  # characters of a text whose errors are worth a second, slower look


class TooMuch(Exception):
    """A text is nested too deeply, or has too many values."""

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        super().__init__(what)


@dataclass(slots=True)
class Node:
    """A value as it stands in the text: a scalar, or the nodes in it. In an object, keys and values alternate."""

    line: int
    tag: str | None = None
    plain: bool = False
    text: str = ""
    items: "list[Node] | None" = None
    is_object: bool = False


def compose(text: str, *, deepest: int, most: int) -> Node | None:
    """Return the tree of a text, None if it has no value. Raise YAMLError, or TooMuch beyond the limits.

    The parser in C is ten times as fast. The one in Python explains errors better.
    """
    try:
        return _Composer(deepest, most).compose(text, _FAST_LOADER)
    except yaml.YAMLError:
        if len(text) > _MAX_EXPLAINED or _FAST_LOADER is yaml.SafeLoader:
            raise
    return _Composer(deepest, most).compose(text, yaml.SafeLoader)


class _Composer:
    def __init__(self, deepest: int, most: int) -> None:
        self._deepest, self._most = deepest, most
        self._made = 0
        self._documents: list[Node] = []
        self._open: list[list[Node]] = [self._documents]  # the items of nodes that are not complete, outermost first
        self._anchors: dict[str, Node] = {}

    def compose(self, text: str, loader: Any) -> Node | None:
        """Return the tree of a text, None if it has no value."""
        events: Iterator[Any] = yaml.parse(text, Loader=loader)
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
            elif isinstance(event, yaml.NodeEvent):
                self._add(event)
            elif isinstance(event, yaml.DocumentStartEvent) and self._documents:
                raise _problem("but found another document", event)
        return self._documents[0] if self._documents else None

    def _add(self, event: Any) -> None:
        line = event.start_mark.line + 1
        self._made += 1
        if self._made > self._most:
            raise TooMuch(line, f"this has more than {self._most // 2:,} values")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _problem(f"found undefined alias {event.anchor!r}", event)
            self._open[-1].append(self._anchors[event.anchor])
            return
        node = _node_of(event, line)
        self._open[-1].append(node)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if node.items is not None:
            self._open.append(node.items)
            if len(self._open) > self._deepest + 2:
                raise TooMuch(line, f"this is nested more than {self._deepest} levels deep")


def _problem(what: str, event: Any) -> ComposerError:
    return ComposerError(None, None, what, event.start_mark)


def _node_of(event: yaml.NodeEvent, line: int) -> Node:
    if isinstance(event, yaml.ScalarEvent):
        return Node(line, event.tag, plain=event.style not in ("'", '"', "|", ">"), text=event.value)
    return Node(line, items=[], is_object=isinstance(event, yaml.MappingStartEvent))


Model = TypeVar("Model", bound=BaseModel)
Key = tuple[str | int, ...]
"""The path of keys and list indexes that leads to a value."""

MAX_FILE_SIZE = 16 * 1024 * 1024
_MAX_VALUES = 200_000  # aliases repeat values, and a small file must not become a large one
_DEEPEST = 100

_WORDS = re.compile(r"(?P<null>~|null|Null|NULL|)|(?P<true>true|True|TRUE)|(?P<false>false|False|FALSE)")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MAX_DIGITS = 400
# The types that pyyaml gives to plain scalars by default.
_PLAIN_TAGS = {"str", "int", "float", "bool", "null", "timestamp", "value"}


class ConfigError(PlanError):
    """All problems of a configuration, each with its place. Nothing has run yet."""


@dataclass(frozen=True, slots=True)
class PlacedYaml:
    """The value of a file, and the line on which each part of it begins."""

    file: Path
    value: JsonValue
    lines: dict[Key, int]
    at: Key = ()  # the key of the value, if it is part of a larger one

    def part(self, key: Key, value: JsonValue) -> "PlacedYaml":
        """Return one value of the file by itself; `value` is what it stands for, such as for a short form."""
        lines = {place[len(key) :]: line for place, line in self.lines.items() if place[: len(key)] == key}
        return replace(self, value=value, lines=lines, at=(*self.at, *key))

    def where(self, key: Key) -> str:
        """Return `file:line` of the value, or of the nearest value around it that stands in the file."""
        while key and key not in self.lines:
            key = key[:-1]
        return f"{self.file}:{self.lines.get(key, 1)}"

    def problem(self, key: Key, what: str) -> str:
        """Return a message with its place: file, line, key, then the problem."""
        whole = (*self.at, *key)
        named = f"{written(whole)}: " if whole else ""
        return f"{self.where(key)}: {named}{what}"

    def read(self, model: type[Model], examples: Mapping[str, str] | None = None, context: str | None = None) -> Model:
        """Return the value as the model declares it, or raise one error with all problems.

        `examples` are correct values by the names of keys; `context` is for validators.
        """
        try:
            return model.model_validate(self.value, context=context)
        except ValidationError as error:
            items = _told(error.errors(include_url=False))
            raise ConfigError([self._unfit(item, model, examples or {}) for item in items]) from error

    def _unfit(self, item: ErrorDetails, model: type[BaseModel], examples: Mapping[str, str]) -> str:
        key = self.known(item["loc"])
        if item["type"] == "missing":
            key = (*key, item["loc"][-1])
            return self.problem(key, f"{in_our_words(item)}{_example(key, examples)}")
        if item["type"] == "extra_forbidden":
            if key[-1:] != item["loc"][-1:]:  # its line is not known
                key = (*key, item["loc"][-1])
            return self.problem(key, f"{in_our_words(item)}{_near(key, model)}")
        return self.problem(key, f"{in_our_words(item)}{_example(key, examples, item['type'])}")

    def known(self, place: Key) -> Key:
        """Return a key without the parts that do not stand in the file.

        Such are the members of unions that pydantic adds, and the items of lists that were built from a short form.
        """
        key: Key = ()
        for part in place:
            key = (*key, part) if (*key, part) in self.lines else key
        return key


def _told(items: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Drop "too short" errors of lists, which pydantic also reports when items are invalid."""
    return [item for item in items if item["type"] != "too_short" or not _has_wrong_items(item, items)]


def _has_wrong_items(item: ErrorDetails, items: Sequence[ErrorDetails]) -> bool:
    place = item["loc"]
    wrong = any(other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in items)
    return wrong and len(item["input"]) >= item["ctx"]["min_length"]


def _example(key: Key, examples: Mapping[str, str], kind: str = "missing") -> str:
    """Return an example for a value that is missing, empty, too large or of the wrong type."""
    told = kind == "missing" or kind.endswith(("_type", "too_short", "less_than_equal"))
    return f": {examples[str(key[-1])]}" if told and key and str(key[-1]) in examples else ""


def _near(key: Key, model: type[BaseModel]) -> str:
    """Return the key that was probably meant, or else all keys that are allowed there."""
    owner = _model_at(model, key[:-1])
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


def _model_at(model: type[BaseModel], key: Key) -> type[BaseModel] | None:
    """Return the model at a key; None where its type cannot be derived."""
    found: type[BaseModel] | None = model
    for part in key:
        if isinstance(part, int) or found is None:
            continue  # items of a list and values of an object have the type that led there
        fields = {name: info for field, info in found.model_fields.items() for name in _spellings(field, info)}
        found = _inner_model(fields[part].annotation) if part in fields else found
    return found


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
    """Read one file, or a pipe such as `<(command)`. Syntax errors name their line."""
    return parse_yaml(read_text(file, MAX_FILE_SIZE, pipes=True), file)


def parse_yaml(text: str, file: Path, form: str = "YAML") -> PlacedYaml:
    """Return the value of a text. `form` names the language in errors: JSON is YAML, too."""
    try:
        node = compose(text, deepest=_DEEPEST, most=2 * _MAX_VALUES)  # keys are nodes, too
    except TooMuch as error:
        raise ConfigError([f"{file}:{error.line}: {error}"]) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError([f"{file}:{line}: this is not {form}: {_in_plain_words(error)}"]) from error
    except yaml.YAMLError as error:
        raise ConfigError([f"{file}:1: this is not {form}: {str(error).splitlines()[0]}"]) from error
    builder = _Builder(file)
    value = builder.value(node, ()) if node is not None else None
    return PlacedYaml(file, value, builder.lines)


def _in_plain_words(error: yaml.MarkedYAMLError) -> str:
    said = error.problem or error.context or "the reason is unknown"
    advice = next((advice for words, advice in _ADVICE.items() if words in said), "")
    return f"{said}{advice and f': {advice}'}"


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
    """Turns nodes into values and notes the line of each."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[Key, int] = {}
        self._made = 0

    def value(self, node: Node, key: Key) -> JsonValue:
        """Return the value of a node and of all nodes in it. Raise ConfigError beyond the limits."""
        self._made += 1
        self.lines.setdefault(key, node.line)
        if len(key) > _DEEPEST:
            raise self._error(node.line, key, f"this is nested more than {_DEEPEST} levels deep")
        if self._made > _MAX_VALUES:
            raise self._error(node.line, key, f"this has more than {_MAX_VALUES:,} values, aliases counted")
        if node.is_object:
            return dict(self._pairs(node, key))
        if node.items is not None:
            return [self.value(item, (*key, place)) for place, item in enumerate(node.items)]
        return self._scalar(node, key)

    def _pairs(self, node: Node, key: Key) -> Iterator[tuple[str, JsonValue]]:
        seen: dict[str, int] = {}
        items = iter(node.items or ())
        for name_node, value_node in zip(items, items, strict=True):
            line, name = name_node.line, name_node.text
            if name_node.items is not None:
                raise self._error(line, key, "a key must be a text")
            if name == "<<":
                raise self._error(line, key, "`<<` merges are not supported: write the keys out, or use an alias")
            if name in seen:
                raise self._error(line, (*key, name), f"is here twice, first on line {seen[name]}: remove one")
            seen[name] = self.lines[(*key, name)] = line
            yield name, self.value(value_node, (*key, name))

    def _scalar(self, node: Node, key: Key) -> JsonValue:
        if node.tag is not None and node.tag.removeprefix("tag:yaml.org,2002:") not in _PLAIN_TAGS:
            raise self._error(node.line, key, f"the tag {node.tag!r} has no meaning here: remove it")
        return self._plain(node.text, node.line, key) if node.plain else node.text

    def _plain(self, text: str, line: int, key: Key) -> JsonValue:
        """Return the value of a scalar without quotes, by the rules of YAML 1.2."""
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
    """Raise all problems as one error, if there are any."""
    if problems:
        raise ConfigError(problems)
