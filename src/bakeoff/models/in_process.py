"""Run models in this process: custom providers, and a scripted model for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path

from pydantic import JsonValue, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import FrozenModel, first_problem
from bakeoff._kernel.threads import call
from bakeoff.errors import InfraError, UsageError
from bakeoff.models.providers import SimpleProvider
from bakeoff.record import Usage

_UNMEASURED = RequestUsage(unmeasured_requests=1)
"""The usage of a model that reports none: it is not estimated."""

_Answer = Callable[[list[ModelMessage]], Awaitable[ModelResponse]]


class _InProcess(Model):
    """A model that calls a function. Unlike FunctionModel, it does not guess usage."""

    def __init__(self, name: str, answer: _Answer) -> None:
        super().__init__()
        self._name, self._answer = name, answer

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "in-process"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,  # noqa: ARG002 - the interface of Model
        model_request_parameters: ModelRequestParameters,  # noqa: ARG002
    ) -> ModelResponse:
        response = await self._answer(messages)
        response.model_name = self._name  # safe, because it is not shared yet
        return response


def simple_model(provider: SimpleProvider, name: str) -> Model:
    """Return a model that calls `create_message` of a custom provider."""

    async def answer(messages: list[ModelMessage]) -> ModelResponse:
        reply = await call(provider.create_message, _text(messages, SystemPromptPart), _text(messages, UserPromptPart))
        if not isinstance(reply, str):
            raise InfraError(
                f"model {name!r}: create_message returned {type(reply).__name__}, not a string", permanent=True
            )
        return ModelResponse(parts=[TextPart(reply)], usage=_UNMEASURED)

    return _InProcess(name, answer)


def _text(messages: list[ModelMessage], kind: type[SystemPromptPart | UserPromptPart]) -> str:
    parts = [part for message in messages for part in message.parts if isinstance(part, kind)]
    return "\n\n".join(str(part.content) for part in parts)


class ScriptedCall(FrozenModel):
    """A tool call of a scripted reply."""

    name: str
    arguments: dict[str, JsonValue] = {}


class InProcessReply(FrozenModel):
    """A reply to prompts that contain `to`. A `step`, from 0, limits it to one model call."""

    to: str = ""
    step: int | None = None
    say: str = ""
    think: str = ""
    call: tuple[ScriptedCall, ...] = ()
    seconds: float = 0.0
    usage: Usage | None = None


class ModelScript(FrozenModel):
    """The replies of a scripted model. The first matching reply is used."""

    replies: tuple[InProcessReply, ...]


def scripted_model(script: str) -> Model:
    """Return a model that replies from a JSON file, or always with the same text.

    `scripted:FILE.json` names the file, and `scripted:TEXT` is the text.
    """
    replies = read_script(script)

    async def answer(messages: list[ModelMessage]) -> ModelResponse:
        step = sum(isinstance(message, ModelResponse) for message in messages)
        prompt = _text(messages, UserPromptPart)
        fitting = (each for each in replies.replies if each.to in prompt and each.step in (None, step))
        reply = next(fitting, None)
        if reply is None:
            raise InfraError(f"the script has no reply at step {step} to {prompt[:80]!r}", permanent=True)
        await asyncio.sleep(reply.seconds)
        return _response(reply, step)

    return _InProcess(script, answer)


def read_script(script: str) -> ModelScript:
    """Read a script from a `.json` file, or make one that always replies with the text."""
    if not script.endswith(".json"):
        return ModelScript(replies=(InProcessReply(say=script),))
    try:
        return ModelScript.model_validate_json(read_file(Path(script), pipes=True))
    except OSError as error:
        raise UsageError(f"the script {script} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise UsageError(f"the script {script} is invalid: {first_problem(error)}") from error


def _response(reply: InProcessReply, step: int) -> ModelResponse:
    parts: list[TextPart | ThinkingPart | ToolCallPart] = []
    if reply.think:
        parts.append(ThinkingPart(reply.think))
    if reply.say or not reply.call:
        parts.append(TextPart(reply.say))
    for number, wanted in enumerate(reply.call):
        parts.append(ToolCallPart(wanted.name, wanted.arguments, tool_call_id=f"call-{step}-{number}"))
    usage = reply.usage
    if usage is None:
        return ModelResponse(parts=parts, usage=_UNMEASURED)
    measured = RequestUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_reasoning_tokens=usage.reasoning,
        cost=None if usage.cost is None else Decimal(str(usage.cost)),
    )
    return ModelResponse(parts=parts, usage=measured)
