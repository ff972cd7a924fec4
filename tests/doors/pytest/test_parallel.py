"""The cases of a suite run ahead of pytest, but not too far, and no error leaves pytest waiting."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from bakeoff.doors.pytest.loops import LoopThread
from bakeoff.doors.pytest.parallel import PendingCase, SuiteExecution, SuiteTrials
from bakeoff.record import Record

from .small_project import SmallProject, project

pytest_plugins = ["pytester"]
__all__ = ["project"]


class Here:
    """Stands for the loop's thread: everything happens on the loop of the test."""

    def call(self, callback: Callable[[], object]) -> None:
        callback()

    def spawn(self, coroutine: Callable[[], Any]) -> None:
        """Leave the start to the test."""

    def wait_for(self, case: PendingCase) -> None:
        case.broken.result()


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


def execution_of(trials: Trials) -> tuple[SuiteExecution, list[PendingCase]]:
    made = SuiteExecution(cast(LoopThread, Here()), cast(SuiteTrials, trials), {}, 1)
    return made, made.submit(trials.rows)


async def test_a_fault_of_the_plugin_ends_every_case_with_its_cause() -> None:
    fault = ZeroDivisionError("our own fault")
    execution, cases = execution_of(Trials(2, fault))
    await execution._run()  # nobody awaits it in a session, so it must not raise
    later = execution.submit(["2"])  # must not be waited for either
    broken = [case.broken.result(timeout=0) for case in (*cases, *later)]
    assert [str(each) for each in broken] == ["the suite could not go on: ZeroDivisionError('our own fault')"] * 3
    assert broken[0] is not None
    assert broken[0].__cause__ is fault


def test_cases_wait_until_pytest_has_caught_up(project: SmallProject) -> None:
    project.write("""
started = []

@eval_suite(data=rows(*range(600)), scorers=[Contains()], threshold=None)
async def test_it(case):
    started.append(case.input)
    while case.input == 0 and len(started) < 257:
        await asyncio.sleep(0)
    for _ in range(200 if case.input == 0 else 0):
        await asyncio.sleep(0)
    return str(len(started))
""")
    seen = project.run()
    assert seen.counts() == {"passed": 600}
    record = seen.outcome("0").records[0]
    assert record.transcript is not None
    assert record.transcript.output == "257"
