"""Draining and stopping, as seen by who does it."""

import asyncio

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


async def test_sleep_ends_with_the_run() -> None:
    control = RunControl()
    assert await control.sleep(0.001) is True
    waiting = asyncio.ensure_future(control.sleep(600))
    await asyncio.sleep(0)
    control.drain()
    assert await waiting is False


def test_a_control_can_be_stopped_before_a_run_knows_it() -> None:
    control = RunControl()
    control.stop()
    assert control.stopped
