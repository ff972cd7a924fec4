"""Give a command namespaces of its own: its view of the file system, and its IPC.

As an ordinary user, this takes a user namespace, in which the command keeps its own user id.
"""

import os
import stat
from typing import Any

from .kernel import (
    ATTR_NOSUID,
    ATTR_RDONLY,
    CLONE_NEWIPC,
    CLONE_NEWNS,
    CLONE_NEWUSER,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    PR_SET_DUMPABLE,
    mount,
    prctl,
    set_mount_flags,
    unshare,
)

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - it is covered
SHARED_MEMORY_BYTES = 64 << 20
IPC_LISTS = ("shm", "sem", "msg")


def own_ipc(kept: list[str]) -> list[int]:
    """Enter a new IPC namespace, so that what is left in it ends with it. Return descriptors of its lists.

    An ordinary user gets shared memory of its own, too, in which the `kept` folders are seen where they are.
    """
    if os.geteuid() == 0:
        unshare(CLONE_NEWIPC)
    else:
        uid, gid = os.geteuid(), os.getegid()
        prctl(PR_SET_DUMPABLE, 1)  # or the files below are root's; this process is about to become the command
        unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC)
        for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(content)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        own_shared_memory([path for path in kept if path.startswith(f"{SHARED_MEMORY}/")])
    return [os.open(f"/proc/sysvipc/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in IPC_LISTS]


def own_shared_memory(kept: list[str]) -> None:
    """Cover the host's shared memory by an empty one of limited size, and bind the `kept` folders back."""
    sources = {path: os.open(path, os.O_PATH) for path in kept}
    mount("tmpfs", SHARED_MEMORY, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={SHARED_MEMORY_BYTES}")
    for path, source in sources.items():
        make_mount_point(path, is_folder=True)
        mount(f"/proc/self/fd/{source}", path, None, MS_BIND)
        os.close(source)


def can_own_ipc() -> bool:
    """Try it in a process that ends at once."""
    pid = os.fork()
    if pid == 0:
        try:
            own_ipc([])
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def arrange_mounts(steps: list[dict[str, Any]], *, system_read_only: bool) -> None:
    """Carry out mount steps, shallow paths first, in a mount namespace of our own."""
    unshare(CLONE_NEWNS)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    if system_read_only:
        set_mount_flags("/", on=ATTR_RDONLY | ATTR_NOSUID, everything_below=True)
        set_mount_flags("/proc", off=ATTR_RDONLY)
    # Sources are opened before anything is covered, and bound through these descriptors afterwards.
    sources = {step["path"]: os.open(step["source"], os.O_PATH) for step in steps if step["kind"] == "bind"}
    try:
        for step in steps:
            take_step(step, sources)
    finally:
        for descriptor in sources.values():
            os.close(descriptor)


def take_step(step: dict[str, Any], sources: dict[str, int]) -> None:
    """Carry out one step of a plan of mounts (`sandbox/mounts.py`). `sources` are descriptors of what is bound."""
    path = step["path"]
    if step["kind"] == "cover":
        size = f",size={step['size']}" if step["size"] else ""
        mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={step['mode']:o}{size}")
    elif step["kind"] == "link":
        os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)
        os.symlink(step["target"], path)
    else:
        source = sources[path]
        make_mount_point(path, is_folder=stat.S_ISDIR(os.fstat(source).st_mode))
        mount(f"/proc/self/fd/{source}", path, None, MS_BIND)
        if step["writable"]:
            set_mount_flags(path, off=ATTR_RDONLY)


def make_mount_point(path: str, *, is_folder: bool) -> None:
    """Make an empty file or folder to mount on, with the folders above it, if nothing is there."""
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)
    if is_folder:
        os.mkdir(path, 0o711)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
