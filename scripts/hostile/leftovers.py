"""Find what killed processes have left: temporary folders, folders of meters, control groups."""

import contextlib
import os
import socket
import time
from pathlib import Path

from scripts.hostile.workloads import temporary

from bakeoff.meter.trial import PREFIX, SOCKET, runtime_folder
from bakeoff.sandbox.supervisor.cgroups import PREFIX as GROUPS
from bakeoff.sandbox.supervisor.cgroups import start_time

_SETTLE_SECONDS = 10.0  # another process may be removing it
_OLD_SECONDS = 3_600


def left_in(folder: Path) -> list[str]:
    """Return what is in the temporary folder of a workload.

    The servers of the embedded model keep their locks in one folder, and pytest keeps those of its last three runs.
    """
    kept, deadline = (f"bakeoff-{os.getuid()}", "pytest-of-"), time.monotonic() + _SETTLE_SECONDS
    while True:
        left = [path.name for path in temporary(folder).iterdir() if not path.name.startswith(kept)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def make_old(folder: Path) -> None:
    """Let what was left be an hour old: nobody removes what might just have been made."""
    past = time.time() - _OLD_SECONDS
    for path in temporary(folder).iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            os.utime(path, (past, past), follow_symlinks=False)


def left_on_machine() -> list[str]:
    """Return folders of meters that nobody listens in, and control groups of supervisors that are gone."""
    return [*orphaned_groups(), *(str(path) for path in runtime_folder().glob(f"{PREFIX}*") if _is_unheard(path))]


def orphaned_groups() -> list[str]:
    """Return our control groups of supervisors that are gone. Others come and go while we look."""
    walked = os.walk("/sys/fs/cgroup")  # unlike a glob, it passes over folders that have just been removed
    found = [f"{folder}/{name}" for folder, names, _ in walked for name in names if _is_orphaned(name)]
    return [group for group in found if os.access(group, os.W_OK)]  # a user cannot make or remove those of root


def _is_orphaned(group: str) -> bool:
    words = group.split("-")
    if len(words) != 4 or words[0] != GROUPS:
        return False
    _, space, pid, started = words
    return space == str(Path("/proc/self/ns/pid").stat().st_ino) and start_time(int(pid)) != started


def _is_unheard(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(folder / SOCKET))
        except ConnectionRefusedError:
            return time.time() - folder.stat().st_mtime > _OLD_SECONDS
        except OSError:
            pass
    return False
