"""How often a supervisor looks at the memory of its command."""

import subprocess
import sys
import time

from bakeoff.sandbox.supervisor.memory import FILLED_PER_SECOND, MemoryWatch

TERABYTE = 1 << 40


def test_what_is_far_from_its_limit_is_left_alone_for_as_long_as_it_could_not_reach_half_way() -> None:
    watch, now = MemoryWatch(TERABYTE), time.monotonic()
    assert not watch.over(now)
    assert watch.due - now > 0.4 * TERABYTE / FILLED_PER_SECOND
    watch.limit = -1
    assert not watch.over(now), "it is not looked at before it is due"


def test_what_is_over_its_limit_is_found_out() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert MemoryWatch(1).over(time.monotonic())
        process.kill()
