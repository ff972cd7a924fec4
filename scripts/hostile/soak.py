"""Run for a long time with faults, and see that nothing grows: memory, descriptors, processes, files, kernel objects.

One process runs plans and sandboxed commands again and again: some are cancelled, some exceed their limits, some lose
their supervisor. Beside it, whole runs are killed and resumed. Everything uses a temporary folder of its own.
"""

import asyncio
import contextlib
import gc
import multiprocessing
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.hostile.kills import run_kills
from scripts.hostile.leftovers import orphaned_groups
from scripts.hostile.options import Options
from scripts.hostile.processes import become_subreaper, below, kill
from scripts.hostile.rows import Findings

from bakeoff import Case, Limits, Plan, RunOptions, ScorerSpec, SubjectSpec
from bakeoff import run as run_plan
from bakeoff.errors import BakeoffError
from bakeoff.protocols import Command
from bakeoff.sandbox import choose_sandbox, open_place

SECONDS, SAMPLED_SECONDS = 1_800.0, 15.0
_LIMITS = Limits(memory_mb=64, processes=32, disk_mb=20, output_kb=64)
_MAX_GROWTH_MB = 24.0
_COMMANDS = (
    ("python3", "-c", "print('hello')"),
    ("python3", "-c", "kept = [bytearray(b'x') * (8 << 20) for _ in range(40)]"),
    ("sh", "-c", "(sleep 300 &) ; (sleep 300 &) ; yes"),
    ("python3", "-c", "import time; time.sleep(300)"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold what a process uses at one moment."""

    megabytes: float
    descriptors: int
    processes: int
    files: int
    kernel_objects: int


def run(options: Options) -> Findings:
    """Soak, and return how much everything has grown."""
    seconds = SAMPLED_SECONDS if options.sample else SECONDS * options.scale
    before, folder = tempfile.tempdir, Path(tempfile.mkdtemp(prefix="bakeoff-soak-"))
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), str(folder)
    context = multiprocessing.get_context("spawn")
    try:
        with context.Pool(1, initializer=become_subreaper) as pool:
            soaking = pool.apply_async(_soak, (seconds, options.seed, folder))
            killed = _kill_meanwhile(options, seconds)
            samples, rounds = soaking.get(seconds + 600)
        return _findings(samples, rounds, killed)
    finally:
        os.environ.pop("TMPDIR")
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)


def _kill_meanwhile(options: Options, seconds: float) -> Findings:
    """Kill and resume whole runs while the other process works."""
    deadline, found, number = time.monotonic() + seconds, Findings(), 0
    while time.monotonic() < deadline and not options.sample:
        number += 1
        some = run_kills(Options(quiet=True, sample=True, jobs=1, seed=options.seed * 7_919 + number), 3)
        total = {name: found.figures.get(name, 0) + value for name, value in some.figures.items()}
        found = Findings(figures=total, failures=[*found.failures, *some.failures])
        options.say(f"  soak: {deadline - time.monotonic():.0f} s left, {total['kills']:.0f} kills")
    return found


def _findings(samples: Sequence[Sample], rounds: int, killed: Findings) -> Findings:
    """Compare the middle with the end: what is loaded and cached once has been by then."""
    half = samples[len(samples) // 2 :]
    first, last = half[: max(1, len(half) // 4)], half[-max(1, len(half) // 4) :]
    figures = {"soak-rounds": float(rounds)}
    for name in Sample.__dataclass_fields__:
        growth = min(getattr(each, name) for each in last) - min(getattr(each, name) for each in first)
        figures[f"growth-of-{name.replace('_', '-')}"] = round(max(0.0, growth), 1)
    most = {"growth-of-megabytes": _MAX_GROWTH_MB}
    grown = [
        f"soak: {name} is {value:g}"
        for name, value in figures.items()
        if name.startswith("growth") and value > most.get(name, 0)
    ]
    return Findings(figures=figures, failures=[*grown, *killed.failures])


def _soak(seconds: float, seed: int, folder: Path) -> tuple[list[Sample], int]:
    """Work until the time is up, and return a sample for each round."""
    chance, deadline, rounds = random.Random(seed), time.monotonic() + seconds, 0
    samples: list[Sample] = []
    while rounds < 8 or time.monotonic() < deadline:
        asyncio.run(_round(chance, folder / "work" / str(rounds)))
        shutil.rmtree(folder / "work" / str(rounds), ignore_errors=True)
        rounds += 1
        gc.collect()
        samples.append(_sample(folder))
    return samples, rounds


async def _round(chance: random.Random, folder: Path) -> None:
    plan = Plan(
        name="soak",
        cases=tuple(Case(id=f"case-{number}", prompt="say", expected="x") for number in range(50)),
        subjects=(SubjectSpec(kind="nop", name="n"),),
        scorers=(ScorerSpec(kind="exact"),),
    )
    (folder / "run").mkdir(parents=True)
    async for _ in run_plan(plan, RunOptions(folder=folder / "run")):
        pass
    sandbox = choose_sandbox("process")
    tasks = []
    async with contextlib.AsyncExitStack() as stack:
        for argv in _COMMANDS:
            place = await stack.enter_async_context(open_place())
            tasks.append(asyncio.ensure_future(sandbox.run(Command(argv, place, 2.0, limits=_LIMITS))))
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        tasks[-1].cancel()
        if chance.random() < 0.3 and (ours := list(below(os.getpid()))):
            kill(chance.choice(ours))
        for task in tasks:
            with contextlib.suppress(BakeoffError, asyncio.CancelledError):
                await task


def _sample(folder: Path) -> Sample:
    status = Path("/proc/self/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    kernel = sum(len(Path(f"/proc/sysvipc/{kind}").read_text().splitlines()) - 1 for kind in ("shm", "sem", "msg"))
    return Sample(
        megabytes=resident / 1024,
        descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
        processes=sum(1 for pid in below(os.getpid()) if _is_alive(pid)),
        files=sum(1 for path in folder.glob("bakeoff-place-*")),
        kernel_objects=kernel + len(orphaned_groups()),
    )


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
