"""Calling what the user wrote, sync or async."""

import asyncio
import contextvars
import functools
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.threads import call, is_async

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO")


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def now(value: Any) -> Any:
    return value


class SyncObject:
    def __call__(self, value: Any) -> Any:
        return value

    def method(self, value: Any) -> Any:
        return value


class AsyncObject:
    async def __call__(self, value: Any) -> Any:
        return value

    async def method(self, value: Any) -> Any:
        return value


CALLABLES = [
    (later, True),
    (now, False),
    (SyncObject(), False),
    (AsyncObject(), True),
    (SyncObject().method, False),
    (AsyncObject().method, True),
    (functools.partial(later), True),
    (functools.partial(now), False),
    (lambda value: later(value), False),
    (str, False),
]


@pytest.mark.parametrize(("function", "asynchronous"), CALLABLES)
async def test_anything_callable_is_called_in_the_way_it_wants(function: Any, asynchronous: bool) -> None:
    assert is_async(function) is asynchronous
    assert await call(function, "x") == "x"


async def test_a_sync_function_runs_beside_the_loop_with_the_callers_context() -> None:
    WHO.set("me")
    assert await call(lambda: (WHO.get(), threading.current_thread() is threading.main_thread())) == ("me", False)


async def test_a_sync_function_that_blocks_does_not_block_the_loop() -> None:
    go = threading.Event()
    waiting = asyncio.ensure_future(call(lambda: go.wait(10)))
    await asyncio.sleep(0)
    go.set()
    assert await waiting is True


async def test_giving_up_on_a_sync_function_does_not_wait_for_it() -> None:
    go = threading.Event()
    started = time.perf_counter()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(lambda: go.wait(30)), 0.02)
    go.set()
    assert time.perf_counter() - started < 25
    await call(now, 1)  # lets the late answer come in: nobody minds


async def test_a_function_may_end_after_its_loop_has_closed() -> None:
    go = threading.Event()
    ended = threading.Event()

    def slow() -> None:
        go.wait(10)
        ended.set()

    def abandon() -> None:
        async def main() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call(slow), 0.01)

        asyncio.run(main())

    before = set(threading.enumerate())
    await asyncio.to_thread(abandon)
    (left,) = (t for t in set(threading.enumerate()) - before if t.name.startswith("call-"))
    go.set()
    await asyncio.to_thread(left.join, 10)
    assert ended.is_set()


async def test_sync_functions_that_follow_each_other_share_a_thread_and_those_side_by_side_do_not() -> None:
    first = await call(threading.get_ident)
    assert await call(threading.get_ident) == first
    together = threading.Barrier(3)

    def meet() -> int:
        together.wait(10)
        return threading.get_ident()

    assert len(set(await asyncio.gather(call(meet), call(meet), call(meet)))) == 3


async def test_a_function_that_hangs_keeps_no_other_from_a_thread() -> None:
    go = threading.Event()
    hanging = asyncio.ensure_future(call(lambda: go.wait(10)))
    assert [await call(now, n) for n in range(3)] == [0, 1, 2]
    go.set()
    assert await hanging


def test_no_thread_outlives_its_loop() -> None:
    before = set(threading.enumerate())

    async def main() -> None:
        await asyncio.gather(*(call(now, n) for n in range(5)))

    asyncio.run(main())
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("error", [ValueError, SystemExit])
async def test_what_a_sync_function_raises_is_raised_here(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error("so")

    with pytest.raises(error, match="so"):
        await call(fail)


@pytest.mark.parametrize("error", [StopIteration, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
async def test_what_a_loop_would_misunderstand_arrives_as_an_ordinary_error(error: type[BaseException]) -> None:
    def fail() -> None:
        raise error("so")

    with pytest.raises(RuntimeError, match=f"{error.__name__}: so"):
        await call(fail)


async def test_a_clock_ends_what_takes_too_long() -> None:
    clock = Clock(0.02)
    with pytest.raises(TimeoutError):
        await clock.run(asyncio.sleep(600))
    assert clock.expired


async def test_a_clock_leaves_alone_what_is_done_in_time() -> None:
    clock = Clock(60)
    assert await clock.run(later("x")) == "x"
    with pytest.raises(ZeroDivisionError):
        await clock.run(call(lambda: 1 // 0))
    assert not clock.expired


async def test_paused_time_does_not_count_and_is_told() -> None:
    clock = Clock(0.05)

    async def queue() -> str:
        with clock.paused(), clock.paused():
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.001)
        return "x"

    async def begin_then_queue() -> str:
        await asyncio.sleep(0)
        return await queue()

    assert await clock.run(queue()) == "x"
    assert (clock.waited >= 0.1, clock.expired) == (True, False)
    again = clock = Clock(0.05)
    assert await again.run(begin_then_queue()) == "x"


async def test_a_clock_goes_on_after_a_pause() -> None:
    clock = Clock(0.02)

    async def queue_then_hang() -> None:
        await asyncio.sleep(0)
        with clock.paused():
            await asyncio.sleep(0.03)
        await asyncio.sleep(600)

    with pytest.raises(TimeoutError):
        await clock.run(queue_then_hang())
    assert clock.expired


LEFT_BEHIND = """
import asyncio, atexit, sys, time
from bakeoff._kernel.threads import call, end_despite_threads

async def main():
    try:
        async with asyncio.timeout(0.1):
            await call(time.sleep, {seconds})
    except TimeoutError:
        pass

atexit.register(print, "cleaned up")
asyncio.run(main())
end_despite_threads(5)
"""


@pytest.mark.parametrize(("seconds", "code"), [(30, 5), (0, 0)])
def test_a_call_that_is_left_behind_ends_with_the_process_and_everything_is_cleaned_up(seconds: int, code: int) -> None:
    script = LEFT_BEHIND.format(seconds=seconds)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (code, "cleaned up\n", "")
