"""Fill prompts that are Jinja templates, with access only to the values of a case."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError
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
    def of(cls, text: str) -> "PromptTemplate":
        """Compile a text. Raise `TemplateProblem` if it is invalid."""
        if not any(mark in text for mark in _MARKS):
            return cls(text.removesuffix("\n"), None)
        try:
            return cls(text, _ENVIRONMENT.from_string(text))
        except TemplateSyntaxError as error:
            raise TemplateProblem(f"this is not a Jinja template: {error.message}", error.lineno) from error

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the prompt for these values. Raise `TemplateProblem` if a value is missing."""
        if self.compiled is None:
            return self.text
        if "self" in values and any(name.name == "self" for name in _ENVIRONMENT.parse(self.text).find_all(Name)):
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


def _missing(message: str, values: Mapping[str, Any]) -> str:
    found = _UNDEFINED.search(message)
    if found is None:
        return f"the template cannot be filled: {message}"
    return f"the template uses the variable {found[1]!r}, which is not set{near_names(found[1], values)}"
