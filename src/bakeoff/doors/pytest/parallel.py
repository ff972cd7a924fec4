"""Run the cases of one suite side by side on the session's event loop, while pytest reports them in order."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.threads import call
from bakeoff.doors.pytest.adapters import ENDS_A_LOOP, Errors, preload, refuse_incomplete
from bakeoff.doors.pytest.loops import EvalLoop
from bakeoff.doors.pytest.printing import CapturedOutput, printing_to
from bakeoff.doors.pytest.rows import EvalCase, EvalRow, graded_by
from bakeoff.doors.pytest.suite import Settings
from bakeoff.engine.pool import TrialPool
from bakeoff.engine.registry import ResolvedPlan
from bakeoff.engine.resources import SharedResources, open_resources, sandbox_of
from bakeoff.engine.run_control import Budget, RunControl
from bakeoff.engine.trial import Job, TrialRunner
from bakeoff.engine.user_code import call_apart
from bakeoff.errors import BakeoffError, InfraError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import BUDGET, ON_DEMAND, Scorer, Subject
from bakeoff.record import NO_USAGE, Failure, Phase, Record, Usage
from bakeoff.report.suites.outcomes import SUBJECT

EMPTY_PLAN = Plan(
    name=SUBJECT,
    cases=(),
    subjects=(SubjectSpec(kind="eval", name=SUBJECT),),
    scorers=(ScorerSpec(kind="eval"),),
    door="pytest",
    sparse=True,
)
"""The plan of every session, without its cases and subjects.

It has no scorers, because otherwise the records of two suites would seem to belong to two plans.
"""

_PLAIN_CASE = Case(id="case", prompt="")  # copied for each row, which is faster than making a new one


@dataclass(slots=True, eq=False)
class PendingCase:
    """A case that was submitted, and its results so far."""

    id: str
    number: int  # among the submitted cases
    missing: int  # rounds that are not finished
    records: list[Record] = field(default_factory=list)
    errors: dict[int, BaseException] = field(default_factory=dict)  # raised by the task, by round
    printed: CapturedOutput | None = None  # None: pytest captures what the case prints
    broken: Future[BakeoffError | None] = field(default_factory=Future)
    """Completed with None after all rounds, or with the reason why the suite could not be run."""


@dataclass(frozen=True, slots=True)
class SuiteTrials:
    """The trials of a suite, in the form that the core runs."""

    rows: Mapping[str, EvalRow]  # by the ids of their cases
    subject: Subject
    spec: SubjectSpec  # of the subject
    scorers: Mapping[str, Scorer]
    settings: Settings
    rounds: int
    options: RunOptions
    budget: Budget
    shared: SharedResources | None = None  # None: open resources for these trials alone
    prior: Record | None = None  # only the scoring of this one is left to do
    printed: dict[str, CapturedOutput] = field(default_factory=dict)  # by the ids of cases that run
    limits: Limits = field(init=False)  # the same for all rows

    def __post_init__(self) -> None:
        seconds = self.settings.timeout
        object.__setattr__(self, "limits", Limits(attempt_seconds=seconds, score_seconds=seconds))

    def job(self, case_id: str, round_: int, index: int) -> Job:
        """Return the job of a case in a round; `index` tells it apart from other jobs.

        The keys of a trial are those of the session's plan, which has neither limits nor files.
        """
        row = self.rows[case_id]
        own: dict[str, Any] = {"id": case_id, "prompt": row.shown_input, "expected": row.expected}  # clean already
        own |= {"limits": self.limits, "pass_rule": row.rule(self.settings.rule)}
        trial = EMPTY_PLAN.trial_of(
            _PLAIN_CASE.model_copy(update=own), self.spec, round_, index, limits=_PLAIN_CASE.limits
        )
        if files := graded_by(row.values):
            trial = replace(trial, case=Case(**own, **files))
        return Job(trial, self.prior, self.prior.spent if self.prior else NO_USAGE)

    def resolve(self) -> ResolvedPlan:
        """Return a resolved plan without cases, with the subject, the scorers and the values of the rows."""
        plan = EMPTY_PLAN.model_copy(update={"threshold": self.settings.rule.threshold})
        rows = {case_id: row.values for case_id, row in self.rows.items()}
        return ResolvedPlan(plan, {self.spec.name: self.subject}, {}, self.scorers, rows=rows)

    @asynccontextmanager
    async def pool(self, width: int, commit: Callable[[Record], Any]) -> AsyncIterator[TrialPool]:
        """Open the resources of the scorers, and a pool that runs the jobs."""
        refuse_incomplete(self.scorers)
        await preload(self.scorers)
        resolved = self.resolve()
        wanted = list(resolved.resources())
        given: dict[str, Any] = {BUDGET: self.budget} | ({ON_DEMAND: self.shared} if self.shared else {})
        if self.options.replay != "off":
            from bakeoff.replay.store import recordings_resource

            given |= recordings_resource(self.options)
        async with AsyncExitStack() as stack:
            if wanted and self.shared:
                resources = await self.shared.open(wanted, given)
            else:
                resources = await stack.enter_async_context(open_resources(wanted, given))
            options = replace(self.options, retries=self.settings.retries)
            running = (resolved, options, lambda: sandbox_of(self.options)(), resources, RunControl())
            runner = _EvalRunner(*running, self.printed, self.settings, self.rows)
            async with TrialPool(runner, self.budget, width=width, commit=commit).open() as pool:
                yield pool

    async def records(self) -> list[Record]:
        """Run every round of the only case, one after another, on the loop of the caller."""
        records: list[Record] = []

        async def commit(record: Record) -> None:
            records.append(record)

        (case_id,) = self.rows
        async with self.pool(1, commit) as pool:
            for round_ in range(self.rounds):
                await pool.submit(self.job(case_id, round_, round_))
        return records


@dataclass(frozen=True, slots=True)
class _EvalRunner(TrialRunner):
    """A runner of trials, with the recordings of their rounds, and `before_case` and `after_case`.

    A missing recording fails one trial only. Errors of the two functions do not count as failures.
    """

    printed: Mapping[str, CapturedOutput]
    settings: Settings
    rows: Mapping[str, EvalRow]

    async def run(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        """Run one round of a case, and capture its output apart from other cases.

        A trial whose `before_case` fails is not started; one whose `after_case` fails is undecided.
        """
        case_id, settings = job.trial.case.id, self.settings
        with printing_to(self.printed.get(case_id)):
            if settings.before_case is None and settings.after_case is None:
                return await self._run_replayed(job, spend)
            case = EvalCase(self.rows[case_id])
            if (problem := await self._problem_of("before_case", settings.before_case, case)) is not None:
                return self.not_started(job, problem, "infra")
            record = await self._run_replayed(job, spend)
            problem = await self._problem_of("after_case", settings.after_case, case, record)
            return record if problem is None else _undecided(record, problem)

    async def _run_replayed(self, job: Job, spend: Callable[[Usage], None]) -> Record:
        record = None
        replay = sys.modules.get("bakeoff.replay.application")  # not imported while replay is off
        off = replay is None or replay.active_store() is None
        try:
            with nullcontext() if off or replay is None else replay.ReplayRound(job.trial.round):
                record = await TrialRunner.run(self, job, spend)
        except InfraError as error:
            if record is None:
                raise
            record = _undecided(record, str(error))
        rule = job.trial.case.pass_rule  # of the row, which may differ from that of the suite
        if rule is None or rule.threshold == record.threshold:
            return record
        return record.model_copy(update={"threshold": rule.threshold})

    async def _problem_of(self, name: str, hook: Callable[..., Any] | None, *arguments: Any) -> str | None:
        """Call a user's hook within the time limit of a case. Return a sentence if it fails."""
        if hook is None:
            return None
        clock = Clock(self.settings.timeout)
        try:
            _adopt(await clock.run(call_apart(partial(_with_context, hook, *arguments), clock)))
        except (Exception, *ENDS_A_LOOP) as error:  # noqa: BLE001 - the user's code may raise anything
            if clock.expired:
                return "; ".join([f"{name} was not finished after {clock.seconds:g} s", *clock.remarks])
            return f"{name} raised {type(error).__name__}: {error}"
        return None


async def _with_context(hook: Callable[..., Any], *arguments: Any) -> Context:
    """Call a hook, and return a copy of its context."""
    await call(hook, *arguments)
    return copy_context()


def _adopt(context: Context) -> None:
    """Copy the context variables that a hook has set, such as a tenant, into this context."""
    here = copy_context()
    for variable, value in context.items():
        if variable not in here or here[variable] is not value:
            variable.set(value)


def _undecided(record: Record, why: str) -> Record:
    """Return the record of a trial that ran but cannot be judged, for a reason unrelated to the subject."""
    failure = Failure(kind="infra", type="InfraError", message=why, permanent=True)
    attempt = Phase(seconds=0.0) if record.attempt is None else record.attempt
    return record.model_copy(update={"attempt": attempt.model_copy(update={"failure": failure}), "scores": ()})


class SuiteExecution:
    """The execution of submitted cases in their order, at most `width` trials at a time.

    pytest's thread submits cases and waits for them; everything else happens on the loop.
    """

    def __init__(
        self, loop: EvalLoop, trials: SuiteTrials, errors: Errors, width: int, *, buffered: bool = False
    ) -> None:
        self._loop = loop
        self._buffered = buffered  # the output of each case is kept until pytest reports it
        self._trials = trials
        self._errors = errors
        self._width = width
        self._submitted = 0
        self._unfinished: dict[str, PendingCase] = {}  # by case id; used on the loop only
        self._todo: asyncio.Queue[PendingCase] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._broken: BakeoffError | None = None  # why no further case can be run

    def submit(self, case_ids: Iterable[str]) -> list[PendingCase]:
        """Run these cases after all that were submitted before."""
        before = self._submitted
        cases = [PendingCase(each, number, self._trials.rounds) for number, each in enumerate(case_ids, before + 1)]
        self._submitted += len(cases)
        if self._buffered:
            for case in cases:
                case.printed = self._trials.printed[case.id] = CapturedOutput()
        self._loop.call(lambda: self._accept(cases))
        if not before:
            self._loop.spawn(self._run)
        return cases

    def wait_for(self, case: PendingCase) -> None:
        """Wait for a case."""
        self._loop.wait_for(case)

    def stop(self) -> None:
        """Cancel the unfinished cases, and run no others."""
        self._stopped = True
        self._loop.call(lambda: self._task and self._task.cancel())

    def _accept(self, cases: Sequence[PendingCase]) -> None:
        for case in cases:
            self._unfinished[case.id] = case
            self._todo.put_nowait(case)
        if self._broken is not None:
            self._break(self._broken)

    async def _run(self) -> None:
        self._task = asyncio.current_task()
        if self._stopped:
            return
        try:
            await self._submit_to_pool()
        except BakeoffError as error:
            self._break(error)
        except Exception as error:  # noqa: BLE001 - nobody awaits this task: the cases report the error
            broken = InfraError(f"the suite could not go on: {error!r}", permanent=True)
            broken.__cause__ = error
            self._break(broken)
        finally:
            self._break(InfraError("it was cancelled before it was finished", permanent=True))

    async def _submit_to_pool(self) -> None:
        """Run cases until the task is cancelled."""
        trials = self._trials
        async with trials.pool(self._width, self._finish) as pool:
            while True:
                case = await self._todo.get()
                for round_ in range(trials.rounds):
                    await pool.submit(trials.job(case.id, round_, case.number * trials.rounds + round_))

    def _break(self, error: BakeoffError) -> None:
        """End every unfinished case with the first error, so that pytest does not wait forever."""
        self._broken = self._broken or error
        while self._unfinished:
            self._unfinished.popitem()[1].broken.set_result(self._broken)

    async def _finish(self, record: Record) -> None:
        case = self._unfinished[record.case]
        error = self._errors.pop((record.case, record.round), None)
        if error is not None:
            case.errors[record.round] = error
        case.records.append(record)
        case.missing -= 1
        if case.missing == 0:
            del self._unfinished[record.case]
            self._trials.printed.pop(record.case, None)
            case.broken.set_result(None)
