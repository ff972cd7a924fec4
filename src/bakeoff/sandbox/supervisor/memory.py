"""Watch the memory of a command where no cgroup limits it."""

import os
import time

from .kernel import LINUX, PAGE
from .processes import descendants

TICK = 0.02  # at least this long between two checks
FILLED_PER_SECOND = (5 << 30) * (os.cpu_count() or 1)  # of memory, by a command that does nothing else


class MemoryWatch:
    """Checks the memory before a command could have filled half of what it has left."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.due = 0.0

    def over(self, now: float) -> bool:
        if not LINUX or now < self.due:
            return False
        left = memory_left(self.limit)
        self.due = now + max(TICK, left / 2 / FILLED_PER_SECOND, 10 * (time.monotonic() - now))
        return left < 0


def resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Return the memory in use, with shared pages divided among their users. Slow, but fair to forked workers."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
    except OSError:
        return resident_bytes(pid)


def memory_left(limit: int) -> int:
    """Return how far the command is from its limit; below zero, it is over it."""
    tree = descendants()
    left = limit - sum(map(resident_bytes, tree))
    return left if left >= 0 else limit - sum(map(proportional_bytes, tree))
