"""What has been found so far of an answer: its words, the calls made for it, and what it took."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.record import NO_USAGE, ToolCall, Usage
from bakeoff.sdk_results.data import arguments_in, inside
from bakeoff.sdk_results.task_result import TaskResult

_MOST_TOKENS = 10**12  # of one message; whatever says more has not counted


@dataclass
class Gathered:
    """Filled message by message; a result may come long after its call."""

    answer: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = NO_USAGE
    metadata: dict[str, Any] = field(default_factory=dict)

    def call(self, name: Any, arguments: Any, id_: Any = None) -> None:
        made = {"name": str(name), "arguments": arguments_in(arguments), "id": None if id_ is None else str(id_)}
        waiting = (call for call in self.calls if not call.get("answered"))
        if not made["id"] or made not in waiting:  # ids alone do not tell: some servers begin anew with each turn
            self.calls.append(made)

    def returned(self, result: Any, *, id_: Any = None, name: Any = None, error: Any = None) -> None:
        """What came back, for the call with this id or else the first one of this name that nothing came back for."""
        call = self._waiting(None if id_ is None else str(id_), name)
        if call is None:
            return
        call["answered"] = True
        if error:
            call |= {"error": error, "status": "failed"}
        else:
            call |= {"result": as_json(result), "status": "completed"}

    def _waiting(self, id_: str | None, name: Any) -> dict[str, Any] | None:
        for call in self.calls:
            fits = call["id"] == id_ if id_ is not None else call["name"] == name
            if fits and not call.get("answered"):
                return call
        return None

    def note(self, **facts: Any) -> None:
        self.metadata |= {name: fact for name, fact in facts.items() if fact is not None}

    def result(self) -> TaskResult:
        calls = [{name: value for name, value in call.items() if name != "answered"} for call in self.calls]
        return TaskResult(
            result=self.answer,
            tool_calls=tuple(ToolCall.model_validate(call) for call in calls),
            usage=self.usage,
            metadata=self.metadata,
        )


Names = Mapping[str, tuple[tuple[str, ...], ...]]
"""For each of our words, the places where an SDK may have the number."""

OPENAI: Names = {
    "input": (("prompt_tokens",), ("input_tokens",)),
    "output": (("completion_tokens",), ("output_tokens",)),
    "cache_read": (("prompt_tokens_details", "cached_tokens"), ("input_tokens_details", "cached_tokens")),
    "reasoning": (("completion_tokens_details", "reasoning_tokens"), ("output_tokens_details", "reasoning_tokens")),
}
ANTHROPIC: Names = {
    "input": (("input_tokens",),),
    "output": (("output_tokens",),),
    "cache_read": (("cache_read_input_tokens",),),
    "cache_write": (("cache_creation_input_tokens",),),
}
GOOGLE: Names = {
    "input": (("prompt_token_count",), ("promptTokenCount",)),
    "output": (("candidates_token_count",), ("candidatesTokenCount",)),
    "cache_read": (("cached_content_token_count",), ("cachedContentTokenCount",)),
    "reasoning": (("thoughts_token_count",), ("thoughtsTokenCount",)),
}
LANGCHAIN: Names = {
    "input": (("input_tokens",),),
    "output": (("output_tokens",),),
    "cache_read": (("input_token_details", "cache_read"),),
    "cache_write": (("input_token_details", "cache_creation"),),
    "reasoning": (("output_token_details", "reasoning"),),
}
PYDANTIC_AI: Names = {
    "input": (("input_tokens",),),
    "output": (("output_tokens",),),
    "cache_read": (("cache_read_tokens",),),
    "cache_write": (("cache_write_tokens",),),
    "reasoning": (("details", "reasoning_tokens"),),
}
VERCEL: Names = {
    "input": (("inputTokens",), ("promptTokens",)),
    "output": (("outputTokens",), ("completionTokens",)),
    "cache_read": (("cachedInputTokens",), ("inputTokenDetails", "cacheReadTokens")),
    "cache_write": (("inputTokenDetails", "cacheWriteTokens"),),
    "reasoning": (("reasoningTokens",), ("outputTokenDetails", "reasoningTokens")),
}


def usage_in(data: Any, names: Names, requests: int = 1) -> Usage:
    """Counted in an SDK's own words; nothing where nothing was counted."""
    counts = {ours: _count(data, places) for ours, places in names.items()}
    if not any(counts.values()):
        return NO_USAGE
    if names is ANTHROPIC:  # which counts what went through its cache apart
        counts["input"] += counts["cache_read"] + counts["cache_write"]
    if names is GOOGLE:  # which counts thoughts apart
        counts["output"] += counts["reasoning"]
    return Usage(requests=requests, **counts)


def _count(data: Any, places: tuple[tuple[str, ...], ...]) -> int:
    found = (inside(data, *place) for place in places)
    return next((n for n in found if type(n) is int and 0 < n < _MOST_TOKENS), 0)
