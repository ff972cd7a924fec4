"""Give a command namespaces of its own: its view of the file system, and its IPC."""

import os
import stat
from typing import Any

from .kernel import (
    ATTR_NOSUID,
    ATTR_RDONLY,
    CLONE_NEWIPC,
    CLONE_NEWNS,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    mount,
    set_mount_flags,
    unshare,
)


def arrange_mounts(steps: list[dict[str, Any]], *, system_read_only: bool) -> None:
    """Carry out mount steps, shallow paths first, in a mount namespace of our own."""
    unshare(CLONE_NEWNS | CLONE_NEWIPC)
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
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)
    if is_folder:
        os.mkdir(path, 0o711)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
