"""Choose the system calls that a command may not use, as a program for the kernel (seccomp).

No command gets a way to look into other processes, none to the keys and programs that the kernel keeps, and none to new
namespaces, where it would be root. If a graded command need not start processes, it cannot do that either; threads
still work.
"""

import ctypes
import platform
import struct
import sys
from functools import cache

from bakeoff.protocols import Command
from bakeoff.sandbox.supervisor.kernel import PR_SET_SECCOMP, SECCOMP_MODE_FILTER

ALLOW, FAIL = 0x7FFF0000, 0x00050000
EPERM, ENOSYS = 1, 38
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT = 0, 4, 16  # in `struct seccomp_data`
CLONE_THREAD = 0x00010000
NEW_NAMESPACES = 0x7E020000
X32_CALLS = 0x40000000  # a second set of numbers for the calls of x86-64

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
REFUSED = {  # by their names, with their numbers on these machines
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
SHARED_IPC = {  # what is made with these outlives its process, and is in memory that no process has
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
CACHE_PROBES = {  # which pages of a file are in memory is a way for two sandboxes to talk
    "mincore": (27, 232),
    "preadv2": (327, 286),
    "cachestat": (451, 451),
}
SETSOCKOPT, SOL_SOCKET, SO_SNDBUF, SO_RCVBUF = (54, 208), 1, 7, 8
FCNTL, F_SETPIPE_SZ = (72, 25), 1031
CLONE, CLONE3 = (56, 220), 435
FORK_AND_VFORK_OF_X86 = (57, 58)  # elsewhere they are `clone`


def filter_of(command: Command, *, own_ipc: bool = True, counted: bool = True) -> bytes:
    """Return the program that refuses system calls to a command; empty if the kernel has none.

    Args:
        command: The command; graded ones are refused more.
        own_ipc: Whether it has an IPC namespace of its own. Without one, what it leaves there would stay.
        counted: Whether the kernel counts the memory of its buffers. Else it cannot make them larger.
    """
    if not can_filter():
        return b""
    return refusing_program(
        platform.machine(), graded=command.graded, children=command.children, own_ipc=own_ipc, counted=counted
    )


def can_filter() -> bool:
    """Return True if the kernel takes such programs, and we know the numbers of its calls."""
    return platform.machine() in MACHINES and kernel_filters()


@cache
def kernel_filters() -> bool:
    """Return True if the kernel takes such programs. It is given none, and then finds the address wrong."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), None, 0, 0)
    return ctypes.get_errno() == 14  # EFAULT


@cache
def refusing_program(
    machine: str, *, graded: bool, children: bool, own_ipc: bool = True, counted: bool = True
) -> bytes:
    """Return the instructions. Each check is followed by its result, so that a jump never leads further than that."""
    column = list(MACHINES).index(machine)
    refused = [numbers[column] for numbers in REFUSED.values()]
    missing = [] if own_ipc else [numbers[column] for numbers in SHARED_IPC.values()]
    missing += [numbers[column] for numbers in CACHE_PROBES.values()] if graded else []
    program = [_load(MACHINE_AT), _unless(EQUAL, MACHINES[machine]), _fail(EPERM), _load(NUMBER_AT)]
    if machine == "x86_64":
        program += [_if(AT_LEAST, X32_CALLS), _fail(ENOSYS)]
        refused += () if children else FORK_AND_VFORK_OF_X86
    for number in refused:
        program += [_if(EQUAL, number), _fail(EPERM)]
    for number in missing:  # without `preadv2`, C libraries use `preadv`
        program += [_if(EQUAL, number), _fail(ENOSYS)]
    if not counted:
        program += _small_buffers(column)
    # The arguments of `clone3` cannot be checked. Without it, C libraries use `clone`, as on an older kernel.
    program += [_if(EQUAL, CLONE3), _fail(ENOSYS), _unless(EQUAL, CLONE[column]), _allow(), _load(ARGUMENTS_AT)]
    program += [_if(ANY_BIT, NEW_NAMESPACES), _fail(EPERM)]
    if not children:
        program += [_unless(ANY_BIT, CLONE_THREAD), _fail(EPERM)]
    return b"".join([*program, _allow()])


def _small_buffers(column: int) -> list[bytes]:
    """Refuse larger buffers: of pipes with an error, of sockets by doing nothing, as with a size beyond the limit."""
    first, second = ARGUMENTS_AT + 8, ARGUMENTS_AT + 16
    sockets = [_load(first), _unless(EQUAL, SOL_SOCKET), _allow(), _load(second)]
    for option in (SO_SNDBUF, SO_RCVBUF):
        sockets += [_if(EQUAL, option), _fail(0)]
    sockets.append(_allow())
    pipes = [_load(first), _if(EQUAL, F_SETPIPE_SZ), _fail(EPERM), _allow()]
    program = []
    for number, rest in ((SETSOCKOPT[column], sockets), (FCNTL[column], pipes)):
        program += [_instruction(EQUAL, number, 0, len(rest)), *rest]
    return program


def _load(offset: int) -> bytes:
    return _instruction(LOAD, offset)


def _if(check: int, value: int) -> bytes:
    """Carry out the next instruction only if the check holds."""
    return _instruction(check, value, 0, 1)


def _unless(check: int, value: int) -> bytes:
    """Carry out the next instruction only if the check does not hold."""
    return _instruction(check, value, 1, 0)


def _fail(number: int) -> bytes:
    return _instruction(RETURN, FAIL | number)


def _allow() -> bytes:
    return _instruction(RETURN, ALLOW)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
