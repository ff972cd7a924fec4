"""Change an answer before it is scored: JMESPath finds a field of a JSON answer, and a Jinja template makes a text."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

import jmespath  # type: ignore[import-untyped]
from jmespath.exceptions import JMESPathError  # type: ignore[import-untyped]
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from bakeoff.errors import SubjectError
from bakeoff.models.prompt_templates import PromptTemplate, TemplateProblem
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.values import read_json, shown


def _path(text: str) -> str:
    try:
        _compiled(text)
    except JMESPathError as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"{text!r} is not a JMESPath such as `items[0].id`: {why}") from error
    return text


def _step(text: str) -> str:
    if not _is_template(text):
        return _path(text)
    try:
        PromptTemplate.of(text)
    except TemplateProblem as problem:
        raise ValueError(str(problem)) from problem
    return text


FieldPath = Annotated[str, Field(min_length=1), AfterValidator(_path)]
"""A JMESPath into the JSON of an answer."""

Transform = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(_step)], ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""The steps of a transform, each a JMESPath or a Jinja template of `output`. A single text is one step."""


def transformed(given: ScoreInput, steps: Sequence[str]) -> ScoreInput:
    """Return the input with the output that the steps make of it. Raise SubjectError if one of them cannot."""
    output: Any = given.output
    for step in steps:
        try:
            output = _filled(step, given, output) if _is_template(step) else _found(step, output)
        except (TemplateProblem, JMESPathError, ValueError) as error:
            raise SubjectError(f"the transform `{step}` fails: {error}") from error
    return replace(given, transcript=given.transcript.model_copy(update={"output": output}))


def _is_template(step: str) -> bool:
    return "{{" in step or "{%" in step


@cache
def _compiled(path: str) -> Any:
    return jmespath.compile(path)


def _found(path: str, output: Any) -> Any:
    try:
        data, _ = read_json(output)
    except ValueError as error:
        raise ValueError(f"{shown(output)} is not JSON: {error}") from error
    found = _compiled(path).search(data)
    if found is None:
        raise ValueError("the answer has no value there")
    return found


def _filled(template: str, given: ScoreInput, output: Any) -> str:
    return PromptTemplate.of(template).fill({**given.row, "output": output})
