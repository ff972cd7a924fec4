"""The cases of a suite run ahead of pytest, but not too far, and no error leaves pytest waiting."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from bakeoff.doors.pytest import parallel
from bakeoff.doors.pytest.loops import LoopThread
from bakeoff.doors.pytest.parallel import PendingCase, SuiteExecution, SuiteTrials
from bakeoff.record import Record

AHEAD = parallel._MAX_AHEAD


class Here:
    """Stands for the loop's thread: everything happens on the loop of the test."""

    def call(self, callback: Callable[[], object]) -> None:
        callback()

    def spawn(self, coroutine: Callable[[], Any]) -> None:
        """Leave the start to the test."""

    def wait_for(self, case: PendingCase) -> None:
        case.wait()


class Trials:
    """Trials that finish as soon as they are submitted, or break."""

    rounds = 1

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.rows = [str(number) for number in range(count)]
        self.error = error
        self.printed: dict[str, Any] = {}

    def job(self, case_id: str, round_: int, index: int) -> str:
        return case_id

    @asynccontextmanager
    async def pool(self, _: int, commit: Callable[[Record], Awaitable[None]]) -> AsyncIterator[Any]:
        if self.error is not None:
            raise self.error

        async def submit(case_id: str) -> None:
            await commit(cast(Record, SimpleNamespace(case=case_id, round=0)))

        yield SimpleNamespace(submit=submit)


def execution_of(
    trials: Trials, kind: type[SuiteExecution] = SuiteExecution
) -> tuple[SuiteExecution, list[PendingCase]]:
    made = kind(cast(LoopThread, Here()), cast(SuiteTrials, trials), {}, 1)
    return made, made.submit(trials.rows, last=True)


async def test_a_fault_of_the_plugin_ends_every_case_with_its_cause() -> None:
    fault = ZeroDivisionError("our own fault")
    execution, cases = execution_of(Trials(2, fault))
    await execution._run()  # nobody awaits it in a session, so it must not raise
    assert [str(case.broken) for case in cases] == ["the suite could not go on: ZeroDivisionError('our own fault')"] * 2
    assert cases[0].broken is not None
    assert cases[0].broken.__cause__ is fault


async def test_cases_wait_until_pytest_has_caught_up() -> None:
    execution, cases = execution_of(Trials(2 * AHEAD))
    running = asyncio.ensure_future(execution._run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(case.done for case in cases) == AHEAD
    execution.wait_for(cases[AHEAD - 1])
    async with asyncio.timeout(10):
        await running
    assert all(case.missing == 0 for case in cases)


async def test_pytest_may_go_on_in_the_moment_in_which_the_cases_begin_to_wait() -> None:
    class Unlucky(SuiteExecution):
        @property
        def _ahead(self) -> int:
            found = super()._ahead
            if found == AHEAD and self._reached == 0:
                self._reached = AHEAD  # on pytest's thread, which does not see yet that it has to wake this task
            return found

    execution, cases = execution_of(Trials(2 * AHEAD), Unlucky)
    async with asyncio.timeout(10):
        await execution._run()
    assert all(case.missing == 0 for case in cases)
