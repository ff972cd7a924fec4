"""Every attack on every sandbox, and the limit that ends it. SECURITY.md has the table for users."""

import asyncio
import os
import re
import secrets
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

import pytest
from scripts.hostile.attacks import (
    BIG_FILE,
    DAEMON,
    DEAF,
    DELETED_FILE,
    ENVIRONMENT,
    FORK_BOMB,
    LOOP,
    MANY_FILES,
    MEMORY,
    NETWORK,
    PRINTER,
    READER,
)

from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox.mounts import blocking_folder
from bakeoff.sandbox.process import has_landlock
from bakeoff.sandbox.supervisor_client import kernel_means, make_order, supervise

SANDBOXES = ("process", "bwrap", "docker")
HOME_OF_ROOT = Path("~root").expanduser()
KEY = "sk-never-to-be-seen"
LIMITS = Limits(memory_mb=128, processes=64, disk_mb=50, output_kb=256)
HANGS_SECONDS = 60.0  # no attack ends by itself in that time, and a loaded machine may take a while to clear up

FILL = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
block, kept = b"x" * (1 << 16), []

def again():
    # Go on in a new process that has room for more descriptors; this one keeps its own.
    if os.fork():
        os.wait()
        sys.exit()
    kept.clear()
    os.closerange(3, 1 << 16)

def fill(write):
    try:
        while True:
            write(block)
    except BlockingIOError:
        pass
"""
SEGMENT = """
number = libc.shmget(0, 8 << 20, 0o1600)
if number < 0:
    sys.exit("refused")
address = libc.shmat(number, None, 0)
ctypes.memset(address, 1, 8 << 20)
"""


def endless(step: str) -> str:
    return f"{FILL}while True:\n    try:\n{indent(step.strip(), ' ' * 8)}\n    except OSError:\n        again()\n"


SEGMENTS = endless(SEGMENT)
LOOSE_SEGMENTS = endless(f"{SEGMENT}libc.shmdt(ctypes.c_void_p(address))")
SEMAPHORES = endless("""
if libc.semget(0, 30000, 0o600) < 0:
    sys.exit("no more")
""")
UNIX_BUFFERS = endless("""
for each in socket.socketpair():
    each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    each.setblocking(False)
    kept.append(each)
    fill(each.send)
""")
TCP_BUFFERS = endless("""
server = socket.create_server(("127.0.0.1", 0))
for _ in range(20):
    client = socket.create_connection(server.getsockname())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
    client.setblocking(False)
    kept.append((server, client, server.accept()))
    fill(client.send)
""")
PIPES = endless("""
kept.append(os.pipe())
os.set_blocking(kept[-1][1], False)
fill(lambda data: os.write(kept[-1][1], data[:4096]))
""")
MEMORY_FILES = endless("""
kept.append(os.memfd_create("x"))
for _ in range(64):
    os.write(kept[-1], block)
""")
POSIX_SHARED_MEMORY = f"""{FILL}
try:
    with open("/dev/shm/filler", "wb") as file:
        while True:
            file.write(block)
            file.flush()
except OSError as problem:
    print(errno.errorcode[problem.errno], flush=True)
    os._exit(0)  # closing the file would try again
"""
KEYRING = """
import ctypes, os
add_key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
added = ctypes.CDLL(None).syscall(add_key, b"user", b"bakeoff-test", b"left", 4, -4)
print("refused" if added == -1 else "left a key")
"""
TMPFS = """
import ctypes
libc = ctypes.CDLL(None)
made = libc.unshare(0x10000000 | 0x00020000)
print("refused" if made == -1 or libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1 else "mounted")
"""


@dataclass(frozen=True)
class Attack:
    name: str
    script: str
    everywhere: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)
    seconds: float = 20.0

    def verdict_on(self, sandbox_kind: str) -> str:
        return self.verdicts.get(sandbox_kind, self.everywhere)


ATTACKS = (
    Attack("fork bomb", FORK_BOMB, "timeout", seconds=1.0),
    Attack("10 GB into one file", BIG_FILE, "disk"),
    Attack("10 GB into many files", MANY_FILES, "disk"),
    Attack("endless files, deleted while open", DELETED_FILE, "disk"),
    Attack("endless printer", PRINTER, "output"),
    Attack("daemon that forks twice, leaves its session and ignores SIGTERM", DAEMON, "exited: left a daemon"),
    Attack("memory filler", MEMORY, "memory"),
    Attack("System V shared memory", SEGMENTS, "memory"),
    Attack("System V shared memory that no process has attached", LOOSE_SEGMENTS, "memory"),
    Attack("System V semaphores", SEMAPHORES, "memory"),
    Attack("buffers of Unix sockets", UNIX_BUFFERS, "memory"),
    Attack("buffers of TCP connections", TCP_BUFFERS, "memory"),
    Attack("buffers of pipes", PIPES, "memory"),
    Attack("memory files", MEMORY_FILES, "memory"),
    Attack("POSIX shared memory", POSIX_SHARED_MEMORY, "exited: ENOSPC"),
    Attack("leaves a key in the kernel", KEYRING, "exited: refused"),
    Attack("mounts a tmpfs in a user namespace", TMPFS, "exited: refused"),
    Attack("infinite loop", LOOP, "timeout", seconds=0.7),
    Attack("ignores every signal it can", DEAF, "timeout", seconds=0.7),
    Attack("prints every environment it can read", ENVIRONMENT, "exited: no key"),
    Attack("reads the home of root", READER.replace("PATH", repr(str(HOME_OF_ROOT / ".profile"))), "exited: refused"),
    Attack("reads the project", READER.replace("PATH", repr(__file__)), "exited: refused"),
    Attack("calls a server on loopback", NETWORK, "exited: refused", {"process": "exited: connected"}),
)


ONE_OF_EACH_KIND = (FORK_BOMB, BIG_FILE, PRINTER, DAEMON, MEMORY, KEYRING, LOOP, ENVIRONMENT, NETWORK)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def alive(marker: str, uid: int | None) -> list[str]:
    """Processes that carry the marker in their command line, or belong to the place's user."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            owner = int(re.findall(r"Uid:\s+(\d+)", (process / "status").read_text())[0])
        except (OSError, IndexError):
            continue
        if marker.encode() in words or owner == uid:
            found.append(f"{process.name}: {words!r}")
    return found


def verdict(completed: CommandResult) -> str:
    if completed.stop != "exited":
        return completed.stop
    said = completed.stdout.decode().strip() or f"{completed.exit_code}, {completed.stderr.decode()}"
    return f"exited: {said}"


@pytest.mark.parametrize("sandbox_kind", SANDBOXES)
@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            attack,
            id=attack.name.replace(" ", "-"),
            marks=pytest.mark.journey if attack.script in ONE_OF_EACH_KIND else pytest.mark.full,
        )
        for attack in ATTACKS
    ],
)
async def test_an_attack_ends_as_the_table_says_inside_its_limit_and_leaves_no_process(
    attack: Attack,
    sandbox_kind: str,
    sandbox_on: Callable[[str], Sandbox],
    place: Place,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if attack.script == FORK_BOMB and os.geteuid() != 0:
        pytest.skip("needs root: a fork bomb is only tried as a user with no other processes")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    sandbox = sandbox_on(sandbox_kind)
    marker = uuid.uuid4().hex
    script = attack.script.replace("PORT", str(port)).replace("KEY", f"({KEY[:8]!r} + {KEY[8:]!r})")
    command = Command(("python3", "-c", script, marker), place, attack.seconds, limits=LIMITS)

    async with asyncio.timeout(HANGS_SECONDS):
        completed = await sandbox.run(command)

    assert verdict(completed) == expected(attack, sandbox_kind)
    assert alive(marker, place.uid) == []
    assert len(completed.stdout) <= LIMITS.output_kb * 1024


def expected(attack: Attack, sandbox_kind: str) -> str:
    here = Path(__file__)
    hidden = os.geteuid() == 0 and (blocking_folder(here) is not None or here.is_relative_to("/tmp"))
    if attack.name == "reads the project" and sandbox_kind == "process" and not (hidden or has_landlock()):
        return "exited: read it"  # an older kernel
    if attack.name == "memory files" and sandbox_kind != "docker" and kernel_means().cgroup is None:
        return "disk"  # without a control group, they count as files that were deleted while open
    return attack.verdict_on(sandbox_kind)


LEAVE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(KEY_NUMBER, 4096, 0o1666), libc.semget(KEY_NUMBER, 1, 0o1666), libc.msgget(KEY_NUMBER, 0o1666))
"""


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_no_segment_semaphore_or_queue_stays_on_the_host(
    sandbox_kind: str, sandbox_on: Callable[[str], Sandbox], place: Place
) -> None:
    number = 0x10000000 + secrets.randbelow(1 << 24)
    command = Command(("python3", "-c", LEAVE.replace("KEY_NUMBER", str(number))), place, 20.0)
    completed = await sandbox_on(sandbox_kind).run(command)
    assert [int(word) >= 0 for word in completed.stdout.split()] == [kernel_means().own_ipc] * 3, completed
    lists = "".join(Path(f"/proc/sysvipc/{name}").read_text() for name in ("shm", "sem", "msg"))
    assert str(number) not in lists


FORGE = """
import ctypes, json, os, socket, stat, time
libc = ctypes.CDLL(None, use_errno=True)
report = json.dumps({"stop": "exited", "seconds": 0.0, "exit_code": 0, "clean": True, "status": "", "pid": 1}).encode()
got = set()

def forge(descriptor):
    try:
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            got.add("socket")
            os.write(descriptor, report + b"\\n")
    except OSError:
        pass

for descriptor in range(3, 1024):
    forge(descriptor)
pid = os.getpid()
for _ in range(3):  # the supervisor, the server that forked it, and Bakeoff
    pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    if libc.ptrace(0x4206, pid, 0, 0) == 0:  # PTRACE_SEIZE does not stop it
        got.add("traced")
    pidfd = libc.syscall(434, pid, 0)
    for number in range(3, 64):
        descriptor = libc.syscall(438, pidfd, number, 0)
        if descriptor >= 0:
            forge(descriptor)
    for name in ("mem", "environ", "fd"):
        try:
            os.listdir(f"/proc/{pid}/fd") if name == "fd" else open(f"/proc/{pid}/{name}", "rb").read(1)
            got.add(name)
        except OSError:
            pass
print(sorted(got), flush=True)
os._exit(7)
"""


async def test_a_command_cannot_forge_its_report_even_where_the_kernel_confines_it_to_nothing(place: Place) -> None:
    command = Command(("python3", "-c", FORGE), place, 30.0)
    argv = ("/usr/bin/python3", "-S", "-c", FORGE)
    order = make_order(command, argv=argv, env={}, cwd=str(place.work))
    order |= {"access": None, "filter": "", "own_ipc": False}  # as on a kernel without Landlock and seccomp
    completed = (await supervise(order, command)).completed
    assert (completed.exit_code, completed.stop) == (7, "exited"), completed
    assert completed.stdout.decode().strip() == "[]", completed
