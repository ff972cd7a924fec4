"""RUN, one trial: workspace → the subject attempts → scorers score → Record."""

import asyncio
import random
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

from bakeoff.calls import call
from bakeoff.catalogue import Cast, needs_of
from bakeoff.control import RunControl
from bakeoff.errors import BudgetError, GraderError, InfraError, SubjectError, SubjectTimeout, TrialError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, Trial
from bakeoff.protocols import BoundSubject, Sandbox, Scored, ScoreInput, Scorer, Subject, Task, Workspace
from bakeoff.record import NO_USAGE, Failure, Phase, Record, Score, Transcript, Usage, Verdict
from bakeoff.workspace import graded_files, open_workspace

Result = TypeVar("Result")
Blame = Literal["subject", "timeout", "budget", "infra", "grader"]

_KINDS: Mapping[type[TrialError], Blame] = {
    SubjectError: "subject",
    SubjectTimeout: "timeout",
    InfraError: "infra",
    BudgetError: "budget",
    GraderError: "grader",
}
_DETAIL = 4000  # characters of a traceback that are kept: its end says what happened


@dataclass(frozen=True, slots=True)
class Job:
    """One trial to do. With `prior`, only its scoring is left to do."""

    trial: Trial
    prior: Record | None = None


@dataclass(slots=True)
class Tally:
    """What one trial spends, told to the run as it arrives."""

    tell: Callable[[Usage], None]
    spent: Usage = NO_USAGE
    this_try: Usage = NO_USAGE

    def add(self, usage: Usage) -> None:
        self.spent += usage
        self.this_try += usage
        self.tell(usage)

    def settle(self, usage: Usage) -> None:
        """A try ended with this usage in all; count what was not told while it ran."""
        if usage != self.this_try:
            self.add(usage - self.this_try)


@dataclass(slots=True)
class Tried:
    """What one try has come to so far."""

    started: float = field(default_factory=time.time)
    prepare: Phase | None = None
    attempt: Phase | None = None
    transcript: Transcript | None = None
    artefacts: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialRunner:
    """Carries out jobs. Holds only what all trials of a run share."""

    plan: Plan
    cast: Cast
    options: RunOptions
    sandbox: Callable[[], Sandbox]  # asked for when the first workspace is
    resources: Mapping[str, Any]
    control: RunControl

    async def run(self, job: Job, tell: Callable[[Usage], None]) -> Record:
        """The record of one trial, after as many tries as infra failures and the options call for."""
        tally = Tally(tell)
        tries = 0
        while True:
            tries += 1
            tally.this_try = NO_USAGE
            record = await self._once(job, tally, tries)
            if record.verdict is not Verdict.INFRA or tries > self.options.retries or self.control.draining:
                return record
            await self.control.sleep(self._backoff(tries))

    def _backoff(self, tries: int) -> float:
        longest: float = min(self.options.longest_backoff_seconds, self.options.backoff_seconds * 2 ** (tries - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing

    async def _once(self, job: Job, tally: Tally, tries: int) -> Record:
        trial = job.trial
        tried = Tried()
        if job.prior is not None:
            tried = _tried_before(job.prior)
            tries = job.prior.tries
        else:
            await self._try(trial, tally, tried)
        scores, score_phase = await self._score(trial.case, tried)
        return Record(
            case=trial.case.id,
            subject=trial.subject.name,
            round=trial.round,
            attempt_key=trial.attempt_key,
            score_key=trial.score_key,
            started=tried.started,
            tries=tries,
            bound=isinstance(self.cast.subjects[trial.subject.name], BoundSubject),
            threshold=self.plan.threshold,
            prepare=tried.prepare,
            attempt=tried.attempt,
            score=score_phase,
            transcript=tried.transcript,
            artefacts=tried.artefacts,
            refused=tried.refused,
            scores=scores,
            spent=tally.spent,
        )

    async def _try(self, trial: Trial, tally: Tally, tried: Tried) -> None:
        member = self.cast.subjects[trial.subject.name]
        subject = member.bind(trial.case) if isinstance(member, BoundSubject) else member
        async with AsyncExitStack() as stack:
            workspace = None
            if needs_of(subject).workspace:
                opening = partial(stack.enter_async_context, self._workspace(trial.case, trial.case.files))
                workspace, tried.prepare = await phase(opening, trial.case.limits.prepare_seconds, "infra", "infra")
                if workspace is None:
                    return
            await self._attempt(subject, self._task(trial, tally, workspace), tried, trial.case)
        if tried.transcript is not None:
            tally.settle(tried.transcript.usage)

    async def _attempt(self, subject: Subject, task: Task, tried: Tried, case: Case) -> None:
        async def attempt() -> Transcript:
            transcript = await subject.attempt(task)
            if task.own_workspace is not None and case.collect:
                tried.artefacts, tried.refused = await task.own_workspace.collect(case.collect)
            return transcript

        blame: Blame = "subject" if getattr(subject, "raises_its_own_errors", False) else "infra"
        tried.transcript, tried.attempt = await phase(attempt, case.limits.attempt_seconds, blame, "timeout")

    def _task(self, trial: Trial, tally: Tally, workspace: Workspace | None) -> Task:
        return Task(
            prompt=trial.case.prompt,
            case_id=trial.case.id,
            trial_id=trial.attempt_key,
            round=trial.round,
            seed=trial.seed,
            limits=trial.case.limits,
            spend=tally.add,
            tools=self.cast.tools(trial.case),
            resources=self.resources,
            own_workspace=workspace,
        )

    async def _score(self, case: Case, tried: Tried) -> tuple[tuple[Score, ...], Phase | None]:
        if tried.transcript is None:
            return (), None
        given = ScoreInput(
            case=case,
            transcript=tried.transcript,
            artefacts=tried.artefacts,
            pristine=lambda: self._workspace(case, graded_files(case, tried.artefacts)),
            resources=self.resources,
        )
        started = time.perf_counter()
        scores = [await _score_with(scorer, given, case.limits.score_seconds) for scorer in self.cast.scorers]
        return tuple(scores), Phase(seconds=time.perf_counter() - started)

    def _workspace(self, case: Case, files: Mapping[str, str]) -> AbstractAsyncContextManager[Workspace]:
        return open_workspace(self.sandbox(), files, case.limits, keep=self.options.keep_workspaces)


async def _score_with(scorer: Scorer, given: ScoreInput, seconds: float) -> Score:
    async def score() -> Score:
        return as_score(scorer.name, await call(scorer, given))

    scored, outcome = await phase(score, seconds, "grader", "grader")
    return scored if scored is not None else Score(name=scorer.name, failure=outcome.failure)


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
    step: Callable[[], Awaitable[Result]], seconds: float, blame: Blame, late: Blame
) -> tuple[Result | None, Phase]:
    """Run one phase within its time. This is the trial boundary: whatever breaks inside ends here, as data.

    `blame` is whose doing an error of unknown origin is, `late` whose doing it is to run out of time.
    """
    started = time.perf_counter()
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            result = await step()
    except Exception as error:  # noqa: BLE001 - the one place
        failure = _failure(error, blame)
        if clock.expired() and isinstance(error, TimeoutError):
            failure = Failure(kind=late, type="TimeoutError", message=f"not finished after {seconds:g} s")
        return None, Phase(seconds=time.perf_counter() - started, failure=failure)
    return result, Phase(seconds=time.perf_counter() - started)


def _failure(error: Exception, blame: Blame) -> Failure:
    known = next((kind for base, kind in _KINDS.items() if isinstance(error, base)), None)
    detail = "" if known else "".join(traceback.format_exception(error))[-_DETAIL:]
    return Failure(kind=known or blame, type=type(error).__name__, message=str(error), detail=detail)


def _tried_before(prior: Record) -> Tried:
    return Tried(
        prior.started, prior.prepare, prior.attempt, prior.transcript, dict(prior.artefacts), dict(prior.refused)
    )
