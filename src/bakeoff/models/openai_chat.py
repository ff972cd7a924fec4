"""OpenAI's chat API as other servers speak it, with missing or wrong token counts tolerated."""

import json
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
            raise UnexpectedModelBehavior(_without_choices(response))
        response.usage = _valid_usage(response.usage)
        return super()._validate_completion(response)


def _without_choices(response: chat.ChatCompletion) -> str:
    """Say what the provider sent instead of an answer: its own error first, and nothing that is empty."""
    sent = response.model_dump(mode="json", exclude_none=True, warnings=False)
    error = sent.pop("error", None)
    found = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    said = f"{found} (code {code})" if found and code is not None else found
    rest = {name: value for name, value in sent.items() if value}
    what = f"an answer without choices{f': {json.dumps(rest)[:500]}' if rest else ''}"
    return f"{str(said)[:500]}: {what}" if said else what


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
