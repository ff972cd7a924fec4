"""Test what a graded command cannot do: look into other processes, make namespaces, start needless processes."""

import ctypes
import json
import os
import platform
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.protocols import Command, Place, Sandbox
from bakeoff.sandbox.supervisor_client import kernel_means
from bakeoff.sandbox.system_calls import (
    MACHINES,
    REFUSED,
    SHARED_FIGURES,
    kernel_filters,
    refusing_program,
)

SandboxOn = Callable[[str], Sandbox]
with_filters = pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
needs_filters = pytest.mark.skipif(
    not kernel_filters() or platform.machine() not in MACHINES, reason="needs a kernel with seccomp, on x86-64 or ARM"
)
NUMBERS = {
    name: numbers[list(MACHINES).index(platform.machine())] for name, numbers in (REFUSED | SHARED_FIGURES).items()
}
CALLS = f"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
told = {{}}
for name, number in json.loads({json.dumps(json.dumps(NUMBERS))}).items():
    ctypes.set_errno(0)
    arguments = [16, os.getppid(), 0, 0] if name == "ptrace" else [-1, -1, -1, -1]
    answer = libc.syscall(number, *map(ctypes.c_long, arguments), 0, 0)
    told[name] = errno.errorcode.get(ctypes.get_errno(), "done") if answer == -1 else "done"
print(json.dumps(told))
"""
NEW_NAMESPACES = """
import ctypes, os
for flag in (0x10000000, 0x20000000 | 0x10000000, 0x00020000 | 0x10000000):
    made = ctypes.CDLL(None).unshare(flag)
    print(made)
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
print(ctypes.CDLL(None).syscall(clone, 0x10000000 | 17, 0, 0, 0, 0))
"""
PROCESSES = """
import multiprocessing, os, subprocess, threading
from concurrent.futures import ThreadPoolExecutor

def attempt(name, call):
    try:
        call()
        print(name, "done")
    except OSError as error:
        print(name, type(error).__name__)

def fork():
    if os.fork() == 0:
        os._exit(0)
    os.wait()

attempt("fork", fork)
attempt("subprocess", lambda: subprocess.run(["/bin/true"]))
attempt("posix_spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("multiprocessing", lambda: multiprocessing.get_context("fork").Process(target=int).start())
with ThreadPoolExecutor(4) as pool:
    print("threads", sum(pool.map(len, ["a", "b", "c"])))
"""


async def said_by(sandbox: Sandbox, place: Place, script: str, *, children: bool = True) -> str:
    command = Command(("python3", "-c", script), place, 20.0, graded=True, children=children)
    done = await sandbox.run(command)
    assert done.ok, done.stderr.decode()
    return done.stdout.decode()


@needs_filters
@with_filters
async def test_calls_that_reach_into_other_processes_are_refused(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    told = json.loads(await said_by(sandbox_on(sandbox_kind), place, CALLS))
    assert told == dict.fromkeys(REFUSED, "EPERM") | dict.fromkeys(SHARED_FIGURES, "ENOSYS")


@needs_filters
@with_filters
async def test_only_own_limits_can_be_changed(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    script = """
import os, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for pid in (0, os.getpid(), os.getppid()):
    try:
        print(resource.prlimit(pid, resource.RLIMIT_CORE))
    except PermissionError:
        print("refused")
"""
    assert (await said_by(sandbox_on(sandbox_kind), place, script)).splitlines() == ["(0, 0)", "refused", "refused"]


@needs_filters
@with_filters
async def test_new_namespaces_are_refused(sandbox_kind: str, sandbox_on: SandboxOn, place: Place) -> None:
    assert (await said_by(sandbox_on(sandbox_kind), place, NEW_NAMESPACES)).split() == ["-1"] * 4


@needs_filters
@with_filters
@pytest.mark.parametrize("children", [True, False])
async def test_processes_are_started_only_by_commands_that_may_and_threads_by_all(
    sandbox_kind: str, children: bool, sandbox_on: SandboxOn, place: Place
) -> None:
    said = await said_by(sandbox_on(sandbox_kind), place, PROCESSES, children=children)
    states = dict(line.split() for line in said.splitlines())
    assert states.pop("threads") == "3"
    assert states == dict.fromkeys(
        ("fork", "subprocess", "posix_spawn", "multiprocessing"), "done" if children else "PermissionError"
    )


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap", "docker"])
async def test_a_graded_command_learns_nothing_of_the_hosts_language_and_time(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR"):
        monkeypatch.setenv(name, "host")
    said = json.loads(
        await said_by(sandbox_on(sandbox_kind), place, "import json, os; print(json.dumps(dict(os.environ)))")
    )
    assert (said["LANG"], said["TZ"]) == ("C.UTF-8", "UTC")
    assert "host" not in said.values()


async def test_we_and_the_supervisor_are_closed_to_other_processes(sandbox_on: SandboxOn, place: Place) -> None:
    script = """
import os
supervisor = os.getppid()
server = open(f"/proc/{supervisor}/stat").read().rsplit(")", 1)[1].split()[1]
ours = open(f"/proc/{server}/stat").read().rsplit(")", 1)[1].split()[1]
print(ours, os.stat(f"/proc/{supervisor}/mem").st_uid, os.stat(f"/proc/{server}/mem").st_uid)
"""
    ours, *owners = map(int, (await said_by(sandbox_on("process"), place, script)).split())
    closed = 0 if kernel_means().cgroup else 65534  # root, as a user namespace shows it
    assert (ours, owners) == (os.getpid(), [closed] * 2)
    assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE
    assert Path(f"/proc/{os.getpid()}/fd").stat().st_uid == 0


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("graded", [True, False])
def test_no_jump_of_a_program_leads_beyond_its_end(machine: str, graded: bool) -> None:
    """Each instruction has eight bytes: the kernel refuses a program with a jump beyond its end."""
    program = refusing_program(machine, graded=graded, children=False, own_ipc=False, counted=False)
    instructions = list(struct.iter_unpack("HBBI", program))
    for place, (_, if_true, if_false, _) in enumerate(instructions):
        assert place + 1 + max(if_true, if_false) <= len(instructions)
