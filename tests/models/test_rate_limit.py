"""The rate limiter of a provider: how many calls are in flight, which of them wait, and for how long."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff._kernel.clock import Clock, Delay
from bakeoff.errors import InfraError, RequestTooLarge
from bakeoff.models.rate_limit import ProviderBusy, RateLimiter, RetryPolicy

from ..virtual_time import VirtualTimeLoop, in_virtual_time

QUICK = RetryPolicy(first_seconds=0.001, longest_seconds=0.004, total_seconds=10.0)


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


@in_virtual_time
async def test_no_more_than_allowed_are_in_flight() -> None:
    limiter, crowd = RateLimiter(max_in_flight=3, policy=QUICK), Crowd(0.002)
    done = await asyncio.gather(*(limiter.run(crowd, clock()) for _ in range(20)))
    assert done == ["done"] * 20
    assert crowd.most == 3
    assert limiter.slots.in_flight == 0


@in_virtual_time
async def test_too_much_halves_what_is_allowed_and_success_brings_it_back_slowly() -> None:
    limiter = RateLimiter(max_in_flight=16, policy=QUICK)
    await limiter.run(failing(ProviderBusy("slow down", overloaded=True)), clock())
    assert limiter.slots.limit == 8
    grown = []
    for _ in range(200):
        await limiter.run(Crowd(), clock())
        grown.append(limiter.slots.limit)
    assert grown[5] == 8
    assert grown[20] in (9, 10)
    assert grown[-1] == 16
    assert grown == sorted(grown)


@in_virtual_time
async def test_a_broken_connection_is_no_word_about_how_much_is_too_much() -> None:
    limiter = RateLimiter(max_in_flight=16, policy=QUICK)
    await limiter.run(failing(ProviderBusy("connection reset")), clock())
    assert limiter.slots.limit == 16


@in_virtual_time
async def test_calls_that_fail_together_halve_it_once() -> None:
    limiter = RateLimiter(max_in_flight=16, policy=QUICK)
    everyone = asyncio.Barrier(16)

    def refused_at_once() -> Callable[[], Awaitable[str]]:
        tries = 0

        async def call() -> str:
            nonlocal tries
            tries += 1
            if tries == 1:
                await everyone.wait()
                assert limiter.slots.limit >= 8
                raise ProviderBusy("slow down", overloaded=True)
            return "done"

        return call

    await asyncio.gather(*(limiter.run(refused_at_once(), clock()) for _ in range(16)))
    assert 8 <= limiter.slots.limit <= 10


@in_virtual_time
async def test_a_call_that_queued_through_a_cut_counts_from_when_it_was_let_in() -> None:
    """The limit at the time when it joined the queue does not matter."""
    limiter = RateLimiter(max_in_flight=2, policy=QUICK)
    for _ in range(3):
        crowd = [limiter.run(failing(ProviderBusy("slow down", overloaded=True)), clock()) for _ in range(6)]
        await asyncio.gather(*crowd)
    assert limiter.slots.limit in (1, 2)
    assert limiter.slots.in_flight == 0


@in_virtual_time
async def test_it_never_closes_altogether() -> None:
    limiter = RateLimiter(max_in_flight=4, policy=QUICK)
    with pytest.raises(ZeroDivisionError):
        await limiter.run(failing(*[ProviderBusy("slow down", overloaded=True)] * 12, ZeroDivisionError()), clock())
    assert limiter.slots.limit == 1
    assert await limiter.run(Crowd(), clock()) == "done"


@in_virtual_time
async def test_the_wish_of_the_other_side_is_granted() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await RateLimiter(policy=QUICK).run(failing(ProviderBusy("slow down", retry_after=0.1)), clock())
    assert loop.time() - started == pytest.approx(0.1)


@in_virtual_time
async def test_patience_has_an_end_and_then_says_what_was_asked_for() -> None:
    policy = RetryPolicy(first_seconds=0.001, longest_seconds=0.01, total_seconds=0.05)
    with pytest.raises(InfraError, match=r"overloaded \(gave up after \d+ tries") as caught:
        await RateLimiter(policy=policy).run(failing(*[ProviderBusy("overloaded", retry_after=0.02)] * 99), clock())
    assert caught.value.retry_after == 0.02
    assert not caught.value.permanent


@in_virtual_time
async def test_the_time_of_calls_that_fail_slowly_wears_patience_out_too() -> None:
    async def slowly_failing() -> str:
        await asyncio.sleep(0.03)
        raise ProviderBusy("stalled")

    tries = 0

    async def call() -> str:
        nonlocal tries
        tries += 1
        return await slowly_failing()

    policy = RetryPolicy(first_seconds=0.0001, longest_seconds=0.0001, total_seconds=0.1)
    with pytest.raises(InfraError, match="stalled"):
        await RateLimiter(policy=policy).run(call, clock())
    assert tries == 4


@in_virtual_time
async def test_who_watches_is_told_the_reason_and_the_most_that_is_waited_before_each_wait() -> None:
    delays: list[Delay] = []

    async def sleep(delay: Delay) -> bool:
        delays.append(delay)
        await asyncio.sleep(delay.seconds)
        return True

    policy = RetryPolicy(first_seconds=2.0, longest_seconds=8.0, total_seconds=100.0)
    await RateLimiter(policy=policy).run(failing(*[ProviderBusy("refused")] * 3), Clock(60.0, sleep))
    assert [delay.reason for delay in delays] == ["refused"] * 3
    mosts = [delay.most_seconds for delay in delays]
    assert mosts[0] == 100.0
    assert mosts[0] > mosts[1] > mosts[2] > 80.0


async def test_a_wait_that_is_cut_short_ends_the_call() -> None:
    async def stopped(delay: Delay) -> bool:
        return False

    with pytest.raises(InfraError, match=r"^refused \(the run was stopped while it waited\)$") as caught:
        await RateLimiter(policy=QUICK).run(failing(ProviderBusy("refused")), Clock(60.0, stopped))
    assert caught.value.exhausted


@in_virtual_time
async def test_after_one_call_was_given_up_others_have_less_patience_until_one_succeeds() -> None:
    policy = RetryPolicy(first_seconds=1.0, longest_seconds=1.0, total_seconds=100.0)
    limiter, loop = RateLimiter(policy=policy), asyncio.get_running_loop()

    async def patience() -> float:
        started = loop.time()
        with pytest.raises(InfraError, match="gone"):
            await limiter.run(failing(*[ProviderBusy("gone")] * 999), clock())
        return loop.time() - started

    assert await patience() > 90
    assert await patience() < 11
    await limiter.run(failing(), clock())
    assert await patience() > 90


@in_virtual_time
async def test_a_reason_that_seldom_passes_is_tried_again_only_a_few_times() -> None:
    call = failing(*[ProviderBusy("HTML", most_tries=3)] * 3)
    with pytest.raises(InfraError, match=r"^HTML \(gave up after 3 tries\)$"):
        await RateLimiter(policy=QUICK).run(call, clock())
    assert await call() == "done", "it was called three times"


@in_virtual_time
async def test_an_error_of_another_kind_passes_and_frees_its_place() -> None:
    limiter = RateLimiter(max_in_flight=1, policy=QUICK)
    with pytest.raises(ZeroDivisionError):
        await limiter.run(failing(ZeroDivisionError()), clock())
    assert limiter.slots.in_flight == 0
    assert await limiter.run(Crowd(), clock()) == "done"


@in_virtual_time
async def test_waiting_pauses_the_clock_and_calling_does_not() -> None:
    limiter, time = RateLimiter(max_in_flight=1, policy=QUICK), Clock(5.0)
    first = asyncio.create_task(limiter.run(Crowd(0.1), clock()))
    await asyncio.sleep(0.01)
    await time.run(limiter.run(Crowd(0.05), time))
    await first
    assert time.waited == pytest.approx(0.09)


@in_virtual_time
async def test_who_gives_up_waiting_takes_no_place_along() -> None:
    limiter, hold = RateLimiter(max_in_flight=1, policy=QUICK), asyncio.Event()

    async def held() -> str:
        await hold.wait()
        return "done"

    first = asyncio.create_task(limiter.run(held, clock()))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(limiter.run(Crowd(), clock())) for _ in range(5)]
    await asyncio.sleep(0)
    for task in waiting[:3]:
        task.cancel()
    hold.set()
    assert await first == "done"
    assert await asyncio.gather(*waiting[3:]) == ["done"] * 2
    assert limiter.slots.in_flight == 0


@in_virtual_time
async def test_who_is_cancelled_in_the_moment_of_being_let_in_passes_the_place_on() -> None:
    limiter, hold = RateLimiter(max_in_flight=1, policy=QUICK), asyncio.Event()

    async def held() -> str:
        await hold.wait()
        waiting[0].cancel()  # the place is given to this one in the same step of the loop
        return "done"

    first = asyncio.create_task(limiter.run(held, clock()))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(limiter.run(Crowd(), clock())) for _ in range(2)]
    await asyncio.sleep(0)
    hold.set()
    await first
    waiting[0].cancel()
    assert await asyncio.wait_for(waiting[1], 5) == "done"
    assert limiter.slots.in_flight == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), most=st.integers(1, 6), callers=st.integers(1, 30))
def test_whatever_happens_no_place_is_lost_and_none_is_made_up(seed: int, most: int, callers: int) -> None:
    async def storm() -> None:
        chance = random.Random(seed)
        limiter = RateLimiter(most, RetryPolicy(first_seconds=0.0005, longest_seconds=0.001, total_seconds=60))

        async def call() -> str:
            assert 1 <= limiter.slots.in_flight <= most
            await asyncio.sleep(chance.choice([0, 0, 0.0005]))
            fate = chance.random()
            if fate < 0.3:
                raise ProviderBusy("no", overloaded=fate < 0.2, retry_after=chance.choice([None, 0.0005]))
            if fate < 0.4:
                raise InfraError("broken")
            return "done"

        tasks = [asyncio.create_task(limiter.run(call, clock())) for _ in range(callers)]
        for task in tasks:
            if chance.random() < 0.3:
                await asyncio.sleep(chance.choice([0, 0.0005]))
                task.cancel()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        assert all(end == "done" or isinstance(end, InfraError | asyncio.CancelledError) for end in ends)
        assert limiter.slots.in_flight == 0
        assert await asyncio.wait_for(limiter.run(Crowd(), clock()), 5) == "done"

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(storm())


async def refused_while_others_pass(size: int, others: int, *, refused: bool = True) -> None:
    """Ask for one thing that is never answered, beside others that are."""
    limiter = RateLimiter(policy=RetryPolicy(first_seconds=1.0, longest_seconds=1.0, total_seconds=20.0))

    async def never() -> str:
        raise ProviderBusy("answered 429", refused=refused)

    async def passing() -> None:
        for _ in range(10):
            await limiter.run(Crowd(1.0), clock(), size=others)

    async with asyncio.TaskGroup() as group:
        group.create_task(passing())
        await limiter.run(never, clock(), size=size)


@in_virtual_time
async def test_a_request_that_is_refused_while_much_smaller_ones_pass_is_too_large() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await refused_while_others_pass(size=900, others=400)
    [error] = raised.value.exceptions
    assert isinstance(error, RequestTooLarge)
    assert "while it answered" in str(error)


@pytest.mark.parametrize(("size", "others", "refused"), [(900, 500, True), (900, 400, False), (0, 0, True)])
@in_virtual_time
async def test_a_request_like_those_that_pass_or_one_that_is_lost_is_not_too_large(
    size: int, others: int, refused: bool
) -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await refused_while_others_pass(size, others, refused=refused)
    [error] = raised.value.exceptions
    assert isinstance(error, InfraError)
