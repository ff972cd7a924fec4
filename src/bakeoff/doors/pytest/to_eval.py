"""Run one eval inside an ordinary test."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import pytest

from bakeoff._kernel.json import clean
from bakeoff._kernel.text import escaped
from bakeoff.doors.pytest.adapters import Errors, EvalSubject, ReadyOutput, call_with_row
from bakeoff.doors.pytest.evaluation import Evaluation, Evaluations
from bakeoff.doors.pytest.failures import report
from bakeoff.doors.pytest.loops import on_asyncio
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.session import session_of
from bakeoff.doors.pytest.suite import SettingOptions, check_scorers, settings_of
from bakeoff.errors import UsageError
from bakeoff.plan import Gate
from bakeoff.protocols import Subject
from bakeoff.scorers.adapters import ScorerLike

_NOT_GIVEN: Any = object()
_WAY_OUT = "write `await to_eval(…)`, or `to_eval.sync(…)` in a test that is not async"


@dataclass(slots=True)
class ToEval:
    """The value of the fixture `to_eval`."""

    _config: pytest.Config
    _nodeid: str
    _name: str
    _calls: int = 0
    made: Evaluations = field(default_factory=Evaluations)

    def __call__(
        self,
        input: Any,
        *,
        task: Callable[..., Any] | None = None,
        output: Any = _NOT_GIVEN,
        scorer: ScorerLike | None = None,
        scorers: Iterable[ScorerLike] = (),
        threshold: float | None = 1.0,
        gate: Gate = "mean",
        rounds: int | None = None,
        timeout: float | None = 60.0,
        null_as_zero: bool = False,
        isolate: bool = False,
        **row: Any,
    ) -> Evaluation[EvalOutcome]:
        """Score what a task returns for an input, or an output that exists already. A low score fails the test.

        Args:
            input: the input of the task.
            task: the function to call; either this or `output` is given.
            output: the output to score.
            scorer: a scorer, besides those of `scorers`.
            threshold, gate, rounds, timeout, null_as_zero, isolate: as for `eval_suite`.
            row: everything else (`expected`, `expected_tools`, …) is given to the task and the scorers.
        """
        options: SettingOptions = {
            "threshold": threshold,
            "gate": gate,
            "rounds": rounds,
            "timeout": timeout,
            "null_as_zero": null_as_zero,
            "isolate": isolate,
        }
        _refuse_misspelt(row, options)
        given = [*([scorer] if scorer is not None else []), *scorers]
        evaluated = self._evaluated({"input": input, **row}, task, output, given, options)
        return self.made.add(Evaluation(evaluated, _WAY_OUT))

    async def _evaluated(
        self,
        row: dict[str, Any],
        task: Callable[..., Any] | None,
        output: Any,
        scorers: Iterable[ScorerLike],
        options: SettingOptions,
    ) -> EvalOutcome:
        __tracebackhide__ = True
        session = session_of(self._config)  # also starts replay
        settings = settings_of("to_eval", **options)
        case = EvalRow("", clean(row))
        errors: Errors = {}
        self._calls += 1
        case_id = escaped(self._nodeid if self._calls == 1 else f"{self._nodeid} #{self._calls}")
        subject = _subject(case, task, output, errors, isolate=settings.isolate)
        given = check_scorers("to_eval", scorers)
        trials = session.trials({case_id: case}, subject, session.subjects[""], given, settings)
        records = await session.records(trials)
        outcome = EvalOutcome(
            nodeid=self._nodeid,
            suite=self._name,
            case=str(row.get("name", self._name)),
            input=case.shown_input,
            expected=case.expected,
            rule=settings.rule,
            subject=session.subject_to_tell(""),
        ).judged(records)
        report(self._config, outcome, {round_: error for (_, round_), error in errors.items()})
        return outcome

    def sync(self, input: Any, **given: Any) -> EvalOutcome:
        """Do the same in a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._config).loop.result(self(input, **given))


def _refuse_misspelt(row: Iterable[str], options: Iterable[str]) -> None:
    """Refuse a name that is nearly an option: as a part of the row, it would change nothing."""
    for name in row:
        if near := get_close_matches(name, [*options, "scorer", "scorers", "output"], n=1, cutoff=0.85):
            raise UsageError(f"to_eval: {name!r} is no option: did you mean {near[0]!r}?")


def _subject(row: EvalRow, task: Callable[..., Any] | None, output: Any, errors: Errors, *, isolate: bool) -> Subject:
    __tracebackhide__ = True
    if (task is None) == (output is _NOT_GIVEN):
        raise UsageError("to_eval: give either a `task` or an `output`")
    if task is None:
        return ReadyOutput(output)
    if not on_asyncio() and inspect.iscoroutinefunction(task):
        raise UsageError("to_eval: an async task needs asyncio, which does not run here: give `output=await …`")
    return EvalSubject(lambda _: call_with_row(task, row), errors, isolate)
