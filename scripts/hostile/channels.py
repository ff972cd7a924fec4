"""Try every way in which two runs of graded code could tell each other something, on every rung.

The program is `talk.py`. Each channel is tried one after the other, as the two halves of a grading run, and at the same
time, as gradings of two trials do.
"""

import ast
import asyncio
import contextlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings, Outcome, Row

from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox import available, choose_sandbox, open_place

PROGRAM = Path(__file__).with_name("talk.py").read_text(encoding="utf-8")
LISTENING = ("inotify", "fanotify", "dnotify")
CHANNELS = (
    *("posix-lock", "ofd-lock", "flock", "write-hint", "lease", *LISTENING, "atime", "mincore", "cachestat"),
    *("read-nowait", "page-faults", "futex", "loopback-port", "abstract-name", "vsock-port", "left-file", "sysv-key"),
    *("message-queue", "kernel-key", "kernel-log"),
)
SAMPLE = ("posix-lock", "flock", "write-hint", "inotify", "mincore", "futex", "vsock-port", "left-file", "kernel-log")
FIGURES = "figures"
COUNTERS = ("inode-numbers", "socket-numbers", "socket-memory")
"""Figures that cannot be hidden: numbers that the kernel gives to what a program makes, and what is in `/proc/self`."""
LIMITS = Limits(memory_mb=512, processes=64, disk_mb=64, output_kb=4096)
_OLD = 1_000_000_000.0
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Heard:
    """Record in which ways a channel carried data."""

    in_turn: bool
    together: bool

    def __str__(self) -> str:
        if self.in_turn:
            return "from one run to the next"
        return "between runs at the same time" if self.together else "nothing got through"


@contextlib.contextmanager
def shared_folder() -> Iterator[Path]:
    """Make a folder such as a toolchain, which all runs can read and none can change."""
    folder = Path(tempfile.mkdtemp(prefix="shared-"))
    try:
        folder.chmod(0o755)
        for number in range(256):
            (folder / f"{number:03}").write_bytes(b"x")
        (folder / "large").write_bytes(random.Random(1).randbytes(4096 * 320))
        os.sync()  # pages that wait for the disk cannot be dropped
        yield folder
    finally:
        shutil.rmtree(folder)


async def talk(sandbox: Sandbox, channel: str, byte: int, shared: Path, *, together: bool) -> object:
    """Send a byte from one run to another, and return what arrives."""
    for file in shared.iterdir():
        os.utime(file, (_OLD, file.stat().st_mtime))

    async def run(place: Place, role: str, time_up: asyncio.Event | None = None) -> CommandResult:
        argv = ("python3", "-c", PROGRAM, role, channel, str(byte), str(int(time_up is not None)), str(shared))
        readable = (shared,)
        command = Command(
            argv, place, _SECONDS, LIMITS, readable=readable, graded=True, children=False, time_up=time_up
        )
        return await sandbox.run(command)

    async with open_place() as one, open_place() as other:
        if not together and channel not in LISTENING:
            await run(one, "put")
            return heard(await run(other, "get"))
        first, second = ("listen", "put") if channel in LISTENING else ("put", "get")
        time_up = asyncio.Event()
        running = asyncio.create_task(run(one, first, time_up if first == "put" else None))
        while not (one.work / "ready").exists() and not running.done():  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0.02)
        done = await run(other, second)
        time_up.set()
        ended = await running
        return heard(ended if first == "listen" else done)


def heard(done: CommandResult) -> object:
    """Return what a run printed. Raise ValueError if it did not get that far: then nothing was tried."""
    lines = done.stdout.decode(errors="replace").splitlines()
    try:
        return ast.literal_eval(lines[-1])
    except (IndexError, SyntaxError, ValueError) as error:
        raise ValueError(f"talk.py ended by {done.stop} with {done.exit_code}: {done.stderr[-500:]!r}") from error


async def try_channel(sandbox: Sandbox, channel: str, shared: Path, *, tries: int = 2) -> Heard:
    """Send random bytes, and return in which ways all of them arrived."""

    async def carries(*, together: bool) -> bool:
        for _ in range(tries):
            byte = random.randrange(1, 255)
            if await talk(sandbox, channel, byte, shared, together=together) != byte:
                return False
        return True

    in_turn = channel not in LISTENING and await carries(together=False)
    return Heard(in_turn, in_turn or await carries(together=True))


async def try_figures(sandbox: Sandbox, shared: Path) -> dict[str, Heard]:
    """Return for each figure of the machine whether it is seen to move."""
    first = await talk(sandbox, FIGURES, 0, shared, together=False)
    second = await talk(sandbox, FIGURES, 0, shared, together=False)
    third = await talk(sandbox, FIGURES, 0, shared, together=True)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert isinstance(third, dict)
    return {name: Heard(first[name] != second[name], second[name] != third[name]) for name in first}


def run(options: Options) -> Findings:
    """Try all channels on all rungs, and return a row for each."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> Findings:
    rows: list[Row] = []
    for status in available():
        if (options.rungs and status.name not in options.rungs) or (options.sample and status.name == "docker"):
            continue
        if not status.ok:
            rows.append(Row("channels", "channels", status.name, options.user, "n/a", status.detail))
            continue
        with shared_folder() as shared:
            sandbox, started = choose_sandbox(status.name), time.monotonic()
            chosen, tries = (SAMPLE, 1) if options.sample else (CHANNELS, 2)
            found = {name: await try_channel(sandbox, name, shared, tries=tries) for name in chosen}
            figures = await try_figures(sandbox, shared)
        for name, how in {**found, **_grouped(figures)}.items():
            outcome: Outcome = "possible" if how.in_turn or how.together else "prevented"
            rows.append(Row("channels", f"talk-{name}", status.name, options.user, outcome, str(how)))
            options.say(f"  {status.name:8} {options.user:5} talk-{name:20} {outcome:10} {how}")
        options.say(f"  {status.name}: {time.monotonic() - started:.0f} s")
    return Findings(rows, {"channels-tried": float(len(rows))}, [])


def _grouped(figures: dict[str, Heard]) -> dict[str, Heard]:
    """Return the figures by the way in which they are read: counters of the kernel, and all others as one."""
    counters = [how for name, how in figures.items() if name in COUNTERS]
    others = [how for name, how in figures.items() if name not in COUNTERS]
    groups = {"kernel-counters": counters, FIGURES: others}
    return {
        name: Heard(any(how.in_turn for how in group), any(how.together for how in group))
        for name, group in groups.items()
    }
