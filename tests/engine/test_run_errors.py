"""Errors of subjects, scorers, tools and workspaces end one trial alone."""

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bakeoff.engine.registry import default_registry
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import GraderError, InfraError, SubjectError
from bakeoff.plan import Case, Limits, PassRule, ScorerSpec
from bakeoff.protocols import Needs, ScoreInput, Task, Tool
from bakeoff.record import Record, Score, Transcript
from bakeoff.subjects.function import function_subject

from .probes import CarryOut, Judge, Probe, Shared, check_closed, folder_of, forever, plan_of, registry_of


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
    records = await carry_out(plan_of(3), registry=registry_of(probe), retries=0, jobs=1)
    assert [record.verdict for record in records] == [verdict, "pass", "pass"]
    assert records[0].failure is not None
    assert (records[0].failure.type, records[0].failure.message) == (type(error).__name__, message)
    stored = [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Record)]
    assert [record.verdict for record in stored] == [verdict, "pass", "pass"]


async def test_an_error_of_unknown_origin_keeps_the_end_of_its_traceback(carry_out: CarryOut) -> None:
    async def bug(task: Task) -> str:
        raise KeyError("x" * 5000)

    (record,) = await carry_out(plan_of(), registry=registry_of(Probe(bug)), retries=0)
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
    records = await carry_out(plan, registry=registry_of(Probe(), Judge(explode)), jobs=1)
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
    (record,) = await carry_out(plan_of(scorers=(ScorerSpec(kind="judge"),)), registry=registry_of(Probe(), judge))
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

    records = await carry_out(plan_of(2), registry=registry_of(Probe()).with_tools(tools), retries=0)
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

    control = RunControl()
    registry = registry_of(Probe(hold, needs=Needs(workspace=True)))
    try:
        records = await carry_out(plan_of(), registry=registry, control=control, retries=0)
    finally:
        for inside in mounted:
            subprocess.run([umount, inside], check=True)
            shutil.rmtree(inside.parents[1], ignore_errors=True)  # the run's own removal may still be at work
    if records[0].failure and records[0].failure.type == "Skipped":
        pytest.skip(records[0].failure.message)
    assert [record.verdict for record in records] == ["pass"]
    assert [*control.left_behind] == [inside.parents[1] for inside in mounted]


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


# --- cancellations of their own ------------------------------------------------------------------------------------


async def group_that_fails() -> None:
    """Fail while the group waits for its tasks, which before Python 3.13 leaves its parent marked as cancelled."""

    async def child() -> None:
        await asyncio.sleep(0)
        raise ValueError("a child failed")

    async with asyncio.TaskGroup() as group:
        group.create_task(child())


async def handles_its_group(prompt: str) -> str:
    try:
        await group_that_fails()
    except* ValueError:
        pass
    return "yes"


async def leaves_its_group_unhandled(prompt: str) -> str:
    await group_that_fails()
    return "yes"


async def cancels_itself_and_answers(prompt: str) -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "yes"


async def handles_its_group_and_hangs(prompt: str) -> str:
    await handles_its_group(prompt)
    return await forever(prompt)


@pytest.mark.parametrize(
    ("function", "verdict", "message"),
    [
        (handles_its_group, "pass", None),
        (leaves_its_group_unhandled, "fail", "unhandled errors in a TaskGroup (1 sub-exception)"),
        (cancels_itself_and_answers, "pass", None),
        (handles_its_group_and_hangs, "timeout", "not finished after 0.2 s"),
    ],
)
async def test_a_subject_whose_own_tasks_are_cancelled_has_a_record_of_every_trial(
    function: Callable[[str], Any], verdict: str, message: str | None, carry_out: CarryOut
) -> None:
    plan = plan_of(3, subjects=(function_subject(function),), limits=Limits(attempt_seconds=0.2))
    records = await carry_out(plan, jobs=1)
    assert [record.verdict for record in records] == [verdict] * 3
    assert {record.failure.message if record.failure else None for record in records} == {message}


async def test_a_scorer_that_handles_its_failed_task_group_has_its_score(carry_out: CarryOut) -> None:
    async def judge(given: ScoreInput) -> bool:
        return await handles_its_group("?") == "yes"

    plan = plan_of(3, scorers=(ScorerSpec(kind="judge"), ScorerSpec(kind="exact")))
    records = await carry_out(plan, registry=registry_of(Probe(), Judge(judge)), jobs=1)
    assert [[score.value for score in record.scores] for record in records] == [[1.0, 1.0]] * 3


async def test_stopping_a_run_ends_a_subject_that_has_handled_its_failed_task_group(carry_out: CarryOut) -> None:
    control = RunControl()

    async def stubborn(task: Task) -> str:
        await handles_its_group("?")
        control.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await forever(task)
        return "half an answer"

    assert await carry_out(plan_of(3), registry=registry_of(Probe(stubborn)), control=control, jobs=1) == []


# --- retries ------------------------------------------------------------------------------------------------------


async def test_a_missing_score_counts_as_zero_if_the_rule_of_its_case_says_so(carry_out: CarryOut) -> None:
    def silent(given: ScoreInput) -> Score:
        return Score(name="silent", reason="nothing to say")

    plan = plan_of(2, scorers=(ScorerSpec(kind="judge"),))
    strict = plan.cases[1].model_copy(update={"pass_rule": PassRule(null_as_zero=True)})
    plan = plan.model_copy(update={"cases": (plan.cases[0], strict)})
    usual, zeroed = await carry_out(plan, registry=registry_of(Probe(), Judge(silent)), jobs=1)
    assert (usual.value, usual.verdict) == (None, "grader")
    assert (zeroed.value, zeroed.verdict) == (0.0, "fail")
    assert zeroed.scores[0].reason == "unscored, counted as 0: nothing to say"
