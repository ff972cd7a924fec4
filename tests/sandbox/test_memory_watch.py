"""Test how often a supervisor looks at the memory of its command."""

import os
import subprocess
import sys
import time
from pathlib import Path

from bakeoff.sandbox.supervisor.limits import FILLED_PER_SECOND, MemoryWatch, linked_inodes

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


def test_a_file_that_is_named_like_a_socket_is_none(tmp_path: Path) -> None:
    names = ["x:[a:[b]", "socket:[1]", "pipe:[2]", ":[]"]
    opened = [os.open(tmp_path / name, os.O_CREAT | os.O_RDWR) for name in names]
    ends = os.pipe()
    try:
        found = linked_inodes(os.getpid())
    finally:
        for descriptor in (*opened, *ends):
            os.close(descriptor)
    assert all(kind in ("socket", "pipe") and inode.isdigit() for kind, inode in found)
    assert [inode for _, inode in found].count("1") == 0
    assert any(kind == "pipe" for kind, _ in found)
