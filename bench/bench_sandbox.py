"""Measure the cost of sandboxes: trials a second and memory of 200 commands, against plain asyncio subprocesses."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bakeoff.errors import SandboxMissing
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import choose_sandbox, open_place

TRIALS, JOBS = 400, 200
WANTED_RATE, WANTED_MB = 100.0, 600.0  # of `process`
AT_MOST = "" if os.geteuid() == 0 else "at most "  # only root can see which pages supervisors share


def main() -> int:
    plain = asyncio.run(_rate(_plain))
    print(f"{'as root' if os.geteuid() == 0 else 'as a user'}, {TRIALS} times `true`, {JOBS} at a time")
    print(f"{'plain subprocess':20}{plain:>7.0f} trials/s")
    met = True
    for name in ("process", "bwrap"):
        try:
            sandbox = choose_sandbox(name)
        except SandboxMissing as problem:
            print(f"{name:20}{problem}")
            continue
        rate = asyncio.run(_rate(lambda sandbox=sandbox: _sandboxed(sandbox, "true")))  # type: ignore[misc]
        megabytes = asyncio.run(_memory(sandbox))
        memory = f"{JOBS} at a time take {AT_MOST}{megabytes:.0f} MB"
        print(f"{name:20}{rate:>7.0f} trials/s  1/{plain / rate:.1f} of plain; {memory}")
        met &= name != "process" or (rate >= WANTED_RATE and (megabytes < WANTED_MB or bool(AT_MOST)))
    print(f"wanted of process: {WANTED_RATE:.0f} trials/s or more, below {WANTED_MB:.0f} MB")
    return 0 if met else 1


async def _rate(trial: Callable[[], Awaitable[object]]) -> float:
    await trial()  # starts what is started once
    limit = asyncio.Semaphore(JOBS)

    async def one() -> None:
        async with limit:
            await trial()

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(TRIALS)))
    return TRIALS / (time.perf_counter() - started)


async def _plain() -> None:
    process = await asyncio.create_subprocess_exec("true", stdout=asyncio.subprocess.PIPE)
    await process.communicate()


async def _sandboxed(sandbox: Sandbox, *argv: str) -> None:
    async with open_place() as place:
        done = await sandbox.run(Command(argv, place, seconds=120.0))
        assert done.ok, done


async def _memory(sandbox: Sandbox) -> float:
    """Return the memory of us and of everything below us, with shared pages divided, when all commands run."""
    go = asyncio.Event()

    async def one() -> None:
        async with open_place() as place:
            command = Command(("sh", "-c", "touch started; exec sleep 100"), place, seconds=120.0, time_up=go)
            task = asyncio.create_task(sandbox.run(command))
            while not (place.work / "started").exists():
                await asyncio.sleep(0.1)
            ready.append(place)
            await task

    ready: list[object] = []
    tasks = [asyncio.create_task(one()) for _ in range(JOBS)]
    while len(ready) < JOBS:
        await asyncio.sleep(0.1)
    used = sum(map(_proportional_bytes, _tree(os.getpid()))) / 1e6
    go.set()
    await asyncio.gather(*tasks)
    return used


def _tree(root: int) -> list[int]:
    """Return the process and all its descendants, also those that belong to other users."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(folder.name))
    found, queue = [], [root]
    while queue:
        found.append(queue.pop())
        queue.extend(parents.get(found[-1], []))
    return found


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:  # a supervisor of our own user is closed to us: count what it does not share with files
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # it has ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    sys.exit(main())
