"""The process that supervisors are forked from: it serves all threads, and nothing outlives whom it belongs to."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox import choose_sandbox, open_place
from bakeoff.sandbox.supervisor.cgroups import PREFIX, sweep_groups
from bakeoff.sandbox.supervisor.kernel import children_of
from bakeoff.sandbox.supervisor_client import SupervisorLost, kernel_means, make_order, supervise, supervise_now

pytestmark = pytest.mark.journey

SandboxOn = Callable[[str], Sandbox]
DAEMON = """
import os, pathlib, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        pathlib.Path('started').write_text('MARK')
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""


async def say_hello() -> bytes:
    async with open_place() as place:
        return (await choose_sandbox("process").run(Command(("echo", "hello"), place, 60.0))).stdout


def servers_of(pid: int) -> list[int]:
    return [child for child in children_of(pid) if b"fork_server" in Path(f"/proc/{child}/cmdline").read_bytes()]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def is_running(marker: str) -> bool:
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in process.read_bytes():
                return True
        except OSError:
            continue
    return False


async def test_killing_the_server_loses_no_command_and_the_next_command_starts_a_new_one(place: Place) -> None:
    sandbox = choose_sandbox("process")
    script = "touch started; while [ ! -e go ]; do sleep 0.01; done"
    running = asyncio.create_task(sandbox.run(Command(("sh", "-c", script), place, 60.0)))
    await until((place.work / "started").exists)
    [server] = servers_of(os.getpid())
    os.kill(server, signal.SIGKILL)
    assert await say_hello() == b"hello\n"
    assert servers_of(os.getpid()) != [server]
    (place.work / "go").touch()
    assert (await running).ok


def test_threads_with_event_loops_of_their_own_share_the_server() -> None:
    said: list[bytes] = []
    threads = [threading.Thread(target=lambda: said.append(asyncio.run(say_hello()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [b"hello\n"] * 4
    assert len(servers_of(os.getpid())) == 1


def test_a_fork_starts_a_server_of_its_own_and_leaves_ours_alone() -> None:
    assert asyncio.run(say_hello()) == b"hello\n"
    before = servers_of(os.getpid())
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if asyncio.run(say_hello()) == b"hello\n" and servers_of(os.getpid()) != before else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert asyncio.run(say_hello()) == b"hello\n"
    assert servers_of(os.getpid()) == before


@pytest.mark.parametrize("sandbox_kind", ["process", "bwrap"])
def test_server_supervisors_and_commands_end_when_bakeoff_is_killed(
    sandbox_kind: str, sandbox_on: SandboxOn, tmp_path: Path
) -> None:
    sandbox_on(sandbox_kind)
    marker = f"marker-{os.getpid()}-{tmp_path.name}"
    script = textwrap.dedent(f"""\
        import asyncio, sys
        from bakeoff.protocols import Command
        from bakeoff.sandbox import choose_sandbox, open_place

        async def main():
            async with open_place() as place:
                script = {DAEMON.replace("MARK", marker)!r}
                running = asyncio.create_task(
                    choose_sandbox({sandbox_kind!r}).run(Command(("python3", "-c", script), place, 600.0))
                )
                while not (place.work / "started").exists():
                    await asyncio.sleep(0.01)
                print("started", flush=True)
                await running

        asyncio.run(main())
    """)
    bakeoff = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert bakeoff.stdout is not None
    assert bakeoff.stdout.readline() == b"started\n"
    ours = [bakeoff.pid, *servers_of(bakeoff.pid)]
    bakeoff.kill()
    bakeoff.communicate()
    asyncio.run(until(lambda: not is_running(marker)))
    asyncio.run(until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ours)))
    assert groups_left() == []


def groups_left() -> list[str]:
    """Return control groups of supervisors that are gone."""
    supervise_now({"probe": True})
    means = kernel_means()
    if means.cgroup is None:
        return []
    parents = set(means.cgroup["parents"].values())
    groups = [group for parent in parents for group in Path(parent).glob(f"{PREFIX}-*")]
    return [str(group) for group in groups if not Path(f"/proc/{group.name.split('-')[2]}").exists()]


async def test_what_a_killed_supervisor_leaves_is_ended_also_without_a_user_of_its_own(
    place: Place, tmp_path: Path
) -> None:
    """As on a kernel where a command can kill its supervisor: its grandchildren belong to nobody then."""
    marker = f"marker-{os.getpid()}-{tmp_path.name}"
    argv = ("/usr/bin/python3", "-c", DAEMON.replace("MARK", marker))
    command = Command(argv, place, 600.0)
    order = make_order(command, argv=argv, env={}, cwd=str(place.work)) | {"uid": None, "access": None, "cgroup": None}
    running = asyncio.create_task(supervise(order, command))
    await until((place.work / "started").exists)
    for supervisor in [child for server in servers_of(os.getpid()) for child in children_of(server)]:
        os.kill(supervisor, signal.SIGKILL)
    with pytest.raises(SupervisorLost) as lost:
        await running
    assert not lost.value.so_far.ok
    await until(lambda: not is_running(marker))


def test_the_group_of_a_killed_supervisor_is_removed_by_the_next_process() -> None:
    means = kernel_means()
    if means.cgroup is None:
        pytest.skip("needs a place to make control groups in: run as root, or in a delegated session")
    space = Path("/proc/self/ns/pid").stat().st_ino
    parents = means.cgroup["parents"]
    left = {Path(parent) / f"{PREFIX}-{space}-{os.getpid()}-1" for parent in parents.values()}
    for folder in left:
        folder.mkdir()
    child = subprocess.Popen(["sleep", "600"])
    for folder in left:
        (folder / "cgroup.procs").write_text(str(child.pid))
    sweep_groups(parents)
    assert child.wait(60) == -signal.SIGKILL
    assert not any(folder.exists() for folder in left)


async def test_many_commands_at_a_time_are_all_served() -> None:
    async def one(number: int) -> CommandResult:
        async with open_place() as place:
            return await choose_sandbox("process").run(Command(("echo", str(number)), place, 120.0))

    done = await asyncio.gather(*(one(number) for number in range(60)))
    assert [each.stdout for each in done] == [b"%d\n" % number for number in range(60)]
