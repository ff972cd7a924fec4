"""Limits on money, tokens and time, and how usage is counted."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import InfraError
from bakeoff.protocols import Task
from bakeoff.record import Transcript, Usage

from .probes import CarryOut, Probe, end_reason, plan_of, registry_of


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
        ({"max_total_tokens": 20}, "max_total_tokens 20 is reached: 20 used"),
    ],
)
@pytest.mark.parametrize("told", [True, False])
async def test_a_limit_stops_new_trials_and_marks_the_rest(
    limit: dict[str, Any], reason: str, told: bool, tmp_path: Path, carry_out: CarryOut
) -> None:
    probe = Probe(spending(Usage(input=6, output=4, cost=0.5), told=told))
    records = await carry_out(plan_of(5), registry=registry_of(probe), jobs=1, **limit)
    last = "budget" if told else "pass"  # what is told while an attempt runs can still end it
    assert [record.verdict for record in records] == ["pass", last, "budget", "budget", "budget"]
    assert probe.asked == ["c0", "c1"]
    assert {record.failure.message for record in records if record.failure} == {reason}
    assert [record.tries for record in records] == [1, 1, 0, 0, 0]
    assert end_reason(tmp_path) == reason


async def test_the_limit_on_time_stops_new_trials(carry_out: CarryOut) -> None:
    async def slow(task: Task) -> str:
        await asyncio.sleep(2.5)
        return "yes"

    probe = Probe(slow)
    records = await carry_out(plan_of(3), registry=registry_of(probe), jobs=1, max_seconds=2)
    assert [record.verdict for record in records] == ["pass", "budget", "budget"]
    assert records[1].failure is not None
    assert records[1].failure.message == "max_seconds 2 is reached"


async def test_unknown_cost_is_never_nothing_and_a_limit_that_cannot_be_kept_stops_the_run(carry_out: CarryOut) -> None:
    probe = Probe(spending(Usage(input=6), told=False))
    without_limit = await carry_out(plan_of(2), registry=registry_of(probe), jobs=1)
    assert [(record.verdict, record.spent.cost) for record in without_limit] == [("pass", None)] * 2
    first, second = await carry_out(plan_of(2), registry=registry_of(probe), max_cost=0.01, jobs=1)
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

    records = await carry_out(plan_of(2), registry=registry_of(Probe(both)), jobs=1)
    assert [record.spent for record in records] == [Usage(input=6, output=3, cost=0.75), told]


async def test_every_try_is_counted(carry_out: CarryOut) -> None:
    left = [InfraError("down")] * 2

    async def attempt(task: Task) -> Transcript:
        task.spend(Usage(input=1, cost=0.25))
        if left:
            raise left.pop()
        return Transcript(output="yes", usage=Usage(input=1, cost=0.25))

    (record,) = await carry_out(plan_of(), registry=registry_of(Probe(attempt)))
    assert (record.spent, record.tries) == (Usage(input=3, cost=0.75), 3)


# --- resources ----------------------------------------------------------------------------------------------------
