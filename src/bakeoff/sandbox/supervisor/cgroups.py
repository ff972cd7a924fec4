"""Put a command into its own control group, if possible, so that the kernel enforces limits.

Version 2 has one folder per group, version 1 one per controller. The new group is inside our own,
so that our limits still apply, or beside it if version 2 permits no other place. Its name
identifies its supervisor, so that the next Bakeoff process can remove groups of dead supervisors.
"""

import os
import signal
import time
from typing import Any

from .kernel import LINUX

PREFIX = "bakeoff"
CONTROLLERS = ("memory", "pids")
REMOVE_SECONDS = 2.0  # the kernel needs a moment to see that a group is empty


def start_time(pid: int) -> str:
    """Return the start time of a process, which tells apart equal pids; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[19].decode()
    except (OSError, IndexError):
        return ""


def write(path: str, value: str) -> None:
    """Write a value to a kernel file. Raise `OSError` if the kernel refuses it."""
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def write_if_there(path: str, value: str) -> None:
    """Write a value to a kernel file, if this kernel has the file."""
    try:
        write(path, value)
    except OSError:
        pass  # the kernel lacks this setting


class Cgroup:
    """The group of one command: `make` it, let the command `join` it, then `remove` it."""

    def __init__(self, version: int, parents: dict[str, str]) -> None:
        self.version = version
        name = f"{PREFIX}-{os.stat('/proc/self/ns/pid').st_ino}-{os.getpid()}-{start_time(os.getpid())}"
        self.folders = {controller: f"{parent}/{name}" for controller, parent in parents.items()}

    def make(self, memory: int, processes: int) -> None:
        """Make the group with limits for memory, in bytes, and for processes."""
        for folder in set(self.folders.values()):
            os.mkdir(folder)
        group, pids = self.folders["memory"], self.folders["pids"]
        if self.version == 1:
            write(f"{group}/memory.limit_in_bytes", str(memory))
            write_if_there(f"{group}/memory.memsw.limit_in_bytes", str(memory))
            write_if_there(f"{group}/memory.kmem.tcp.limit_in_bytes", str(memory))
        else:
            write(f"{group}/memory.max", str(memory))
            write_if_there(f"{group}/memory.swap.max", "0")
            write_if_there(f"{group}/memory.oom.group", "1")
        write(f"{pids}/pids.max", str(processes))

    def join(self) -> None:
        """Move this process into the group."""
        for folder in set(self.folders.values()):
            write(f"{folder}/cgroup.procs", "0")

    def ran_out_of_memory(self) -> bool:
        """Return True if the kernel killed a process or refused a connection for lack of memory."""
        group = self.folders["memory"]
        if self.version == 1:
            # Without memory, connections wait forever, and no process is killed.
            return has_killed(f"{group}/memory.oom_control") or number_in(f"{group}/memory.kmem.tcp.failcnt") > 0
        return has_killed(f"{group}/memory.events")

    def remove(self) -> None:
        """Kill the remaining processes of the group and remove it.

        If removal fails, the next Bakeoff process removes the group.
        """
        remove_groups(set(self.folders.values()))


def has_killed(path: str) -> bool:
    """Return True if the kernel killed a process of the group; False if that is unknown."""
    try:
        with open(path, encoding="ascii") as file:
            return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file)
    except OSError:
        return False


def number_in(path: str) -> int:
    """Return the number in a kernel file; 0 if this kernel does not have the file."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return 0  # the kernel lacks this count


def remove_groups(folders: set[str]) -> None:
    """Kill the remaining processes of the groups, and remove them."""
    give_up = time.monotonic() + REMOVE_SECONDS
    for folder in folders:
        while True:
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > give_up:
                    break  # the next Bakeoff process tries again
                kill_group(folder)
                time.sleep(0.001)


def kill_group(folder: str) -> None:
    """Kill all processes of a control group. Once they have ended, it can be removed."""
    try:
        write(f"{folder}/cgroup.kill", "1")
        return
    except OSError:
        pass  # version 1 or an older kernel
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            members = [int(line) for line in file]
        for pid in members:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # they have just ended


def sweep_groups(parents: dict[str, str]) -> None:
    """Remove the groups of dead supervisors."""
    space = str(os.stat("/proc/self/ns/pid").st_ino)
    for parent in set(parents.values()):
        for name in os.listdir(parent):
            words = name.split("-")
            if len(words) == 4 and words[:2] == [PREFIX, space] and start_time(int(words[2])) != words[3]:
                remove_groups({f"{parent}/{name}"})


def find_parents() -> dict[str, Any] | None:
    """Return the version and, by controller, the folders where we may make groups, for `Cgroup`.

    None means that this process cannot make groups.
    """
    if not LINUX:
        return None
    mounted = mounted_hierarchies()
    ours = {}
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            ours.update(dict.fromkeys(controllers.split(","), path))
    if all(controller in mounted and controller in ours for controller in CONTROLLERS):
        candidates = [(1, {name: own_folder(mounted[name], ours[name]) for name in CONTROLLERS})]
    elif "" in mounted and "" in ours:
        candidates = [(2, dict.fromkeys(CONTROLLERS, folder)) for folder in upwards(mounted[""], ours[""])]
    else:
        candidates = []
    fitting = ((number, where) for number, where in candidates if works(number, where))
    return next(({"version": number, "parents": where} for number, where in fitting), None)


def mounted_hierarchies() -> dict[str, tuple[str, str]]:
    """Return root and mount point of each controller's hierarchy. Version 2 has an empty name."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            root, point = before.split()[3:5]
            kind, _, options = after.split()[:3]
            if kind == "cgroup2":
                found[""] = (root, point)
            elif kind == "cgroup":
                found.update(dict.fromkeys(options.split(","), (root, point)))
    return found


def own_folder(mounted: tuple[str, str], path: str) -> str:
    """Return the folder of a group, given its path and its hierarchy's root and mount point."""
    root, point = mounted
    below = path[len(root.rstrip("/")) :] if path.startswith(root) else path
    return (point + below).rstrip("/")


def upwards(mounted: tuple[str, str], path: str) -> list[str]:
    """Return our group and its parents, as far as they delegate controllers."""
    folder, point = own_folder(mounted, path), mounted[1]
    found = []
    while folder.startswith(point):
        try:
            with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
                if set(CONTROLLERS) <= set(file.read().split()):
                    found.append(folder)
        except OSError:
            pass  # missing or unreadable
        folder = os.path.dirname(folder)
    return found


def works(version: int, parents: dict[str, str]) -> bool:
    """Return True if a group can be made and joined, as tried in a short-lived process."""
    if not all(os.access(parent, os.W_OK) for parent in parents.values()):
        return False
    pid = os.fork()
    if pid == 0:
        try:
            group = Cgroup(version, parents)
            group.make(1 << 30, 100)
            group.join()
            os._exit(0)
        finally:
            os._exit(1)
    joined = os.waitpid(pid, 0)[1] == 0
    sweep_groups(parents)  # including the group made for this test
    return joined
