"""Protect our own process from others of the same user."""

import os
import sys

DUMPABLE = "BAKEOFF_DUMPABLE"
_PR_SET_DUMPABLE = 4


def hide_our_memory() -> None:
    """Keep our environment, memory and descriptors from other processes: the verdict is ours, and so are the keys.

    It holds until the process ends. A debugger or profiler can then attach only as root; for them,
    `BAKEOFF_DUMPABLE=1` leaves the process open. A program that we start is not hidden by this.
    """
    if sys.platform == "linux" and os.environ.get(DUMPABLE) != "1":
        import ctypes  # takes longer than `bakeoff --help` may

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
