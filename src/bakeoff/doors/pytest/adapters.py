"""Present the task and the scorers of a suite to the core as a subject and scorers.

With `--pdb`, tasks are called where a debugger can stop in them: one at a time, in pytest's thread and without a time
limit.
"""

import asyncio
import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import pytest

from bakeoff._kernel.clock import CLOCK
from bakeoff._kernel.text import free_name
from bakeoff._kernel.threads import NOT_FOR_A_LOOP, call, carried_by, is_async
from bakeoff.doors.pytest.rows import EvalCase, EvalRow
from bakeoff.engine.registry import NO_NEEDS
from bakeoff.engine.user_code import call_apart, in_own_task
from bakeoff.errors import GraderError, InfraError, SubjectError
from bakeoff.protocols import Needs, NeedsNetwork, Scored, ScoreInput, Scorer, Task
from bakeoff.record import Transcript
from bakeoff.scorers.identity import scorer_digest
from bakeoff.sdk_results import joined, transcript_of

ENDS_A_LOOP = (SystemExit, KeyboardInterrupt, GeneratorExit)
"""Errors that would end the thread that all cases share."""

_OUR_SCORERS = "bakeoff.scorers."
_CALLS_OTHERS = "bakeoff.scorers.adapters"  # a module among these

Call = partial[Any]
Errors = dict[tuple[str, int], BaseException]
"""The errors that tasks raised, by case and round: pytest shows each with its own traceback."""


@dataclass(frozen=True, slots=True)
class EvalSubject:
    """A subject that calls the function under test. Its errors are failures, kept for pytest."""

    calls: Callable[[str], Call]  # returns the call for a case, by its id
    errors: Errors = field(default_factory=dict)
    debug: bool = False  # call the function in this thread, where a debugger can stop in it
    raises_its_own_errors: ClassVar[bool] = True

    async def attempt(self, task: Task) -> Transcript:
        """Call the function once.

        Errors that it raises are kept in `errors`. An error that would end an event loop becomes a
        SubjectError, and an error of a provider or the network becomes a failure that is retried.
        """
        function = self.calls(task.case_id)
        task.clock.name = task.case_id
        self.errors.pop((task.case_id, task.round), None)  # of an earlier try
        try:
            return transcript_of(await self._call(function, task))
        except BaseException as error:
            raised = _raised_by_user(error)
            self.errors[task.case_id, task.round] = error if raised is None else _for_pytest(raised)
            if raised is not None:
                raise SubjectError(f"the task raised {type(raised).__name__}: {raised}") from raised
            from bakeoff.sdk_results.provider_errors import provider_failure

            if (failure := provider_failure(error)) is not None:
                raise failure from error
            raise

    async def _call(self, function: Call, task: Task) -> Any:
        if self.debug:
            answer = function()
            answer = await answer if inspect.isawaitable(answer) else answer
        elif is_async(function.func):
            answer = await in_own_task(function, task.clock)
        else:
            answer = await call_apart(partial(_called, function), task.clock)
        return await in_own_task(partial(all_of, answer), task.clock) if inspect.isasyncgen(answer) else answer


def _called(function: Call) -> Any:
    """Call a sync function, and read the generator if it returns one. Callers run this in a thread."""
    answer = function()
    return joined(list(answer)) if inspect.isgenerator(answer) else answer


async def all_of(generator: AsyncIterable[Any]) -> str:
    """Return the items that an async generator yields, joined."""
    return joined([piece async for piece in generator])


def _raised_by_user(error: BaseException) -> BaseException | None:
    """Return the error that the user's code raised, if it cannot pass an event loop unchanged."""
    if (carried := carried_by(error)) is not None:
        return carried
    by_python = type(error) is RuntimeError and str(error).endswith("raised StopIteration")
    if by_python and isinstance(error.__cause__, StopIteration):
        return error.__cause__
    return error if isinstance(error, ENDS_A_LOOP) else None


def _for_pytest(error: BaseException) -> BaseException:
    """Return an error that pytest can show with the user's lines, and that does not end pytest."""
    if not isinstance(error, NOT_FOR_A_LOOP) or isinstance(error, StopIteration):
        return error
    said = f": {error}" if str(error) else ""
    return RuntimeError(f"the task raised {type(error).__name__}{said}").with_traceback(error.__traceback__)


@dataclass(frozen=True, slots=True)
class ReadyOutput:
    """A subject whose output exists already."""

    output: Any

    async def attempt(self, task: Task) -> Transcript:  # noqa: ARG002 - the signature of a subject
        return transcript_of(await all_of(self.output) if inspect.isasyncgen(self.output) else self.output)


def call_with_case(
    function: Callable[..., Any], row: EvalRow, arguments: Mapping[str, Any], holder: Any = None
) -> Call:
    """Return the call of a test function with its case and fixtures; `holder` is the object of a method."""
    bound = () if holder is None else (holder,)
    return partial(function, *bound, case=EvalCase(_own_copy(row)), **arguments)


def call_with_row(task: Callable[..., Any], row: EvalRow) -> Call:
    """Return the call of a task with its input, and with the values of the row for its other parameters."""
    row = _own_copy(row)
    rest = {name: value for name, value in row.values.items() if name != "input"}
    try:
        parameters = list(inspect.signature(task).parameters.values()) if rest else []
    except (TypeError, ValueError):  # some builtins have no signature
        parameters = []
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        named = {each.name for each in parameters[1:] if each.kind in by_name}
        rest = {name: value for name, value in rest.items() if name in named}
    return partial(task, row.input, **rest)


def _own_copy(row: EvalRow) -> EvalRow:
    """Copy the containers of a row, so that a task that appends to its messages changes only its own copy."""
    return EvalRow(row.id, _copied(row.values), row.problem)


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value


@dataclass(frozen=True, slots=True)
class SuiteScorer:
    """A scorer that calls a user's scorer. If that raises an error, only its own score is lost."""

    function: Callable[[ScoreInput], Any]
    name: str
    offline: bool = False  # only recordings may answer
    calls_others: bool = field(init=False)  # code of the user's, or of other libraries
    may_ask: bool = field(init=False)  # a model; its usage is then counted apart

    def __post_init__(self) -> None:
        module = type(self.function).__module__
        ours = module.startswith(_OUR_SCORERS) and module != _CALLS_OTHERS  # needs no task of its own, which costs time
        object.__setattr__(self, "calls_others", not ours)
        object.__setattr__(self, "may_ask", self.calls_others or hasattr(self.function, "needs"))

    @property
    def keeps_names(self) -> bool:
        """Tell whether its scores keep their names, because the scorer itself has no name."""
        return getattr(self.function, "name", None) is None

    @property
    def needs(self) -> Needs:
        """Return the resources that the scorer asks the core for; a plain function asks for none."""
        needs: Needs = getattr(self.function, "needs", NO_NEEDS)
        return needs

    async def __call__(self, given: ScoreInput) -> Scored:
        try:
            if not self.calls_others:
                scored: Scored = await call(self.function, given)
            else:
                clock = CLOCK.get()
                clock.name = f"{given.case.id} (scorer {self.name!r})"
                scored = await call_apart(partial(self.function, given), clock)
        except ENDS_A_LOOP as error:
            raise GraderError(f"the scorer raised {type(error).__name__}: {error}") from error
        return scored


def named_scorers(functions: Iterable[Callable[..., Any]], *, offline: bool = False) -> dict[str, "SuiteScorer"]:
    """Return the scorers by name; number repeated names. `offline` scorers use recordings only."""
    scorers: dict[str, SuiteScorer] = {}
    for function in functions:
        given = (getattr(function, "name", None), getattr(function, "__name__", None))
        usable = (name for name in given if isinstance(name, str) and name.strip() and name.isprintable())
        name = next(usable, type(function).__name__)
        unique = free_name("scorer" if name == "<lambda>" else name, scorers, "{}-{}")
        scorer: Any = function
        if offline and isinstance(scorer, NeedsNetwork):
            scorer = scorer.offline()
        scorers[unique] = SuiteScorer(scorer, unique, offline)
    return scorers


def digests_of(functions: Iterable[Callable[..., Any]]) -> dict[str, str]:
    """Return a digest of each scorer by name, which differs for scorers that score differently."""
    return {name: scorer_digest(one.function) for name, one in named_scorers(functions).items()}


def refuse_incomplete(scorers: Mapping[str, Scorer]) -> None:
    """Raise InfraError if a scorer lacks a key or an address. Call this before the first task."""
    online = (each for each in scorers.values() if isinstance(each, SuiteScorer) and not each.offline)
    named: list[tuple[str, object]] = [(scorer.name, scorer.function) for scorer in online]
    needing = ((name, function) for name, function in named if isinstance(function, NeedsNetwork))
    lacking = [f"scorer {name!r}: {lack}" for name, function in needing for lack in function.lacks()]
    if lacking:
        raise InfraError("; ".join(lacking), permanent=True)


async def preload(scorers: Mapping[str, Scorer]) -> None:
    """Import the modules that the scorers need, in a thread, before the first case."""
    for scorer in scorers.values():
        if isinstance(scorer, SuiteScorer) and (needed := getattr(scorer.function, "preload", None)):
            await asyncio.to_thread(needed)


def is_debugging(config: pytest.Config) -> bool:
    """Tell whether pytest was told to open a debugger where a test fails."""
    return bool(config.getoption("usepdb", False))
