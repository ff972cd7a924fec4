"""Evals inside of ordinary tests: `to_eval`, `run_eval`, and the scores that a test logs.

A test that logs scores is an eval with these scores. Its asserts decide whether it passes, so the
threshold is 0: a test that raises an error has failed and counts as 0, whatever it logged before.
Without a score, a test that passes counts as 1.
"""

import asyncio
import inspect
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import JsonValue

from bakeoff._kernel.json import as_json, clean
from bakeoff._kernel.text import escaped
from bakeoff.doors.pytest.adapters import Errors, EvalSubject, ReadyOutput, call_with_row, digests_of
from bakeoff.doors.pytest.gather import CALLED, FOR_PYTEST, LOGGED, RUNNING, EvalFailed, gathering, report
from bakeoff.doors.pytest.loops import on_asyncio
from bakeoff.doors.pytest.lost import lost_eval
from bakeoff.doors.pytest.options import name_of_test
from bakeoff.doors.pytest.parallel import EMPTY_PLAN, SuiteTrials
from bakeoff.doors.pytest.rows import EvalRow
from bakeoff.doors.pytest.session import session_of
from bakeoff.doors.pytest.suite import SettingOptions, Settings, check_scorers, settings_of
from bakeoff.engine.trial import as_score
from bakeoff.errors import UsageError
from bakeoff.plan import Case, Gate, PassRule
from bakeoff.protocols import Subject
from bakeoff.record import Failure, Phase, Record, Score, ToolCall, Transcript, Usage
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.scorers.adapters import ScorerLike
from bakeoff.sdk_results import transcript_of
from bakeoff.storage.ledger import NOT_RUN, SKIPPED, UNFINISHED

Result = TypeVar("Result")
Evaluation = Coroutine[Any, Any, Result]
"""An eval that was called and must be awaited."""


def _outcome(
    config: pytest.Config,
    nodeid: str,
    name: str,
    row: EvalRow,
    rule: PassRule,
    records: Sequence[Record],
    scorers: Iterable[Callable[..., Any]] = (),
) -> EvalOutcome:
    """Return the outcome of an eval in the test with this node id and name."""
    return EvalOutcome(
        nodeid=nodeid,
        suite=name,
        case=str(row.values.get("name", name)),
        input=row.shown_input,
        expected=row.expected,
        rule=rule,
        scorers=digests_of(scorers),
        subject=session_of(config).subject_to_tell(""),
    ).judged(records)


_NOT_GIVEN: Any = object()
_WAY_OUT = "write `await to_eval(…)`, or `to_eval.sync(…)` in a test that is not async"


@dataclass(slots=True, eq=False)
class EvalCall:
    """One call of an eval in a test, for which an outcome is needed before the test ends."""

    row: EvalRow
    place: str  # file and line
    way_out: str  # how the call is written right
    task: object  # asyncio's task that made the call
    evaluation: Evaluation[Any] | None = None
    ended: bool = False  # with an outcome, or with an error of the task that the test was given
    failed: EvalOutcome | None = None  # of a task whose error may never be retrieved

    @property
    def is_apart(self) -> bool:
        """Tell whether the eval runs in another asyncio task than the one in which it was called."""
        return self.task is not None and asyncio.current_task() is not self.task


@dataclass(slots=True)
class EvalFixture:
    """The common base of both fixtures' values, which knows the evals that its test has called."""

    _config: pytest.Config
    _nodeid: str
    _name: str
    _calls: int = 0
    _made: list[EvalCall] = field(default_factory=list)
    _is_over: bool = False
    _process: int = field(default_factory=os.getpid)

    def made(
        self, row: Mapping[str, Any], start: Callable[[EvalCall], Evaluation[Result]], way_out: str
    ) -> Evaluation[Result]:
        """Note a call, which the test has to await, and return its eval; `way_out` shows the correct form."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename == __file__ and frame.f_back is not None:  # up to the test
            frame = frame.f_back
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        if self._is_over:
            raise UsageError(f"{place}: this eval is called after the end of its test, and would not be counted")
        if os.getpid() != self._process:
            raise UsageError(f"{place}: this eval is called in a forked process, where it cannot run or be counted")
        task = asyncio.current_task() if on_asyncio() else None
        call = EvalCall(EvalRow("", clean(row)), place, way_out, task)
        self._made.append(call)
        evaluation = call.evaluation = start(call)
        return evaluation

    def end(self) -> Iterator[tuple[EvalCall, str, str]]:
        """End the test: yield each call without an outcome, with the type of its failure and a sentence."""
        self._is_over = True
        for call in [call for call in self._made if not call.ended]:
            assert call.evaluation is not None
            if inspect.getcoroutinestate(call.evaluation) == inspect.CORO_CREATED:
                call.evaluation.close()
                yield call, NOT_RUN, f"{call.place}: this eval was called and never awaited: {call.way_out}"
            else:
                said = "was started and had not finished when its test ended: await it to its end"
                yield call, UNFINISHED, f"{call.place}: this eval {said}"

    def report(self, call: EvalCall, outcome: EvalOutcome, errors: Mapping[int, BaseException]) -> None:
        """Report the outcome of a call, unless its test has ended and the eval is already counted as lost."""
        __tracebackhide__ = True
        if not self._is_over:
            call.ended = True
            report(self._config, outcome, errors)


def add_unfinished(item: pytest.Item, error: BaseException | None = None) -> str | None:
    """Add an outcome for each eval that a test has called but not finished; return a sentence about the first.

    Args:
        item: The test, at its end.
        error: The error that the test raised.
    """
    gathered, sentences = gathering(item.config), []
    raised = "" if error is None else f"; the test raised {type(error).__name__}: {error}"
    for fixture in item.stash[CALLED]:
        for call, kind, sentence in fixture.end():
            if call.failed is not None:
                if error is None:
                    gathered.add(item.nodeid, call.failed)
                continue
            sentences.append(sentence)
            one = _outcome(item.config, item.nodeid, name_of_test(item), call.row, _DEFAULT_RULE, ())
            case_id = f"{one.case_id} (unfinished {len(sentences)})"
            why = f"{sentence}{raised}"[:_MAX_LENGTH]
            gathered.add(item.nodeid, lost_eval(one, why, session_of(item.config).subjects, kind, case_id=case_id))
    if sentences and error is None and LOGGED in item.stash:
        del item.stash[LOGGED]  # the test itself neither passed nor failed
    return sentences[0] if sentences else None


class ToEval(EvalFixture):
    """The value of the fixture `to_eval`."""

    __slots__ = ()

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
        **row: Any,
    ) -> Evaluation[EvalOutcome]:
        """Score what a task returns for an input, or an output that exists already. A low score fails the test.

        Args:
            input: the input of the task.
            task: the function to call; either this or `output` is given.
            output: the output to score.
            scorer: a scorer, besides those of `scorers`.
            threshold, gate, rounds, timeout, null_as_zero: as for `eval_suite`.
            row: everything else (`expected`, `expected_tools`, …) is given to the task and the scorers.
        """
        __tracebackhide__ = True
        options: SettingOptions = {
            "threshold": threshold,
            "gate": gate,
            "rounds": rounds,
            "timeout": timeout,
            "null_as_zero": null_as_zero,
        }
        for name in row:  # a name that is nearly an option would change nothing as a part of the row
            if near := get_close_matches(name, [*options, "scorer", "scorers", "output"], n=1, cutoff=0.85):
                raise UsageError(f"to_eval: {name!r} is no option: did you mean {near[0]!r}?")
        if (task is None) == (output is _NOT_GIVEN):
            raise UsageError("to_eval: give either a `task` or an `output`")
        settings = settings_of("to_eval", **options)
        given = check_scorers("to_eval", [*([scorer] if scorer is not None else []), *scorers])
        values = {"input": input, **row}
        return self.made(values, lambda call: self._evaluated(call, task, output, given, settings), _WAY_OUT)

    async def _evaluated(
        self,
        call: EvalCall,
        task: Callable[..., Any] | None,
        output: Any,
        scorers: Iterable[Callable[..., Any]],
        settings: Settings,
    ) -> EvalOutcome:
        __tracebackhide__ = True
        session = session_of(self._config)  # also starts replay
        case, errors = call.row, Errors()
        self._calls += 1
        case_id = escaped(self._nodeid if self._calls == 1 else f"{self._nodeid} #{self._calls}")
        subject = _subject(case, task, output, errors)
        trials = session.trials({case_id: case}, subject, session.subjects[""], scorers, settings)
        records = await session.records(trials)
        outcome = _outcome(self._config, self._nodeid, self._name, case, settings.rule, records, scorers)
        self.report(call, outcome, {round_: error for (_, round_), error in errors.items()})
        return outcome

    def sync(self, input: Any, **given: Any) -> EvalOutcome:
        """Score an input as `to_eval` itself does, in a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._config).loop.result(self(input, **given))


def _subject(row: EvalRow, task: Callable[..., Any] | None, output: Any, errors: Errors) -> Subject:
    __tracebackhide__ = True
    if task is None:
        return ReadyOutput(output)
    if not on_asyncio() and inspect.iscoroutinefunction(task):
        raise UsageError("to_eval: an async task needs asyncio, which does not run here: give `output=await …`")
    return EvalSubject(lambda _: call_with_row(task, row), errors)


_BY_THE_TEST, _DEFAULT_RULE = PassRule(threshold=0.0), PassRule()
_MAX_LENGTH = 2000


@dataclass(slots=True)
class TestLog:
    """The input, outputs and scores that one test has logged so far."""

    __test__ = False  # keep pytest from collecting it

    started: float = field(default_factory=time.time)
    row: dict[str, Any] = field(default_factory=dict)
    transcript: Transcript = field(default_factory=Transcript)
    scores: dict[str, Score] = field(default_factory=dict)


def log_input(input: Any, **row: Any) -> None:
    """Log the input of the running test, and other values of its case, such as `expected`."""
    _log("log_input").row = {"input": input, **row}


def log_output(output: Any) -> None:
    """Log the output of the application: text, data, a `TaskResult`, or the result object of a known SDK."""
    _log("log_output").transcript = transcript_of(output)


def log_score(name: str, value: float | bool | None, reason: str = "", **metadata: Any) -> None:
    """Log a score from 0 to 1 for the running test. A second score of the same name replaces the first.

    Args:
        name: the name of the score in every report.
        value: the score; None is unscored, and left out of the mean.
        reason: why, for those who read the report.
        metadata: anything else that is to be kept with the score.
    """
    log = _log("log_score")
    score = as_score(name, value)
    kept: Mapping[str, Any] = {key: as_json(each) for key, each in metadata.items()}
    log.scores[name] = score.model_copy(update={"reason": reason or score.reason, "metadata": kept})


def _log(function: str) -> TestLog:
    item = RUNNING[-1] if RUNNING else None
    if item is None:
        raise UsageError(f"{function}: no test is running: call it in a test or in code that a test calls")
    if hasattr(item, "group"):
        raise UsageError(f"{function}: {item.nodeid} is a case of a suite, whose scorers score what it returns")
    log: TestLog = item.stash.setdefault(LOGGED, TestLog())
    return log


def add_logged(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Add the eval of a test that has logged something, once the test has run."""
    log = item.stash[LOGGED]
    del item.stash[LOGGED]  # the test may be run again
    error = call.excinfo.value if call.excinfo else None
    gathered = gathering(item.config)
    others = gathered.has(item.nodeid)
    if others and not log.scores and (error is None or isinstance(error, EvalFailed)):
        return  # evals of the test have said everything
    row = EvalRow("", log.row)
    if isinstance(error, FOR_PYTEST):
        one = _outcome(item.config, item.nodeid, name_of_test(item), row, _BY_THE_TEST, ())
        skipped = lost_eval(one, f"it was skipped: {error}"[:_MAX_LENGTH], session_of(item.config).subjects, SKIPPED)
        gathered.add(item.nodeid, skipped)
        return
    case = Case(id=escaped(item.nodeid) + (" log" if others else ""), prompt=row.shown_input, expected=row.expected)
    failure = error and Failure(kind="subject", type=type(error).__name__, message=str(error)[:_MAX_LENGTH])
    scores = tuple(log.scores.values())
    if not failure and not scores:
        scores += (Score(name="asserts", value=1.0, reason="the test passed"),)
    record = Record(
        **EMPTY_PLAN.trial_of(case, session_of(item.config).subjects[""], 0, 0).identity,
        started=log.started,
        threshold=_BY_THE_TEST.threshold,
        attempt=Phase(seconds=call.duration, failure=failure),
        transcript=log.transcript,
        scores=scores,
        spent=log.transcript.usage,
    )
    gathered.add(item.nodeid, _outcome(item.config, item.nodeid, name_of_test(item), row, _BY_THE_TEST, [record]))


_WAY_OUT_OF_RUN = "write `await run_eval(…)`, or `run_eval.sync(…)` in a test that is not async"
_WAY_OUT_OF_JUDGE = "write `await result.judge(…)`, or `result.judge_sync(…)` in a test that is not async"


class RunEval(EvalFixture):
    """The value of the fixture `run_eval`."""

    __slots__ = ()

    def __call__(
        self, input: Any, *, task: Callable[..., Any], timeout: float | None = 60.0, **row: Any
    ) -> Evaluation["EvalRun"]:
        """Call a task as a suite does, and return what it did. An error of the task fails the test at this call.

        Args:
            input: the input of the task.
            task: the function to call, sync or async.
            timeout: seconds for the task, and for each judge; None for no limit.
            row: everything else (`expected`, …) is given to the judges, and to the task if it has parameters for it.
        """
        __tracebackhide__ = True
        settings = settings_of("run_eval", timeout=timeout, rounds=1, threshold=None)
        return self.made({"input": input, **row}, lambda call: self._run(call, task, settings), _WAY_OUT_OF_RUN)

    async def _run(self, call: EvalCall, task: Callable[..., Any], settings: Settings) -> "EvalRun":
        __tracebackhide__ = True
        session = session_of(self._config)  # also starts replay
        case = call.row
        log_input(**{str(name): value for name, value in case.values.items()})
        self._calls += 1
        case_id = escaped(f"{self._nodeid} run {self._calls}")
        errors: Errors = {}
        subject = EvalSubject(lambda _: call_with_row(task, case), errors)
        trials = session.trials({case_id: case}, subject, session.subjects[""], (), settings)
        (record,) = await session.records(replace(trials, rounds=1))
        if record.transcript is not None:
            _log("run_eval").transcript = record.transcript
        run = EvalRun(self, case, case_id, trials, record)
        if record.failure is not None and record.failure.kind != "subject":
            self.report(call, run.outcome([record]), {})  # raises: it took too long, or a provider failed
        if errors and call.is_apart:
            call.failed = run.outcome([record])
        call.ended = call.failed is None
        if errors:
            raise next(iter(errors.values()))
        return run

    def sync(self, input: Any, *, task: Callable[..., Any], timeout: float | None = 60.0, **row: Any) -> "EvalRun":
        """Call the task as `run_eval` itself does, in a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._config).loop.result(self(input, task=task, timeout=timeout, **row))


@dataclass(frozen=True, slots=True)
class EvalRun:
    """One call of a task: its output, its tool calls and its scores."""

    _by: RunEval
    _row: EvalRow
    _case_id: str
    _trials: SuiteTrials
    record: Record

    @property
    def transcript(self) -> Transcript:
        """Return the whole transcript of the task, as scorers receive it."""
        assert self.record.transcript is not None  # a run without one has raised
        return self.record.transcript

    @property
    def output(self) -> JsonValue:
        """Return what the task returned, as data."""
        return self.transcript.output

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls in their order, also those of nested agents."""
        return self.transcript.tool_calls

    @property
    def usage(self) -> Usage:
        """Return the tokens and the cost of the task, without those of judges."""
        return self.record.spent

    @property
    def seconds(self) -> float:
        """Return the time that the task took, without waits for a provider."""
        return self.record.attempt.working_seconds if self.record.attempt else 0.0

    def judge(self, *scorers: ScorerLike, threshold: float | None = 1.0) -> Evaluation[EvalOutcome]:
        """Score the run without calling the task again. A low score fails the test where `judge` is called."""
        __tracebackhide__ = True
        settings, given = settings_of("judge", threshold=threshold), check_scorers("judge", scorers)
        return self._by.made(self._row.values, lambda call: self._judged(call, given, settings), _WAY_OUT_OF_JUDGE)

    async def _judged(self, call: EvalCall, given: Iterable[Callable[..., Any]], settings: Settings) -> EvalOutcome:
        __tracebackhide__ = True
        session = session_of(self._by._config)
        trials = session.trials({self._case_id: self._row}, self._trials.subject, self._trials.spec, given, settings)
        settings = replace(settings, timeout=self._trials.settings.timeout)
        records = await session.records(replace(trials, rounds=1, settings=settings, prior=self.record))
        outcome = self.outcome(records, settings.rule, given)
        self._by.report(call, outcome, {})
        return outcome

    def judge_sync(self, *scorers: ScorerLike, threshold: float | None = 1.0) -> EvalOutcome:
        """Score the run as `judge` does, in a test that is not async."""
        __tracebackhide__ = True
        return session_of(self._by._config).loop.result(self.judge(*scorers, threshold=threshold))

    def outcome(
        self, records: list[Record], rule: PassRule = _DEFAULT_RULE, scorers: Iterable[Callable[..., Any]] = ()
    ) -> EvalOutcome:
        """Return the outcome of the run with these records."""
        by = self._by
        return _outcome(by._config, by._nodeid, by._name, self._row, rule, records, scorers)
