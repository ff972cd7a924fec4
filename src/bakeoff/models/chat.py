"""OpenAI's chat API as others speak it: an answer is not thrown away because it was counted wrongly."""

from typing import Any

from openai.types import CompletionUsage, chat
from openai.types.chat import ChatCompletionChunk
from pydantic import ValidationError
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.usage import RequestUsage

ENDS_WITH_A_REASON = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""A stream that just ends was cut: half an answer must not be judged as a whole one."""


class _Stream(OpenAIStreamedResponse):
    def _map_usage(self, response: ChatCompletionChunk) -> RequestUsage:
        response.usage = _believed(response.usage)
        return super()._map_usage(response)


class ChatModel(OpenAIChatModel):
    """Without a usage that makes sense there is none; without choices there is no answer."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _Stream

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        if not response.choices:
            raise UnexpectedModelBehavior(
                f"an answer without choices: {response.model_dump_json(warnings=False)[:500]}"
            )
        response.usage = _believed(response.usage)
        return super()._validate_completion(response)


def _believed(usage: CompletionUsage | None) -> CompletionUsage | None:
    """The usage with its sum, which some leave out; None where it is none."""
    if usage is None:
        return None
    given = usage.model_dump(warnings=False)
    counts = [given.get(name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        return None
    try:
        return CompletionUsage.model_validate({**given, "total_tokens": sum(counts)})
    except ValidationError:
        return None
