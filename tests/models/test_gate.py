"""The gate in front of a provider: how many may pass at a time, who waits, and for how long."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff._kernel.clock import Clock
from bakeoff.errors import InfraError
from bakeoff.models.gate import Busy, Gate, Patience

QUICK = Patience(first_seconds=0.001, longest_seconds=0.004, total_seconds=10.0)


def clock() -> Clock:
    return Clock(60.0)


class Crowd:
    """Calls that count how many of them are under way."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.now = 0
        self.most = 0
        self.seconds = seconds

    async def __call__(self) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        return "done"


def failing(*troubles: Exception) -> Callable[[], Awaitable[str]]:
    """A call that fails in these ways, one after the other, and then succeeds."""
    left = list(troubles)

    async def call() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return call


async def test_no_more_than_allowed_are_in_flight() -> None:
    gate, crowd = Gate(most=3, patience=QUICK), Crowd(0.002)
    done = await asyncio.gather(*(gate.pass_through(crowd, clock()) for _ in range(20)))
    assert done == ["done"] * 20
    assert crowd.most == 3
    assert gate.in_flight == 0


async def test_too_much_halves_what_is_allowed_and_success_brings_it_back_slowly() -> None:
    gate = Gate(most=16, patience=QUICK)
    await gate.pass_through(failing(Busy("slow down", overloaded=True)), clock())
    assert gate.allowed == 8
    grown = []
    for _ in range(200):
        await gate.pass_through(Crowd(), clock())
        grown.append(gate.allowed)
    assert grown[5] == 8
    assert grown[20] in (9, 10)
    assert grown[-1] == 16
    assert grown == sorted(grown)


async def test_a_broken_connection_is_no_word_about_how_much_is_too_much() -> None:
    gate = Gate(most=16, patience=QUICK)
    await gate.pass_through(failing(Busy("connection reset")), clock())
    assert gate.allowed == 16


async def test_calls_that_fail_together_halve_it_once() -> None:
    gate = Gate(most=16, patience=QUICK)
    everyone = asyncio.Barrier(16)

    def refused_at_once() -> Callable[[], Awaitable[str]]:
        tries = 0

        async def call() -> str:
            nonlocal tries
            tries += 1
            if tries == 1:
                await everyone.wait()
                assert gate.allowed >= 8
                raise Busy("slow down", overloaded=True)
            return "done"

        return call

    await asyncio.gather(*(gate.pass_through(refused_at_once(), clock()) for _ in range(16)))
    assert 8 <= gate.allowed <= 10


async def test_a_call_that_queued_through_a_cut_counts_from_when_it_was_let_in() -> None:
    """What it was allowed by when it joined the queue says nothing."""
    gate = Gate(most=2, patience=QUICK)
    for _ in range(3):
        crowd = [gate.pass_through(failing(Busy("slow down", overloaded=True)), clock()) for _ in range(6)]
        await asyncio.gather(*crowd)
    assert gate.allowed in (1, 2)
    assert gate.in_flight == 0


async def test_it_never_closes_altogether() -> None:
    gate = Gate(most=4, patience=QUICK)
    with pytest.raises(ZeroDivisionError):
        await gate.pass_through(failing(*[Busy("slow down", overloaded=True)] * 12, ZeroDivisionError()), clock())
    assert gate.allowed == 1
    assert await gate.pass_through(Crowd(), clock()) == "done"


async def test_the_wish_of_the_other_side_is_granted() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await Gate(patience=QUICK).pass_through(failing(Busy("slow down", retry_after=0.1)), clock())
    assert loop.time() - started >= 0.1


async def test_patience_has_an_end_and_then_says_what_was_asked_for() -> None:
    patience = Patience(first_seconds=0.001, longest_seconds=0.01, total_seconds=0.05)
    with pytest.raises(InfraError, match=r"overloaded \(given up after \d+ tries") as caught:
        await Gate(patience=patience).pass_through(failing(*[Busy("overloaded", retry_after=0.02)] * 99), clock())
    assert caught.value.retry_after == 0.02
    assert not caught.value.permanent


async def test_the_time_of_calls_that_fail_slowly_wears_patience_out_too() -> None:
    async def slowly_failing() -> str:
        await asyncio.sleep(0.03)
        raise Busy("stalled")

    tries = 0

    async def call() -> str:
        nonlocal tries
        tries += 1
        return await slowly_failing()

    patience = Patience(first_seconds=0.0001, longest_seconds=0.0001, total_seconds=0.1)
    with pytest.raises(InfraError, match="stalled"):
        await Gate(patience=patience).pass_through(call, clock())
    assert tries == 4


async def test_an_error_of_another_kind_passes_and_frees_its_place() -> None:
    gate = Gate(most=1, patience=QUICK)
    with pytest.raises(ZeroDivisionError):
        await gate.pass_through(failing(ZeroDivisionError()), clock())
    assert gate.in_flight == 0
    assert await gate.pass_through(Crowd(), clock()) == "done"


async def test_waiting_pauses_the_clock_and_calling_does_not() -> None:
    gate, time = Gate(most=1, patience=QUICK), Clock(5.0)
    first = asyncio.create_task(gate.pass_through(Crowd(0.1), clock()))
    await asyncio.sleep(0.01)
    await time.run(gate.pass_through(Crowd(0.05), time))
    await first
    assert 0.05 < time.waited < 0.12


async def test_who_gives_up_waiting_takes_no_place_along() -> None:
    gate, hold = Gate(most=1, patience=QUICK), asyncio.Event()

    async def held() -> str:
        await hold.wait()
        return "done"

    first = asyncio.create_task(gate.pass_through(held, clock()))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(gate.pass_through(Crowd(), clock())) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[:3]:
        task.cancel()
    hold.set()
    assert await first == "done"
    assert await asyncio.gather(*waiting[3:]) == ["done"] * 2
    assert gate.in_flight == 0


async def test_who_is_cancelled_in_the_moment_of_being_let_in_passes_the_place_on() -> None:
    gate, hold = Gate(most=1, patience=QUICK), asyncio.Event()

    async def held() -> str:
        await hold.wait()
        waiting[0].cancel()  # the place is given to this one in the same step of the loop
        return "done"

    first = asyncio.create_task(gate.pass_through(held, clock()))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(gate.pass_through(Crowd(), clock())) for _ in range(2)]
    await asyncio.sleep(0)
    hold.set()
    await first
    waiting[0].cancel()
    assert await asyncio.wait_for(waiting[1], 5) == "done"
    assert gate.in_flight == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 6), callers=st.integers(1, 30))
def test_whatever_happens_no_place_is_lost_and_none_is_made_up(seed: int, most: int, callers: int) -> None:
    async def storm() -> None:
        chance = random.Random(seed)
        gate = Gate(most, Patience(first_seconds=0.0005, longest_seconds=0.001, total_seconds=60))

        async def call() -> str:
            assert 1 <= gate.in_flight <= most
            await asyncio.sleep(chance.choice([0, 0, 0.0005]))
            fate = chance.random()
            if fate < 0.3:
                raise Busy("no", overloaded=fate < 0.2, retry_after=chance.choice([None, 0.0005]))
            if fate < 0.4:
                raise InfraError("broken")
            return "done"

        tasks = [asyncio.create_task(gate.pass_through(call, clock())) for _ in range(callers)]
        for task in tasks:
            if chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0, 0.0005]))
                task.cancel()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert all(end == "done" or isinstance(end, InfraError | asyncio.CancelledError) for end in ends)
        assert gate.in_flight == 0
        assert await asyncio.wait_for(gate.pass_through(Crowd(), clock()), 5) == "done"

    asyncio.run(storm())
