"""Define `TaskResult`, which applications under test return: an answer, the tools called for it, and the usage."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field, JsonValue, field_validator, model_validator

from bakeoff._kernel.json import as_json
from bakeoff._kernel.model import FrozenModel
from bakeoff.record import NO_USAGE, Step, ToolCall, Transcript, Usage


class TaskResult(FrozenModel):
    """An answer with its tool calls and usage. `result` may be any object; a record keeps its JSON."""

    result: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            result: Any = None,
            tool_calls: Sequence[ToolCall | Mapping[str, Any]] | None = None,
            usage: Usage | None = None,
            metadata: Mapping[str, Any] | None = None,
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _as_in_javascript(cls, data: Any) -> Any:
        if isinstance(data, dict) and "toolCalls" in data and "tool_calls" not in data:
            return {("tool_calls" if name == "toolCalls" else name): value for name, value in data.items()}
        return data

    @field_validator("tool_calls", mode="before")
    @classmethod
    def _none_made(cls, value: Any) -> Any:
        return () if value is None else value

    @field_validator("usage", mode="before")
    @classmethod
    def _not_measured(cls, value: Any) -> Any:
        return NO_USAGE if value is None else value

    @field_validator("metadata", mode="before")
    @classmethod
    def _any_data(cls, value: Any) -> Any:
        return {} if value is None else as_json(value)

    def transcript(self) -> Transcript:
        """Return the result as the transcript of a trial."""
        return Transcript(
            output=as_json(self.result),
            steps=(Step(parts=self.tool_calls),) if self.tool_calls else (),
            usage=self.usage,
            metadata=self.metadata,
        )
