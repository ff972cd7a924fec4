"""RUN, one trial: workspace → the subject attempts → scorers score → Record."""

import asyncio
import random
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.threads import call
from bakeoff._kernel.tracing import TRACING, Attributes, Tracing
from bakeoff.engine.registry import ResolvedPlan, needs_of, no_tools
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import BudgetError, GraderError, InfraError, SubjectError, SubjectTimeout, TrialError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, Trial
from bakeoff.protocols import Sandbox, Scored, ScoreInput, Scorer, Subject, Task, Tool, Workspace
from bakeoff.record import NO_USAGE, Failure, Phase, Record, Score, Transcript, Usage

Result = TypeVar("Result")
Blame = Literal["subject", "timeout", "budget", "infra", "grader"]

_KINDS: Mapping[type[TrialError], Blame] = {
    SubjectError: "subject",
    SubjectTimeout: "timeout",
    InfraError: "infra",
    BudgetError: "budget",
    GraderError: "grader",
}
_CLEARING_UP_SECONDS = 600.0  # removing a folder that was made to resist may take its time
_DETAIL = 4000  # characters of a traceback that are kept: its end says what happened


@dataclass(frozen=True, slots=True)
class Job:
    """One trial to do. With `prior`, only its scoring is left to do."""

    trial: Trial
    prior: Record | None = None
    spent: Usage = NO_USAGE  # by earlier processes on this trial


@dataclass(slots=True)
class Tally:
    """What one trial spends, told to the run as it arrives."""

    tell: Callable[[Usage], None]
    spent: Usage = NO_USAGE
    this_try: Usage = NO_USAGE
    judging: Usage = NO_USAGE

    def add(self, usage: Usage) -> None:
        self.count(usage)
        self.tell(usage)

    def count(self, usage: Usage) -> None:
        """Usage that the record shows and nobody pays for now."""
        self.spent += usage
        self.this_try += usage

    def add_judging(self, usage: Usage) -> None:
        self.judging += usage
        self.add(usage)

    def count_judging(self, usage: Usage) -> None:
        self.judging += usage
        self.count(usage)

    def settle(self, usage: Usage) -> None:
        """A try ended with this usage in all; count what was not told while it ran."""
        if usage == self.this_try:
            return
        untold = _untold(usage, self.this_try)
        if untold != NO_USAGE:
            with suppress(BudgetError):  # it is spent and the answer is there: only the next trial is stopped
                self.add(untold)


def _untold(usage: Usage, told: Usage) -> Usage:
    """What of a usage has not been told. Never negative: what was told has been spent, whatever a transcript says."""
    counts = {name: max(0, getattr(usage, name) - getattr(told, name)) for name in Usage.model_fields if name != "cost"}
    known = usage.cost is not None and usage.cost > (told.cost or 0.0)
    cost = usage.cost - (told.cost or 0.0) if known and usage.cost is not None else None
    return Usage(**counts, cost=cost)


@dataclass(slots=True)
class Tried:
    """What one try has come to so far."""

    started: float = field(default_factory=time.time)
    prepare: Phase | None = None
    attempt: Phase | None = None
    tools: tuple[Tool, ...] = ()
    transcript: Transcript | None = None
    artefacts: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    workspace: str | None = None


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """Carries out jobs. Holds only what all trials of a run share."""

    plan: Plan
    resolved: ResolvedPlan
    options: RunOptions
    sandbox: Callable[[], Sandbox]  # asked for when the first workspace is
    resources: Mapping[str, Any]
    control: RunControl

    async def run(self, job: Job, tell: Callable[[Usage], None]) -> Record:
        """The record of one trial, after as many tries as infra failures and the options call for."""
        trial = job.trial
        self.control.in_flight[trial.index] = (trial.subject.name, trial.case.id)
        try:
            return await self._traced(job, tell)
        finally:
            del self.control.in_flight[trial.index]

    async def _traced(self, job: Job, tell: Callable[[Usage], None]) -> Record:
        tracing: Tracing | None = self.resources.get(TRACING)
        if tracing is None:
            return await self._run(job, tell)
        trial = job.trial
        about: Attributes = {
            "bakeoff.case": trial.case.id,
            "bakeoff.subject": trial.subject.name,
            "bakeoff.round": trial.round,
        }
        with tracing.span(f"trial {trial.case.id}", about) as span:
            record = await self._run(job, tell)
            span.note({"bakeoff.verdict": record.verdict, "bakeoff.tries": record.tries})
            if record.failure is not None:
                span.failed(record.failure.type)
        return record

    async def _run(self, job: Job, tell: Callable[[Usage], None]) -> Record:
        tally = Tally(tell, job.spent, judging=job.prior.judging if job.prior else NO_USAGE)
        tries = 0
        while True:
            tries += 1
            tally.this_try = NO_USAGE
            record = await self._once(job, tally, tries)
            failure = record.failure
            may_pass = failure is not None and failure.kind == "infra" and not failure.permanent
            if not may_pass or tries > self.options.retries or self.control.draining:
                return record
            if not await self.control.sleep(self._backoff(tries, failure)):
                return record
            if record.attempted:
                job = replace(job, prior=record)  # only a scorer broke: the attempt is not paid for again

    def _backoff(self, tries: int, failure: Failure | None) -> float:
        """Doubled with each try and jittered, and not shorter than the other side asked for."""
        wait: float = self.options.backoff_seconds * 2 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        asked = failure.retry_after if failure and failure.retry_after else 0.0
        return min(self.options.longest_backoff_seconds, max(wait, asked))

    async def _once(self, job: Job, tally: Tally, tries: int) -> Record:
        trial = job.trial
        tried = Tried()
        if job.prior is not None:
            tried = _tried_before(job.prior)
            tries = job.prior.tries
        else:
            await self._try(trial, tally, tried)
        scores, score_phase = await self._score(trial, tally, tried)
        return Record(
            case=trial.case.id,
            subject=trial.subject.name,
            round=trial.round,
            attempt_key=trial.attempt_key,
            score_key=trial.score_key,
            started=tried.started,
            tries=tries,
            bound=trial.subject.name in self.resolved.bound,
            threshold=self.plan.threshold,
            prepare=tried.prepare,
            attempt=tried.attempt,
            score=score_phase,
            transcript=tried.transcript,
            artefacts=tried.artefacts,
            refused=tried.refused,
            workspace=tried.workspace,
            scores=scores,
            spent=tally.spent,
            judging=tally.judging,
        )

    async def _try(self, trial: Trial, tally: Tally, tried: Tried) -> None:
        subject = await self._subject(trial, tried)
        if subject is None:
            return
        if needs_of(subject).workspace:
            await self._attempt_in_workspace(subject, trial, tally, tried)
        else:
            await self._attempt(subject, self._task(trial, tally, tried, None), tried, trial.case)
        if tried.transcript is not None:
            tally.settle(tried.transcript.usage)

    async def _subject(self, trial: Trial, tried: Tried) -> Subject | None:
        """Whom to ask, with what a door lets it call; both may be made for this one case, and so may fail."""
        bound = self.resolved.bound.get(trial.subject.name)
        if bound is None and self.resolved.tools is no_tools:
            return self.resolved.subjects[trial.subject.name]

        async def make() -> Subject:
            tried.tools = self.resolved.tools(trial.case, self.resources)
            return bound.bind(trial.case) if bound else self.resolved.subjects[trial.subject.name]

        subject, tried.prepare = await phase(make, Clock(trial.case.limits.prepare_seconds), "infra", "infra")
        return subject

    async def _attempt_in_workspace(self, subject: Subject, trial: Trial, tally: Tally, tried: Tried) -> None:
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
            _, closing = await phase(stack.aclose, Clock(_CLEARING_UP_SECONDS), "infra", "infra")
            if closing.failure is not None and workspace is not None:
                tried.workspace = str(workspace.folder)  # it is still there, and that is no reason to lose the answer

    async def _attempt(self, subject: Subject, task: Task, tried: Tried, case: Case) -> None:
        async def attempt() -> Transcript:
            transcript = await subject.attempt(task)
            if task.own_workspace is not None and case.collect:
                tried.artefacts, tried.refused = await task.own_workspace.collect(case.collect)
            if case.answer_file and isinstance(transcript.output, str) and transcript.output:
                from bakeoff.sandbox.workspaces import first_code_block

                tried.artefacts.setdefault(case.answer_file, first_code_block(transcript.output))
            return transcript

        blame: Blame = "subject" if getattr(subject, "raises_its_own_errors", False) else "infra"
        tried.transcript, tried.attempt = await phase(attempt, task.clock, blame, "timeout")

    def _task(
        self, trial: Trial, tally: Tally, tried: Tried, workspace: Workspace | None, clock: Clock | None = None
    ) -> Task:
        return Task(
            prompt=trial.case.prompt,
            case_id=trial.case.id,
            subject=trial.subject.name,
            trial_id=trial.attempt_key,
            round=trial.round,
            seed=trial.seed,
            limits=trial.case.limits,
            spend=tally.add,
            count=tally.count,
            tools=tried.tools,
            resources=self.resources,
            own_workspace=workspace,
            clock=clock or Clock(trial.case.limits.attempt_seconds),
        )

    def _judges_task(self, trial: Trial, tally: Tally, tried: Tried, clock: Clock) -> Task:
        """On whose behalf a scorer asks a model: what that uses is booked apart."""
        task = self._task(trial, tally, tried, None, clock)
        return replace(task, spend=tally.add_judging, count=tally.count_judging)

    async def _score(self, trial: Trial, tally: Tally, tried: Tried) -> tuple[tuple[Score, ...], Phase | None]:
        if tried.transcript is None:
            return (), None
        case = trial.case
        given = ScoreInput(
            case=case,
            transcript=tried.transcript,
            artefacts=tried.artefacts,
            pristine=lambda: self._pristine(case, tried.artefacts),
            resources=self.resources,
            row=self.resolved.rows.get(case.id, {}),
            seconds=tried.attempt.seconds - tried.attempt.waited if tried.attempt else None,
            spend=tally.add_judging,
        )
        task = partial(self._judges_task, trial, tally, tried)
        started = time.perf_counter()
        seconds = case.limits.score_seconds
        scores = [
            await _score_with(name, scorer, given, seconds, task) for name, scorer in self.resolved.scorers.items()
        ]
        return tuple(scores), Phase(seconds=time.perf_counter() - started)

    def _pristine(self, case: Case, artefacts: Mapping[str, str]) -> AbstractAsyncContextManager[Workspace]:
        from bakeoff.sandbox.workspaces import graded_files

        return self._workspace(case, graded_files(case, artefacts))

    def _workspace(self, case: Case, files: Mapping[str, str]) -> AbstractAsyncContextManager[Workspace]:
        from bakeoff.sandbox.workspaces import (
            open_workspace,  # what it takes to keep files apart, most evals never need
        )

        return open_workspace(self.sandbox(), files, case.limits, keep=self.options.keep_workspaces)


async def _score_with(
    name: str, scorer: Scorer, given: ScoreInput, seconds: float, task: Callable[[Clock], Task]
) -> Score:
    clock = Clock(seconds)
    if hasattr(type(scorer), "needs"):  # only who wants something of the run asks others
        given = replace(given, asking=task(clock))

    async def score() -> Score:
        return as_score(name, await call(scorer, given))

    scored, outcome = await phase(score, clock, "grader", "grader")
    return scored if scored is not None else Score(name=name, failure=outcome.failure)


def as_score(name: str, scored: Scored) -> Score:
    """A scorer's word in the one shape that is kept."""
    if isinstance(scored, Score):
        return scored if scored.name == name else scored.model_copy(update={"name": name})
    if scored is None:
        return Score(name=name, reason="unscored")
    if not isinstance(scored, bool | int | float):
        raise GraderError(f"scorer {name!r} returned {scored!r}: return a Score, a number, a bool or None")
    if not 0 <= scored <= 1:
        raise GraderError(f"scorer {name!r} returned {scored!r}, which is not between 0 and 1")
    return Score(name=name, value=float(scored))


async def phase(
    step: Callable[[], Coroutine[Any, Any, Result]], clock: Clock, blame: Blame, late: Blame
) -> tuple[Result | None, Phase]:
    """Run one phase within its time. This is the trial boundary: whatever breaks inside ends here, as data.

    `blame` is whose doing an error of unknown origin is, `late` whose doing it is to run out of time.
    """
    started = time.perf_counter()
    cancellations = _cancellations()
    result = failure = None
    try:
        result = await clock.run(step())
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the one place; some libraries raise unasked-for cancellations
        failure = _failure(error, blame)
    if _cancellations() > cancellations:
        raise asyncio.CancelledError  # asked for from outside, whatever the step made of it
    if clock.expired:  # whatever the step made of its cancellation, a result included
        result, failure = (
            None,
            Failure(kind=late, type="TimeoutError", message=f"not finished after {clock.seconds:g} s"),
        )
    return result, Phase(seconds=time.perf_counter() - started, waited=clock.waited, failure=failure)


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


def _failure(error: BaseException, blame: Blame) -> Failure:
    known = next((kind for base, kind in _KINDS.items() if isinstance(error, base)), None)
    told = traceback.TracebackException.from_exception(error)  # unlike `str`, survives errors that cannot be printed
    detail = "" if known else "".join(told.format())[-_DETAIL:]
    return Failure(
        kind=known or blame,
        type=type(error).__name__,
        message=str(told),
        detail=detail,
        retry_after=error.retry_after if isinstance(error, InfraError) else None,
        permanent=isinstance(error, InfraError) and error.permanent,
    )


def _tried_before(prior: Record) -> Tried:
    return Tried(
        started=prior.started,
        prepare=prior.prepare,
        attempt=prior.attempt,
        transcript=prior.transcript,
        artefacts=dict(prior.artefacts),
        refused=dict(prior.refused),
        workspace=prior.workspace,
    )
