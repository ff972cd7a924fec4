"""What an application under test hands back: its answer, the tools it called, and what that took."""

from typing import Any

from pydantic import Field, JsonValue, field_validator
from pydantic_core import to_jsonable_python

from bakeoff.frozen import Frozen
from bakeoff.record import NO_USAGE, Step, ToolCall, Transcript, Usage


class TaskResult(Frozen):
    """An answer with what led to it. `result` may be any object; a record keeps its JSON."""

    result: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("tool_calls", mode="before")
    @classmethod
    def _none_made(cls, value: Any) -> Any:
        return () if value is None else value

    def transcript(self) -> Transcript:
        """The same as the core has it."""
        return Transcript(
            output=to_jsonable_python(self.result, fallback=repr),
            steps=(Step(parts=self.tool_calls),) if self.tool_calls else (),
            usage=self.usage,
            metadata=self.metadata,
        )
