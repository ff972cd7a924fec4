# ruff: noqa: PTH102, PTH103, PTH116, PTH120, PTH123, PTH208, PTH211, SIM105
# pathlib and contextlib take longer to import than this script takes to start a command.
"""Supervise one sandboxed command: start it, watch its limits, and end everything that it leaves behind.

Run as a script, `python -I -S supervisor.py CONTROL_FD`, with the standard library only, so that it starts in
milliseconds and trusts nothing in the folder that it works in. The control descriptor is one end of a socket pair: one
JSON line comes in (the order), one JSON line goes out (the report). A later word on it ends the command early, and so
does closing it: when Bakeoff dies, however it dies, the command dies too.
"""

import ctypes
import errno
import json
import os
import resource
import select
import signal
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

LINUX = sys.platform == "linux"
PAGE = os.sysconf("SC_PAGE_SIZE")

PR_SET_DUMPABLE, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 4, 22, 2
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
CLONE_NEWNS, CLONE_NEWIPC = 0x00020000, 0x08000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000
ATTR_RDONLY, ATTR_NOSUID = 0x1, 0x2
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT, LANDLOCK_VERSION = 444, 445, 446, 1
LANDLOCK_READ, LANDLOCK_LIST = 0x1 | 0x4, 0x8  # execute and read files; list folders
LANDLOCK_OF_FILES = 0x1 | 0x2 | 0x4 | 1 << 14 | 1 << 15  # what can be allowed for a file that is no folder
LANDLOCK_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # on files, by the version that brought them
LANDLOCK_SCOPES = 0x1 | 0x2  # abstract sockets and signals

TICK = 0.02  # between two looks at a command
FILLED_PER_SECOND = (5 << 30) * (os.cpu_count() or 1)  # of memory, by a command that does nothing else
SLICE = 0.01  # for one slice of a check of a large tree, so that time limits are kept
KILL_SECONDS = 15.0  # only a process stuck in the kernel survives SIGKILL that long
ENTRY_BYTES = 256  # the cost of an empty file: its inode
BEYOND_ANY_LIMIT = 1 << 62
EPILOGUE_PAUSE = 0.5  # an engine that was asked for a container just before its client died is still making it

Order = dict[str, Any]


class SetUpFailed(Exception):
    """The command could not be started as ordered, through no fault of its own."""


# --- the kernel calls that Python does not wrap ---------------------------------------------------------------


def libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    if libc().prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    kind_bytes = kind.encode() if kind else None
    data_bytes = data.encode() if data else None
    if libc().mount(os.fsencode(source), os.fsencode(target), kind_bytes, ctypes.c_ulong(flags), data_bytes) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def set_mount_flags(path: str, *, on: int = 0, off: int = 0, everything_below: bool = False) -> None:
    attributes = (ctypes.c_uint64 * 4)(on, off, 0, 0)
    flags = AT_RECURSIVE if everything_below else 0
    where = os.fsencode(path)
    if libc().syscall(SYS_MOUNT_SETATTR, AT_FDCWD, where, flags, ctypes.byref(attributes), ctypes.c_size_t(32)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


# --- a private view of the file system ------------------------------------------------------------------------


def arrange_mounts(steps: list[dict[str, Any]], *, system_read_only: bool) -> None:
    """Carry out mount steps, shallow paths first, in a mount namespace of our own."""
    if libc().unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
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


# --- access to files without mounts -----------------------------------------------------------------------------


def restrict_access(rules: dict[str, Any]) -> None:
    """Leave only these files to the command, where the kernel has Landlock; it needs no rights for that.

    The command can also no longer look into processes outside, signal them, or reach their abstract sockets. The
    network is left alone: honest tests start servers on loopback.
    """
    version = libc().syscall(LANDLOCK_CREATE, None, 0, LANDLOCK_VERSION)
    if version < 1:
        return
    every = sum(rights for since, rights in LANDLOCK_RIGHTS.items() if since <= version)
    attributes = struct.pack("QQQ", every, 0, LANDLOCK_SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = libc().syscall(LANDLOCK_CREATE, attributes, size, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for rights, paths in (
        (LANDLOCK_READ | LANDLOCK_LIST, rules["readable"]),
        (LANDLOCK_LIST, rules["listed"]),
        (every, rules["writable"]),
    ):
        for path in paths:
            allow_beneath(ruleset, path, rights & every)
    if libc().syscall(LANDLOCK_RESTRICT, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def allow_beneath(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there need not be allowed
    if not stat.S_ISDIR(os.fstat(beneath).st_mode):
        rights &= LANDLOCK_OF_FILES
    rule = struct.pack("=Qi", rights, beneath)
    if libc().syscall(LANDLOCK_ADD, ruleset, 1, rule, 0) != 0:
        raise OSError(ctypes.get_errno(), f"landlock_add_rule for {path}")
    os.close(beneath)


# --- the command's own process, before it becomes the command ---------------------------------------------------


def start(order: Order) -> int:
    """Fork, confine the child and execute the command; return its pid once it runs."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            problem = pipe.read().decode()
        if problem:
            os.waitpid(child, 0)
            raise SetUpFailed(problem)
        return child
    os.close(reading)
    return become(order, writing)


def become(order: Order, problem_pipe: int) -> NoReturn:
    """Confine the child and execute the command. Problems are reported on the pipe, which `exec` closes."""
    try:
        confine(order)
        os.chdir(order["cwd"])
    except OSError as problem:
        os.write(problem_pipe, f"cannot set up the command: {problem}".encode())
        os._exit(125)
    try:
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except (OSError, ValueError) as problem:
        text = getattr(problem, "strerror", None) or str(problem)
        os.write(2, f"bakeoff: cannot run {order['argv'][0]!r}: {text}\n".encode(errors="replace"))
        os._exit(127 if isinstance(problem, FileNotFoundError) else 126)


def confine(order: Order) -> None:
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.umask(0o022)
    if order["confined"]:
        for name, value in order["rlimits"].items():
            lower_rlimit(getattr(resource, name), value)
    if order["uid"] is not None:
        drop_to(order["uid"])
    if LINUX:
        if order["confined"]:
            prctl(PR_SET_NO_NEW_PRIVS, 1)
        if order["access"] is not None:
            restrict_access(order["access"])
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if order["filter"]:
            refuse_system_calls(bytes.fromhex(order["filter"]))


def refuse_system_calls(program: bytes) -> None:
    """Have the kernel check each system call from here on; see `system_calls.py`."""
    instructions = ctypes.create_string_buffer(program, len(program))
    filter_of_kernel = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    if libc().prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), filter_of_kernel, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def lower_rlimit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def drop_to(uid: int) -> None:
    """Become a user that owns nothing, irrevocably."""
    if LINUX:
        drop_capability_bounds()
    os.setgroups([])
    os.setregid(uid, uid)
    os.setreuid(uid, uid)


def drop_capability_bounds() -> None:
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            return  # beyond the last capability of this kernel, or not ours to drop; changing the user clears the rest


# --- watching ---------------------------------------------------------------------------------------------------


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
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        children = children_of(queue.pop())
        found.extend(children)
        queue.extend(children)
    return found


def resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Return the memory in use, with shared pages divided among their users. Slow, but fair to forked workers."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
    except OSError:
        return resident_bytes(pid)


def memory_left(limit: int) -> int:
    """Return how far the command is from its limit; below zero, it is over it."""
    tree = descendants()
    left = limit - sum(map(resident_bytes, tree))
    return left if left >= 0 else limit - sum(map(proportional_bytes, tree))


def disk_use(roots: list[str], owner: int | None, limit: int) -> Iterator[int]:
    """Yield the bytes found so far, entry by entry, so that the caller can pause. Ends early above the limit."""
    used, linked = 0, set[tuple[int, int]]()
    queue = list(roots)
    while queue:
        folder = queue.pop()
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                used += entry_bytes(entry, linked, queue)
                yield used
                if used > limit:
                    return
    # A container's processes are not below us, but they belong to its user.
    processes = descendants() if owner is None else [int(pid) for pid in all_pids() if threads_if_of(owner, pid)]
    yield used + sum(unlinked_bytes(pid, linked) for pid in processes)


def entry_bytes(entry: os.DirEntry[str], linked: set[tuple[int, int]], queue: list[str]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError as problem:
        return BEYOND_ANY_LIMIT if problem.errno == errno.ENAMETOOLONG else 0  # no honest program nests that deep
    if stat.S_ISDIR(found.st_mode):
        queue.append(entry.path)
    elif found.st_nlink > 1:
        if (found.st_dev, found.st_ino) in linked:
            return 0
        linked.add((found.st_dev, found.st_ino))
    return found.st_blocks * 512 + ENTRY_BYTES


def unlinked_bytes(pid: int, seen: set[tuple[int, int]]) -> int:
    """Return the size of files that were deleted while open, which take space and show up nowhere else."""
    used = 0
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            found = os.stat(f"/proc/{pid}/fd/{name}")
            identity = (found.st_dev, found.st_ino)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and identity not in seen:
                seen.add(identity)
                used += found.st_blocks * 512
    except OSError:
        pass  # it has ended meanwhile
    return used


class DiskWatch:
    """Checks the tree in slices, and at once when the file system loses more space than the limit leaves."""

    def __init__(self, roots: list[str], owner: int | None, limit: int) -> None:
        self.roots, self.owner, self.limit = roots, owner, limit
        self.scan: Iterator[int] | None = None
        self.seen = 0
        self.known = 0
        self.free_at_start = self.free_at_scan = self.free()
        self.spent = 0.0
        self.due = time.monotonic() + 10 * TICK

    def free(self) -> int:
        found = os.statvfs(self.roots[0])
        return found.f_bfree * found.f_frsize

    def over(self, now: float) -> bool:
        if self.scan is None:
            suspicious = self.known + self.free_at_scan - self.free() > self.limit
            if now < self.due and not suspicious:
                return False
            self.begin()
        return self.advance(now + SLICE)

    def begin(self) -> None:
        self.free_at_scan = self.free()
        self.scan, self.seen, self.spent = disk_use(self.roots, self.owner, self.limit), 0, 0.0

    def advance(self, until: float) -> bool:
        started = time.monotonic()
        assert self.scan is not None
        for used in self.scan:
            self.seen = used
            if used > self.limit:
                return True
            if time.monotonic() > until:
                self.spent += time.monotonic() - started
                return False
        self.scan, self.known = None, self.seen
        self.spent += time.monotonic() - started
        # A hundredth of the time goes into checks, or a twentieth where they would be more than two seconds apart.
        self.due = time.monotonic() + max(10 * TICK, min(100 * self.spent, 2.0), 20 * self.spent)
        return False

    def over_at_the_end(self) -> bool:
        """Check again if a writer may have hit its file size limit between two checks."""
        if self.free_at_start - self.free() < self.limit // 4 and self.known < self.limit // 2:
            return False
        self.begin()
        return self.advance(time.monotonic() + 5.0)


class MemoryWatch:
    """Checks the memory before a command could have filled half of what it has left."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.due = 0.0

    def over(self, now: float) -> bool:
        if not LINUX or now < self.due:
            return False
        left = memory_left(self.limit)
        self.due = now + max(TICK, left / 2 / FILLED_PER_SECOND, 10 * (time.monotonic() - now))
        return left < 0


# --- one command from start to end --------------------------------------------------------------------------------


class Reaper:
    """Reaps every child that ends, and remembers how the command itself ended."""

    def __init__(self) -> None:
        self.woken, waker = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.command = 0
        self.exit_code: int | None = None
        self.peak_bytes = 0

    def collect(self) -> bool:
        """Return whether no child is left."""
        try:
            os.read(self.woken, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.command:
                self.exit_code = os.waitstatus_to_exitcode(status)
                self.peak_bytes = usage.ru_maxrss * (1024 if LINUX else 1)


def watch(order: Order, control: int, reaper: Reaper, started: float) -> str:
    """Wait until the command ends ('exited') or has to be ended, and return the reason."""
    deadline = started + order["seconds"]
    disk = DiskWatch(order["watched"], order["owner"], order["disk"])
    memory = MemoryWatch(order["memory"]) if order["memory"] else None
    poller = select.poll()
    poller.register(control, select.POLLIN)
    poller.register(reaper.woken, select.POLLIN)
    while True:
        now = time.monotonic()
        if now >= deadline:
            return "timeout"
        ready = poller.poll(1000 * min(TICK, deadline - now))
        if any(descriptor == control for descriptor, _ in ready):
            return os.read(control, 64).decode().strip() or "cancelled"
        reaper.collect()
        if reaper.exit_code is not None:
            return ending(order, reaper, disk)
        now = time.monotonic()
        if memory and memory.over(now):
            return "memory"
        if disk.over(now):
            return "disk"


def ending(order: Order, reaper: Reaper, disk: DiskWatch) -> str:
    if order["memory"] and reaper.peak_bytes > order["memory"]:
        return "memory"
    return "disk" if disk.over_at_the_end() else "exited"


def end_everything(uid: int | None, reaper: Reaper) -> bool:
    """Kill until nothing is left; return False when a process does not die."""
    give_up = time.monotonic() + KILL_SECONDS
    poller = select.poll()
    poller.register(reaper.woken, select.POLLIN)
    while not reaper.collect():
        if time.monotonic() > give_up:
            return False
        if uid is not None:
            kill_all_of(uid)
        else:
            kill_tree(reaper.command)
        poller.poll(5)
    return True


def kill_all_of(uid: int) -> None:
    """Kill all processes of a user with one system call, made as that user. A fork bomb cannot outrun it."""
    helper = os.fork()
    if helper == 0:
        try:
            os.setgroups([])
            os.setregid(uid, uid)
            os.setreuid(uid, uid)
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass  # no process of that user is left
        os._exit(0)
    os.waitpid(helper, 0)


def kill_tree(command: int) -> None:
    targets: list[tuple[Callable[[int, int], None], int]] = [(os.kill, pid) for pid in descendants()]
    if not LINUX:
        targets = [(os.killpg, command)]
    for kill, target in targets:
        try:
            kill(target, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # already gone


def run_epilogue(commands: list[list[str]], env: dict[str, str]) -> list[str]:
    """Run the commands that clean up outside the tree, such as removing a container, and return their output."""
    import subprocess  # slow to import, and only the docker sandbox needs it

    answers = []
    for argv in commands:
        try:
            done = subprocess.run(argv, env=env, capture_output=True, text=True, errors="replace", timeout=60)
            answers.append(done.stdout.strip() if done.returncode == 0 else "")
            if done.returncode != 0:
                time.sleep(EPILOGUE_PAUSE)
        except (OSError, subprocess.TimeoutExpired):
            answers.append("")
    return answers


def carry_out(order: Order, control: int) -> dict[str, Any]:
    if LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    if order["mounts"] is not None:
        try:
            arrange_mounts(order["mounts"]["steps"], system_read_only=order["mounts"]["system_read_only"])
        except OSError as problem:
            raise SetUpFailed(f"private mounts are not permitted here: {problem}") from problem
    reaper = Reaper()
    if order["uid"] is None and "RLIMIT_NPROC" in order["rlimits"]:
        order["rlimits"]["RLIMIT_NPROC"] += processes_of(os.getuid())
    status = offer_status_pipe(order)
    offer_filter(order)
    started = time.monotonic()
    reaper.command = start(order)
    for descriptor in (0, 1, 2):  # only the command may hold the streams, so that their end is its end
        os.close(descriptor)
    why = watch(order, control, reaper, started)
    seconds = time.monotonic() - started
    clean = end_everything(order["uid"], reaper)
    report = {
        "stop": why,
        "seconds": seconds,
        "exit_code": reaper.exit_code,
        "clean": clean,
        "status": read_now(status),
    }
    if order["epilogue"]:
        for _ in range(3):  # subprocess needs the standard descriptors to be open
            os.open(os.devnull, os.O_RDWR)
        signal.set_wakeup_fd(-1)
        report["epilogue"] = run_epilogue(order["epilogue"], order["env"])
    return report


def offer_status_pipe(order: Order) -> int:
    """Open a pipe on which a wrapper such as bubblewrap reports its progress; its number goes into the argv."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_inheritable(writing, order["status_word"] in order["argv"])
    order["argv"] = [str(writing) if word == order["status_word"] else word for word in order["argv"]]
    return reading


def offer_filter(order: Order) -> None:
    """Let a wrapper such as bubblewrap read the filter, which it would not survive itself."""
    if order["filter_word"] not in order["argv"]:
        return
    reading, writing = os.pipe()
    os.write(writing, bytes.fromhex(order["filter"]))
    os.close(writing)
    os.set_inheritable(reading, True)
    order["argv"] = [str(reading) if word == order["filter_word"] else word for word in order["argv"]]
    order["filter"] = ""


def read_now(descriptor: int) -> str:
    try:
        return os.read(descriptor, 4096).decode(errors="replace")
    except BlockingIOError:
        return ""


def processes_of(uid: int) -> int:
    """Count the threads that the user has already, because the limit on processes includes them."""
    return sum(threads_if_of(uid, pid) for pid in all_pids())


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


def sweep(uid: int) -> dict[str, Any]:
    """End the processes that a killed supervisor could not end."""
    give_up = time.monotonic() + KILL_SECONDS
    while processes_of(uid) and time.monotonic() < give_up:
        kill_all_of(uid)
        time.sleep(0.002)  # their parent is init now, which says nothing
    return {"clean": not processes_of(uid)}


def read_order(control: int) -> Order:
    received = b""
    while not received.endswith(b"\n"):
        chunk = os.read(control, 1 << 16)
        if not chunk:
            sys.exit(1)  # Bakeoff has ended before it gave an order
        received += chunk
    order: Order = json.loads(received)
    return order


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # Bakeoff handles Ctrl-C and tells us through the control socket
    if LINUX:
        prctl(PR_SET_DUMPABLE, 0)  # a command of our own user must not get at the control socket
    order = read_order(control)
    try:
        report = sweep(order["sweep"]) if "sweep" in order else carry_out(order, control)
    except SetUpFailed as problem:
        report = {"problem": str(problem)}
    try:
        os.write(control, json.dumps(report).encode() + b"\n")
    except OSError:
        pass  # nobody is left to read it
    os._exit(0)


if __name__ == "__main__":
    main()
