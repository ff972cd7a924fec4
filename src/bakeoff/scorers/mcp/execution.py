"""Compare the calls of a model with the expected ones, execute them, and check the end state of a case."""

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of
from bakeoff.errors import GraderError, ToolTimeout
from bakeoff.mcp import OpenHub, ServerSpec
from bakeoff.record import Record, ToolCall, Transcript
from bakeoff.scorers.matchers import is_matcher, parameter_differences, value_differences
from bakeoff.scorers.mcp.calls import (
    TURNS,
    Call,
    CallRules,
    CaseExpectation,
    EndCheck,
    ExecutedCall,
    ExpectedMcpCall,
    ExpectedTurn,
    ModelReply,
    ReplyReader,
    noted_in,
    text_of,
)
from bakeoff.scorers.values import most_pairs, most_pairs_in_order


async def call_differences(expected: CaseExpectation, actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    """Return a sentence for each difference between the calls, or an empty list if they match.

    If the calls match no alternative either, the differences to the first expectation are returned.
    """
    most = expected.rules.maxCalls
    if most is not None and len(actual) > most:
        made = count_of(len(actual), "call was", "calls were")
        return [f"{made} made, at most {most} are allowed: {_labels(actual)}"]
    first: list[str] | None = None
    for wanted in (expected.calls, *expected.alternatives):
        found = await _differences(wanted or (), actual, expected.rules, extra_allowed=extra_allowed)
        if not found:
            return []
        first = first or found
    return first or []


async def _differences(
    wanted: Sequence[ExpectedMcpCall], actual: Sequence[Call], rules: CallRules, *, extra_allowed: bool
) -> list[str]:
    """Compare the calls with one expectation, by its rules about order and other calls."""
    others = rules.extraCalls == "allow"
    if not wanted and actual:
        return [] if others else [f"no tool should be called, but {_labels(actual)} was"]
    if wanted and not actual:
        return [f"no tool was called, expected {_labels(wanted)}"]
    if rules.order == "exact" and not others:
        return await _one_by_one(wanted, actual, extra_allowed=extra_allowed)
    fits = [[not await _problems(want, call, extra_allowed=extra_allowed) for call in actual] for want in wanted]
    places = most_pairs(fits) if rules.order == "any" else most_pairs_in_order(fits)
    found: list[str] = []
    for want, place in zip(wanted, places, strict=True):
        if place is None:
            found += await _why_missing(want, actual, extra_allowed=extra_allowed)
    extra = [call for at, call in enumerate(actual) if at not in places]
    if extra and not others and not found:
        found.append(f"{_labels(extra)} was called too, which is not expected")
    return found


async def _one_by_one(wanted: Sequence[ExpectedMcpCall], actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    """Compare each call with the expected one in its place."""
    if len(wanted) != len(actual):
        made = count_of(len(actual), "call was", "calls were")
        return [f"{made} made ({_labels(actual)}), expected {len(wanted)} ({_labels(wanted)})"]
    found: list[str] = []
    for at, (want, call) in enumerate(zip(wanted, actual, strict=True)):
        place = f"call {at + 1}: " if len(wanted) > 1 else ""
        found += [f"{place}{problem}" for problem in await _problems(want, call, extra_allowed=extra_allowed)]
    return found


async def _problems(want: ExpectedMcpCall, call: Call, *, extra_allowed: bool) -> list[str]:
    """Return how one call differs: in its tool, or else in its parameters."""
    problems = [
        f"{key} is {getattr(call, key)!r}, expected {getattr(want, key)!r}"
        for key in ("serverName", "toolName")
        if getattr(call, key) != getattr(want, key)
    ]
    if problems:
        return problems  # another tool has other parameters
    differences = await parameter_differences(want.parameters, call.parameters, extra_allowed=extra_allowed)
    return [f"parameters: {difference}" for difference in differences]


async def _why_missing(want: ExpectedMcpCall, actual: Sequence[Call], *, extra_allowed: bool) -> list[str]:
    """Say how the most similar call of the same tool differs, or that there is none."""
    same = [call for call in actual if call.tool == want.tool]
    if not same:
        return [f"{want.tool!r} was not called, only {_labels(actual)}"]
    problems = [await _problems(want, call, extra_allowed=extra_allowed) for call in same]
    nearest = min(problems, key=len)
    if not nearest:
        return [f"{want.tool!r} was not called as often, or not in the order, that is expected"]
    return [f"{want.tool!r}: {problem}" for problem in nearest]


def _labels(calls: Sequence[Call]) -> str:
    return ", ".join(repr(call.tool) for call in calls)


_WRAPPED = "result"  # SDKs send a result that is not an object under this key: structured content must be an object


async def result_differences(case: CaseExpectation, executed: Sequence[ExecutedCall]) -> list[str]:
    """Return a sentence for each difference between the results and the expected ones.

    A list with one item for each of several calls is compared with all results, anything else with
    the last result. An expected text is not compared if a judge compares its meaning.
    """
    expected, error = case.results, case.rules.expectedError
    if error and executed:
        last = executed[-1]
        if not last.is_error:
            return [f"the tool {last.tool!r} succeeded, but an error is expected"]
        missing = isinstance(error, str) and error not in last.text
        return [f"the error of {last.tool!r} does not contain {error!r}: {last.text[:300]}"] if missing else []
    if failed := [each for each in executed if each.is_error]:
        return [f"the tool {each.tool!r} answered with an error: {each.text[:300]}" for each in failed]
    if expected is None or not executed or (case.grading is not None and expected_text(expected) is not None):
        return []
    if isinstance(expected, list) and len(executed) > 1 and len(expected) == len(executed):
        pairs = list(zip(expected, executed, strict=True))
    else:
        pairs = [(expected, executed[-1])]
    return [
        f"result of {result.tool!r}: {problem}"
        for wanted, result in pairs
        for problem in await _result_problems(wanted, result)
    ]


def expected_text(expected: JsonValue) -> str | None:
    """Return the text of `{content: text}`, the form in which other tools write an expected text."""
    if isinstance(expected, dict) and expected.keys() == {"content"} and isinstance(expected["content"], str):
        return expected["content"]
    return None


async def _result_problems(expected: JsonValue, result: ExecutedCall) -> list[str]:
    """Return the differences from the most probable reading of a result; none if any reading fits."""
    if isinstance(expected, str):
        found = expected in result.text or expected in text_of(result.structured)
        return [] if found else [f"{expected!r} is not in {result.text[:200]!r}"]
    first: list[str] | None = None
    for actual in _readings(expected, result):
        if isinstance(expected, dict) and isinstance(actual, dict) and not is_matcher(expected):
            differences = await parameter_differences(expected, actual, extra_allowed=True)
        else:
            differences = await value_differences(expected, actual)
        if not differences:
            return []
        first = first or differences
    return first or []


def _readings(expected: JsonValue, result: ExecutedCall) -> list[JsonValue]:
    """Return the possible values of a result, the most probable one first."""
    found: list[JsonValue] = []
    if result.structured is not None:
        found.append(result.structured)
        if isinstance(result.structured, dict) and result.structured.keys() == {_WRAPPED}:
            bare_first = not isinstance(expected, dict) or _WRAPPED not in expected
            found.insert(0 if bare_first else 1, result.structured[_WRAPPED])
    try:
        found.append(json.loads(result.text))
    except (ValueError, RecursionError):
        found.append(result.text)
    if is_matcher(expected) and result.text not in found:
        found.append(result.text)
    if expected_text(expected) is not None:
        found.append({"content": result.text})
    return found


NOT_EXECUTED = "this tool may destroy something, and is not executed in this evaluation"
NOT_SHOWN = "done; the result is not shown"
"""The answer to a model's calls if `executeTools: false` forbids executing them."""
_MAX_LENGTH = 20_000  # characters of a result that a record keeps


async def execute_calls(hub: OpenHub, calls: Sequence[Call], refused: Container[str] = ()) -> list[ExecutedCall]:
    """Execute calls in turn, and stop after an error, because later calls may depend on its result.

    Calls of tools whose labels are in `refused` never reach a server.
    """
    done: list[ExecutedCall] = []
    for call in calls:
        if call.tool in refused:
            done.append(ExecutedCall(tool=call.tool, text=NOT_EXECUTED, is_error=True))
        else:
            try:
                result = await hub.call(call.serverName, call.toolName, call.parameters)
            except ToolTimeout as late:  # the tool has failed; it is not the model's or our fault
                done.append(ExecutedCall(tool=call.tool, text=str(late), is_error=True))
            else:
                text, structured = result.text[:_MAX_LENGTH], _unless_long(result.structured)
                done.append(ExecutedCall(tool=call.tool, text=text, structured=structured, is_error=result.is_error))
        if done[-1].is_error:
            break
    return done


def executed_by_agent(calls: Sequence[ToolCall], read: Sequence[Call]) -> list[ExecutedCall]:
    """Return the results of the calls that an agent made itself."""
    return [
        ExecutedCall(
            tool=call.tool,
            text=(made.error if made.error is not None else text_of(made.result))[:_MAX_LENGTH],
            structured=_unless_long(made.result) if isinstance(made.result, dict | list) else None,
            is_error=made.error is not None,
        )
        for made, call in zip(calls, read, strict=True)
    ]


def _unless_long(value: JsonValue) -> JsonValue:
    """Return a structured result, or None if it is too long for a record, which then keeps only its text."""
    return value if value is None or len(text_of(value)) <= _MAX_LENGTH else None


END_STATE = "end_state"
"""The key in the metadata of transcripts and scores for the results of the checks."""

_MAX_REASON_LENGTH = 1_000  # characters of a reason


class EndResult(FrozenModel):
    """The result of one check."""

    check: str
    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EndStateRunner:
    """A runner of the checks of a suite's cases."""

    folder: Path  # of the configuration
    servers: tuple[ServerSpec, ...]  # with their secrets
    seconds: float

    async def observe(self, checks: Sequence[EndCheck], hub: OpenHub) -> list[EndResult]:
        """Run the checks while the servers of the round still run, and compare the results."""
        found: list[EndResult] = []
        for check in checks:
            executed = await execute_calls(hub, [check.query]) if check.query else [await self._command(check)]
            [done] = executed
            wanted = CaseExpectation(calls=None, results=check.expectedResults)
            problems = await result_differences(wanted, executed)
            if done.is_error:
                problems = [done.text or "it answered with an error"]
            reason = "; ".join(problem.removeprefix(f"result of {done.tool!r}: ") for problem in problems)
            found.append(EndResult(check=check.label, passed=not problems, reason=reason[:_MAX_REASON_LENGTH]))
        return found

    async def _command(self, check: EndCheck) -> ExecutedCall:
        """Run a command in the same folder and with the same variables as the server."""
        from bakeoff.mcp.transports import server_environment
        from bakeoff.sandbox.confinement import unconfined_command
        from bakeoff.sandbox.supervisor_client import supervise

        assert check.command is not None
        argv = ("/bin/sh", "-c", check.command) if isinstance(check.command, str) else check.command
        spec = next((one for one in self.servers if check.serverName in (None, one.name)), self.servers[0])
        folder = (spec.cwd or self.folder).resolve()
        env = server_environment(spec)
        done = (await supervise(*unconfined_command(argv, env=env, cwd=folder, seconds=self.seconds))).completed
        if done.ok:
            return ExecutedCall(tool=check.label, text=done.stdout.decode(errors="replace").strip())
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-300:]
        how = f"exit code {done.exit_code}" if done.stop == "exited" else f"it was ended: {done.stop}"
        return ExecutedCall(tool=check.label, text=f"{how}{said and f': {said}'}", is_error=True)


def dumped(results: Sequence[EndResult]) -> list[JsonValue]:
    """Return the results of checks in the form that metadata keeps."""
    return [each.model_dump(mode="json") for each in results]


def end_results_in(record: Record) -> list[EndResult]:
    """Return the results of the checks after a round; none if it was not scored or has no checks."""
    return noted_in(record, END_STATE, EndResult)


class TurnTrace(FrozenModel):
    """The trace of one turn of a conversation: its number of steps, and the results of its calls."""

    steps: int
    executed: tuple[ExecutedCall, ...] = ()


_TRACES: TypeAdapter[list[TurnTrace]] = TypeAdapter(list[TurnTrace])


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """A turn of a transcript: the reply of the model, the results of its calls, and the differences found."""

    reply: ModelReply
    executed: tuple[ExecutedCall, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnRules:
    """The rules for reading and comparing the turns of a suite's cases."""

    reader: ReplyReader
    checks: EndStateRunner | None = None
    extra_allowed: bool = False
    destructive: frozenset[str] = frozenset()  # tools that are executed only where a case expects them

    def refused(self, turn: CaseExpectation) -> frozenset[str]:
        """Return the destructive tools that must not be executed, because the case does not expect calls of them."""
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
