"""Ask a judge anything, and get an answer that fits a schema: `ask_judge`."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, TypedDict, TypeVar, Unpack, overload

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from bakeoff._kernel.text import expectation
from bakeoff._kernel.threads import call
from bakeoff.errors import GraderError, UsageError
from bakeoff.protocols import SCORING, ScoreInput
from bakeoff.scorers.material import numbered
from bakeoff.scorers.model_judge import ModelScorer
from bakeoff.scorers.text import as_text

Answer = TypeVar("Answer")
_WRAPPED = "answer"  # the field of an answer that is not an object


class JudgeSettings(TypedDict, total=False):
    """The settings of a judge that is asked, as of `Judge`."""

    model: str | None
    temperature: float | None
    max_tokens: int | None
    longest: int
    same_model: bool


@overload
async def ask_judge(
    prompt: str, schema: type[Answer], *, texts: Mapping[str, Any] | None = None, **settings: Unpack[JudgeSettings]
) -> Answer: ...


@overload
async def ask_judge(
    prompt: str, schema: Any, *, texts: Mapping[str, Any] | None = None, **settings: Unpack[JudgeSettings]
) -> Any: ...


async def ask_judge(
    prompt: str, schema: Any, *, texts: Mapping[str, Any] | None = None, **settings: Unpack[JudgeSettings]
) -> Any:
    """Ask a judge a question of your own, and return its answer.

    In a scorer, the call counts against the budget of the run, and is recorded and replayed with it. An answer that
    does not fit the schema raises GraderError: it is the judge's fault, and never the answer's.

    Args:
        prompt: what you ask. It must hold nothing that a model or a user wrote.
        schema: the type of the answer, such as `bool`, a dataclass or a pydantic model; or a JSON schema.
        texts: the texts to judge, by names that the prompt may use. They stand between marks that their authors cannot
            know. A list is shown as numbered texts.
        settings: model, temperature, max_tokens, longest and same_model, as of `Judge`.
    """
    if not prompt.strip():
        raise UsageError("ask_judge: the prompt is empty: say what the judge is asked")
    if texts is not None and not isinstance(texts, Mapping):
        raise UsageError(f"ask_judge: texts are {texts!r:.80}: give each a name, as in texts={{'answer': …}}")
    judge = ModelScorer(name="ask_judge", **settings)
    given = current_input()
    await _preload(judge, given)
    from bakeoff.scorers.judging import Question, read_answer

    wanted, adapter, wrapped = _read_schema(schema)
    question = Question(prompt, wanted, longest=judge.longest)
    [said] = await judge.answers(given, question, _named(texts or {}))
    answer: Any = read_answer(said, wanted)
    found = answer[_WRAPPED] if wrapped else answer
    try:
        return adapter.validate_python(found) if adapter else found
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise GraderError(f"the judge's answer {found!r:.200} does not fit {schema!r}: {expectation(first)}") from error


async def _preload(judge: ModelScorer, given: ScoreInput) -> None:
    """Import what the first question needs beside the loop, in a time that belongs to no case."""
    if "bakeoff.scorers.judging" not in sys.modules:
        with given.asking.clock.paused() if given.asking else nullcontext():
            await call(judge.preload)


def current_input() -> ScoreInput:
    """Return the input that is scored now; outside of a scorer, an empty one."""
    scoring = SCORING.get()
    if scoring is None:
        return ScoreInput.of()
    given, loop = scoring
    if asyncio.get_running_loop() is not loop:
        raise GraderError("ask_judge was called on a loop of its own: make the scorer `async def` and await it there")
    return given


def _named(texts: Mapping[str, Any]) -> dict[str, str]:
    shown: dict[str, str] = {}
    for name, text in texts.items():
        if isinstance(text, list | tuple):
            shown |= numbered(name, map(as_text, text)) or {name: "(none)"}
        else:
            shown[name] = as_text(text)
    return shown


def _read_schema(schema: Any) -> "tuple[dict[str, Any], TypeAdapter[Any] | None, bool]":
    """Return the schema of an object, what reads the answer, and whether the answer is one field of the object."""
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]

    try:
        adapter = None if isinstance(schema, Mapping) else TypeAdapter[Any](schema)
        wanted = dict(schema) if adapter is None else adapter.json_schema()
        validator_for(wanted).check_schema(wanted)
    except (PydanticUserError, SchemaError) as error:
        why = str(error).splitlines()[0]
        raise UsageError(
            f"ask_judge: {schema!r:.80} does not say what the answer is: give a type or a JSON schema: {why}"
        ) from error
    if wanted.get("type") == "object":
        return wanted, adapter, False
    definitions = wanted.pop("$defs", None)
    outer = {"type": "object", "properties": {_WRAPPED: wanted}, "required": [_WRAPPED], "additionalProperties": False}
    return ({**outer, "$defs": definitions} if definitions else outer), adapter, True
