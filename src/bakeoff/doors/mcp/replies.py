"""Read the calls of a reply in any mode: from its text, or from the calls of native function calling."""

from collections.abc import Sequence
from dataclasses import dataclass

from bakeoff.doors.mcp.calls import Call, ModelReply, make_call, read_reply
from bakeoff.doors.mcp.config import Mode
from bakeoff.mcp import ServerTool
from bakeoff.mcp.tools import offered_names
from bakeoff.record import Step, Text, ToolCall

UNKNOWN_SERVER = "unknown"
"""The server of a tool that a model invented in function calling, where a call names only the tool."""


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """How models of a suite write their calls."""

    mode: Mode
    tools: tuple[ServerTool, ...]
    strict: bool = False  # of `json` mode: nothing may be around the JSON

    def read(self, steps: Sequence[Step]) -> ModelReply:
        """Read the calls of the last text, or of all steps in function calling."""
        if self.mode != "json":
            return self.native([part for step in steps for part in step.parts if isinstance(part, ToolCall)])
        return self.text("".join(part.text for part in (steps[-1].parts if steps else ()) if isinstance(part, Text)))

    def text(self, text: str) -> ModelReply:
        return read_reply(text, strict=self.strict)

    def native(self, called: Sequence[ToolCall]) -> ModelReply:
        offered = offered_names(self.tools)
        calls: list[Call] = []
        for call in called:
            if call.name not in offered:
                invented = Call(serverName=UNKNOWN_SERVER, toolName=call.name[:200])
                problem = f"{invented.toolName!r} was called, but there is no such tool"
                return ModelReply((*calls, invented), "native", problem)
            if not isinstance(call.arguments, dict):
                return ModelReply(tuple(calls), "native", f"the arguments of {call.name[:200]!r} are not a JSON object")
            made = make_call(offered[call.name].server, offered[call.name].name, call.arguments)
            if isinstance(made, str):
                return ModelReply(tuple(calls), "native", made)
            calls.append(made)
        return ModelReply(tuple(calls), "native")
