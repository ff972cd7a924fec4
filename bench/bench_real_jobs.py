"""Measure real jobs on this machine: grading the bundled exercises, and verifying the Svelte suites.

Processor time is told apart by process: Bakeoff and its supervisors are overhead, what runs tests is the job. The first
run may install toolchains and finds the twins of each suite; the second is what people wait for.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bakeoff.doors.components.suites import bundled_folder as bundled_suites
from bakeoff.doors.components.suites import find_suites

PAUSE = 0.02
TICK = os.sysconf("SC_CLK_TCK")
PROGRAM = str(Path(sys.executable).with_name("bakeoff"))


@dataclass(slots=True)
class Spent:
    """Processor seconds of one command and everything that it started."""

    seconds: float = 0.0
    by_process: dict[int, tuple[bool, float]] = field(default_factory=dict)  # whether it is ours, and its seconds

    def look(self, root: int) -> None:
        """Note what each process has used so far. What one uses after the last look is missed."""
        parents = {pid: read_stat(pid) for pid in map(int, (path.name for path in Path("/proc").glob("[0-9]*")))}
        below = {root}
        for pid, (parent, used) in sorted(parents.items()):
            if parent in below or pid == root:
                below.add(pid)
                ours = self.by_process[pid][0] if pid in self.by_process else is_ours(pid)
                self.by_process[pid] = (ours, used)

    def of(self, *, ours: bool) -> float:
        return sum(used for is_one, used in self.by_process.values() if is_one is ours)


def read_stat(pid: int) -> tuple[int, float]:
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return 0, 0.0
    return int(words[1]), (int(words[11]) + int(words[12])) / TICK


def is_ours(pid: int) -> bool:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"supervisor.fork_server" in line or PROGRAM.encode() in line or line.split(b"\0", 1)[0].endswith(b"bwrap")


def main() -> int:
    svelte = [suite.name for suite in find_suites(bundled_suites()).suites if suite.component_file.endswith(".svelte")]
    suites = [word for name in svelte for word in ("--suite", name)]
    jobs = {
        "20 exercises graded": ["agents", "run", "--agent", "oracle", "--exercise", "all"],
        f"{len(svelte)} Svelte suites verified": ["verify", *suites],
    }
    print(f"{'':36}{'seconds':>9}{'tests, cpu s':>14}{'ours, cpu s':>13}{'our share':>11}")
    for name, words in jobs.items():
        for which in ("first", "second"):
            spent = carry_out([PROGRAM, *words])
            ours, tests = spent.of(ours=True), spent.of(ours=False)
            figures = f"{spent.seconds:>9.1f}{tests:>14.1f}{ours:>13.1f}"
            print(f"{name:28}{which:8}{figures}{100 * ours / (ours + tests):>10.0f} %", flush=True)
    return 0


def carry_out(command: list[str]) -> Spent:
    spent, folder = Spent(), tempfile.mkdtemp(prefix="bakeoff-bench-")
    started = time.perf_counter()
    with (Path(folder) / "out.txt").open("w+", encoding="utf-8") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        while process.poll() is None:
            spent.look(process.pid)
            time.sleep(PAUSE)
        out.seek(0)
        told = out.read()
    spent.seconds = time.perf_counter() - started
    shutil.rmtree(folder, ignore_errors=True)
    if process.returncode:
        sys.exit(f"✗ {' '.join(command)} ended with {process.returncode}: …{told[-1500:]}")
    return spent


if __name__ == "__main__":
    sys.exit(main())
