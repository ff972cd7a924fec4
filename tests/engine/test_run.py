"""Carrying out a plan: limits, retries, budgets, resources, stopping. Resuming is in test_resume.py."""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bakeoff.engine.registry import Registry, default_registry
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import GraderError, InfraError, PlanError, RunFolderError, SandboxMissing, SubjectError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Needs, ScoreInput, Task, Tool
from bakeoff.record import Record, Score, Transcript, Usage
from bakeoff.storage.journal import Mark, read_journal
from bakeoff.storage.run_folder import RunFolder, run_folders
from bakeoff.subjects import function_subject

CarryOut = Callable[..., Awaitable[list[Record]]]


@dataclass
class Probe:
    """A subject that does what the test says and remembers what it was asked."""

    do: Callable[[Task], Awaitable[Any]] | None = None
    needs: Needs = field(default_factory=Needs)
    asked: list[str] = field(default_factory=list)

    async def attempt(self, task: Task) -> Transcript:
        self.asked.append(task.case_id)
        answer = await self.do(task) if self.do else "yes"
        return answer if isinstance(answer, Transcript) else Transcript(output=answer)


@dataclass
class Judge:
    """A scorer that does what the test says."""

    do: Callable[[ScoreInput], Any]
    name: str = "judge"
    needs: Needs = field(default_factory=Needs)

    def __call__(self, given: ScoreInput) -> Any:
        return self.do(given)


def catalogue_of(probe: Probe, *judges: Judge) -> Registry:
    registry = default_registry().with_subject("probe", lambda _: probe)
    for judge in judges:
        registry = registry.with_scorer(judge.name, lambda _, judge=judge: judge)  # type: ignore[misc]
    return registry


def plan_of(cases: int = 1, *, rounds: int = 1, limits: Limits | None = None, **more: Any) -> Plan:
    usual: dict[str, Any] = {
        "subjects": (SubjectSpec(kind="probe", name="s"),),
        "scorers": (ScorerSpec(kind="exact"),),
    }
    asked = tuple(
        Case(id=f"c{number}", prompt="?", expected="yes", limits=limits or Limits()) for number in range(cases)
    )
    return Plan(name="p", cases=asked, rounds=rounds, **{**usual, **more})


def folder_of(tmp_path: Path) -> RunFolder:
    (folder,) = run_folders(tmp_path / "results")
    return folder


def ending(tmp_path: Path) -> str | None:
    marks = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Mark)]
    return str(marks[-1].facts["reason"]) if marks[-1].kind == "end" else None


async def test_every_trial_is_carried_out_once_and_recorded(tmp_path: Path, carry_out: CarryOut) -> None:
    probe = Probe()
    plan = plan_of(3, rounds=2)
    records = await carry_out(plan, registry=catalogue_of(probe))
    assert [(r.case, r.round, r.verdict) for r in records] == [(f"c{n}", r, "pass") for r in (0, 1) for n in range(3)]
    stored = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Record)]
    assert stored == records
    assert folder_of(tmp_path).read_plan() == plan
    assert ending(tmp_path) == "finished"
    assert len(probe.asked) == 6


async def test_a_record_is_on_disk_before_it_is_yielded(tmp_path: Path) -> None:
    options = RunOptions(results=tmp_path / "results", jobs=3)
    async for record in run(plan_of(20), options, registry=catalogue_of(Probe())):
        assert record in list(folder_of(tmp_path).entries())


async def test_every_problem_of_a_plan_is_told_before_a_folder_is_made(tmp_path: Path, carry_out: CarryOut) -> None:
    case = Case(id="twin", prompt="?")
    plan = Plan(
        name="p",
        cases=(case, case),
        subjects=(
            SubjectSpec(kind="scriptd", name="a"),
            SubjectSpec(kind="cheat", name="b", options={"attack": "pray"}),
            SubjectSpec(kind="function", name="c", options={"target": "nowhere:f"}),
        ),
        scorers=(ScorerSpec(kind="regex", options={"pattern": "("}), ScorerSpec(kind="vibes")),
    )
    with pytest.raises(PlanError) as caught:
        await carry_out(plan)
    assert caught.value.problems == (
        "case id 'twin' is used more than once in plan 'p': rename one",
        "subject 'a' (scriptd): unknown kind 'scriptd'; did you mean 'scripted'?",
        "subject 'b' (cheat): no attack 'pray'; there are exit-early, forge-report, plead, replace-tests",
        "subject 'c' (function): module 'nowhere' cannot be imported: No module named 'nowhere'",
        "scorer 'regex': pattern '(' is not a regular expression: missing ), unterminated subpattern at position 0",
        "scorer 'vibes': unknown kind 'vibes'; there are command, contains, cost, exact, factuality, function, json, "
        "judge, latency, regex, semantic, structured, tool_calls",
    )
    assert not (tmp_path / "results").exists()


async def test_a_sandbox_that_is_not_there_is_told_before_a_folder_is_made(tmp_path: Path, carry_out: CarryOut) -> None:
    with pytest.raises(SandboxMissing, match="'vault' is not one of auto"):
        await carry_out(plan_of(), registry=catalogue_of(Probe()), sandbox="vault")
    assert not (tmp_path / "results").exists()


async def test_a_results_folder_that_cannot_be_made_is_said_so(tmp_path: Path, carry_out: CarryOut) -> None:
    (tmp_path / "results").write_text("a file is in the way")
    with pytest.raises(RunFolderError, match=r"cannot be made: .*; choose another place for results"):
        await carry_out(plan_of(), registry=catalogue_of(Probe()))


@pytest.mark.parametrize("jobs", [1, 3])
async def test_no_more_trials_are_in_flight_than_asked_for_over_all_cells(jobs: int, carry_out: CarryOut) -> None:
    now = most = 0

    async def count(task: Task) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(5):
            await asyncio.sleep(0)
        now -= 1
        return "yes"

    subjects = tuple(SubjectSpec(kind="probe", name=f"s{number}") for number in range(4))
    records = await carry_out(plan_of(5, subjects=subjects), registry=catalogue_of(Probe(count)), jobs=jobs)
    assert (len(records), most) == (20, jobs)


async def test_a_million_trials_give_their_first_record_at_once(tmp_path: Path) -> None:
    plan = plan_of(100, rounds=10_000)
    started = time.perf_counter()
    async with aclosing(aiter(run(plan, RunOptions(results=tmp_path), registry=catalogue_of(Probe())))) as records:  # type: ignore[type-var]
        assert (await anext(records)).case == "c0"
    assert time.perf_counter() - started < 5


async def test_a_slow_consumer_holds_the_run_up_and_loses_nothing(tmp_path: Path) -> None:
    """More records wait than there is room for; none is lost when reading goes on."""
    probe = Probe()
    seen: list[Record] = []
    async for record in run(plan_of(50, rounds=160), RunOptions(results=tmp_path), registry=catalogue_of(probe)):
        if not seen:
            for _ in range(20_000):
                await asyncio.sleep(0)
            assert len(probe.asked) < 6200
        seen.append(record)
    assert len({(record.case, record.round) for record in seen}) == len(seen) == 8000


# --- time limits --------------------------------------------------------------------------------------------------


async def forever(_: Any) -> str:
    await asyncio.Event().wait()
    return "never"


QUICK = Limits(attempt_seconds=0.05, score_seconds=0.05, prepare_seconds=0.05)


async def test_an_attempt_that_takes_too_long_is_a_timeout_and_is_not_tried_again(carry_out: CarryOut) -> None:
    probe = Probe(forever)
    (record,) = await carry_out(plan_of(limits=QUICK), registry=catalogue_of(probe))
    assert (record.verdict, record.value, record.tries, len(probe.asked)) == ("timeout", 0.0, 1, 1)
    assert record.failure is not None
    assert record.failure.message == "not finished after 0.05 s"
    assert record.scores == ()


async def test_a_scorer_that_takes_too_long_is_the_graders_fault(carry_out: CarryOut) -> None:
    (record,) = await carry_out(
        plan_of(limits=QUICK, scorers=(ScorerSpec(kind="judge"), ScorerSpec(kind="exact"))),
        registry=catalogue_of(Probe(), Judge(forever)),
    )
    assert record.verdict == "grader"
    assert [score.value for score in record.scores] == [None, 1.0]


async def test_preparing_for_too_long_is_ours_and_is_tried_again(carry_out: CarryOut) -> None:
    probe = Probe(needs=Needs(workspace=True))
    limits = Limits(prepare_seconds=0.000001)
    (record,) = await carry_out(plan_of(limits=limits), registry=catalogue_of(probe), retries=1)
    assert (record.verdict, record.tries, probe.asked, record.attempt) == ("infra", 2, [], None)


@pytest.mark.parametrize("blame", ["answers", "raises"])
async def test_what_a_subject_makes_of_its_timeout_does_not_count(blame: str, carry_out: CarryOut) -> None:
    async def stubborn(task: Task) -> str:
        try:
            await forever(task)
        except asyncio.CancelledError:
            if blame == "raises":
                raise InfraError("the connection was closed") from None
        return "yes"

    probe = Probe(stubborn)
    (record,) = await carry_out(plan_of(limits=QUICK), registry=catalogue_of(probe))
    assert (record.verdict, len(probe.asked)) == ("timeout", 1)


HANGS = """
import asyncio, sys, time
from pathlib import Path
from bakeoff.plan import Limits
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.engine.run import run
from bakeoff.subjects import function_subject

def hang(prompt):
    while True:
        time.sleep(3600)

async def main():
    case = Case(id="c", prompt="?", expected="x", limits=Limits(attempt_seconds=0.2))
    plan = Plan(name="p", cases=(case,), subjects=(function_subject(hang),), scorers=(ScorerSpec(kind="exact"),))
    async for record in run(plan, RunOptions(results=Path(sys.argv[1]))):
        print(record.verdict, flush=True)

asyncio.run(main())
"""


def test_a_sync_function_that_hangs_is_reported_in_time_and_the_process_ends(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(HANGS)
    done = subprocess.run(
        [sys.executable, script, tmp_path / "results"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "timeout\n"), done.stderr


# --- whose doing --------------------------------------------------------------------------------------------------


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


ERRORS: list[tuple[BaseException, str, str]] = [
    (ZeroDivisionError("bug"), "infra", "bug"),
    (InfraError("down"), "infra", "down"),
    (SubjectError("wrong"), "fail", "wrong"),
    (GraderError("odd"), "grader", "odd"),
    (TimeoutError("of its own"), "infra", "of its own"),
    (SystemExit(3), "infra", "3"),
    (asyncio.CancelledError("nobody asked"), "infra", "nobody asked"),
    (BaseException("base"), "infra", "base"),
    (pytest.fail.Exception("a test helper"), "infra", "a test helper"),
    (Unprintable(), "infra", "<exception str() failed>"),
    (ValueError("lone \ud800"), "infra", r"lone \ud800"),
    (ExceptionGroup("many", [ValueError("one")]), "infra", "many (1 sub-exception)"),
]


@pytest.mark.parametrize(("error", "verdict", "message"), ERRORS, ids=[type(error).__name__ for error, *_ in ERRORS])
async def test_what_a_subject_raises_ends_its_trial_alone(
    error: BaseException, verdict: str, message: str, tmp_path: Path, carry_out: CarryOut
) -> None:
    async def fail_first(task: Task) -> str:
        if task.case_id == "c0":
            raise error
        return "yes"

    probe = Probe(fail_first)
    records = await carry_out(plan_of(3), registry=catalogue_of(probe), retries=0, jobs=1)
    assert [record.verdict for record in records] == [verdict, "pass", "pass"]
    assert records[0].failure is not None
    assert (records[0].failure.type, records[0].failure.message) == (type(error).__name__, message)
    stored = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Record)]
    assert [record.verdict for record in stored] == [verdict, "pass", "pass"]


async def test_an_error_of_unknown_origin_keeps_the_end_of_its_traceback(carry_out: CarryOut) -> None:
    async def bug(task: Task) -> str:
        raise KeyError("x" * 5000)

    (record,) = await carry_out(plan_of(), registry=catalogue_of(Probe(bug)), retries=0)
    assert record.failure is not None
    assert len(record.failure.detail) == 4000
    assert record.failure.detail.endswith("xxx'\n")


@pytest.mark.parametrize(
    "error", [ZeroDivisionError, SystemExit, asyncio.CancelledError, KeyboardInterrupt, StopIteration]
)
async def test_what_a_sync_scorer_raises_is_the_graders_and_the_others_still_run(
    error: type[BaseException], carry_out: CarryOut
) -> None:
    def explode(given: ScoreInput) -> float:
        raise error("bang")

    plan = plan_of(2, scorers=(ScorerSpec(kind="judge"), ScorerSpec(kind="exact")))
    records = await carry_out(plan, registry=catalogue_of(Probe(), Judge(explode)), jobs=1)
    assert [record.verdict for record in records] == ["grader", "grader"]
    assert [[score.value for score in record.scores] for record in records] == [[None, 1.0]] * 2
    assert records[0].failure is not None
    assert "bang" in records[0].failure.message


async def async_half(given: ScoreInput) -> float:
    return 0.5


@pytest.mark.parametrize(
    ("returned", "value", "verdict"),
    [
        (1, 1.0, "pass"),
        (True, 1.0, "pass"),
        (False, 0.0, "fail"),
        (0.5, 0.5, "fail"),
        (Score(name="another name", value=1.0, reason="r"), 1.0, "pass"),
        (None, None, "grader"),
        (7, None, "grader"),
        (-0.1, None, "grader"),
        (float("nan"), None, "grader"),
        ("x", None, "grader"),
        ([1.0], None, "grader"),
        (async_half, 0.5, "fail"),
    ],
)
async def test_what_a_scorer_returns_is_kept_in_one_shape(
    returned: Any, value: float | None, verdict: str, carry_out: CarryOut
) -> None:
    judge = Judge(lambda given: returned(given) if callable(returned) else returned)
    (record,) = await carry_out(plan_of(scorers=(ScorerSpec(kind="judge"),)), registry=catalogue_of(Probe(), judge))
    assert (record.verdict, record.scores[0].value, record.scores[0].name) == (verdict, value, "judge")
    if returned in (7, "x"):
        assert record.failure is not None
        assert f"scorer 'judge' returned {returned!r}" in record.failure.message


async def test_a_binding_that_breaks_ends_its_trial_alone(carry_out: CarryOut) -> None:
    class Broken:
        def bind(self, case: Case) -> Probe:
            if case.id == "c0":
                raise ValueError("cannot bind")
            return Probe()

    registry = default_registry().with_subject("probe", lambda _: Broken())
    records = await carry_out(plan_of(2), registry=registry, retries=0)
    assert sorted((record.case, record.verdict, record.bound) for record in records) == [
        ("c0", "infra", True),
        ("c1", "pass", True),
    ]


async def test_tools_of_a_door_that_break_end_their_trial_alone(carry_out: CarryOut) -> None:
    def tools(case: Case, resources: Mapping[str, Any]) -> tuple[Tool, ...]:
        if case.id == "c0":
            raise ValueError("no tools today")
        return ()

    records = await carry_out(plan_of(2), registry=catalogue_of(Probe()).with_tools(tools), retries=0)
    assert sorted((record.case, record.verdict) for record in records) == [("c0", "infra"), ("c1", "pass")]


async def test_what_is_broken_beyond_a_trial_ends_the_run_with_its_own_error(
    log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    class Broken(Probe):
        @property
        def needs(self) -> Needs:
            raise LookupError("no needs")

        @needs.setter
        def needs(self, needs: Needs) -> None: ...

    class Bound:
        needs = Needs(resources=(Shared("a", log), Shared("b", log)))

        def bind(self, case: Case) -> Probe:
            return Broken()

    with pytest.raises(LookupError, match="no needs"):
        await carry_out(plan_of(5), registry=default_registry().with_subject("probe", lambda _: Bound()))
    check_closed(log)


async def test_a_workspace_that_cannot_be_removed_costs_neither_the_answer_nor_the_run(
    needs_program: Callable[[str], str], carry_out: CarryOut
) -> None:
    mount, umount = needs_program("mount"), needs_program("umount")
    mounted: list[Path] = []

    async def hold(task: Task) -> str:
        inside = task.workspace.folder / "held"
        inside.mkdir()
        if subprocess.run([mount, "-t", "tmpfs", "tmpfs", inside], capture_output=True, check=False).returncode:
            pytest.skip("holding a folder needs root and mount: run the tests as root")
        mounted.append(inside)
        return "yes"

    try:
        records = await carry_out(plan_of(), registry=catalogue_of(Probe(hold, needs=Needs(workspace=True))), retries=0)
    finally:
        for inside in mounted:
            subprocess.run([umount, inside], check=True)
            shutil.rmtree(inside.parents[1])
    if records[0].failure and records[0].failure.type == "Skipped":
        pytest.skip(records[0].failure.message)
    assert [record.verdict for record in records] == ["pass"]
    assert [record.workspace for record in records] == [str(inside.parent) for inside in mounted]


# --- function subjects --------------------------------------------------------------------------------------------


def sync_yes(prompt: str) -> str:
    return "yes"


async def async_yes(prompt: str) -> Transcript:
    return Transcript(output="yes")


def bug(prompt: str) -> str:
    raise ValueError("my own bug")


def leave(prompt: str) -> str:
    sys.exit(4)


async def leave_async(prompt: str) -> str:
    sys.exit("done")


def interrupt(prompt: str) -> str:
    raise KeyboardInterrupt


def cancel(prompt: str) -> str:
    raise asyncio.CancelledError


def unjson(prompt: str) -> object:
    return object()


def not_a_number(prompt: str) -> float:
    return float("nan")


def down(prompt: str) -> str:
    raise InfraError("the provider is down")


@pytest.mark.parametrize(
    ("function", "verdict", "message"),
    [
        (sync_yes, "pass", None),
        (async_yes, "pass", None),
        (bug, "fail", "my own bug"),
        (leave, "fail", "called sys.exit(4)"),
        (leave_async, "fail", "called sys.exit('done')"),
        (interrupt, "fail", "KeyboardInterrupt: "),
        (cancel, "fail", "CancelledError: "),
        (unjson, "fail", "1 validation error for Transcript"),
        (not_a_number, "fail", "1 validation error for Transcript"),
        (down, "infra", "the provider is down"),
    ],
)
async def test_a_function_is_judged_by_what_it_returns_or_raises(
    function: Callable[[str], Any], verdict: str, message: str | None, carry_out: CarryOut
) -> None:
    (record,) = await carry_out(plan_of(subjects=(function_subject(function),)), retries=0)
    assert record.verdict == verdict
    assert (record.failure.message if record.failure else None) == message or (
        message and record.failure and record.failure.message.startswith(message)
    )
    if function is bug:
        assert record.failure is not None
        assert 'raise ValueError("my own bug")' in record.failure.detail


# --- retries ------------------------------------------------------------------------------------------------------


def failing(times: int, error: Exception) -> Callable[[Task], Awaitable[str]]:
    left = [error] * times

    async def attempt(task: Task) -> str:
        if left:
            raise left.pop()
        return "yes"

    return attempt


@pytest.mark.parametrize(
    ("error", "times", "retries", "tries", "verdict"),
    [
        (InfraError("down"), 2, 2, 3, "pass"),
        (InfraError("down"), 3, 2, 3, "infra"),
        (InfraError("down"), 1, 0, 1, "infra"),
        (OSError("reset"), 1, 2, 2, "pass"),
        (SubjectError("wrong"), 1, 2, 1, "fail"),
        (GraderError("odd"), 1, 2, 1, "grader"),
    ],
)
async def test_only_infra_is_tried_again_and_then_given_up(
    error: Exception, times: int, retries: int, tries: int, verdict: str, carry_out: CarryOut
) -> None:
    probe = Probe(failing(times, error))
    (record,) = await carry_out(plan_of(), registry=catalogue_of(probe), retries=retries)
    assert (record.verdict, record.tries, len(probe.asked)) == (verdict, tries, tries)


@pytest.mark.parametrize(("asked_for", "least", "most"), [(None, 0.1, 0.35), (0.15, 0.25, 0.45), (60.0, 0.4, 0.7)])
async def test_waits_double_are_jittered_and_as_long_as_was_asked_for_up_to_a_limit(
    asked_for: float | None, least: float, most: float, carry_out: CarryOut
) -> None:
    probe = Probe(failing(2, InfraError("busy", retry_after=asked_for)))
    started = time.perf_counter()
    (record,) = await carry_out(
        plan_of(), registry=catalogue_of(probe), backoff_seconds=0.08, longest_backoff_seconds=0.2
    )
    assert record.verdict == "pass"
    assert least <= time.perf_counter() - started <= most + 1


async def test_a_scorer_that_could_not_reach_its_judge_does_not_pay_for_the_attempt_again(carry_out: CarryOut) -> None:
    left = [InfraError("judge down")] * 2

    def flaky(given: ScoreInput) -> float:
        if left:
            raise left.pop()
        return 1.0

    async def paid(task: Task) -> Transcript:
        return Transcript(output="yes", usage=Usage(input=5, cost=0.5))

    probe = Probe(paid)
    (record,) = await carry_out(
        plan_of(scorers=(ScorerSpec(kind="judge"),)), registry=catalogue_of(probe, Judge(flaky))
    )
    assert (record.verdict, len(probe.asked), record.spent) == ("pass", 1, Usage(input=5, cost=0.5))


# --- budgets ------------------------------------------------------------------------------------------------------


def spending(usage: Usage, *, told: bool) -> Callable[[Task], Awaitable[Transcript]]:
    async def attempt(task: Task) -> Transcript:
        if told:
            task.spend(usage)
        return Transcript(output="yes", usage=usage)

    return attempt


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"max_cost": 1.0}, "max_cost $1 is reached: $1 spent"),
        ({"max_tokens": 20}, "max_tokens 20 is reached: 20 used"),
    ],
)
@pytest.mark.parametrize("told", [True, False])
async def test_a_limit_stops_new_trials_and_marks_the_rest(
    limit: dict[str, Any], reason: str, told: bool, tmp_path: Path, carry_out: CarryOut
) -> None:
    probe = Probe(spending(Usage(input=6, output=4, cost=0.5), told=told))
    records = await carry_out(plan_of(5), registry=catalogue_of(probe), jobs=1, **limit)
    last = "budget" if told else "pass"  # what is told while an attempt runs can still end it
    assert [record.verdict for record in records] == ["pass", last, "budget", "budget", "budget"]
    assert probe.asked == ["c0", "c1"]
    assert {record.failure.message for record in records if record.failure} == {reason}
    assert [record.tries for record in records] == [1, 1, 0, 0, 0]
    assert ending(tmp_path) == reason


async def test_the_limit_on_time_stops_new_trials(carry_out: CarryOut) -> None:
    async def slow(task: Task) -> str:
        await asyncio.sleep(2.5)
        return "yes"

    probe = Probe(slow)
    records = await carry_out(plan_of(3), registry=catalogue_of(probe), jobs=1, max_seconds=2)
    assert [record.verdict for record in records] == ["pass", "budget", "budget"]
    assert records[1].failure is not None
    assert records[1].failure.message == "max_seconds 2 is reached"


async def test_unknown_cost_is_never_nothing_and_a_limit_that_cannot_be_kept_stops_the_run(carry_out: CarryOut) -> None:
    probe = Probe(spending(Usage(input=6), told=False))
    without_limit = await carry_out(plan_of(2), registry=catalogue_of(probe), jobs=1)
    assert [(record.verdict, record.spent.cost) for record in without_limit] == [("pass", None)] * 2
    first, second = await carry_out(plan_of(2), registry=catalogue_of(probe), max_cost=0.01, jobs=1)
    assert (first.verdict, second.verdict) == ("pass", "budget")
    assert second.failure is not None
    assert "max_cost cannot be enforced" in second.failure.message


async def test_usage_is_counted_once_whether_told_or_returned_or_both_and_never_taken_back(
    carry_out: CarryOut,
) -> None:
    told, returned = Usage(input=6, output=1, cost=0.5), Usage(input=4, output=3, cost=0.75)

    async def both(task: Task) -> Transcript:
        task.spend(told)
        return Transcript(output="yes", usage=returned if task.case_id == "c0" else Usage())

    records = await carry_out(plan_of(2), registry=catalogue_of(Probe(both)), jobs=1)
    assert [record.spent for record in records] == [Usage(input=6, output=3, cost=0.75), told]


async def test_every_try_is_counted(carry_out: CarryOut) -> None:
    left = [InfraError("down")] * 2

    async def attempt(task: Task) -> Transcript:
        task.spend(Usage(input=1, cost=0.25))
        if left:
            raise left.pop()
        return Transcript(output="yes", usage=Usage(input=1, cost=0.25))

    (record,) = await carry_out(plan_of(), registry=catalogue_of(Probe(attempt)))
    assert (record.spent, record.tries) == (Usage(input=3, cost=0.75), 3)


# --- resources ----------------------------------------------------------------------------------------------------


@dataclass
class Shared:
    """A resource that writes down who opened and closed it, when."""

    key: str
    log: list[tuple[str, str, object]]
    refuse: bool = False

    def open(self) -> AbstractAsyncContextManager[str]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[str]:
            if self.refuse:
                raise InfraError(f"{self.key} does not open")
            self.log.append(("open", self.key, asyncio.current_task()))
            try:
                yield f"the {self.key}"
            finally:
                await asyncio.sleep(0)
                self.log.append(("close", self.key, asyncio.current_task()))

        return opened()


def check_closed(log: list[tuple[str, str, object]]) -> None:
    assert [entry[:2] for entry in log] == [("open", "a"), ("open", "b"), ("close", "b"), ("close", "a")]
    assert len({task for *_, task in log}) == 1


@pytest.fixture
def log() -> list[tuple[str, str, object]]:
    return []


def sharing(log: list[tuple[str, str, object]], do: Callable[[Task], Awaitable[Any]] | None = None) -> Registry:
    a, again, b = Shared("a", log), Shared("a", log), Shared("b", log)
    judge = Judge(lambda given: given.resources["b"] == "the b", needs=Needs(resources=(again, b)))
    return catalogue_of(Probe(do, needs=Needs(resources=(a,))), judge)


JUDGED = (ScorerSpec(kind="judge"),)


async def test_resources_are_opened_once_shared_and_closed_in_reverse_by_the_task_that_opened_them(
    log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    async def use(task: Task) -> str:
        return str(task.resources["a"])

    records = await carry_out(plan_of(4, scorers=JUDGED), registry=sharing(log, use))
    assert {(record.verdict, (record.transcript or Transcript()).output) for record in records} == {("pass", "the a")}
    check_closed(log)


async def test_resources_are_closed_when_the_consumer_stops_early(
    tmp_path: Path, log: list[tuple[str, str, object]]
) -> None:
    records = aiter(run(plan_of(50, scorers=JUDGED), RunOptions(results=tmp_path), registry=sharing(log)))
    await anext(records)
    await records.aclose()  # type: ignore[attr-defined]
    check_closed(log)


async def test_resources_are_closed_when_the_consumer_breaks(
    tmp_path: Path, log: list[tuple[str, str, object]]
) -> None:
    async def consume() -> None:
        async for _ in run(plan_of(50, scorers=JUDGED), RunOptions(results=tmp_path), registry=sharing(log)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await consume()
    async with asyncio.timeout(10):
        while len(log) < 4:  # nobody is left to wait for: the loop closes what was abandoned
            await asyncio.sleep(0)
    check_closed(log)


async def test_resources_are_closed_when_the_consumer_is_cancelled(
    tmp_path: Path, log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    begun = asyncio.Event()

    async def hang(task: Task) -> str:
        begun.set()
        return await forever(task)

    running = asyncio.ensure_future(carry_out(plan_of(scorers=JUDGED), registry=sharing(log, hang)))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    check_closed(log)


async def test_a_resource_that_does_not_open_ends_only_the_trials_that_need_it(
    log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    async def use(task: Task) -> str:
        return str(task.resources["c"])

    needy = Probe(use, needs=Needs(resources=(Shared("a", log), Shared("c", log, refuse=True), Shared("b", log))))
    registry = catalogue_of(Probe()).with_subject("needy", lambda _: needy)
    subjects = (SubjectSpec(kind="needy", name="needy"), SubjectSpec(kind="probe", name="s"))
    records = await carry_out(plan_of(2, subjects=subjects), registry=registry)
    assert {(record.subject, record.verdict, record.tries) for record in records} == {
        ("needy", "infra", 1),
        ("s", "pass", 1),
    }
    assert {record.failure.message for record in records if record.failure} == {"c does not open"}
    check_closed(log)


async def test_a_resource_of_a_scorer_that_does_not_open_keeps_the_attempt(
    log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    judge = Judge(lambda given: given.resources["c"], needs=Needs(resources=(Shared("c", log, refuse=True),)))
    [record] = await carry_out(plan_of(scorers=JUDGED), registry=catalogue_of(Probe(), judge))
    assert record.failure is not None
    assert (record.verdict, record.failure.message, record.tries) == ("infra", "c does not open", 1)
    assert record.transcript is not None


async def test_stopping_again_while_resources_are_being_closed_does_not_disturb_them(
    tmp_path: Path, log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    control = RunControl()

    class Slow(Shared):
        def open(self) -> AbstractAsyncContextManager[str]:
            @asynccontextmanager
            async def opened() -> AsyncIterator[str]:
                async with super(Slow, self).open() as value:
                    yield value
                    for _ in range(3):
                        control.stop()
                        await asyncio.sleep(0)

            return opened()

    needs = Needs(resources=(Shared("a", log), Slow("b", log)))
    records = await carry_out(plan_of(), registry=catalogue_of(Probe(needs=needs)), control=control)
    assert [record.verdict for record in records] == ["pass"]
    check_closed(log)


async def test_stopping_ends_the_opening_of_a_resource(log: list[tuple[str, str, object]], carry_out: CarryOut) -> None:
    control = RunControl()

    class Hanging(Shared):
        def open(self) -> AbstractAsyncContextManager[str]:
            @asynccontextmanager
            async def opened() -> AsyncIterator[str]:
                control.stop()
                yield await forever(None)

            return opened()

    needs = Needs(resources=(Shared("a", log), Shared("b", log), Hanging("c", log)))
    assert await carry_out(plan_of(), registry=catalogue_of(Probe(needs=needs)), control=control) == []
    check_closed(log)


async def test_a_full_disk_closes_resources_and_ends_the_run_with_a_sentence(
    tmp_path: Path, log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    async def fill(task: Task) -> str:
        (blobs,) = (tmp_path / "results" / "runs").iterdir()
        (blobs / "blobs").write_text("a file where a folder must be made")
        return "x" * 50_000

    with pytest.raises(RunFolderError, match=r"the journal cannot be written: .* Everything reported finished is safe"):
        await carry_out(plan_of(scorers=JUDGED), registry=sharing(log, fill))
    check_closed(log)


# --- draining and stopping ----------------------------------------------------------------------------------------


async def test_draining_finishes_what_is_in_flight_and_starts_nothing(tmp_path: Path, carry_out: CarryOut) -> None:
    control = RunControl()

    async def last(task: Task) -> str:
        if task.case_id == "c1":
            control.interrupt()
        await asyncio.sleep(0.01)
        return "yes"

    probe = Probe(last)
    records = await carry_out(plan_of(9), registry=catalogue_of(probe), control=control, jobs=2)
    assert [record.case for record in records] == ["c0", "c1"]
    assert (probe.asked, ending(tmp_path)) == (["c0", "c1"], "interrupted")


async def test_stopping_gives_up_what_is_in_flight(
    tmp_path: Path, log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    control = RunControl()

    async def hang(task: Task) -> str:
        if task.case_id == "c2":
            control.interrupt()
            control.interrupt()
            await forever(task)
        if task.case_id == "c1":
            await forever(task)
        return "yes"

    records = await carry_out(plan_of(9, scorers=JUDGED), registry=sharing(log, hang), control=control, jobs=2)
    assert [record.case for record in records] == ["c0"]
    assert ending(tmp_path) == "interrupted"
    check_closed(log)


@pytest.mark.parametrize("answer", ["answers", "raises"])
async def test_a_subject_that_is_stopped_leaves_no_record_whatever_it_makes_of_it(
    answer: str, tmp_path: Path, carry_out: CarryOut
) -> None:
    control = RunControl()

    async def stubborn(task: Task) -> str:
        control.stop()
        try:
            await forever(task)
        except asyncio.CancelledError:
            if answer == "raises":
                raise SubjectError("interrupted!") from None
        return "half an answer"

    assert await carry_out(plan_of(3), registry=catalogue_of(Probe(stubborn)), control=control, jobs=1) == []
    assert [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Record)] == []


async def test_a_run_that_was_stopped_before_it_began_does_nothing(tmp_path: Path, carry_out: CarryOut) -> None:
    control = RunControl()
    control.stop()
    probe = Probe()
    assert await carry_out(plan_of(3), registry=catalogue_of(probe), control=control) == []
    assert (probe.asked, ending(tmp_path)) == ([], "interrupted")


async def test_draining_ends_a_wait_for_the_next_try_without_making_it(carry_out: CarryOut) -> None:
    control = RunControl()
    loop = asyncio.get_running_loop()

    async def down(task: Task) -> str:
        loop.call_later(0.02, control.drain)
        raise InfraError("down")

    probe = Probe(down)
    (record,) = await carry_out(
        plan_of(), registry=catalogue_of(probe), control=control, backoff_seconds=600.0, longest_backoff_seconds=600.0
    )
    assert (record.verdict, record.tries, len(probe.asked)) == ("infra", 1, 1)


async def test_what_is_finished_when_the_consumer_leaves_is_kept(tmp_path: Path) -> None:
    probe = Probe()
    records = aiter(run(plan_of(200), RunOptions(results=tmp_path / "results", jobs=4), registry=catalogue_of(probe)))
    await anext(records)
    await records.aclose()  # type: ignore[attr-defined]
    folder = folder_of(tmp_path)
    stored = [entry.case for entry in folder.entries() if isinstance(entry, Record)]
    assert len(stored) == len(set(stored)) >= len(probe.asked) - 4
    assert not folder.is_being_written()


async def test_the_run_tells_its_control_which_sandbox_is_used(carry_out: CarryOut) -> None:
    control = RunControl()
    await carry_out(plan_of(), registry=catalogue_of(Probe()), control=control)
    assert (control.sandbox, control.finished_before) == (None, 0)
    await carry_out(plan_of(), registry=catalogue_of(Probe(needs=Needs(workspace=True))), control=control)
    assert control.sandbox == "process"


def test_the_start_of_a_journal_says_who_wrote_it(tmp_path: Path) -> None:
    async def go() -> None:
        async for _ in run(plan_of(), RunOptions(results=tmp_path / "results"), registry=catalogue_of(Probe())):
            pass

    asyncio.run(go())
    first = next(read_journal(folder_of(tmp_path).journal_file))
    assert isinstance(first, Mark)
    assert {"bakeoff", "time"} <= first.facts.keys()
    assert folder_of(tmp_path).journal_file.stat().st_mode & 0o077 == 0
