"""Run a command as an ordinary user when started as root.

The user gets an id that nobody has and a new home. A closed folder such as the home of root, in which Python or the
project may lie, is covered in a mount namespace of the command's own, and only these are bound back.
"""

import ctypes
import os
import pwd
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from bakeoff.sandbox.mounts import Step, plan_mounts

_NEW_MOUNTS, _BIND, _RECURSIVE, _PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
_IDS = range(44_000, 45_000)


def run_as_user(argv: Sequence[str], *, home: Path, uid: int, env: Mapping[str, str], readable: Sequence[Path]) -> int:
    """Run a command as the user, and return its exit code. Only root can call this."""
    steps = plan_mounts(readable=[*_needed(), *readable], writable=[], private_scratch=False)
    child = os.fork()
    if child == 0:
        _become(uid, steps, argv, {**env, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"})
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def new_home(uid: int) -> Path:
    """Return a new folder that belongs to the user."""
    home = Path(tempfile.mkdtemp(prefix="bakeoff-hostile-"))
    os.chown(home, uid, uid)
    return home


def free_uid() -> int:
    """Return a user id that has no name and no processes."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in _IDS if uid not in taken and not processes_of(uid))


def processes_of(uid: int) -> list[int]:
    """Return the processes of a user. Such as have ended and wait for their parent do not count."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if int(lines["Uid"].split()[0]) == uid and not lines["State"].strip().startswith("Z"):
            found.append(int(folder.name))
    return found


def _needed() -> list[Path]:
    """Return what the user must be able to read: this Python, its packages, Node, and the project."""
    project = Path(__file__).resolve().parents[2]
    node = shutil.which("node")
    return [Path(sys.prefix), Path(sys.base_prefix), project, *([Path(node)] if node else [])]


def _become(uid: int, steps: Sequence[Step], argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    try:
        if steps:
            _mount_privately(steps)
        os.setsid()
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        os.execve(argv[0], list(argv), dict(env))
    except OSError as problem:
        os.write(2, f"cannot run {argv[0]} as user {uid}: {problem}\n".encode())
    os._exit(126)


def _mount_privately(steps: Sequence[Step]) -> None:
    _checked(_libc().unshare(_NEW_MOUNTS), "unshare")
    _mount("none", "/", "", _RECURSIVE | _PRIVATE)
    # Sources are opened before anything is covered.
    sources = {step["path"]: os.open(step["source"], os.O_PATH) for step in steps if step["kind"] == "bind"}
    for step in steps:
        path = Path(step["path"])
        if step["kind"] == "cover":
            _mount("tmpfs", str(path), "tmpfs", 0, "mode=755")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if step["kind"] == "link":
            path.symlink_to(step["target"])
        else:
            is_folder = Path(f"/proc/self/fd/{sources[step['path']]}").is_dir()
            path.mkdir(exist_ok=True) if is_folder else path.touch()
            _mount(f"/proc/self/fd/{sources[step['path']]}", str(path), "", _BIND | _RECURSIVE)
    for descriptor in sources.values():
        os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = (source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None)
    _checked(_libc().mount(*words), target)


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
