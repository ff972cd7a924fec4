"""Put a command into a control group of its own if this process may make one: the kernel then enforces its limits.

Version 2 has one folder per group, version 1 one per controller. The group is made below our own, or beside it where
version 2 permits no other place, so that limits of ours still apply. Its name identifies its supervisor: the next
Bakeoff process removes the groups of supervisors that are gone.
"""

import os
import signal
import time
from typing import Any

from .kernel import LINUX

PREFIX = "bakeoff"
CONTROLLERS = ("memory", "pids")
REMOVE_SECONDS = 2.0  # the kernel takes a moment to notice that a group is empty


def start_time(pid: int) -> str:
    """Return the start time of a process, which tells it from later ones with the same pid; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b")", 1)[1].split()[19].decode()
    except (OSError, IndexError):
        return ""


def write(path: str, value: str) -> None:
    """Write a value to a file of the kernel. Raises `OSError` if the kernel refuses it."""
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def write_if_there(path: str, value: str) -> None:
    """Write a value to a file of the kernel, unless this kernel does not have it."""
    try:
        write(path, value)
    except OSError:
        pass  # a kernel without this setting


class Cgroup:
    """The group of one command. `make` it, have the command `join` it, and `remove` it when nothing is left."""

    def __init__(self, version: int, parents: dict[str, str]) -> None:
        self.version = version
        name = f"{PREFIX}-{os.stat('/proc/self/ns/pid').st_ino}-{os.getpid()}-{start_time(os.getpid())}"
        self.folders = {controller: f"{parent}/{name}" for controller, parent in parents.items()}

    def make(self, memory: int, processes: int) -> None:
        """Make the group with limits of memory, in bytes, and of processes. Raise `OSError` if we may not."""
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
        """Return True if the kernel has killed a process of the group, or refused a connection, for lack of memory."""
        group = self.folders["memory"]
        if self.version == 1:
            # Connections wait for ever where no memory is left for them; no process is ended for that.
            return has_killed(f"{group}/memory.oom_control") or number_in(f"{group}/memory.kmem.tcp.failcnt") > 0
        return has_killed(f"{group}/memory.events")

    def remove(self) -> None:
        """Kill the remaining processes of the group, and remove it.

        A group that cannot be removed is left to the next Bakeoff process.
        """
        remove_groups(set(self.folders.values()))


def has_killed(path: str) -> bool:
    """Return True if the kernel has killed a process of the group; False if the file cannot be read."""
    try:
        with open(path, encoding="ascii") as file:
            return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file)
    except OSError:
        return False


def number_in(path: str) -> int:
    """Return the number in a file of the kernel; 0 if this kernel does not have the file."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return 0  # a kernel without this count


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
    """Kill all processes of a control group. It can be removed when they have ended."""
    try:
        write(f"{folder}/cgroup.kill", "1")
        return
    except OSError:
        pass  # version 1, or an older kernel
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            members = [int(line) for line in file]
        for pid in members:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # they have ended meanwhile


def sweep_groups(parents: dict[str, str]) -> None:
    """Remove the groups of supervisors that are gone."""
    space = str(os.stat("/proc/self/ns/pid").st_ino)
    for parent in set(parents.values()):
        for name in os.listdir(parent):
            words = name.split("-")
            if len(words) == 4 and words[:2] == [PREFIX, space] and start_time(int(words[2])) != words[3]:
                remove_groups({f"{parent}/{name}"})


def find_parents() -> dict[str, Any] | None:
    """Return the version, and for each controller the folder in which we may make groups, as `Cgroup` takes them.

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
    """Return the root and the mount point of each controller's hierarchy; version 2 has the empty name."""
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
    """Return the folder of a control group, given the root and mount point of its hierarchy and its path there."""
    root, point = mounted
    below = path[len(root.rstrip("/")) :] if path.startswith(root) else path
    return (point + below).rstrip("/")


def upwards(mounted: tuple[str, str], path: str) -> list[str]:
    """Return our group and those around it that delegate the controllers. A group with processes of its own cannot."""
    folder, point = own_folder(mounted, path), mounted[1]
    found = []
    while folder.startswith(point):
        try:
            with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
                if set(CONTROLLERS) <= set(file.read().split()):
                    found.append(folder)
        except OSError:
            pass  # not there, or not ours to read
        folder = os.path.dirname(folder)
    return found


def works(version: int, parents: dict[str, str]) -> bool:
    """Return True if a group can be made and joined. This is tried in a process that ends at once."""
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
    sweep_groups(parents)  # the one that it made, too
    return joined
