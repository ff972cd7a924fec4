"""Run one trial: prepare a workspace, let the subject attempt, score, and return a Record.

`TrialRunner.run` makes a `Record` of a `Job`. Each of the three steps runs in a `phase`, the only
place that turns an error into a `Failure` with a kind. A `UsageTally` counts the spending of the
trial and reports it at once, so that budgets hold with parallel trials.
"""

import asyncio
import numbers
import random
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar

from bakeoff._kernel.clock import Clock, Delay
from bakeoff._kernel.text import free_name
from bakeoff._kernel.threads import call
from bakeoff._kernel.tracing import OFF, SPANS, TRACING, Attributes, Tracing
from bakeoff.engine.registry import ResolvedPlan, needs_of, no_tools
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import BudgetError, GraderError, InfraError, SubjectError, SubjectTimeout, TrialError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, ScorerSpec, Trial
from bakeoff.protocols import SCORING, Sandbox, ScoreInput, Scorer, Subject, Task, Tool, Workspace
from bakeoff.record import NO_USAGE, TRANSFORMED, Failure, Phase, Record, Score, Transcript, Usage
from bakeoff.verdict import reaches

Result = TypeVar("Result")
FailureKind = Literal["subject", "timeout", "budget", "infra", "grader"]

_KINDS: Mapping[type[TrialError], FailureKind] = {
    SubjectError: "subject",
    SubjectTimeout: "timeout",
    InfraError: "infra",
    BudgetError: "budget",
    GraderError: "grader",
}
_CLEANUP_SECONDS = 600.0  # a subject can make its folder slow to remove
_DETAIL = 4000  # last characters of a traceback that are kept

_WAITING: ContextVar["asyncio.Task[Any] | None"] = ContextVar("_WAITING", default=None)
"""The task that waits for the one in which a trial runs; see `apart`."""


@dataclass(frozen=True, slots=True)
class Job:
    """One trial to run. With a `prior` record, only scoring is left."""

    trial: Trial
    prior: Record | None = None
    spent: Usage = NO_USAGE  # by earlier processes on this trial


@dataclass(slots=True)
class UsageTally:
    """Counts the usage of one trial, and reports it to the run as it arrives."""

    tell: Callable[[Usage], None]
    spent: Usage = NO_USAGE
    this_try: Usage = NO_USAGE
    judging: Usage = NO_USAGE

    def add(self, usage: Usage, *, judging: bool = False) -> None:
        """Count usage that is paid for now. Set `judging` for the usage of a scorer."""
        self.count(usage, judging=judging)
        self.tell(usage)

    def count(self, usage: Usage, *, judging: bool = False) -> None:
        """Count usage that a recording paid for, which is not charged to the budget."""
        self.spent += usage
        self.this_try += usage
        if judging:
            self.judging += usage

    def settle(self, usage: Usage) -> None:
        """Add the part of the total usage of a try that was not reported during the try."""
        told = self.this_try
        if usage == told:
            return
        # Never negative: reported usage counts, even if the transcript reports less.
        names = [name for name in Usage.model_fields if name != "cost"]
        counts = {name: max(0, getattr(usage, name) - getattr(told, name)) for name in names}
        told_cost = told.cost or 0.0
        cost = usage.cost - told_cost if usage.cost is not None and usage.cost > told_cost else None
        untold = Usage(**counts, cost=cost)
        if untold != NO_USAGE:
            with suppress(BudgetError):  # this answer is paid for; the limit stops the next trial
                self.add(untold)


@dataclass(slots=True)
class AttemptResult:
    """The results of a try so far; None for phases not reached. `started` is a Unix time."""

    started: float = field(default_factory=time.time)
    prepare: Phase | None = None
    attempt: Phase | None = None
    tools: tuple[Tool, ...] = ()
    transcript: Transcript | None = None
    artefacts: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    workspace: str | None = None


_TRIED = ("started", "prepare", "attempt", "transcript", "artefacts", "refused", "workspace")
"""The fields that `AttemptResult` and a record share."""


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """Runs jobs. It holds only data that all trials of a run share."""

    resolved: ResolvedPlan
    options: RunOptions
    sandbox: Callable[[], Sandbox]  # called when the first workspace is made
    resources: Mapping[str, Any]
    control: RunControl

    async def run(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        """Run one trial, with retries after infra failures, and return its record.

        Call it inside `apart`, which tells apart cancellations by the caller and by the trial.

        Args:
            job: the trial.
            spend: counts usage as it arrives, and raises BudgetError at a limit.
        """
        trial = job.trial
        tracing: Tracing = self.resources.get(TRACING, OFF)
        about: Attributes = {
            "bakeoff.case": trial.case.id,
            "bakeoff.subject": trial.subject.name,
            "bakeoff.round": trial.round,
        }
        self.control.in_flight[trial.index] = (trial.subject.name, trial.case.id)
        try:
            with tracing.span(f"trial {trial.case.id}", about) as span:
                record = await self._run(job, spend)
                self.note_refusal(record)
                if tracing is not OFF:
                    span.note({"bakeoff.verdict": record.verdict, "bakeoff.tries": record.tries})
                    for score in record.scores:  # without reasons, which quote answers
                        about = {
                            "gen_ai.evaluation.name": score.name,
                            "gen_ai.evaluation.score.value": score.value,
                            "gen_ai.evaluation.score.label": None if score.value is not None else "unscored",
                        }
                        span.event("gen_ai.evaluation.result", about)
                    if record.failure is not None:
                        span.failed(record.failure.type)
            return record
        finally:
            del self.control.in_flight[trial.index]

    def note_refusal(self, record: Record) -> None:
        """If the provider refuses the subject, perhaps for a wrong key, skip its trials."""
        failure = record.failure
        if failure is not None and failure.stops_subject:
            self.control.refused.setdefault(record.subject, self.control.redact(failure.message))

    def not_started(self, job: Job, reason: str, kind: Literal["budget", "infra"] = "budget") -> Record:
        """Return the record of a trial that a limit or a provider's refusal has prevented."""
        return self.lost(
            job, Failure(kind=kind, type="BudgetError" if kind == "budget" else "NotStarted", message=reason)
        )

    def lost(self, job: Job, failure: Failure) -> Record:
        """Return a record without an attempt, for a failure that the subject did not cause."""
        return self._record(job, AttemptResult(attempt=Phase(seconds=0.0, failure=failure)), tries=0, spent=job.spent)

    def _record(self, job: Job, tried: AttemptResult, **fields: Any) -> Record:
        trial = job.trial
        return Record(
            **trial.identity,
            bound=trial.subject.name in self.resolved.bound,
            unjudged=not self.resolved.scorers_of(trial),
            threshold=self.resolved.plan.threshold_of(trial.case),
            **{name: getattr(tried, name) for name in _TRIED},
            **fields,
        )

    async def _run(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        tally = UsageTally(spend, job.spent, judging=job.prior.judging if job.prior else NO_USAGE)
        tries = 0
        while True:
            tries += 1
            tally.this_try = NO_USAGE
            record = await self._try_once(job, tally, tries)
            failure = record.failure
            if failure is None or failure.kind != "infra" or failure.permanent:
                return record
            if tries > self.options.retries or self.control.draining:
                return record
            # Doubled each time, jittered, and at least as long as the provider asks.
            wait: float = self.options.backoff_seconds * 2 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
            wait = min(self.options.longest_backoff_seconds, max(wait, failure.retry_after or 0.0))
            if not await self.control.wait(job.trial.index, Delay(failure.message, wait, wait)):
                return record
            if record.attempted:
                job = replace(job, prior=record)  # only a scorer broke, so keep the paid attempt

    async def _try_once(self, job: Job, tally: UsageTally, tries: int) -> Record:
        if job.prior is None:
            tried = AttemptResult()
            await self._attempt_trial(job.trial, tally, tried)
            if tried.transcript is not None:
                tally.settle(tried.transcript.usage)
        else:
            tries = job.prior.tries
            tried = AttemptResult(**{name: getattr(job.prior, name) for name in _TRIED})
        scores, score_phase = await self._score(job.trial, tally, tried)
        return self._record(
            job, tried, tries=tries, score=score_phase, scores=scores, spent=tally.spent, judging=tally.judging
        )

    async def _attempt_trial(self, trial: Trial, tally: UsageTally, tried: AttemptResult) -> None:
        bound = self.resolved.bound.get(trial.subject.name)
        subject = self.resolved.subjects.get(trial.subject.name)

        async def make() -> Subject:
            tried.tools = self.resolved.tools(trial.case, self.resources)
            return bound.bind(trial.case) if bound else self.resolved.subjects[trial.subject.name]

        if bound is not None or self.resolved.tools is not no_tools:  # may fail, because it is made for this case
            subject, tried.prepare = await phase(make, Clock(trial.case.limits.prepare_seconds), "infra", "infra")
        if subject is None:
            return
        if needs_of(subject).workspace:
            await self._attempt_in_workspace(subject, trial, tally, tried)
        else:
            await self._attempt(subject, self._task(trial, tally, tried), tried, trial.case)

    async def _attempt_in_workspace(
        self, subject: Subject, trial: Trial, tally: UsageTally, tried: AttemptResult
    ) -> None:
        case = trial.case
        stack = AsyncExitStack()
        workspace = None
        try:
            opening = partial(stack.enter_async_context, self._workspace(case, case.files))
            workspace, tried.prepare = await phase(opening, Clock(case.limits.prepare_seconds), "infra", "infra")
            if workspace is not None:
                tried.workspace = str(workspace.folder) if self.options.keep_workspaces else None
                await self._attempt(subject, self._task(trial, tally, tried, workspace), tried, case)
        finally:
            _, closing = await phase(stack.aclose, Clock(_CLEANUP_SECONDS), "infra", "infra")
            if closing.failure is not None and workspace is not None:
                tried.workspace = str(workspace.folder)  # keep the answer, although the folder remains

    async def _attempt(self, subject: Subject, task: Task, tried: AttemptResult, case: Case) -> None:
        kept: list[Transcript | None] = []

        async def attempt() -> Transcript:
            try:
                transcript = await _attempted(subject, task)
            except TrialError as error:
                kept.append(error.transcript)
                raise
            if task.own_workspace is not None and case.collect:
                tried.artefacts, tried.refused = await task.own_workspace.collect(case.collect)
            if case.answer_file and isinstance(transcript.output, str) and transcript.output:
                from bakeoff.sandbox.places import first_code_block

                tried.artefacts.setdefault(case.answer_file, first_code_block(transcript.output))
            return transcript

        error: FailureKind = "subject" if getattr(subject, "raises_its_own_errors", False) else "infra"
        transcript, tried.attempt = await phase(attempt, task.clock, error, "timeout")
        tried.transcript = transcript or next(iter(kept), None)

    def _task(
        self,
        trial: Trial,
        tally: UsageTally,
        tried: AttemptResult,
        workspace: Workspace | None = None,
        judging: Clock | None = None,
    ) -> Task:
        """Return the task of an attempt or, given the clock of a scorer, the task of a judge."""
        return Task(
            prompt=trial.case.prompt,
            case_id=trial.case.id,
            subject=trial.subject.name,
            trial_id=trial.attempt_key,
            round=trial.round,
            seed=trial.seed,
            limits=trial.case.limits,
            tools=tried.tools,
            resources=self.resources,
            own_workspace=workspace,
            spend=partial(tally.add, judging=judging is not None),
            count=partial(tally.count, judging=judging is not None),
            clock=judging or self._clock(trial, trial.case.limits.attempt_seconds),
        )

    def _clock(self, trial: Trial, seconds: float, who: str = "") -> Clock:
        return Clock(seconds, partial(self.control.wait, trial.index, who=who))

    async def _score(
        self, trial: Trial, tally: UsageTally, tried: AttemptResult
    ) -> tuple[tuple[Score, ...], Phase | None]:
        if tried.transcript is None or (tried.attempt is not None and tried.attempt.failure is not None):
            return (), None
        case = trial.case

        def pristine() -> AbstractAsyncContextManager[Workspace]:
            from bakeoff.sandbox.places import graded_files

            return self._workspace(case, graded_files(case, tried.artefacts))

        given = ScoreInput(
            case=case,
            transcript=tried.transcript,
            artefacts=tried.artefacts,
            pristine=pristine,
            resources=self.resources,
            row=self.resolved.rows.get(case.id, case.variables),
            seconds=tried.attempt.working_seconds if tried.attempt else None,
            spend=partial(tally.add, judging=True),
        )

        started = time.perf_counter()
        scores: list[Score] = []
        remarks: list[str] = []
        for name, scorer in self.resolved.scorers_of(trial).items():
            clock, shown = self._clock(trial, case.limits.score_seconds, f"scorer {name!r}"), given
            if getattr(scorer, "may_ask", hasattr(type(scorer), "needs")):  # only these scorers ask a model
                shown = replace(given, asking=self._task(trial, tally, tried, judging=clock))
            spec = self.resolved.rules.get(id(scorer))
            if trial.subject.transform:
                steps = (*trial.subject.transform, *(spec.transform if spec else ()))
                spec = (spec or ScorerSpec(kind=name)).model_copy(update={"transform": steps})
            if spec is not None and trial.subject.kind == "oracle":  # it gives what transforms make of an answer
                spec = spec.model_copy(update={"transform": ()})
            scored, outcome = await phase(partial(_score_with, name, scorer, shown, spec), clock, "grader", "grader")
            remarks += (f"scorer {name!r}: {remark}" for remark in outcome.remarks)
            score = scored or Score(name=name, failure=outcome.failure, weight=spec.weight if spec else 1.0)
            unique = free_name(score.name, {other.name for other in scores}, "{}-{}")
            scores.append(score if score.name == unique else score.model_copy(update={"name": unique}))
        if case.pass_rule is not None and case.pass_rule.null_as_zero:
            scores = [_counted_as_zero(score) for score in scores]
        return tuple(scores), Phase(seconds=time.perf_counter() - started, remarks=tuple(remarks))

    def _workspace(self, case: Case, files: Mapping[str, str]) -> AbstractAsyncContextManager[Workspace]:
        from bakeoff.sandbox.places import open_workspace  # most evals never need it

        return open_workspace(self.sandbox(), files, case.limits, keep=self.options.keep_workspaces)


async def _attempted(subject: Subject, task: Task) -> Transcript:
    """Return the transcript of an attempt, with the subject's spans if a scorer needs them."""
    collecting = task.resources.get(SPANS)
    if collecting is None:
        return await subject.attempt(task)
    with collecting() as collected:
        transcript = await subject.attempt(task)
    return transcript.model_copy(update={"metadata": {**transcript.metadata, SPANS: collected.told()}})


async def _score_with(name: str, scorer: Scorer, given: ScoreInput, spec: ScorerSpec | None) -> Score:
    if spec is not None and spec.transform:
        from bakeoff.scorers.transforms import transformed  # most plans have none

        given = await transformed(given, spec.transform)
    before = SCORING.set((given, asyncio.get_running_loop()))
    try:
        scored = await call(scorer, given)
    finally:
        SCORING.reset(before)
    if isinstance(scored, Score) and scored.name.strip() and getattr(scorer, "keeps_names", False):
        return scored
    return as_score(name, scored) if spec is None else _by_rules(as_score(name, scored), spec, given)


def _by_rules(score: Score, spec: ScorerSpec, given: ScoreInput) -> Score:
    """Return the score as its spec counts it, with the answer that a transform made."""
    value, noted = score.value, {TRANSFORMED: given.output} if spec.transform else {}
    if value is not None and spec.threshold is not None:
        value = float(reaches(value, spec.threshold))
    if value is not None and spec.negated:
        value = 1 - value
    return score.model_copy(update={"value": value, "weight": spec.weight, "metadata": {**score.metadata, **noted}})


def as_score(name: str, scored: Any) -> Score:
    """Return a scorer's result as a `Score` of that name, or raise GraderError."""
    if isinstance(scored, Score):
        return scored if scored.name == name else scored.model_copy(update={"name": name})
    if scored is None:
        return Score(name=name, reason="unscored")
    if not _is_number(scored):
        raise GraderError(f"scorer {name!r} returned {scored!r}: return a Score, a number, a bool or None")
    if not 0 <= scored <= 1:
        raise GraderError(f"scorer {name!r} returned {scored!r}, which is not between 0 and 1")
    return Score(name=name, value=float(scored))


def _is_number(scored: Any) -> bool:
    """Return True for a real number, including `Decimal`, `Fraction` and numpy scalars."""
    if isinstance(scored, bool | int | float):
        return True
    if isinstance(scored, numbers.Number):
        return not isinstance(scored, numbers.Complex) or isinstance(scored, numbers.Real)
    return type(scored).__module__ == "numpy" and type(scored).__name__ in ("bool", "bool_")


def _counted_as_zero(score: Score) -> Score:
    """Return 0 for a missing score, but keep the failure of a scorer. Used with `null_as_zero`."""
    if score.value is not None or score.failure is not None:
        return score
    told = "" if score.reason in ("", "unscored") else f": {score.reason}"
    return score.model_copy(update={"value": 0.0, "reason": f"unscored, counted as 0{told}"})


async def apart(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run trials in a separate task.

    Cancelling the caller also cancels this task. A cancellation by the trials ends only this task.
    """
    waiting = asyncio.current_task()

    async def working() -> Result:
        _WAITING.set(waiting)
        return await work()

    return await asyncio.create_task(working())


async def phase(
    step: Callable[[], Coroutine[Any, Any, Result]], clock: Clock, error_kind: FailureKind, late_kind: FailureKind
) -> tuple[Result | None, Phase]:
    """Run one phase within its time limit, and turn every error inside into data.

    A trial is cancelled through the task that waits for this one (see `apart`). The step itself may
    cancel this task: before Python 3.13, a failing `TaskGroup` leaves such a request behind.

    Args:
        step: makes the coroutine to run.
        clock: its time limit.
        error_kind: the kind of failure for an error of unknown origin.
        late_kind: the kind of failure when the time runs out.
    """
    started = time.perf_counter()
    waiting = _WAITING.get()
    cancellations = waiting.cancelling() if waiting else 0
    result = failure = None
    try:
        result = await clock.run(step())
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the trial boundary; some libraries raise CancelledError unasked
        failure = _failure(error, error_kind)
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        while task.cancelling():
            task.uncancel()
        with suppress(asyncio.CancelledError):  # from a request that the task has not noticed yet
            await asyncio.sleep(0)
    if waiting and waiting.cancelling() > cancellations:
        raise asyncio.CancelledError  # requested by the caller, even if the step ignored it
    if clock.expired:  # even if the step ignored its cancellation and returned
        result = None
        failure = Failure(kind=late_kind, type="TimeoutError", message=f"not finished after {clock.seconds:g} s")
    seconds, remarks = time.perf_counter() - started, tuple(clock.remarks)
    return result, Phase(seconds=seconds, waited=clock.waited, failure=failure, remarks=remarks)


def _failure(error: BaseException, unknown: FailureKind) -> Failure:
    known = next((kind for base, kind in _KINDS.items() if isinstance(error, base)), None)
    told = traceback.TracebackException.from_exception(error)  # unlike `str`, works for errors that cannot be printed
    return Failure(
        kind=known or unknown,
        type=type(error).__name__,
        message=str(told),
        detail="" if known else "".join(told.format())[-_DETAIL:],
        retry_after=error.retry_after if isinstance(error, InfraError) else None,
        permanent=isinstance(error, InfraError) and (error.permanent or error.exhausted),
        stops_subject=isinstance(error, InfraError) and error.stops_subject,
    )
