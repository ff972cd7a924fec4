"""Kill one of our processes at a random moment of a real run, resume it, and see what was lost and what was left.

Every worker is a subreaper: whatever a run leaves behind becomes its child, however it hides.
"""

import contextlib
import ctypes
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings
from scripts.hostile.workloads import (
    BAKEOFF,
    DOORS,
    EMBEDDED,
    Workload,
    finished,
    output,
    planned,
    prepare,
    run_folders,
    start,
)

_SUBREAPER = 36
_SETTLE_SECONDS = 30.0  # for processes to notice that their parent is gone, on a busy machine
_HANGS_SECONDS = 300.0
_MOST_RESUMES = 6
_MOST_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Killed:
    """Record what one kill did."""

    door: str
    victim: str
    lost: int
    doubled: int
    survivors: tuple[str, ...]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        wrong = [f"{self.lost} lost"] * bool(self.lost) + [f"{self.doubled} doubled"] * bool(self.doubled)
        wrong += [f"left {', '.join(self.survivors)}"] * bool(self.survivors)
        return f"{self.door}, kill of {self.victim}: {'; '.join([*wrong, *self.problems]) or 'nothing lost'}"


def run_kills(options: Options, kills: int) -> Findings:
    """Make the kills, spread over all doors, and return what they did."""
    tasks = [(number, options.seed * 100_003 + number, _door(number, options)) for number in range(kills)]
    done: list[Killed] = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(max(1, options.jobs), initializer=become_subreaper) as pool:
        for killed in pool.imap_unordered(_kill_once, tasks):
            done.append(killed)
            if killed.lost or killed.doubled or killed.survivors or killed.problems or len(done) % 25 == 0:
                options.say(f"  kill {len(done)} of {kills}: {killed}")
    figures = {
        "kills": float(sum(bool(killed.victim) for killed in done)),
        "finished-trials-lost": float(sum(killed.lost for killed in done)),
        "finished-trials-doubled": float(sum(killed.doubled for killed in done)),
        "survivors-of-kills": float(sum(len(killed.survivors) for killed in done)),
    }
    wrong = [killed for killed in done if killed.lost or killed.doubled or killed.survivors or killed.problems]
    victims = Counter(f"{killed.victim} of {killed.door}" for killed in done)
    options.say(f"  killed: {', '.join(f'{times} × {name}' for name, times in sorted(victims.items()))}")
    return Findings(figures=figures, failures=[str(killed) for killed in wrong])


def _door(number: int, options: Options) -> Workload:
    if not options.sample and number % 40 == 39:
        return EMBEDDED
    return DOORS[number % len(DOORS)]


def become_subreaper() -> None:
    """Become the parent of every orphan below this process."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _kill_once(task: tuple[int, int, Workload]) -> Killed:
    number, seed, workload = task
    chance = random.Random(seed)
    base = Path(tempfile.mkdtemp(prefix="bakeoff-kill-"))
    try:
        for attempt in range(_MOST_ATTEMPTS):  # a run may end before its moment has come
            folder = prepare(workload, base / f"kill-{number}-{attempt}")
            victim, kept, problems = _run_and_kill(workload, folder, chance)
            if victim or problems:
                break
        else:
            return Killed(workload.name, "", 0, 0, (), (f"ended before it was killed, {_MOST_ATTEMPTS} times",))
        survivors = tuple(_survivors())
        lost = doubled = 0
        if workload.resumes and (runs := run_folders(folder)):
            problems += _resume(runs[-1], folder)
            after = finished(runs[-1])
            lost = sum(1 for trial in kept if not after[trial])
            doubled = sum(1 for trial in kept if after[trial] > 1)
            if len(after) != planned(runs[-1]) and not problems:
                problems.append(f"{len(after)} of {planned(runs[-1])} trials after resuming: {output(folder)[-300:]}")
            survivors += tuple(_survivors())
        if "Traceback" in output(folder):
            problems.append(f"a traceback: {output(folder)[-800:]}")
        return Killed(workload.name, victim, lost, doubled, survivors, tuple(problems))
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _run_and_kill(
    workload: Workload, folder: Path, chance: random.Random
) -> tuple[str, set[tuple[str, str, int]], list[str]]:
    """Start the run, kill one of its processes, and wait. Return the victim, if any, and what was finished before."""
    process = start(workload.argv, folder)
    wait_for = chance.choice(["start", "journal", "journal", "journal"]) if workload.resumes else "start"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if wait_for == "start" or run_folders(folder):
            break
        time.sleep(0.02)
    end = time.monotonic() + chance.uniform(0.0, 1.5 if wait_for == "journal" else 4.0)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    runs = run_folders(folder)
    kept = set(finished(runs[-1])) if runs else set()
    if process.poll() is not None:  # its id may be that of another process by now
        return "", kept, []
    children = list(below(process.pid))
    target = process.pid if chance.random() < 0.5 or not children else chance.choice(children)
    victim = "bakeoff" if target == process.pid else _kind(target)
    kill(target)
    try:
        code = process.wait(_HANGS_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return victim, kept, [f"hangs for {_HANGS_SECONDS:g} s after the kill"]
    designed = {0, 1, 2, 3, -signal.SIGKILL}
    return victim, kept, [] if code in designed else [f"exit code {code}: {output(folder)[-300:]}"]


def _resume(run: Path, folder: Path) -> list[str]:
    """Resume until nothing is left to do."""
    for _ in range(_MOST_RESUMES):
        if sum(1 for _ in finished(run)) == planned(run):
            return []
        process = start((*BAKEOFF, "resume", str(run), "--exit-zero"), folder)
        try:
            code = process.wait(_HANGS_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return ["resume hangs"]
        if code not in (0, 1, 3):
            return [f"resume ends with {code}: {output(folder)[-300:]}"]
    return []


def kill(pid: int) -> None:
    """Send SIGKILL, unless the process has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def below(pid: int) -> Iterator[int]:
    """Yield the processes below one."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from below(child)


def _kind(pid: int) -> str:
    """Return which of our processes it is, by its command line."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "a process that had just ended"
    names = {"supervisor": "supervisor", "zygote": "supervisor", "forward": "meter", "embedded": "embedded model",
             "kitchen": "MCP server", "multiprocessing": "worker", "pytest": "pytest", "sleep": "command"}  # fmt: skip
    line = " ".join(words)
    return next((kind for name, kind in names.items() if name in line), Path(words[0]).name or "a child")


def _survivors() -> list[str]:
    """Wait until nothing is left below us, and kill and return what stays."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        _reap()
        left = [pid for pid in below(os.getpid()) if "resource_tracker" not in _line(pid)]
        if not left:
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    named = [f"{pid} {_line(pid)[:80]}" for pid in left]
    for pid in left:
        kill(pid)
    _reap()
    return named


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
