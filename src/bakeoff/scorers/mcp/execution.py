"""Execute the calls of a model, read the turns of a conversation, and check the end state of a case."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from bakeoff._kernel.imports import import_target
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError, ToolTimeout
from bakeoff.mcp import OpenHub, ServerSpec
from bakeoff.record import Record, ToolCall, Transcript
from bakeoff.scorers.mcp.calls import (
    TURNS,
    Call,
    CaseExpectation,
    EndCheck,
    ExecutedCall,
    ExpectedTurn,
    ModelReply,
    ReplyReader,
    TurnScore,
    text_of,
)
from bakeoff.scorers.mcp.comparison import call_differences, result_differences

NOT_EXECUTED = "this tool may destroy something, and is not executed in this evaluation"
NOT_SHOWN = "done; the result is not shown"
"""Answer the calls of a model where `executeTools: false` forbids to execute them."""
_LONGEST = 20_000  # characters of a result that a record keeps


async def execute_calls(hub: OpenHub, calls: Sequence[Call], refused: Container[str] = ()) -> list[ExecutedCall]:
    """Execute calls in turn, and stop after an error: later calls may depend on it.

    Calls of the tools in `refused`, by their labels, never reach a server.
    """
    done: list[ExecutedCall] = []
    for call in calls:
        if call.tool in refused:
            done.append(ExecutedCall(tool=call.tool, text=NOT_EXECUTED, is_error=True))
        else:
            done.append(await _execute_call(hub, call))
        if done[-1].is_error:
            break
    return done


async def _execute_call(hub: OpenHub, call: Call) -> ExecutedCall:
    """Execute a call. A tool that does not answer has failed; it is not the model's or our fault."""
    try:
        result = await hub.call(call.serverName, call.toolName, call.parameters)
    except ToolTimeout as late:
        return ExecutedCall(tool=call.tool, text=str(late), is_error=True)
    text, structured = result.text[:_LONGEST], _unless_long(result.structured)
    return ExecutedCall(tool=call.tool, text=text, structured=structured, is_error=result.is_error)


def executed_by_agent(calls: Sequence[ToolCall], read: Sequence[Call]) -> list[ExecutedCall]:
    """Return the results of the calls that an agent made itself."""
    return [
        ExecutedCall(
            tool=call.tool,
            text=(made.error if made.error is not None else text_of(made.result))[:_LONGEST],
            structured=_unless_long(made.result) if isinstance(made.result, dict | list) else None,
            is_error=made.error is not None,
        )
        for made, call in zip(calls, read, strict=True)
    ]


def _unless_long(value: JsonValue) -> JsonValue:
    """Return a structured result, or None if it is too long for a record, which then keeps only its text."""
    return value if value is None or len(text_of(value)) <= _LONGEST else None


END_STATE = "end_state"
"""The key in the metadata of transcripts and scores for the results of the checks."""

_MAX_REASON_LENGTH = 1_000  # characters of a reason


class EndResult(FrozenModel):
    """The result of one check."""

    check: str
    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EndState:
    """The input of a check: the folder of the first server, the calls with their results, and the last answer."""

    folder: Path
    calls: tuple[Call, ...]
    results: tuple[JsonValue, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class EndStateRunner:
    """Run the checks of a suite's cases."""

    folder: Path  # of the configuration
    servers: tuple[ServerSpec, ...]  # with their secrets
    seconds: float

    async def observe(self, checks: Sequence[EndCheck], hub: OpenHub) -> list[EndResult]:
        """Run the commands and queries, while the servers of the round still run."""
        return [await self._observe(check, hub) for check in checks if check.function is None]

    async def _observe(self, check: EndCheck, hub: OpenHub) -> EndResult:
        """Run one command or query, and compare what it gives."""
        executed = await execute_calls(hub, [check.query]) if check.query is not None else [await self._command(check)]
        [done] = executed
        if done.is_error:
            problems = [done.text or "it answered with an error"]
        else:
            problems = await result_differences(CaseExpectation(calls=None, results=check.expectedResults), executed)
        reason = "; ".join(problem.removeprefix(f"result of {done.tool!r}: ") for problem in problems)
        return EndResult(check=check.label, passed=not problems, reason=reason[:_MAX_REASON_LENGTH])

    async def complete(
        self, checks: Sequence[EndCheck], observed: Sequence[EndResult], made: TurnScore, answer: str
    ) -> list[EndResult]:
        """Call the functions, and return the results of all checks in their order. Errors of functions are raised."""
        state = EndState(self._folder_of(None), made.called, tuple(each.value for each in made.executed), answer)
        left = iter(observed)
        return [await self._call(check, state) if check.function is not None else next(left) for check in checks]

    async def _command(self, check: EndCheck) -> ExecutedCall:
        """Run a command as the server itself runs: in its folder, with its variables."""
        from bakeoff.mcp.transports import server_environment
        from bakeoff.sandbox.confinement import unconfined_command
        from bakeoff.sandbox.supervisor_client import supervise

        assert check.command is not None
        argv = ("/bin/sh", "-c", check.command) if isinstance(check.command, str) else check.command
        spec, folder = self._server(check.serverName), self._folder_of(check.serverName)
        env = server_environment(spec)
        done = (await supervise(*unconfined_command(argv, env=env, cwd=folder, seconds=self.seconds))).completed
        if done.ok:
            return ExecutedCall(tool=check.label, text=done.stdout.decode(errors="replace").strip())
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        how = f"exit code {done.exit_code}" if done.stop == "exited" else f"it was ended: {done.stop}"
        return ExecutedCall(tool=check.label, text=f"{how}{said and f': {said}'}", is_error=True)

    async def _call(self, check: EndCheck, state: EndState) -> EndResult:
        """Call one function. It returns True, False, a reason or nothing, or it asserts."""
        from bakeoff._kernel.threads import call

        function = check_function(check, self.folder)
        try:
            said = await call(function, state)
        except AssertionError as wrong:
            return EndResult(
                check=check.label, passed=False, reason=str(wrong)[:_MAX_REASON_LENGTH] or "an assertion failed"
            )
        if said is None or isinstance(said, bool):
            failed = said is False
            return EndResult(check=check.label, passed=not failed, reason="it returned False" if failed else "")
        if isinstance(said, str):
            return EndResult(check=check.label, passed=not said, reason=said[:_MAX_REASON_LENGTH])
        kind = type(said).__name__
        raise GraderError(f"endState: {check.function} returned {kind}: return True, False or a reason as a text")

    def _server(self, name: str | None) -> ServerSpec:
        return next((server for server in self.servers if name in (None, server.name)), self.servers[0])

    def _folder_of(self, name: str | None) -> Path:
        return (self._server(name).cwd or self.folder).resolve()


def check_function(check: EndCheck, folder: Path) -> Callable[..., Any]:
    """Import the function of a check from beside the configuration. Raise `UsageError` if that is not possible."""
    from bakeoff._kernel.imports import importable

    assert check.function is not None
    with importable(folder):
        function: Callable[..., Any] = import_target(check.function, "endState")
    return function


_RESULTS: TypeAdapter[list[EndResult]] = TypeAdapter(list[EndResult])


def dumped(results: Sequence[EndResult]) -> list[JsonValue]:
    return [each.model_dump(mode="json") for each in results]


def end_results(metadata: Mapping[str, Any]) -> list[EndResult]:
    """Return the results of checks from the metadata of a transcript or a score."""
    try:
        return _RESULTS.validate_python(metadata.get(END_STATE) or [])
    except ValidationError:
        return []


def end_results_in(record: Record) -> list[EndResult]:
    return end_results(record.scores[0].metadata) if record.scores else []


class TurnTrace(FrozenModel):
    """One turn of a conversation: its number of steps in the transcript, and the results of its calls."""

    steps: int
    executed: tuple[ExecutedCall, ...] = ()


_TRACES: TypeAdapter[list[TurnTrace]] = TypeAdapter(list[TurnTrace])


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A turn of a transcript: what the model replied, what its calls gave, and what is wrong with that."""

    reply: ModelReply
    executed: tuple[ExecutedCall, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnRules:
    """Read and compare the turns of a suite's cases."""

    reader: ReplyReader
    checks: EndStateRunner
    extra_allowed: bool = False
    destructive: frozenset[str] = frozenset()  # tools that are executed only where a case expects them

    def refused(self, turn: CaseExpectation) -> frozenset[str]:
        """Return the tools that must not be executed: nobody asked the author about calls that are merely allowed."""
        expected = (call.tool for calls in (turn.calls, *turn.alternatives) for call in calls or ())
        return self.destructive.difference(expected)

    async def call_problems(self, turn: CaseExpectation, reply: ModelReply) -> list[str]:
        """Return why a reply has no readable calls, or how its calls differ from the expected ones."""
        if reply.problem:
            return [reply.problem]
        return await call_differences(turn, reply.calls, extra_allowed=self.extra_allowed)

    async def read(self, turns: Sequence[ExpectedTurn], transcript: Transcript) -> list[ReadTurn]:
        """Compare the turns of a transcript with the expected ones, up to the one that failed."""
        try:
            traces = _TRACES.validate_python(transcript.metadata.get(TURNS))
        except ValidationError as error:
            raise GraderError("the answer has no turns, but its case has: start a new run") from error
        found: list[ReadTurn] = []
        at = 0
        for turn, trace in zip(turns, traces, strict=False):
            reply = self.reader.read(transcript.steps[at : at + trace.steps])
            at += trace.steps
            problems = await self.call_problems(turn, reply) or await result_differences(turn, trace.executed)
            found.append(ReadTurn(reply, trace.executed, tuple(problems)))
            if problems:
                return found
        if len(found) < len(turns):
            raise GraderError(f"the conversation ended after turn {len(found)} by other expectations: start a new run")
        return found
