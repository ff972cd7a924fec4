"""Find, name and end the processes of a run. Its parent is a subreaper, so that nothing it leaves can hide."""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_SUBREAPER = 36
_SETTLE_SECONDS = 30.0  # for processes to notice that their parent is gone, on a busy machine
_KINDS = {
    "bwrap --": "bwrap",
    "kitchen.py": "MCP server",
    "forward.py": "meter",
    "embedded.serve": "embedded model",
    "bakeoff view": "viewer",
    "exec(eval(sys.stdin.readline()))": "pytest worker",
    "-m pytest": "pytest",
    "bin/bakeoff": "bakeoff",
}
"""Parts of command lines, the first that fits counts."""


def become_subreaper() -> None:
    """Become the parent of every orphan below this process."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def below(pid: int) -> Iterator[int]:
    """Yield the processes below one."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from below(child)


def of_kind(kind: str) -> list[int]:
    """Return the processes below this one that are of a kind."""
    return [pid for pid in below(os.getpid()) if kind_of(pid) == kind]


def kind_of(pid: int) -> str:
    """Return which of our processes it is, by its command line. A supervisor is a fork of the fork server."""
    line = _line(pid)
    if "supervisor.fork_server" in line:
        return "supervisor" if "supervisor.fork_server" in _line(_parent(pid)) else "fork server"
    if line.startswith(("sh -c exec", "/bin/sh -c exec")):
        return "shell"  # it becomes the command
    return next((kind for part, kind in _KINDS.items() if part in line), "command" if line else "ended")


def kill(pid: int) -> bool:
    """Send SIGKILL, and return False if the process has ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def survivors() -> list[str]:
    """Wait until nothing is left below us, and kill and return what stays."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while left := [pid for pid in _reaped() if "resource_tracker" not in _line(pid)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    named = [f"{pid} {_line(pid)[:80]}" for pid in left]
    for pid in left:
        kill(pid)
    list(_reaped())
    return named


def _reaped() -> Iterator[int]:
    """Yield the processes below us, after those that have ended are gone."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return below(os.getpid())


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
