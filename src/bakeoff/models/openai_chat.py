"""OpenAI's chat API as other servers speak it, with missing or wrong token counts tolerated."""

from typing import Any

from openai.types import CompletionUsage, chat
from openai.types.chat import ChatCompletionChunk
from pydantic import ValidationError
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.usage import RequestUsage

REQUIRE_FINISH_REASON = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""A stream without a finish reason was cut off. Half an answer must not be scored as a whole one."""


class _Stream(OpenAIStreamedResponse):
    def _map_usage(self, response: ChatCompletionChunk) -> RequestUsage:
        response.usage = _valid_usage(response.usage)
        return super()._map_usage(response)


class ChatModel(OpenAIChatModel):
    """Ignore a usage that makes no sense, and refuse an answer without choices."""

    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _Stream

    def _validate_completion(self, response: chat.ChatCompletion) -> Any:
        if not response.choices:
            raise UnexpectedModelBehavior(
                f"an answer without choices: {response.model_dump_json(warnings=False)[:500]}"
            )
        response.usage = _valid_usage(response.usage)
        return super()._validate_completion(response)


def _valid_usage(usage: CompletionUsage | None) -> CompletionUsage | None:
    """Return the usage with its total, which some servers leave out, or None if the counts are invalid."""
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
