"""Start a command: fork, confine the child, and execute the program.

The child may get its own view of the file system and its own IPC. Without root, this needs a user
namespace, in which the command keeps its user id.
"""

import ctypes
import os
import resource
import signal
import socket
import stat
import struct
from typing import Any, NoReturn

from . import kernel
from .cgroups import Cgroup

READY = b"r"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - it is covered
SHARED_MEMORY_BYTES = 64 << 20
EMPTY_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV  # of an empty folder over another folder
IPC_LISTS = ("shm", "sem", "msg")
LANDLOCK_READ, LANDLOCK_LIST = 0x1 | 0x4, 0x8  # execute and read files; list folders
LANDLOCK_OF_FILES = 0x1 | 0x2 | 0x4 | 1 << 14 | 1 << 15  # rights that apply to files
LANDLOCK_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # on files, by version
LANDLOCK_SCOPES = 0x1 | 0x2  # of abstract sockets and signals

Order = dict[str, Any]


class SetUpFailed(Exception):
    """The command could not be started as ordered, through no fault of its own."""


def start(order: Order, control: int, cgroup: Cgroup | None) -> tuple[int, list[int]]:
    """Fork, confine the child and execute the command.

    Return its pid once it runs and, for its own IPC namespace, descriptors of the lists.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child:
        theirs.close()
        with ours:
            word, lists, _, _ = socket.recv_fds(ours, 1, len(IPC_LISTS))
            problem = b""
            while chunk := ours.recv(1 << 12):
                problem += chunk
        if word != READY or problem:
            os.waitpid(child, 0)
            raise SetUpFailed((word + problem).decode().partition("!")[2] or "it was killed before it started")
        return child, lists
    os.close(control)  # only the supervisor sends reports
    ours.close()
    return become(order, theirs, cgroup)


def become(order: Order, channel: socket.socket, cgroup: Cgroup | None) -> NoReturn:
    """Confine this child and execute the command. Problems are sent to the channel."""
    try:
        if cgroup is not None:
            cgroup.join()
        lists = own_ipc(order["watched"]) if order["own_ipc"] else []
        socket.send_fds(channel, [READY], lists)
        if order["mounts"] is not None:
            arrange_mounts(order["mounts"]["steps"], system_read_only=order["mounts"]["system_read_only"])
        confine(order)
        os.chdir(order["cwd"])
    except OSError as problem:
        what = "private mounts are not permitted here" if order["mounts"] is not None else "cannot set up the command"
        channel.sendall(f"!{what}: {problem}".encode())
        os._exit(125)
    try:
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except (OSError, ValueError) as problem:
        text = getattr(problem, "strerror", None) or str(problem)
        os.write(2, f"bakeoff: cannot run {order['argv'][0]!r}: {text}\n".encode(errors="replace"))
        os._exit(127 if isinstance(problem, FileNotFoundError) else 126)


def confine(order: Order) -> None:
    """Drop rights. The order matters, because each step needs rights that a later one drops."""
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.umask(0o022)
    if order["confined"]:
        for name, value in order["rlimits"].items():
            if hasattr(resource, name):
                which = getattr(resource, name)
                hard = resource.getrlimit(which)[1]
                bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(which, (bound, bound))
    if order["uid"] is not None:
        drop_to(order["uid"])
    if kernel.LINUX:
        if order["confined"]:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        if order["access"] is not None:
            restrict_access(order["access"])
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if order["filter"]:
            refuse_system_calls(bytes.fromhex(order["filter"]))


def refuse_system_calls(program: bytes) -> None:
    """Make the kernel check all system calls from now on; see `system_calls.py`."""
    instructions = ctypes.create_string_buffer(program, len(program))
    packed = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    mode = ctypes.c_ulong(kernel.SECCOMP_MODE_FILTER)
    if kernel.libc.prctl(kernel.PR_SET_SECCOMP, mode, packed, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def drop_to(uid: int) -> None:
    """Irrevocably become a user that owns no files."""
    for capability in range(64 if kernel.LINUX else 0):
        try:
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
        except OSError:
            break  # no such capability, or not ours; the change of user clears the rest
    os.setgroups([])
    os.setregid(uid, uid)
    os.setreuid(uid, uid)


def restrict_access(rules: dict[str, Any]) -> None:
    """Restrict the command to the files in `rules` with Landlock, if the kernel supports it.

    The command can then no longer inspect outside processes. Since version 6 of Landlock, it can
    neither signal them nor connect to their abstract sockets. The network stays open, because honest tests
    start servers on loopback.
    """
    version = kernel.libc.syscall(kernel.LANDLOCK_CREATE, None, 0, kernel.LANDLOCK_VERSION)
    if version < 1:
        return
    every = sum(rights for since, rights in LANDLOCK_RIGHTS.items() if since <= version)
    attributes = struct.pack("QQQ", every, 0, LANDLOCK_SCOPES if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = kernel.libc.syscall(kernel.LANDLOCK_CREATE, attributes, size, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for rights, paths in (
        (LANDLOCK_READ | LANDLOCK_LIST, rules["readable"]),
        (LANDLOCK_LIST, rules["listed"]),
        (every, rules["writable"]),
    ):
        for path in paths:
            allow_beneath(ruleset, path, rights & every)
    if kernel.libc.syscall(kernel.LANDLOCK_RESTRICT, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def allow_beneath(ruleset: int, path: str, rights: int) -> None:
    """Allow rights on a path and everything below it. Ignore missing paths."""
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path need not be allowed
    if not stat.S_ISDIR(os.fstat(beneath).st_mode):
        rights &= LANDLOCK_OF_FILES
    rule = struct.pack("=Qi", rights, beneath)
    if kernel.libc.syscall(kernel.LANDLOCK_ADD, ruleset, 1, rule, 0) != 0:
        raise OSError(ctypes.get_errno(), f"landlock_add_rule for {path}")
    os.close(beneath)


def own_ipc(kept: list[str]) -> list[int]:
    """Enter a new IPC namespace, whose objects vanish with it. Return its lists of objects.

    Without root, also use private shared memory, in which the `kept` folders stay.
    """
    if os.geteuid() == 0:
        kernel.unshare(kernel.CLONE_NEWIPC)
    else:
        uid, gid = os.geteuid(), os.getegid()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # or root would own the files below
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC)
        for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(content)
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        own_shared_memory([path for path in kept if path.startswith(f"{SHARED_MEMORY}/")])
    return [os.open(f"/proc/sysvipc/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in IPC_LISTS]


def own_shared_memory(kept: list[str]) -> None:
    """Cover the host's shared memory by an empty, limited folder, except the `kept` folders."""
    sources = {path: os.open(path, os.O_PATH) for path in kept}
    kernel.mount("tmpfs", SHARED_MEMORY, "tmpfs", EMPTY_FLAGS, f"mode=1777,size={SHARED_MEMORY_BYTES}")
    for path, source in sources.items():
        make_mount_point(path, is_folder=True)
        kernel.mount(f"/proc/self/fd/{source}", path, None, kernel.MS_BIND)
        os.close(source)


def can_own_ipc() -> bool:
    """Return True if a process can enter a new IPC namespace, as tried in a short-lived one."""
    pid = os.fork()
    if pid == 0:
        try:
            own_ipc([])
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def arrange_mounts(steps: list[dict[str, Any]], *, system_read_only: bool) -> None:
    """Make the planned mounts (`sandbox/mounts.py`) in a new namespace, shallow paths first."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    if system_read_only:
        kernel.set_mount_flags("/", on=kernel.ATTR_RDONLY | kernel.ATTR_NOSUID, everything_below=True)
        kernel.set_mount_flags("/proc", off=kernel.ATTR_RDONLY)
    # Open sources before they may be covered, and mount them by descriptor.
    sources = {step["path"]: os.open(step["source"], os.O_PATH) for step in steps if step["kind"] == "bind"}
    try:
        for step in steps:
            path = step["path"]
            if step["kind"] == "cover":
                size = f",size={step['size']}" if step["size"] else ""
                kernel.mount("tmpfs", path, "tmpfs", EMPTY_FLAGS, f"mode={step['mode']:o}{size}")
            elif step["kind"] == "link":
                os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)
                os.symlink(step["target"], path)
            else:
                make_mount_point(path, is_folder=stat.S_ISDIR(os.fstat(sources[path]).st_mode))
                kernel.mount(f"/proc/self/fd/{sources[path]}", path, None, kernel.MS_BIND)
                if step["writable"]:
                    kernel.set_mount_flags(path, off=kernel.ATTR_RDONLY)
    finally:
        for descriptor in sources.values():
            os.close(descriptor)


def make_mount_point(path: str, *, is_folder: bool) -> None:
    """If nothing is there, make an empty file or folder to mount on, with its parents."""
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)
    if is_folder:
        os.mkdir(path, 0o711)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
