"""Change an answer before it is scored: JMESPath finds a field of a JSON answer, and a Jinja template makes a text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, TypeAlias, get_args

import jmespath  # type: ignore[import-untyped]
from jmespath.exceptions import JMESPathError  # type: ignore[import-untyped]
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from bakeoff.errors import SubjectError
from bakeoff.models.prompt_templates import PromptTemplate, TemplateProblem
from bakeoff.protocols import ScoreInput
from bakeoff.scorers.code import code_context
from bakeoff.scorers.values import read_json, shown
from bakeoff.toolchains.user_code import CodeWorker, Language, UserCode


def _path(text: str) -> str:
    try:
        _compiled(text)
    except JMESPathError as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"{text!r} is not a JMESPath such as `items[0].id`: {why}") from error
    return text


def _step(step: str | dict[str, str]) -> str | dict[str, str]:
    if isinstance(step, dict):
        if len(step) != 1 or not {*step} <= {*get_args(Language)}:
            raise ValueError(f"{step!r}: write {{javascript: …}} or {{python: …}}")
        return step
    if not _is_template(step):
        return _path(step)
    try:
        PromptTemplate.of(step)
    except TemplateProblem as problem:
        raise ValueError(str(problem)) from problem
    return step


FieldPath = Annotated[str, Field(min_length=1), AfterValidator(_path)]
"""A JMESPath into the JSON of an answer."""

Step: TypeAlias = str | dict[str, str]

_SHAPES: list[Any] = [{"type": "string"}, {"type": "object"}]
Transform: TypeAlias = Annotated[
    tuple[Annotated[Step, AfterValidator(_step)], ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str | dict) else value),
    WithJsonSchema({"anyOf": [*_SHAPES, {"type": "array", "items": {"anyOf": _SHAPES}}]}),
]
"""The steps of a transform: JMESPaths, Jinja templates of `output`, or code by its language. One may stand alone."""


async def transformed(given: ScoreInput, steps: Sequence[Step]) -> ScoreInput:
    """Return the input with the output that the steps make of it. Raise SubjectError if one of them cannot."""
    output: Any = given.output
    for step in steps:
        try:
            if isinstance(step, dict):
                output, error = await _code(step).called(given.resources, output, code_context(given))
                if error is not None or output is None:
                    raise ValueError(error or "it returned nothing")
            else:
                output = _filled(step, given, output) if _is_template(step) else _found(step, output)
        except (TemplateProblem, JMESPathError, ValueError) as error:
            told = _code(step) if isinstance(step, dict) else f"`{step}`"
            is_path = isinstance(step, str) and not _is_template(step)
            problem = f"{told} cannot be read from the answer" if is_path else f"the transform {told} fails"
            raise SubjectError(f"{problem}: {error}") from error
    return replace(given, transcript=given.transcript.model_copy(update={"output": output}))


def workers_of(steps: Sequence[Step]) -> Iterator[CodeWorker]:
    """Yield the resources that run the code of a transform."""
    yield from (_code(step).worker for step in steps if isinstance(step, dict))


def _code(step: Mapping[Any, str]) -> UserCode:
    [(language, text)] = step.items()
    return UserCode(language, text, usual="get_transform")


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
        raise ValueError("it has no value there")
    return found


def _filled(template: str, given: ScoreInput, output: Any) -> str:
    return PromptTemplate.of(template).fill({**given.row, "output": output})
