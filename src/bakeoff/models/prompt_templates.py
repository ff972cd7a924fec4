"""Fill prompts that are Jinja templates, with access only to the values of a case."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import (
    ChainableUndefined,
    Environment,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateSyntaxError,
    UndefinedError,
)
from jinja2.exceptions import SecurityError
from jinja2.nodes import Name
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bakeoff._kernel.text import near_names
from bakeoff.errors import UsageError

MAX_PROMPT_LENGTH = 10_000_000  # characters
_MARKS = ("{{", "{%", "{#")
_UNDEFINED = re.compile(r"'([^']+)' is undefined")


class _Environment(ImmutableSandboxedEnvironment):
    """A Jinja environment without access to Python's internals, and with limited output."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        sizes = [abs(each) if isinstance(each, int | float) else len(each) for each in (left, right)]
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if (operator == "**" and max(sizes) > 1000) or (not numbers and sizes[0] * sizes[1] > MAX_PROMPT_LENGTH):
            raise SecurityError(f"the result of {operator} is too large")
        return super().call_binop(context, operator, left, right)


_ENVIRONMENT: Environment = _Environment(undefined=StrictUndefined, autoescape=False)


def _as_in_javascript(value: Any) -> Any:
    """Return a value as JavaScript prints it."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(str(_as_in_javascript(each)) for each in value)
    if isinstance(value, Mapping):
        return "[object Object]"
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _dump(value: Any, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=False, default=str)


class _Nunjucks(_Environment):
    """An environment in which objects have no methods of Python, and texts and lists have a `length`."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, str | list | tuple) and attribute == "length":
            return len(obj)
        plain = isinstance(obj, Mapping | str | list | tuple)
        return self.undefined(obj=obj, name=attribute) if plain else super().getattr(obj, attribute)


_TAG = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_PAIRS = re.compile(r"(\bfor\s+\w+\s*,\s*\w+\s+in\s+)(.+?)(\s*-?%\})")


def _in_jinja(text: str) -> str:
    """Return a template of nunjucks in the words of Jinja: loops over the pairs of an object, and `===`."""
    return _TAG.sub(lambda tag: re.sub(r"([=!])==", r"\1=", _PAIRS.sub(r"\1(\2) | pairs\3", tag[0])), text)


_NUNJUCKS: Environment = _Nunjucks(
    undefined=ChainableUndefined, autoescape=False, finalize=_as_in_javascript, keep_trailing_newline=True
)
_NUNJUCKS.filters |= {
    "dump": _dump,
    "safe": lambda value: value,
    "pairs": lambda value: list(value.items()) if isinstance(value, Mapping) else value,
}


class TemplateProblem(UsageError):
    """A template that cannot be parsed or filled. `line` is 0 if unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt: plain text or a template."""

    text: str
    compiled: Template | None

    @classmethod
    def of(cls, text: str, *, nunjucks: bool = False) -> "PromptTemplate":
        """Compile a text. Raise `TemplateProblem` if it is invalid.

        With `nunjucks`, a value that is not set is empty, and values are printed as JavaScript does.
        """
        if not any(mark in text for mark in _MARKS):
            return cls(text if nunjucks else text.removesuffix("\n"), None)
        try:
            compiled = _NUNJUCKS.from_string(_in_jinja(text)) if nunjucks else _ENVIRONMENT.from_string(text)
            return cls(text, compiled)
        except TemplateSyntaxError as error:
            raise TemplateProblem(f"this is not a Jinja template: {error.message}", error.lineno) from error

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the prompt for these values. Raise `TemplateProblem` if a value is missing."""
        if self.compiled is None:
            return self.text
        if "self" in values and "self" in names_in(self.text):
            raise TemplateProblem("`self` has a meaning of its own in Jinja: give the variable another name")
        parts, length = [], 0
        try:
            for part in self.compiled.generate(dict(values)):
                length += len(part)
                if length > MAX_PROMPT_LENGTH:
                    raise TemplateProblem(f"the prompt is longer than {MAX_PROMPT_LENGTH:,} characters")
                parts.append(part)
        except UndefinedError as error:
            raise TemplateProblem(_missing(str(error), values)) from error
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise TemplateProblem(f"the template cannot be filled: {error}") from error
        return "".join(parts)


def names_in(text: str) -> set[str]:
    """Return the names that a template uses."""
    return {name.name for name in _ENVIRONMENT.parse(text).find_all(Name)}


def fill_all(value: Any, values: Mapping[str, Any]) -> Any:
    """Fill the templates of nunjucks in a value and in all values inside it."""
    if isinstance(value, str):
        return PromptTemplate.of(value, nunjucks=True).fill(values)
    if isinstance(value, list):
        return [fill_all(each, values) for each in value]
    return {name: fill_all(each, values) for name, each in value.items()} if isinstance(value, dict) else value


class JsonTemplate(PromptTemplate):
    """A prompt that is JSON, in which each text is a template of nunjucks."""

    def fill(self, values: Mapping[str, Any]) -> str:
        return json.dumps(fill_all(json.loads(self.text), values), indent=2, ensure_ascii=False)


_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def messages_in(prompt: str) -> list[tuple[str, str]]:
    """Return the roles and texts of a prompt that is a JSON list of messages; empty for any other."""
    try:
        found = json.loads(prompt) if prompt.lstrip().startswith("[") else None
        return [(_ROLES[message["role"]], _text_of(message["content"])) for message in found or ()]
    except (ValueError, LookupError, TypeError):
        return []


def _text_of(content: Any) -> str:
    """Return the text of a message, which may have several parts. Raise TypeError if a part is no text."""
    return content if isinstance(content, str) else "".join(str.__str__(part["text"]) for part in content)


def _missing(message: str, values: Mapping[str, Any]) -> str:
    found = _UNDEFINED.search(message)
    if found is None:
        return f"the template cannot be filled: {message}"
    return f"the template uses the variable {found[1]!r}, which is not set{near_names(found[1], values)}"
