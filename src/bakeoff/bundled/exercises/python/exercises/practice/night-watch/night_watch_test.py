import asyncio

import pytest
from fake_clock import FakeClock
from night_watch import Watch


class Night:
    """A watch, its clock, and a diary of what happens."""

    def __init__(self):
        self.clock = FakeClock()
        self.watch = Watch(self.clock)
        self.diary = []

    def write(self, text):
        self.diary.append(f"{text} {self.clock.now():g}")

    def job(self, name, *durations, fails=0):
        """Returns a job with these durations, the last one repeated, that fails so often first."""
        left = list(durations)
        failures = iter(range(fails))

        async def turn():
            self.write(name)
            await self.clock.sleep(left.pop(0) if len(left) > 1 else left[0])
            if next(failures, None) is not None:
                raise RuntimeError(name)
            self.write(f"/{name}")

        return turn


def play(story):
    """Runs a story, and checks that no task is left."""

    async def checked():
        night = Night()

        async def whole():
            await story(night)
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task(), driver}

        driver = asyncio.current_task()
        await night.clock.drive(whole())
        return night.diary

    return asyncio.run(checked())


def test_single_turns_start_when_they_are_due():
    async def story(night):
        night.watch.once(5, night.job("b", 1))
        night.watch.once(2, night.job("a", 10))
        night.watch.once(0, night.job("now", 1))
        await night.watch.run(100)
        night.write("end")

    assert play(story) == ["now 0", "/now 1", "a 2", "b 5", "/b 6", "/a 12", "end 12"]


def test_a_grid_never_shifts():
    async def story(night):
        duty = night.watch.every(10, night.job("a", 3, 9, 1))
        await night.watch.run(45)
        assert (duty.turns, duty.skipped, duty.active) == (4, 0, True)

    assert play(story) == ["a 10", "/a 13", "a 20", "/a 29", "a 30", "/a 31", "a 40", "/a 41"]


def test_a_turn_is_left_out_while_the_last_one_is_running():
    async def story(night):
        duty = night.watch.every(10, night.job("a", 25, 1))
        other = night.watch.every(20, night.job("b", 1))
        await night.watch.run(55)
        assert (duty.turns, duty.skipped) == (3, 2)
        assert (other.turns, other.skipped) == (2, 0)

    assert play(story) == ["a 10", "b 20", "/b 21", "/a 35", "a 40", "b 40", "/a 41", "/b 41", "a 50", "/a 51"]


def test_what_is_due_together_starts_in_order_of_planning():
    async def story(night):
        for name, period in [("c", 4), ("a", 2), ("b", 1)]:
            night.watch.every(period, night.job(name, 0.5))
        night.watch.once(4, night.job("d", 0.5))
        await night.watch.run(4.25)

    assert play(story)[-4:] == ["c 4", "a 4", "b 4", "d 4"]


def test_the_end_is_not_part_of_the_run():
    async def story(night):
        duty = night.watch.every(10, night.job("a", 1))
        await night.watch.run(20)
        night.write("end")
        assert (duty.turns, duty.active) == (1, True)
        await night.watch.run(20)

    assert play(story) == ["a 10", "/a 11", "end 20"]


def test_jobs_may_plan_and_cancel_while_the_watch_sleeps():
    async def story(night):
        far = night.watch.every(50, night.job("far", 1))

        async def planner():
            await night.clock.sleep(1)
            night.write("plan")
            night.watch.once(2, night.job("near", 1))
            far.cancel()
            assert not far.active

        night.watch.once(3, planner)
        await night.watch.run(1000)
        night.write("end")
        assert far.turns == 0

    assert play(story) == ["plan 4", "near 6", "/near 7", "end 7"]


def test_a_turn_that_is_running_goes_on_when_its_duty_is_cancelled():
    async def story(night):
        duty = night.watch.every(10, night.job("a", 5))
        night.watch.once(12, lambda: asyncio.sleep(0, duty.cancel()))
        await night.watch.run(1000)
        night.write("end")
        assert (duty.turns, duty.skipped, duty.active) == (1, 0, False)

    assert play(story) == ["a 10", "/a 15", "end 15"]


def test_failures_are_kept_and_disturb_nobody():
    async def story(night):
        bad = night.watch.every(10, night.job("bad", 1, fails=2))
        once = night.watch.once(11, night.job("once", 1, fails=1))
        await night.watch.run(35)
        assert [str(error) for error in bad.errors] == ["bad", "bad"]
        assert (bad.active, once.active, len(once.errors)) == (True, False, 1)

    assert play(story) == ["bad 10", "once 11", "bad 20", "bad 30", "/bad 31"]


def test_three_failures_in_a_row_are_enough():
    async def story(night):
        outcomes = iter([1, 1, 0, 1, 1, 1, 0])

        async def moody():
            night.write("turn")
            if next(outcomes):
                raise KeyError("moody")

        duty = night.watch.every(10, moody)
        await night.watch.run(1000)
        night.write("end")
        assert (duty.turns, len(duty.errors), duty.active) == (6, 5, False)

    assert play(story)[-2:] == ["turn 60", "end 60"]


def test_a_turn_that_takes_too_long_is_cancelled_and_has_failed():
    async def story(night):
        async def slow():
            try:
                await night.clock.sleep(100)
            except asyncio.CancelledError:
                night.write("cancelled")
                await night.clock.sleep(1)
                raise

        duty = night.watch.every(10, slow, timeout=4)
        quick = night.watch.every(10, night.job("quick", 3), timeout=4)
        await night.watch.run(45)
        assert [type(error) for error in duty.errors] == [TimeoutError] * 3
        assert (duty.active, duty.turns, quick.errors, quick.turns) == (False, 3, [], 4)

    assert [line for line in play(story) if "cancelled" in line] == ["cancelled 14", "cancelled 24", "cancelled 34"]


def test_what_is_running_at_the_end_is_cancelled_and_waited_for():
    async def story(night):
        async def careful():
            try:
                await night.clock.sleep(100)
            finally:
                await night.clock.sleep(3)
                night.write("cleaned")

        async def rude():
            try:
                await night.clock.sleep(100)
            except asyncio.CancelledError:
                raise RuntimeError("rude") from None

        duties = [night.watch.once(1, careful), night.watch.every(2, rude), night.watch.once(1, careful, timeout=50)]
        await night.watch.run(10)
        night.write("end")
        assert [duty.errors for duty in duties] == [[], [], []]

    assert play(story) == ["cleaned 13", "cleaned 13", "end 13"]


def test_a_run_that_is_cancelled_leaves_nothing_behind():
    async def story(night):
        stranger = asyncio.create_task(night.clock.sleep(30))
        duty = night.watch.every(5, night.job("a", 100), timeout=90)
        run = asyncio.create_task(night.watch.run(1000))
        await night.clock.sleep(7)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        night.write("end")
        assert (duty.turns, duty.errors, stranger.done()) == (1, [], False)
        assert len(asyncio.all_tasks()) == 3
        await stranger

    assert play(story) == ["a 5", "end 7"]


def test_times_must_make_sense():
    async def story(night):
        job = night.job("a", 1)
        for plan in [
            lambda: night.watch.once(-1, job),
            lambda: night.watch.every(0, job),
            lambda: night.watch.every(-2, job),
            lambda: night.watch.once(1, job, timeout=0),
            lambda: night.watch.every(1, job, timeout=-1),
        ]:
            with pytest.raises(ValueError):
                plan()
        await night.watch.run(1000)
        night.write("end")

    assert play(story) == ["end 0"]
