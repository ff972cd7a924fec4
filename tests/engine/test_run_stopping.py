"""Draining and stopping a run."""

import asyncio
from pathlib import Path

import pytest

from bakeoff.engine.run_control import RunControl
from bakeoff.errors import InfraError, SubjectError
from bakeoff.protocols import Task
from bakeoff.record import Record

from .probes import JUDGED, CarryOut, Probe, check_closed, end_reason, folder_of, forever, plan_of, registry_of, sharing


async def test_draining_finishes_what_is_in_flight_and_starts_nothing(tmp_path: Path, carry_out: CarryOut) -> None:
    control = RunControl()

    async def last(task: Task) -> str:
        if task.case_id == "c1":
            control.interrupt()
        await asyncio.sleep(0.01)
        return "yes"

    probe = Probe(last)
    records = await carry_out(plan_of(9), registry=registry_of(probe), control=control, jobs=2)
    assert [record.case for record in records] == ["c0", "c1"]
    assert (probe.asked, end_reason(tmp_path)) == (["c0", "c1"], "interrupted")


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
    assert end_reason(tmp_path) == "interrupted"
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

    assert await carry_out(plan_of(3), registry=registry_of(Probe(stubborn)), control=control, jobs=1) == []
    assert [entry for entry in folder_of(tmp_path).entries() if isinstance(entry, Record)] == []


async def test_a_run_that_was_stopped_before_it_began_does_nothing(tmp_path: Path, carry_out: CarryOut) -> None:
    control = RunControl()
    control.stop()
    probe = Probe()
    assert await carry_out(plan_of(3), registry=registry_of(probe), control=control) == []
    assert (probe.asked, end_reason(tmp_path)) == ([], "interrupted")


async def test_draining_ends_a_wait_for_the_next_try_without_making_it(carry_out: CarryOut) -> None:
    control = RunControl()
    loop = asyncio.get_running_loop()

    async def down(task: Task) -> str:
        loop.call_later(0.02, control.drain)
        raise InfraError("down")

    probe = Probe(down)
    (record,) = await carry_out(
        plan_of(), registry=registry_of(probe), control=control, backoff_seconds=600.0, longest_backoff_seconds=600.0
    )
    assert (record.verdict, record.tries, len(probe.asked)) == ("infra", 1, 1)
