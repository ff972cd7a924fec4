"""Define `TaskResult`, which applications under test return: an answer, the tools called for it, and the usage."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field, JsonValue, model_validator

from bakeoff._kernel.json import as_json
from bakeoff._kernel.model import FrozenModel
from bakeoff.record import NO_USAGE, Step, ToolCall, Transcript, Usage

_OPTIONAL = ("tool_calls", "usage", "metadata")


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
    def _as_given(cls, data: Any) -> Any:
        """Accept JavaScript's name of the tool calls, None for what was not measured, and any metadata."""
        if not isinstance(data, dict):
            return data
        if "toolCalls" in data and "tool_calls" not in data:
            data = {("tool_calls" if name == "toolCalls" else name): value for name, value in data.items()}
        given = {name: value for name, value in data.items() if value is not None or name not in _OPTIONAL}
        return {**given, "metadata": as_json(given["metadata"])} if "metadata" in given else given

    def transcript(self) -> Transcript:
        """Return the result as the transcript of a trial."""
        return Transcript(
            output=as_json(self.result),
            steps=(Step(parts=self.tool_calls),) if self.tool_calls else (),
            usage=self.usage,
            metadata=self.metadata,
        )
