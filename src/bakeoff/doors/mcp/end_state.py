"""Check what a case has left behind: by a command, a call of a query tool, or a Python function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from bakeoff._kernel.imports import import_target
from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.mcp.calls import Call, EndCheck, ExpectedMcpCall
from bakeoff.doors.mcp.execution import ExecutedCall, TurnScore, execute_calls
from bakeoff.doors.mcp.expected_results import result_differences
from bakeoff.errors import GraderError
from bakeoff.mcp import OpenHub, ServerSpec
from bakeoff.record import Record

END_STATE = "end_state"
"""The key in the metadata of transcripts and scores for the results of the checks."""

_LONGEST = 1_000  # characters of a reason


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
        executed = await execute_calls(hub, [check.query]) if check.query is not None else [await self._command(check)]
        [done] = executed
        if done.is_error:
            problems = [done.text or "it answered with an error"]
        else:
            problems = await result_differences(ExpectedMcpCall(calls=None, results=check.expectedResults), executed)
        reason = "; ".join(problem.removeprefix(f"result of {done.tool!r}: ") for problem in problems)
        return EndResult(check=check.label, passed=not problems, reason=reason[:_LONGEST])

    async def complete(
        self, checks: Sequence[EndCheck], observed: Sequence[EndResult], made: TurnScore, answer: str
    ) -> list[EndResult]:
        """Call the functions, and return the results of all checks in their order. Errors of functions are raised."""
        state = EndState(self._folder_of(None), made.called, tuple(each.value for each in made.executed), answer)
        left = iter(observed)
        return [await self._call(check, state) if check.function is not None else next(left) for check in checks]

    async def _command(self, check: EndCheck) -> ExecutedCall:
        """Run a command as the server itself runs: in its folder, with its variables."""
        from bakeoff.mcp.stdio import server_environment
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
        from bakeoff._kernel.threads import call

        function = check_function(check, self.folder)
        try:
            said = await call(function, state)
        except AssertionError as wrong:
            return EndResult(check=check.label, passed=False, reason=str(wrong)[:_LONGEST] or "an assertion failed")
        if said is None or isinstance(said, bool):
            failed = said is False
            return EndResult(check=check.label, passed=not failed, reason="it returned False" if failed else "")
        if isinstance(said, str):
            return EndResult(check=check.label, passed=not said, reason=said[:_LONGEST])
        kind = type(said).__name__
        raise GraderError(f"endState: {check.function} returned {kind}: return True, False or a reason as a text")

    def _server(self, name: str | None) -> ServerSpec:
        return next((server for server in self.servers if name in (None, server.name)), self.servers[0])

    def _folder_of(self, name: str | None) -> Path:
        return (self._server(name).cwd or self.folder).resolve()


def check_function(check: EndCheck, folder: Path) -> Callable[..., Any]:
    """Import the function of a check from beside the configuration. Raise `UsageError` if that is not possible."""
    from bakeoff.doors.mcp.providers import importable

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
