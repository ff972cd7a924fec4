"""Two runs of graded code cannot tell each other anything, except by the means that SECURITY.md names."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from scripts.hostile.channels import CHANNELS, COUNTERS, shared_folder, try_channel, try_figures

from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox import choose_sandbox, put_files

SandboxOn = Callable[[str], Sandbox]
full = pytest.mark.full
REMAINING = {"page-faults", "futex"}
OF_PROCESS = {"loopback-port", "abstract-name"}


@dataclass(frozen=True, slots=True)
class NoSandbox:
    """Runs commands as they are, to see that the attacks work."""

    name: str = "none"

    async def run(self, command: Command) -> CommandResult:
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command.argv[1:],
            cwd=command.place.work,
            env={"HOME": str(command.place.home), "PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        ending = asyncio.create_task(command.time_up.wait()) if command.time_up else None
        talking = asyncio.create_task(process.communicate())
        await asyncio.wait([talking, *([ending] if ending else [])], return_when=asyncio.FIRST_COMPLETED)
        if ending and not talking.done():
            process.kill()
        if ending:
            ending.cancel()
        stdout, stderr = await talking
        return CommandResult(process.returncode or 0, stdout, stderr, time.monotonic() - started)


@full
@pytest.mark.parametrize("channel", sorted({*CHANNELS} - {"left-file", "vsock-port", "kernel-log", "write-hint"}))
async def test_every_channel_works_without_a_sandbox(channel: str) -> None:
    """The rest depends on the machine: its folders, its devices, what it logs, and the version of its kernel."""
    if channel in ("lease", "fanotify") and os.geteuid() != 0:
        pytest.skip("needs root")
    with shared_folder() as shared:
        found = await try_channel(NoSandbox(), channel, shared)
    assert found.together, found


@full
@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
@pytest.mark.parametrize("channel", CHANNELS)
async def test_a_channel_is_closed_unless_it_is_named_as_open(
    channel: str, sandbox_kind: str, sandbox_on: SandboxOn
) -> None:
    open_here = REMAINING | (OF_PROCESS if sandbox_kind == "process" else set())
    with shared_folder() as shared:
        found = await try_channel(sandbox_on(sandbox_kind), channel, shared)
    if channel == "atime" and sandbox_kind == "process" and os.geteuid() != 0:
        return  # the mounts are the machine's own
    assert found.together == (channel in open_here), found


async def test_no_figure_of_the_machine_moves_in_bubblewrap(sandbox_on: SandboxOn) -> None:
    with shared_folder() as shared:
        found = await try_figures(sandbox_on("bwrap"), shared)
    assert {name for name, how in found.items() if how.together or how.in_turn} <= {*COUNTERS}
    assert found["inode-numbers"].in_turn  # so `talk.py` does see what there is


@full
@pytest.mark.parametrize("channel", ["posix-lock", "ofd-lock", "flock", "inotify", "mincore", "vsock-port"])
async def test_a_container_closes_the_same_channels(channel: str, sandbox_on: SandboxOn) -> None:
    with shared_folder() as shared:
        found = await try_channel(sandbox_on("docker"), channel, shared, tries=1)
    assert not found.together, found


LOCKING = """
import fcntl, os, sqlite3
for mode in ("delete", "wal"):
    with sqlite3.connect(f"{mode}.db") as one, sqlite3.connect(f"{mode}.db") as two:
        assert one.execute(f"pragma journal_mode={mode}").fetchone() == (mode,)
        one.execute("create table t(a)")
        one.execute("insert into t values (1)")
        one.commit()
        assert two.execute("select a from t").fetchall() == [(1,)]
with open("lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(file, fcntl.LOCK_UN)
assert os.cpu_count() and float(open("/proc/uptime").read().split()[0]) > 0
assert int(open("/proc/meminfo").readline().split()[1]) > 1000
print("done")
"""


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
async def test_honest_programs_lock_their_own_files_and_learn_the_size_of_the_machine(
    sandbox_kind: str, sandbox_on: SandboxOn, place: Place
) -> None:
    put_files(place, {"locking.py": LOCKING.encode()})
    done = await sandbox_on(sandbox_kind).run(Command(("python3", "locking.py"), place, 30.0, graded=True))
    assert done.stdout == b"done\n", done.stderr.decode()


@full
@pytest.mark.parametrize("program", ["node", "go", "cargo", "javac", "g++"])
async def test_compilers_run_beside_the_filter(program: str, place: Place) -> None:
    """They lock files, look for changes, and ask for the size of the machine."""
    from bakeoff.toolchains.commands import tools_of
    from bakeoff.toolchains.tracks import TRACKS

    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    files, line, slug = COMPILED[program]
    sandbox = choose_sandbox("bwrap" if shutil.which("bwrap") else "process")
    tools = tools_of(TRACKS[slug], sandbox)
    put_files(place, {name: text.encode() for name, text in files.items()})
    argv = ("/bin/sh", "-c", line)
    done = await sandbox.run(Command(argv, place, 120.0, env=tools.env, readable=tools.readable, graded=True))
    assert done.stdout.decode().strip() == "3", done.stderr.decode()


_RUST = {
    "Cargo.toml": '[package]\nname="a"\nversion="1.0.0"\nedition="2021"\n',
    "src/main.rs": 'fn main(){println!("{}", 1 + 2)}',
}
COMPILED = {
    "node": (
        {"a.js": "require('os').cpus(); console.log(require('os').totalmem() > 0 ? 3 : 0)"},
        "node a.js",
        "javascript",
    ),
    "go": ({"a.go": 'package main\nimport "fmt"\nfunc main() { fmt.Println(1 + 2) }\n'}, "go run a.go", "go"),
    "cargo": (_RUST, "cargo run --quiet --offline", "rust"),
    "javac": (
        {"A.java": "class A { public static void main(String[] a) { System.out.println(1 + 2); } }"},
        "javac A.java && java -cp . A",
        "java",
    ),
    "g++": ({"a.cpp": "#include <iostream>\nint main() { std::cout << 1 + 2; }"}, "g++ a.cpp -o a && ./a", "cpp"),
}
