"""The task of a suite as the core's subject, and its answer as the core has it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, ClassVar

from bakeoff._kernel.threads import call
from bakeoff.doors.pytest_plugin.rows import EvalCase, Row
from bakeoff.errors import SubjectError
from bakeoff.protocols import Task
from bakeoff.record import Transcript

_NOT_FOR_A_LOOP = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""What would end the thread that all cases share."""

Call = partial[Any]
Errors = dict[tuple[str, int], BaseException]
"""What tasks raised, by case and round: pytest shows it with its own traceback."""


@dataclass(frozen=True, slots=True)
class EvalSubject:
    """Asks the function under test; what that raises is its own doing, and is kept for pytest to show."""

    calls: Callable[[str], Call]  # how the function is called for a case
    errors: Errors = field(default_factory=dict)
    isolate: bool = False
    raises_its_own_errors: ClassVar[bool] = True

    async def attempt(self, task: Task) -> Transcript:
        function = self.calls(task.case_id)
        with _Keeping(self.errors, (task.case_id, task.round)):
            if self.isolate:
                from bakeoff.doors.pytest_plugin.isolation import call_isolated

                return await call_isolated(function)
            try:
                answer = await call(function)
            except _NOT_FOR_A_LOOP as error:
                raise SubjectError(f"the task raised {type(error).__name__}: {error}") from error
            return transcript_of(answer)


@dataclass(frozen=True, slots=True)
class ReadyMade:
    """An output that is there already."""

    output: Any

    async def attempt(self, task: Task) -> Transcript:  # noqa: ARG002 - it does not depend on what is asked
        return transcript_of(self.output)


@dataclass(frozen=True, slots=True)
class _Keeping:
    errors: Errors
    key: tuple[str, int]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.errors[self.key] = error


def transcript_of(answer: Any) -> Transcript:
    """What a task returned, or the subject's fault where it is nothing that could be scored."""
    if isinstance(answer, str):
        return Transcript(output=answer)
    if answer is None:
        raise SubjectError("the task returned None: return the output that is to be scored")
    if isinstance(answer, Transcript):
        return answer
    from bakeoff.sdk_results import recognise

    result = recognise(answer)
    if result is None:
        kind = type(answer)
        raise SubjectError(
            f"the task returned an object of {kind.__module__}.{kind.__qualname__}, which is not known here: "
            "return a str, a TaskResult, data, or the result object of a known SDK"
        )
    return result.transcript()


def call_with_case(function: Callable[..., Any], row: Row, arguments: Mapping[str, Any], holder: Any = None) -> Call:
    """A test function with its case and fixtures; `holder` is the object that a method is bound to."""
    if holder is not None:
        return partial(function, holder, case=EvalCase(_own(row)), **arguments)
    return partial(function, case=EvalCase(_own(row)), **arguments)


def _own(row: Row) -> Row:
    """The row with containers of its own: an application that appends to its messages must not change what the next
    round, another model and the scorers are given."""
    return Row(row.id, _copied(row.values), row.problem)


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value


def call_with_row(task: Callable[..., Any], row: Row) -> Call:
    """A task with its input and, of the rest of the row, what it has parameters for."""
    row = _own(row)
    rest = {name: value for name, value in row.values.items() if name != "input"}
    if not rest:
        return partial(task, row.input)
    return partial(task, row.input, **_taken(task, rest))


def _taken(task: Callable[..., Any], rest: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        parameters = inspect.signature(task).parameters.values()
    except (TypeError, ValueError):  # builtins may have none
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return rest
    named = {each.name for each in list(parameters)[1:] if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    return {name: value for name, value in rest.items() if name in named}
