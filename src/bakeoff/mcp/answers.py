"""Answer what servers ask their clients for: input of a person (elicitation), and text of a model (sampling).

The answers are those of the configuration. Without any, servers are told that this client answers nothing.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import Draft202012Validator  # type: ignore[import-untyped]
from mcp.client.session import ElicitationFnT, SamplingFnT
from mcp_types import (
    INVALID_PARAMS,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    TextContent,
)

from bakeoff._kernel.text import quoted, visible
from bakeoff.mcp.servers import ElicitationAnswer, SamplingAnswer

Answer = TypeVar("Answer", ElicitationAnswer, SamplingAnswer)


def elicitation_of(answers: Sequence[ElicitationAnswer]) -> ElicitationFnT | None:
    """Return the function that answers questions to a person, or None if the configuration has no answers."""
    if not answers:
        return None

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:  # noqa: ARG001 - as the SDK calls it
        found = _matching(answers, params.message)
        if found is None:
            return _unanswered("elicitation", params.message)
        if found.action != "accept":
            return ElicitResult(action=found.action)
        if not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="accept")  # an address to be visited by a person: nothing is opened
        problem = _problem(found.content, params.requested_schema)
        if problem is not None:
            return ErrorData(code=INVALID_PARAMS, message=f"the elicitation answer of the configuration: {problem}")
        return ElicitResult(action="accept", content=dict(found.content))

    return answer


def sampling_of(answers: Sequence[SamplingAnswer]) -> SamplingFnT | None:
    """Return the function that answers in place of a model, or None if the configuration has no answers."""
    if not answers:
        return None

    async def answer(context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:  # noqa: ARG001 - as the SDK calls it
        parts = [part for message in params.messages for part in message.content_as_list]
        asked = "\n".join(part.text for part in parts if isinstance(part, TextContent))
        found = _matching(answers, asked)
        if found is None:
            return _unanswered("sampling", asked)
        text = TextContent(type="text", text=found.reply)
        return CreateMessageResult(role="assistant", content=text, model="bakeoff-configuration", stop_reason="endTurn")

    return answer


def _matching(answers: Sequence[Answer], asked: str) -> Answer | None:
    folded = asked.casefold()
    return next((answer for answer in answers if answer.match.casefold() in folded), None)


def _unanswered(what: str, asked: str) -> ErrorData:
    message = f"no {what} answer of the configuration matches {quoted(asked, 200)}"
    return ErrorData(code=INVALID_PARAMS, message=message)


def _problem(content: Any, schema: Any) -> str | None:
    """Return what the server's schema says against an answer."""
    try:
        error = next(iter(Draft202012Validator(dict(schema)).iter_errors(dict(content))), None)
    except (SchemaError, RecursionError, TypeError, ValueError, AttributeError):
        return None  # the server has to tell
    return None if error is None else visible(error.message)
