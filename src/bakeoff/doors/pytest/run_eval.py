"""Run the application once inside an ordinary test: plain asserts on the result, and judges where asserts do not do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import JsonValue

from bakeoff._kernel.json import clean
from bakeoff._kernel.text import escaped
from bakeoff.doors.pytest.adapters import Errors, EvalSubject, call_with_row
from bakeoff.doors.pytest.evaluation import Evaluation, Evaluations
from bakeoff.doors.pytest.failures import report
from bakeoff.doors.pytest.logs import log_input, log_transcript
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.parallel import SuiteTrials
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.session import session_of
from bakeoff.doors.pytest.suite import check_scorers, settings_of
from bakeoff.record import Record, ToolCall, Transcript, Usage
from bakeoff.scorers.adapters import ScorerLike

_WAY_OUT = "write `await run_eval(…)`, or `run_eval.sync(…)` in a test that is not async"
_WAY_OUT_OF_JUDGE = "write `await result.judge(…)`, or `result.judge_sync(…)` in a test that is not async"


@dataclass(slots=True)
class RunEval:
    """The value of the fixture `run_eval`."""

    _config: pytest.Config
    _nodeid: str
    _name: str
    _calls: int = 0
    made: Evaluations = field(default_factory=Evaluations)

    def __call__(
        self, input: Any, *, task: Callable[..., Any], timeout: float | None = 60.0, **row: Any
    ) -> Evaluation["EvalRun"]:
        """Call a task as a suite does and return what it did. An error of the task fails the test at this line.

        Args:
            input: the input of the task.
            task: the function to call, sync or async.
            timeout: seconds for the task, and for each judge; None for no limit.
            row: everything else (`expected`, …) is given to the judges, and to the task if it has parameters for it.
        """
        return self.made.add(Evaluation(self._run({"input": input, **row}, task, timeout), _WAY_OUT))

    async def _run(self, row: dict[str, Any], task: Callable[..., Any], timeout: float | None) -> "EvalRun":
        __tracebackhide__ = True
        session = session_of(self._config)  # also starts replay
        case = EvalRow("", clean(row))
        log_input(**{str(name): value for name, value in case.values.items()})
        self._calls += 1
        case_id = escaped(f"{self._nodeid} run {self._calls}")
        errors: Errors = {}
        subject = EvalSubject(lambda _: call_with_row(task, case), errors)
        settings = settings_of("run_eval", timeout=timeout, rounds=1, threshold=None)
        trials = session.trials({case_id: case}, subject, session.subjects[""], (), settings)
        (record,) = await session.records(replace(trials, rounds=1))
        if record.transcript is not None:
            log_transcript(record.transcript)
        run = EvalRun(self, case, case_id, trials, record)
        if record.failure is not None and record.failure.kind != "subject":
            report(self._config, run.outcome([record]), {})  # raises: it took too long, or a provider failed
        if errors:
            raise next(iter(errors.values()))
        return run

    def sync(self, input: Any, *, task: Callable[..., Any], timeout: float | None = 60.0, **row: Any) -> "EvalRun":
        """Do the same in a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._config).loop.result(self(input, task=task, timeout=timeout, **row))


@dataclass(frozen=True, slots=True)
class EvalRun:
    """Hold one call of a task: its output, its tool calls and its scores."""

    _by: RunEval
    _row: EvalRow
    _case_id: str
    _trials: SuiteTrials
    record: Record

    @property
    def transcript(self) -> Transcript:
        assert self.record.transcript is not None  # a run without one has raised
        return self.record.transcript

    @property
    def output(self) -> JsonValue:
        return self.transcript.output

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.transcript.tool_calls

    @property
    def usage(self) -> Usage:
        return self.record.spent

    @property
    def seconds(self) -> float:
        return self.record.attempt.working_seconds if self.record.attempt else 0.0

    def judge(self, *scorers: ScorerLike, threshold: float | None = 1.0) -> Evaluation[EvalOutcome]:
        """Score the run without calling the task again. A score below the threshold fails the test at this line."""
        return self._by.made.add(Evaluation(self._judged(scorers, threshold), _WAY_OUT_OF_JUDGE))

    async def _judged(self, scorers: Sequence[ScorerLike], threshold: float | None) -> EvalOutcome:
        __tracebackhide__ = True
        settings = settings_of("judge", threshold=threshold)
        given = check_scorers("judge", scorers)
        session = session_of(self._by._config)
        trials = session.trials({self._case_id: self._row}, self._trials.subject, self._trials.spec, given, settings)
        settings = replace(settings, timeout=self._trials.settings.timeout)
        records = await session.records(replace(trials, rounds=1, settings=settings, prior=self.record))
        outcome = self.outcome(records, threshold)
        report(self._by._config, outcome, {})
        return outcome

    def judge_sync(self, *scorers: ScorerLike, threshold: float | None = 1.0) -> EvalOutcome:
        """Do the same in a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._by._config).loop.result(self.judge(*scorers, threshold=threshold))

    def outcome(self, records: list[Record], threshold: float | None = 1.0) -> EvalOutcome:
        """Return the outcome of the run with these records of it."""
        return EvalOutcome(
            nodeid=self._by._nodeid,
            suite=self._by._name,
            case=str(self._row.values.get("name", self._by._name)),
            input=self._row.shown_input,
            expected=self._row.expected,
            rule=settings_of("judge", threshold=threshold).rule,
            subject=session_of(self._by._config).subject_to_tell(""),
        ).judged(records)
