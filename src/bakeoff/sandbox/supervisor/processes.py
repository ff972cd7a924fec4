"""Find processes: those below this one, and those of a user."""

import os

from .kernel import LINUX


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found.extend(int(child) for child in file.read().split())
    except OSError:
        pass  # it has ended meanwhile
    return found


def descendants() -> list[int]:
    """Return all processes below this one. A subreaper loses none of them, whatever they do to hide."""
    return tree_below(os.getpid())


def tree_below(root: int) -> list[int]:
    found: list[int] = []
    queue = [root]
    while queue:
        children = children_of(queue.pop())
        found.extend(children)
        queue.extend(children)
    return found


def processes_of(uid: int) -> int:
    """Count the threads that the user has already, because the limit on processes includes them."""
    return sum(threads_if_of(uid, pid) for pid in all_pids())


def all_of(uid: int) -> list[int]:
    """Return the processes of a user."""
    return [int(pid) for pid in all_pids() if threads_if_of(uid, pid)]


def all_pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()] if LINUX else []


def threads_if_of(uid: int, pid: str) -> int:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file if b":" in line)
        dead = lines[b"State"].split()[0] == b"Z"  # waits for a parent that may take its time
        return int(lines[b"Threads"]) if int(lines[b"Uid"].split()[0]) == uid and not dead else 0
    except (OSError, KeyError):
        return 0
