"""Collect the parts of an answer from the messages of an SDK: text, tool calls and usage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bakeoff._kernel.json import as_json
from bakeoff.models.usage import Reply, reported_counts
from bakeoff.record import NO_USAGE, ToolCall, Usage
from bakeoff.sdk_results.plain_data import arguments_in, as_dict, inside
from bakeoff.sdk_results.task_result import TaskResult

_MOST_TOKENS = 10**12  # a larger count is an error of the SDK


@dataclass
class ResultBuilder:
    """Builds a `TaskResult` message by message; the result of a call may come long after the call."""

    answer: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = NO_USAGE
    metadata: dict[str, Any] = field(default_factory=dict)

    def add_call(self, name: Any, arguments: Any, id_: Any = None) -> None:
        made = {"name": str(name), "arguments": arguments_in(arguments), "id": None if id_ is None else str(id_)}
        unanswered = (call for call in self.calls if not call.get("answered"))
        if not made["id"] or made not in unanswered:  # an id alone is not enough: some servers reuse ids every turn
            self.calls.append(made)

    def add_result(self, result: Any, *, id_: Any = None, name: Any = None, error: Any = None) -> None:
        """Add the result of the call with this id, or else of the first unanswered call of this name."""
        wanted = ("id", str(id_)) if id_ is not None else ("name", name)
        for call in self.calls:
            if call[wanted[0]] == wanted[1] and not call.get("answered"):
                call["answered"] = True
                told = {"error": error, "status": "failed"} if error else {"result": as_json(result)}
                call |= {"status": "completed", **told}
                return

    def note(self, **facts: Any) -> None:
        """Add metadata; facts that are None are left out."""
        self.metadata |= {name: fact for name, fact in facts.items() if fact is not None}

    def result(self) -> TaskResult:
        calls = [{name: value for name, value in call.items() if name != "answered"} for call in self.calls]
        return TaskResult(
            result=self.answer,
            tool_calls=tuple(ToolCall.model_validate(call) for call in calls),
            usage=self.usage,
            metadata=self.metadata,
        )


def usage_of_reply(usage: Any, format: Reply) -> Usage:
    """Return the usage that a provider reports in a reply."""
    return _usage(reported_counts(usage, format) or {}, 1)


Names = Mapping[str, tuple[tuple[str, ...], ...]]
"""The places of each count in the usage object of an SDK, by the field of `Usage`."""

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


def usage_of_sdk(data: Any, names: Names, requests: int = 1) -> Usage:
    """Return the usage in an SDK's own usage object; NO_USAGE where it has no counts."""
    return _usage({ours: _count(data, places) for ours, places in names.items()}, requests)


def _count(data: Any, places: tuple[tuple[str, ...], ...]) -> int:
    found = (inside(as_dict(data), *place) for place in places)
    return next((count for count in found if type(count) is int and 0 < count < _MOST_TOKENS), 0)


def _usage(counts: Mapping[str, int], requests: int) -> Usage:
    usable = any(counts.values()) and all(count < _MOST_TOKENS for count in counts.values())
    return Usage(requests=requests, **counts) if usable else NO_USAGE
