"""Choose the system calls that a command may not use, as a seccomp program for the kernel.

No command can inspect other processes or change their limits and priorities, use the kernel's key
store or BPF, or enter new namespaces, where it would be root. Graded commands that need no child
processes cannot start any, only threads.

Two runs of graded code must not communicate. Since both read the same system files, graded commands
get no locks, leases, hints or notifications on files, cannot see which pages of a file are cached,
and get no machine-wide figures. Taking a lock seems to succeed, since honest programs use locks.
"""

import ctypes
import errno
import json
import platform
import struct
import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import NamedTuple

from bakeoff.protocols import Command
from bakeoff.sandbox.supervisor.kernel import PR_SET_SECCOMP, SECCOMP_MODE_FILTER

ALLOW, FAIL = 0x7FFF0000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16  # in `struct seccomp_data`
CLONE_THREAD = 0x00010000
NEW_NAMESPACES = 0x7E020000
X32_CALLS = 0x40000000  # a second set of numbers for the calls of x86-64

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED = {  # calls by name, with their numbers on each architecture
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "syslog": (103, 116),  # crashing processes write to it
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
}
SHARED_IPC = {  # objects that outlive their process and use memory of no process
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
SHARED_FIGURES = {  # values that one sandbox can change and another read
    "mincore": (27, 232),
    "preadv2": (327, 286),  # reveals cached pages; C libraries fall back to `preadv`
    "cachestat": (451, 451),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
}
OTHER_PROCESSES = {  # they change processes of the same user; third, the argument that names one, or 0 for its own
    "prlimit64": (302, 261, 0),
    "sched_setparam": (142, 118, 0),
    "sched_setscheduler": (144, 119, 0),
    "sched_setaffinity": (203, 122, 0),
    "sched_setattr": (314, 274, 0),
    "setpriority": (141, 140, 1),
    "ioprio_set": (251, 30, 1),
}
OF_USER = {"setpriority": 2, "ioprio_set": 3}  # the first argument that means all processes of a user
OF_X86 = {"fork": 57, "vfork": 58, "inotify_init": 253, "ustat": 136}  # elsewhere, only `clone` and newer calls
NUMBERS: dict[str, tuple[int, int]] = {
    **REFUSED,
    **SHARED_IPC,
    **SHARED_FIGURES,
    **{name: numbers[:2] for name, numbers in OTHER_PROCESSES.items()},
    "sysinfo": (99, 179),
    "setsockopt": (54, 208),
    "socket": (41, 198),
    "fcntl": (72, 25),
    "flock": (73, 32),
    "ioctl": (16, 29),
    "clone": (56, 220),
    "clone3": (435, 435),
}
SOL_SOCKET, SO_SNDBUF, SO_RCVBUF = 1, 7, 8
F_SETPIPE_SZ = 1031
FAMILIES = (1, 2, 10, 16)  # Unix, IPv4, IPv6, netlink: separate per network namespace
LAST_FAMILY = max(FAMILIES)
TAKE_LOCK = (6, 7, 37, 38)  # F_SETLK, F_SETLKW, and those of open files
MARK_FILE = (1024, 1025, 1026, 1035, 1036, 1037, 1038)  # leases, notifications and hints of a file
FS_IOC_FIEMAP = 0xC020660B  # the position of a file on disk, which others influence


class Rule(NamedTuple):
    """The answer to a system call: always, or if an argument matches one of the values."""

    call: str
    answer: int  # an error number; 0 claims success without doing anything
    argument: int = 0
    values: tuple[int, ...] = ()
    check: int = EQUAL
    unless: bool = False  # answer if the check fails, for one value
    level: int | None = None  # only if the second argument has this value


def filter_of(command: Command, *, own_ipc: bool = True, counted: bool = True) -> bytes:
    """Return the program that refuses system calls; empty if the kernel does not support it.

    Args:
        command: The command. Graded commands may use fewer calls.
        own_ipc: True if the command has its own IPC namespace. Otherwise, its IPC objects would
            outlive it.
        counted: True if the kernel counts the memory of buffers. Otherwise, they have a fixed
            size.
    """
    if not can_filter():
        return b""
    return refusing_program(
        platform.machine(), graded=command.graded, children=command.children, own_ipc=own_ipc, counted=counted
    )


def can_filter() -> bool:
    """Return True if the kernel accepts such programs and we know its call numbers."""
    return platform.machine() in MACHINES and kernel_filters()


@cache
def kernel_filters() -> bool:
    """Return True if the kernel accepts such programs. The probe passes none and expects EFAULT."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), None, 0, 0)
    return ctypes.get_errno() == errno.EFAULT


def rules_for(*, graded: bool, children: bool = True, own_ipc: bool = True, counted: bool = True) -> list[Rule]:
    """Return the rules for a command, grouped by system call."""
    rules = [Rule(name, errno.EPERM) for name in REFUSED]
    # The arguments of `clone3` cannot be checked. C libraries fall back to `clone`.
    rules += [Rule("clone3", errno.ENOSYS), Rule("clone", errno.EPERM, 0, (NEW_NAMESPACES,), ANY_BIT)]
    # Threads may name themselves here, so only limits are an error: the others seem to succeed.
    errors = {"prlimit64": errno.EPERM}
    rules += [
        Rule(name, errors.get(name, 0), argument, (1,), AT_LEAST) for name, (*_, argument) in OTHER_PROCESSES.items()
    ]
    rules += [Rule(name, 0, 0, (user,)) for name, user in OF_USER.items()]
    if not own_ipc:
        rules += [Rule(name, errno.ENOSYS) for name in SHARED_IPC]
    if graded:
        rules += [Rule(name, errno.ENOSYS) for name in (*SHARED_FIGURES, "inotify_init", "ustat")]
        rules += [Rule("flock", 0), Rule("fcntl", 0, 1, TAKE_LOCK), Rule("fcntl", errno.EINVAL, 1, MARK_FILE)]
        rules += [Rule("ioctl", errno.EOPNOTSUPP, 1, (FS_IOC_FIEMAP,))]
        others = tuple(sorted({*range(LAST_FAMILY)}.difference(FAMILIES)))
        rules += [Rule("socket", errno.EAFNOSUPPORT, 0, others)]
        rules += [Rule("socket", errno.EAFNOSUPPORT, 0, (LAST_FAMILY + 1,), AT_LEAST)]
    if not counted:  # refuse larger buffers; for sockets, pretend success
        rules += [Rule("fcntl", errno.EPERM, 1, (F_SETPIPE_SZ,))]
        rules += [Rule("setsockopt", 0, 2, (SO_SNDBUF, SO_RCVBUF), level=SOL_SOCKET)]
    if graded and not children:  # compilers and Java use it only for the memory size
        rules += [Rule("sysinfo", errno.ENOSYS)]
    if not children:
        rules += [Rule("fork", errno.EPERM), Rule("vfork", errno.EPERM)]
        rules += [Rule("clone", errno.EPERM, 0, (CLONE_THREAD,), ANY_BIT, unless=True)]
    return sorted(rules, key=lambda rule: rule.call)


@cache
def refusing_program(
    machine: str, *, graded: bool, children: bool, own_ipc: bool = True, counted: bool = True
) -> bytes:
    """Return the instructions: for each call with rules, a block that ends with an answer."""
    column = list(MACHINES).index(machine)
    numbers = {name: columns[column] for name, columns in NUMBERS.items()}
    program = [_load(MACHINE_AT), _instruction(EQUAL, MACHINES[machine], 1, 0), _answer(errno.EPERM), _load(NUMBER_AT)]
    if machine == "x86_64":
        program += [_instruction(AT_LEAST, X32_CALLS, 0, 1), _answer(errno.ENOSYS)]
        numbers |= OF_X86
    rules = rules_for(graded=graded, children=children, own_ipc=own_ipc, counted=counted)
    for call, own in groupby(rules, key=lambda rule: rule.call):
        if call in numbers:
            block = [instruction for rule in own for instruction in _checks(rule)]
            program += [_instruction(EQUAL, numbers[call], 0, len(block) + 1), *block, _instruction(RETURN, ALLOW)]
    return b"".join([*program, _instruction(RETURN, ALLOW)])


def _checks(rule: Rule) -> Iterator[bytes]:
    """Yield the instructions that answer if a value matches, and otherwise skip the answer."""
    if rule.level is not None:
        yield _load(ARGUMENTS_AT + 8)
        yield _instruction(EQUAL, rule.level, 0, len(rule.values) + 2)
    if rule.values:
        yield _load(ARGUMENTS_AT + 8 * rule.argument)
    for left, value in zip(range(len(rule.values))[::-1], rule.values, strict=True):
        yield _instruction(rule.check, value, *((1, 0) if rule.unless else (left, 0 if left else 1)))
    yield _answer(rule.answer)


def docker_profile() -> str:
    """Return the rules for graded commands as a profile for container engines.

    The rule for `fstatfs` is left out, because engines use it before they start the command.
    """
    rules = [entry for rule in rules_for(graded=True) if rule.call != "fstatfs" for entry in _entries(rule)]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _entries(rule: Rule) -> Iterator[dict[str, object]]:
    """Yield the profile entries of a rule: one for each value and each bit of a mask."""
    entry = {"names": [rule.call], "action": "SCMP_ACT_ERRNO", "errnoRet": rule.answer}
    if not rule.values:
        yield entry
    for value in rule.values:
        bits = [1 << bit for bit in range(32) if value & 1 << bit] if rule.check == ANY_BIT else [value]
        for bit in bits:
            compared = {"index": rule.argument, "value": bit, "op": _OPERATORS[rule.check], "valueTwo": bit}
            yield {**entry, "args": [compared]}


_OPERATORS = {EQUAL: "SCMP_CMP_EQ", AT_LEAST: "SCMP_CMP_GE", ANY_BIT: "SCMP_CMP_MASKED_EQ"}


def _load(offset: int) -> bytes:
    return _instruction(LOAD, offset)


def _answer(number: int) -> bytes:
    return _instruction(RETURN, FAIL | number)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
