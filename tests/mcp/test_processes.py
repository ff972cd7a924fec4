"""No process of a server outlives its hub, whatever either of them does."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bakeoff.mcp import HubLimits, McpHub

from .conftest import SERVERS, Opening, Raw

pytestmark = pytest.mark.full


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids_in(note: Path) -> list[int]:
    return [int(word) for word in note.read_text().split()]


@pytest.mark.parametrize("behaviour", ["child", "child-stubborn"])
async def test_closing_ends_the_server_and_the_daemon_it_started(
    raw: Raw, opened: Opening, tmp_path: Path, behaviour: str
) -> None:
    async with opened(raw(behaviour, tmp_path / "pids", sandbox="none")):
        pids = pids_in(tmp_path / "pids")
        assert all(map(alive, pids))
    assert not any(map(alive, pids))


async def test_a_server_that_leaves_by_itself_is_not_waited_for(raw: Raw, opened: Opening) -> None:
    async with asyncio.timeout(120), opened(raw(), close_seconds=600):
        pass


async def test_cancelling_whoever_opened_the_hub_leaves_nothing(raw: Raw, tmp_path: Path) -> None:
    hub = McpHub([raw("child-stubborn", tmp_path / "pids", sandbox="none")], HubLimits(close_seconds=60))
    ready = asyncio.Event()

    async def use() -> None:
        async with hub.open():
            ready.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await ready.wait()
    pids = pids_in(tmp_path / "pids")
    task.cancel()
    await asyncio.sleep(0.05)
    task.cancel()  # impatience: the server's minute to leave is cut short
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(map(alive, pids))


async def test_cancelling_while_a_server_hangs_at_start_leaves_nothing(raw: Raw) -> None:
    async def use() -> None:
        async with McpHub([raw("hang-initialize")], HubLimits(startup_seconds=600)).open():
            pass

    task = asyncio.create_task(use())
    await asyncio.sleep(0.3)
    task.cancel()
    async with asyncio.timeout(120):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_restart_leaves_no_older_life_behind(raw: Raw, opened: Opening, tmp_path: Path) -> None:
    async with opened(raw("child", tmp_path / "pids", sandbox="none")) as hub:
        first = pids_in(tmp_path / "pids")
        os.kill(first[0], signal.SIGKILL)
        while pids_in(tmp_path / "pids") == first:
            await asyncio.sleep(0.01)
        assert (await hub.call("raw", "echo", {"text": "x"})).text == "x"
        assert not any(map(alive, first))


PROGRAM = """
import asyncio, sys
from bakeoff.mcp import McpHub, ServerSpec

async def main():
    spec = ServerSpec(name="raw", command=sys.executable, args=tuple(sys.argv[1:]), sandbox="none")
    async with McpHub([spec]).open():
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_death_of_bakeoff_itself_is_the_death_of_its_servers(tmp_path: Path, number: int) -> None:
    note = tmp_path / "pids"
    argv = [sys.executable, "-c", PROGRAM, str(SERVERS / "raw.py"), "child-stubborn", str(note)]

    # Jobs in the background of a shell have SIGINT turned off, and hand that on.
    def heard() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=heard) as bakeoff:
        assert bakeoff.stdout is not None
        assert bakeoff.stdout.readline() == b"ready\n"
        pids = pids_in(note)
        bakeoff.send_signal(number)
        bakeoff.wait(30)
    deadline = time.monotonic() + 60
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, pids))
