"""Draining and stopping, as seen by who does it."""

import asyncio

from bakeoff._kernel.clock import Delay
from bakeoff.engine.run_control import RunControl


async def test_the_first_interrupt_drains_and_the_second_stops() -> None:
    control, cancelled = RunControl(), []
    control.on_stop(lambda: cancelled.append(1))
    control.interrupt()
    assert (control.draining, control.stopped, cancelled) == (True, False, [])
    control.interrupt()
    assert (control.draining, control.stopped, cancelled) == (True, True, [1])
    control.on_stop(lambda: cancelled.append(2))
    assert cancelled == [1, 2]


async def test_a_long_wait_is_shown_and_ends_with_the_run() -> None:
    control, told = RunControl(), []
    control.in_flight[3] = ("a", "case")
    control.on_delay = lambda subject, delay: told.append((subject, delay.reason))
    waiting = asyncio.ensure_future(control.wait(3, Delay("busy", 600, 900)))
    await asyncio.sleep(0)
    assert (control.delays, told) == ({3: Delay("busy", 600, 900)}, [("a", "busy")])
    control.drain()
    assert await waiting is False
    assert not control.delays


async def test_trials_in_flight_may_still_wait_for_a_moment_while_the_run_is_drained() -> None:
    control = RunControl()
    control.drain()
    assert await control.wait(0, Delay("busy", 0.001, 900)) is True
    assert await control.wait(0, Delay("busy", 60, 900)) is False


def test_a_control_can_be_stopped_before_a_run_knows_it() -> None:
    control = RunControl()
    control.stop()
    assert control.stopped


async def test_a_stopped_trial_leaves_the_reason_of_its_last_wait() -> None:
    control = RunControl()
    control.in_flight |= {1: ("a", "case"), 2: ("b", "case"), 3: ("c", "case")}
    await control.wait(1, Delay("refused", 0.0, 900))
    await control.wait(2, Delay("busy", 0.0, 900))
    del control.in_flight[2]  # this one has ended
    control.stop()
    assert control.cut_off == {"a": "refused"}
