"""Run a contender in a process of its own, and measure the whole process."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.peers.contenders import Contender, Work, prepare


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: wall-clock seconds, seconds of processor time, memory of its largest process, bytes of its log."""

    seconds: float
    cpu: float
    peak_mb: float
    log_bytes: int


class ContenderFailed(Exception):
    """It did not say that every case passed."""


def measure(contender: Contender, work: Work, most_seconds: float) -> Measured:
    """Do the work once. Raise ContenderFailed if it is not done, or takes too long."""
    with tempfile.TemporaryDirectory(prefix="bakeoff-bench-") as made:
        folder = Path(made)
        variables = prepare(contender, work, folder)
        started = time.perf_counter()
        with (folder / "out.txt").open("w+", encoding="utf-8", errors="replace") as out:
            process = subprocess.Popen(
                contender.command(work), cwd=folder, env=variables, stdout=out, stderr=out, start_new_session=True
            )
            used = _wait(process, started + most_seconds)
            seconds = time.perf_counter() - started
            out.seek(0)
            told = out.read()
        if contender.says(work) not in told:
            raise ContenderFailed(f"{contender.name} did not say {contender.says(work)!r}: …{told.strip()[-600:]}")
        log = sum(
            file.stat().st_size for name in contender.logs for file in (folder / name).rglob("*") if file.is_file()
        )
        return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, log)


def _wait(process: "subprocess.Popen[bytes]", until: float) -> "os.struct_rusage":  # type: ignore[name-defined]
    """Wait for the process, and return what it and those that it waited for have used; end it when its time is up."""
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return used
        if time.perf_counter() > until:
            os.killpg(process.pid, 9)
        time.sleep(0.002)
