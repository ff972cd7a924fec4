"""Resources are opened once, shared, and closed whatever happens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from bakeoff.engine.resources import SharedResources
from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import SubjectSpec
from bakeoff.protocols import Needs, Task
from bakeoff.record import Transcript

from .probes import JUDGED, CarryOut, Judge, Probe, Shared, check_closed, forever, plan_of, registry_of, sharing


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
    registry = registry_of(Probe()).with_subject("needy", lambda _: needy)
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
    [record] = await carry_out(plan_of(scorers=JUDGED), registry=registry_of(Probe(), judge))
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
    records = await carry_out(plan_of(), registry=registry_of(Probe(needs=needs)), control=control)
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
    assert await carry_out(plan_of(), registry=registry_of(Probe(needs=needs)), control=control) == []
    check_closed(log)


async def test_a_full_disk_closes_resources_and_ends_the_run_with_a_sentence(
    tmp_path: Path, log: list[tuple[str, str, object]], carry_out: CarryOut
) -> None:
    async def fill(task: Task) -> str:
        (blobs,) = (tmp_path / "results" / "runs").iterdir()
        (blobs / "blobs").write_text("a file where a folder must be made")
        return "x" * 50_000

    with pytest.raises(
        RunFolderError, match=r"the journal cannot be written: .* All trials reported as finished are safe"
    ):
        await carry_out(plan_of(scorers=JUDGED), registry=sharing(log, fill))
    check_closed(log)


# --- draining and stopping ----------------------------------------------------------------------------------------


async def test_an_error_of_any_kind_in_opening_is_the_callers_and_others_can_still_open(
    log: list[tuple[str, str, object]],
) -> None:
    class Broken(Shared):
        def open(self) -> AbstractAsyncContextManager[str]:
            raise ZeroDivisionError("a fault of its author")

    shared = SharedResources()
    async with asyncio.timeout(10):
        with pytest.raises(ZeroDivisionError, match="a fault of its author"):
            await shared.open([Broken("broken", log)], {})
        assert (await shared.open([Shared("a", log)], {}))["a"] == "the a"
        assert (await shared.open([Shared("b", log), Shared("a", log)], {}))["b"] == "the b"
        await shared.close()
    check_closed(log)
