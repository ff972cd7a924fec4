"""Measure the time of `bakeoff --help` in units of `python -c pass`, and that of the help of installed peers."""

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 15
WANTED = 8.0


def main() -> int:
    programs = Path(sys.executable).parent
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "bakeoff --help": [str(programs / "bakeoff"), "--help"],
        "bakeoff --version": [str(programs / "bakeoff"), "--version"],
    }
    if (programs / "inspect").exists():
        commands["inspect --help"] = [str(programs / "inspect"), "--help"]
    if pytest := shutil.which("pytest", path=str(programs)):
        commands["pytest --version"] = [pytest, "--version"]
    # The commands take turns, so that a busy moment of the machine meets them all.
    rounds = [{name: _seconds(command) for name, command in commands.items()} for _ in range(REPEATS)]
    ratios = {name: statistics.median(turn[name] / turn["python -c pass"] for turn in rounds) for name in commands}
    for name, ratio in ratios.items():
        print(f"{name:20}{ratio:>8.1f}×")
    print(f"wanted for bakeoff --help: at most {WANTED:g}×")
    return 0 if ratios["bakeoff --help"] <= WANTED else 1


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
