"""Kill each of our processes at a random moment of a real run, resume it, and see what was lost and what was left."""

import contextlib
import multiprocessing
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scripts.hostile.leftovers import left_in, left_on_machine, make_old
from scripts.hostile.options import Options
from scripts.hostile.processes import become_subreaper, kill, of_kind, survivors
from scripts.hostile.rows import Findings
from scripts.hostile.workloads import (
    MCP,
    METERED,
    WORKLOADS,
    Viewer,
    Workload,
    ended,
    finished,
    output,
    planned,
    prepare,
    provider,
    resume,
    run_folders,
    start,
)

_HANGS_SECONDS = 300.0
_MAX_RESUMES = 6
_MAX_ATTEMPTS = 8
_TARGETS = [(workload, victim) for workload in WORKLOADS for victim in workload.victims]
_CHEAP = [(workload, victim) for workload, victim in _TARGETS if workload.name not in ("embedded model", "pytest")]


@dataclass(slots=True)
class Killed:
    """Record what one kill did. `victim` is empty if every run ended before its moment came."""

    workload: str
    victim: str = ""
    lost: int = 0
    doubled: int = 0
    survivors: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # temporary folders
    problems: list[str] = field(default_factory=list)

    @property
    def is_wrong(self) -> bool:
        return bool(self.lost or self.doubled or self.survivors or self.left or self.problems)

    def __str__(self) -> str:
        wrong = [f"{self.lost} lost"] * bool(self.lost) + [f"{self.doubled} doubled"] * bool(self.doubled)
        wrong += [f"left {', '.join([*self.survivors, *self.left])}"] * bool(self.survivors or self.left)
        return f"{self.workload}, kill of {self.victim}: {'; '.join([*wrong, *self.problems]) or 'nothing lost'}"


def run_kills(options: Options, kills: int) -> Findings:
    """Make the kills, spread over all our processes, and return what they did."""
    targets = _CHEAP if options.sample else _TARGETS
    first = options.seed * kills if options.sample else 0
    tasks = [(options.seed * 100_003 + number, *targets[(first + number) % len(targets)]) for number in range(kills)]
    done: list[Killed] = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(max(1, options.jobs), initializer=become_subreaper) as pool:
        unable = [] if options.sample else [told for told in pool.map(_try_unharmed, WORKLOADS, chunksize=1) if told]
        for killed in pool.imap_unordered(_kill_once, tasks):
            done.append(killed)
            if killed.is_wrong or len(done) % 25 == 0:
                options.say(f"  kill {len(done)} of {kills}: {killed}")
        left = [] if options.sample else pool.apply(_sweep_machine)
    victims = Counter(killed.victim for killed in done if killed.victim)
    options.say("".join(f"\n  {times:4} × {name}" for name, times in victims.most_common()))
    figures = {
        "kills": victims.total(),
        "finished-trials-lost": sum(killed.lost for killed in done),
        "finished-trials-doubled": sum(killed.doubled for killed in done),
        "survivors-of-kills": sum(len(killed.survivors) for killed in done),
        "left-by-kills": sum(len(killed.left) for killed in done) + len(left),
    }
    wrong = [
        *unable,
        *(str(killed) for killed in done if killed.is_wrong),
        *(f"left after all kills: {x}" for x in left),
    ]
    return Findings(figures={name: float(value) for name, value in figures.items()}, failures=wrong)


@contextlib.contextmanager
def _base() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="bakeoff-kill-"))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _try_unharmed(workload: Workload) -> str:
    """Run a workload without a kill. One that does not work would hide what kills do."""
    with _base() as base, provider() as env:
        folder = prepare(workload, base / "unharmed", env)
        code = ended(workload.argv, folder, _HANGS_SECONDS)
        runs = run_folders(folder)
        whole = not workload.resumes or (bool(runs) and len(finished(runs[-1])) == planned(runs[-1]))
        left = [*survivors(), *left_in(folder)]
        if code == 0 and whole and not left:
            return ""
        return f"{workload.name}, unharmed: exit code {code}, left {left}: {output(folder)[-300:]}"


def _sweep_machine() -> list[str]:
    """Run what opens sandboxes and the meter, and return what killed processes have left outside of their folders."""
    with _base() as base, provider() as env:
        for workload in (MCP, METERED):
            ended(workload.argv, prepare(workload, base / workload.name, env), _HANGS_SECONDS)
    return left_on_machine()


def _kill_once(task: tuple[int, Workload, str]) -> Killed:
    seed, workload, victim = task
    chance, killed = random.Random(seed), Killed(workload.name)
    with _base() as base, provider() as env:
        for attempt in range(_MAX_ATTEMPTS):  # a run may end before its moment has come
            folder = prepare(workload, base / str(attempt), env)
            killed = _run_and_kill(workload, victim, folder, chance)
            if killed.victim or killed.problems:
                return killed
    killed.problems.append(f"ended before its {victim} was killed, {_MAX_ATTEMPTS} times")
    return killed


def _run_and_kill(workload: Workload, victim: str, folder: Path, chance: random.Random) -> Killed:
    """Start the run, kill one of its processes, wait, resume, and look at what is there."""
    killed = Killed(workload.name)
    with Viewer(workload, folder) as viewer:
        process = start(workload.argv, folder)
        _wait_for_moment(process, folder, chance, workload)
        runs = run_folders(folder)
        kept = set(finished(runs[-1])) if runs else set()
        if _hit(process, victim, chance):
            killed.victim = victim
        code = _waited(process)
        if code not in (0, 1, 2, 3, -signal.SIGKILL):
            killed.problems.append(f"exit code {code}: {output(folder)[-300:]}")
        killed.survivors += survivors() if not workload.beside else []
        if not killed.victim:
            return killed
        make_old(folder)  # what is seconds old might be in use, and is left alone
        killed.problems += _resumed(workload, folder) + viewer.problems(restart=victim == "viewer")
    killed.survivors += survivors()
    if kept:
        after = finished(runs[-1])
        killed.lost = sum(1 for trial in kept if not after[trial])
        killed.doubled = sum(1 for trial in kept if after[trial] > 1)
    killed.left += _left(workload, folder)
    said = output(folder)
    ours = workload.resumes or "bakeoff/doors" in said  # pytest-xdist raises if a worker dies before it says hello
    killed.problems += [f"a traceback: {said[-800:]}"] * ("Traceback" in said and ours)
    return killed


def _wait_for_moment(process: subprocess.Popen[bytes], folder: Path, chance: random.Random, workload: Workload) -> None:
    """Wait for a random moment: of the start, or more often of the time in which trials are finished."""
    deadline, seconds = time.monotonic() + 120, 4.0
    if workload.resumes and chance.random() < 0.75:
        seconds = 1.5
        while process.poll() is None and time.monotonic() < deadline and not run_folders(folder):
            time.sleep(0.02)
    end = time.monotonic() + chance.uniform(0.0, seconds)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)


def _hit(process: subprocess.Popen[bytes], victim: str, chance: random.Random) -> bool:
    """Kill a process of this kind as soon as there is one. Return False if the run ends before."""
    while process.poll() is None:
        targets = [process.pid] if victim in ("bakeoff", "pytest") else of_kind(victim)
        if targets:
            return kill(chance.choice(targets))
        time.sleep(0.005)
    return False


def _waited(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code, or None if the process hangs."""
    try:
        return process.wait(_HANGS_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _resumed(workload: Workload, folder: Path) -> list[str]:
    """Resume until nothing is left to do. Where there is nothing to resume, run again."""
    runs = run_folders(folder)
    if not workload.resumes:
        code = ended(workload.argv, folder, _HANGS_SECONDS)
        return [f"exit code {code} when run again: {output(folder)[-300:]}"] if code else []
    for _ in range(_MAX_RESUMES if runs else 0):
        if len(finished(runs[-1])) == planned(runs[-1]):
            return []
        code = resume(runs[-1], folder, _HANGS_SECONDS)
        if code not in (0, 1, 3):
            return [f"resume ends with {code}: {output(folder)[-300:]}"]
    if runs and len(finished(runs[-1])) != planned(runs[-1]):
        return [f"{len(finished(runs[-1]))} of {planned(runs[-1])} trials after resuming: {output(folder)[-300:]}"]
    return []


def _left(workload: Workload, folder: Path) -> list[str]:
    """Return the temporary folders that the next run of the same kind does not remove."""
    if left_in(folder):
        make_old(folder)
        with Viewer(workload, folder):
            ended(workload.argv, folder, _HANGS_SECONDS)
        survivors()
    return left_in(folder)
