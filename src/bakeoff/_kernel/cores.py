"""Count the processor cores that this process may use, and derive how much to do at the same time."""

import os

JOBS_RULE = "two for each core, at most 8"
"""The default of `--jobs`, in words. Trials wait for models and tests in turn, so one for each core would idle."""

_MAX_JOBS = 8


def usable_cores() -> int:
    """Return how many cores this process may run on; `taskset` and containers allow fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs() -> int:
    """Return how many trials run at the same time unless someone says otherwise."""
    return min(2 * usable_cores(), _MAX_JOBS)
