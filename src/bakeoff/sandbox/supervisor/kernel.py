"""Make the kernel calls that Python does not wrap, and find processes in /proc."""

import ctypes
import os
import sys
from typing import Any

LINUX = sys.platform == "linux"
PAGE = os.sysconf("SC_PAGE_SIZE")

PR_SET_DUMPABLE, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 4, 22, 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000
ATTR_RDONLY, ATTR_NOSUID = 0x1, 0x2
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT, LANDLOCK_VERSION = 444, 445, 446, 1

libc: Any = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Change a property of this process, such as seccomp. Raise `OSError` if it is refused."""
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def unshare(flags: int) -> None:
    """Enter new namespaces, given by CLONE_NEW… flags. Raise `OSError` if it is refused."""
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, or bind a path. Raise `OSError` with the target if it is refused."""
    kind_bytes = kind.encode() if kind else None
    data_bytes = data.encode() if data else None
    if libc.mount(os.fsencode(source), os.fsencode(target), kind_bytes, ctypes.c_ulong(flags), data_bytes) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def set_mount_flags(path: str, *, on: int = 0, off: int = 0, everything_below: bool = False) -> None:
    """Switch attributes of a mount, such as read-only, optionally of all mounts below too."""
    attributes = (ctypes.c_uint64 * 4)(on, off, 0, 0)
    flags = AT_RECURSIVE if everything_below else 0
    where = os.fsencode(path)
    if libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, where, flags, ctypes.byref(attributes), ctypes.c_size_t(32)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def device_of_memory_files() -> int:
    """Return the device number of memory-only files; -1 if there is no such device."""
    if not LINUX:
        return -1
    file = os.memfd_create("any")
    try:
        return os.fstat(file).st_dev
    finally:
        os.close(file)


MEMORY_FILES = device_of_memory_files()


def children_of(pid: int) -> list[int]:
    """Return the direct children of a process; empty if it has ended."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found.extend(int(child) for child in file.read().split())
    except OSError:
        pass  # it has just ended
    return found


def descendants() -> list[int]:
    """Return all descendants of this process, which as a subreaper loses none."""
    return tree_below(os.getpid())


def tree_below(root: int) -> list[int]:
    """Return all descendants of a process, parents before their children."""
    found: list[int] = []
    queue = [root]
    while queue:
        children = children_of(queue.pop())
        found.extend(children)
        queue.extend(children)
    return found


def processes_of(uid: int) -> int:
    """Count the threads of a user, because the limit on processes includes threads."""
    return sum(threads_if_of(uid, pid) for pid in all_pids())


def all_of(uid: int) -> list[int]:
    """Return the processes of a user."""
    return [int(pid) for pid in all_pids() if threads_if_of(uid, pid)]


def all_pids() -> list[str]:
    """Return the pids of all processes in /proc, as strings; empty without /proc."""
    return [name for name in os.listdir("/proc") if name.isdigit()] if LINUX else []


def threads_if_of(uid: int, pid: str) -> int:
    """Return the number of threads of a process, or 0 if it is dead or another user's."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = dict(line.split(b":", 1) for line in file if b":" in line)
        dead = lines[b"State"].split()[0] == b"Z"  # ended, but not yet reaped
        return int(lines[b"Threads"]) if int(lines[b"Uid"].split()[0]) == uid and not dead else 0
    except (OSError, KeyError):
        return 0
