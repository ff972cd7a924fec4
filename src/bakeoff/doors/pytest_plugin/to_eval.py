"""`to_eval`: one eval inside an ordinary test."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bakeoff._kernel.json import clean
from bakeoff.doors.pytest_plugin.failures import failure_of
from bakeoff.doors.pytest_plugin.gather import gathering
from bakeoff.doors.pytest_plugin.judging import outcome_of
from bakeoff.doors.pytest_plugin.loops import on_asyncio
from bakeoff.doors.pytest_plugin.options import rounds_of, run_options
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.parallel import Production
from bakeoff.doors.pytest_plugin.rows import Row, printable
from bakeoff.doors.pytest_plugin.scoring import named_scorers
from bakeoff.doors.pytest_plugin.session import session_of
from bakeoff.doors.pytest_plugin.settings import settings_of
from bakeoff.doors.pytest_plugin.suite import check_scorers
from bakeoff.doors.pytest_plugin.tasks import Errors, EvalSubject, ReadyMade, call_with_row
from bakeoff.errors import UsageError
from bakeoff.protocols import Subject

_NOTHING: Any = object()


@dataclass(slots=True)
class ToEval:
    """What a test asks for by the name `to_eval`."""

    _config: pytest.Config
    _session: pytest.Session
    _nodeid: str
    _name: str
    _asked: int = 0

    def _case_id(self) -> str:
        """Of the second eval of a test on, with a number."""
        self._asked += 1
        return printable(self._nodeid if self._asked == 1 else f"{self._nodeid} #{self._asked}")

    async def __call__(
        self,
        input: Any,
        *,
        task: Callable[..., Any] | None = None,
        output: Any = _NOTHING,
        scorer: Callable[..., Any] | None = None,
        scorers: Sequence[Callable[..., Any]] = (),
        threshold: float | None = 1.0,
        gate: str = "mean",
        rounds: int | None = None,
        timeout: float | None = 60.0,
        null_as_zero: bool = False,
        isolate: bool = False,
        **row: Any,
    ) -> EvalOutcome:
        """Score what `task` makes of the input, or a ready-made `output`; the test fails if that is too low.

        Whatever else is given (`expected`, `expected_tools`, …) is handed to the task and the scorers, as a row is.
        """
        __tracebackhide__ = True
        session = session_of(self._config)  # which begins to replay, where that is asked for
        settings = settings_of("to_eval", threshold, gate, rounds, timeout, None, null_as_zero, isolate)
        options = run_options(self._config)
        case = Row("", clean({"input": input, **row}))
        errors: Errors = {}
        production = Production(
            name=self._name,
            rows=[case],
            around=(self._case_id(), ""),
            subject=_subject(case, task, output, errors, isolate=isolate),
            scorers=named_scorers(
                _scorers(scorer, scorers), null_as_zero=null_as_zero, offline=options.replay == "strict"
            ),
            settings=settings,
            rounds=rounds_of(self._config, settings),
            options=options,
            column=session.columns(self._session)[""],
        )
        records = await session.records(production)
        shown = Row(str(row.get("name", self._name)), case.values)
        column = "", session.subject_to_tell(self._session, "")
        outcome = outcome_of(self._nodeid, self._name, shown, settings, records, column)
        gathering(self._config).add(self._nodeid, outcome)
        raised = {round_: error for (_, round_), error in errors.items()}
        if (failure := failure_of(outcome, raised)) is not None:
            raise failure
        return outcome

    def sync(self, input: Any, **given: Any) -> EvalOutcome:
        """The same for a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._config).loop.result(self(input, **given))


def _scorers(
    scorer: Callable[..., Any] | None, scorers: Sequence[Callable[..., Any]]
) -> tuple[Callable[..., Any], ...]:
    return check_scorers("to_eval", [*([scorer] if scorer is not None else []), *scorers])


def _subject(row: Row, task: Callable[..., Any] | None, output: Any, errors: Errors, *, isolate: bool) -> Subject:
    __tracebackhide__ = True
    if (task is None) == (output is _NOTHING):
        raise UsageError("to_eval: give either a `task` or an `output`")
    if task is None:
        return ReadyMade(output)
    if not on_asyncio() and inspect.iscoroutinefunction(task):
        raise UsageError("to_eval: an async task is run by asyncio, which does not run here: give `output=await …`")
    return EvalSubject(lambda _: call_with_row(task, row), errors, isolate)
