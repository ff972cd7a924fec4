"""Cost per trial as a run grows: more trials, more at a time, longer transcripts. Time is CPU time of the process.

`python -m bench.bench_growth [--million] [--json FILE]`; without `--million`, the largest run has 10,000 trials.
"""

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bakeoff.engine.run import run
from bakeoff.engine.run_control import RunControl
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, ScorerSpec
from bakeoff.subjects.function import function_subject

FLAT = 1.5
"""How many times as much a trial of the largest run may cost as one of 10,000 trials."""
ONE, RESUMED = "one trial", "trials, resumed half way"
_COMMANDS = {
    "show": ("runs", "show"),
    "csv": ("export", "--format", "csv", "-o", "{folder}/out.csv"),
    "page": ("report", "--no-open", "-o", "{folder}/out.html"),
    ONE: ("runs", "show", "--json", "--case", "case-7", "--subject", "subject-0"),
}


async def answer(prompt: str) -> str:
    return prompt if len(prompt) < 100 else prompt * (int(prompt.split(maxsplit=1)[0]) // len(prompt) + 1)


async def wait(prompt: str) -> str:
    await asyncio.sleep(0.01)
    return prompt


def growing_plan(trials: int, characters: int = 0, *, waiting: bool = False) -> Plan:
    """Return a plan of at most 1,000 cases; more trials are more subjects and rounds, as in real runs."""
    cases = min(trials, 1000)
    subjects = min(max(1, trials // cases), 10)
    prompt = f"{characters} characters".ljust(100) if characters else "say"
    function = wait if waiting else answer
    return Plan(
        name="growth",
        cases=tuple(Case(id=f"case-{n}", prompt=f"{prompt} {n}", expected=f"{prompt} {n}") for n in range(cases)),
        subjects=tuple(function_subject(function, f"subject-{n}") for n in range(subjects)),
        scorers=(ScorerSpec(kind="exact"),),
        rounds=max(1, trials // cases // subjects),
        threshold=None,
    )


async def _run(plan: Plan, folder: Path, jobs: int, stop_after: int | None) -> int:
    """Run what is left of a plan, or so many trials of it, and return how many that were."""
    control, done = RunControl(), 0
    async for _ in run(plan, RunOptions(folder=folder, jobs=jobs), control=control):
        done += 1
        if done == stop_after:
            control.stop()
    return done


def run_here(kind: str, number: int, folder: Path) -> None:
    """Run one point of a series in this process, and print what it took."""
    jobs, trials, characters = 8, number, 0
    if kind == "jobs":
        jobs, trials = number, 4000
    elif kind == "characters":
        trials, characters = max(20, min(1000, 20_000_000 // number)), number
    plan = growing_plan(trials, characters, waiting=kind == "jobs")
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    done = asyncio.run(_run(plan, folder, jobs, plan.size // 2 if kind == "half" else None))
    after = resource.getrusage(resource.RUSAGE_SELF)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(
        json.dumps(
            {
                "trials": done,
                "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "seconds": time.perf_counter() - started,
                "peak_mb": after.ru_maxrss / 1024,
                "bytes": size,
            }
        )
    )


def measure(kind: str, number: int) -> dict[str, Any]:
    """Run one point of a series, and for trials also what reads the run, each in a process of its own."""
    scratch = Path(tempfile.mkdtemp(prefix="bakeoff-bench-"))
    folder = scratch / "results" / "runs" / "growth"
    folder.mkdir(parents=True)
    try:
        if kind == RESUMED:
            _point("half", number, folder)
        found: dict[str, Any] = {"kind": kind, "number": number, **_point(kind, number, folder)}
        if kind == "trials":
            for name, (*command, last) in _COMMANDS.items():
                found[name] = _command([*command, last.format(folder=scratch), str(folder)])
            found["page"]["bytes"] = (scratch / "out.html").stat().st_size
        return found
    finally:
        shutil.rmtree(scratch)


def _point(kind: str, number: int, folder: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "bench.bench_growth", "--point", kind, str(number), str(folder)]
    done = subprocess.run(words, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def _command(words: list[str]) -> dict[str, float]:
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "bakeoff", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, words
    seconds = time.perf_counter() - started
    return {"cpu": used.ru_utime + used.ru_stime, "seconds": seconds, "peak_mb": used.ru_maxrss / 1024}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="go on to 1,000,000 trials")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--point", nargs=3, metavar=("KIND", "NUMBER", "FOLDER"), help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.point:
        run_here(wanted.point[0], int(wanted.point[1]), Path(wanted.point[2]))
        return 0
    trials = [1_000, 10_000, 100_000, *([1_000_000] if wanted.million else [])]
    resumed = [10_000, trials[-1]]
    series = {
        "trials": trials,
        RESUMED: resumed,
        "jobs": [1, 10, 100, 1_000],
        "characters": [1_000, 100_000, 1_000_000, 10_000_000],
    }
    points: list[dict[str, Any]] = []
    print(f"{'':>22}{'µs/trial':>10}{'peak MB':>9}{'B/trial':>12}")
    for kind, numbers in series.items():
        for number in numbers:
            points.append(point := measure(kind, number))
            _print(f"{number:,} {kind}", point, point["trials"], point["bytes"])
            for name in _COMMANDS if kind == "trials" else ():
                _print(f"… {name}", point[name], 1 if name == ONE else point["trials"], point[name].get("bytes"))
    if wanted.json:
        wanted.json.write_text(json.dumps(points, indent=1) + "\n")
    by_trials = {point["number"]: point for point in points if point["kind"] == "trials"}
    largest, usual = by_trials[max(by_trials)], by_trials[10_000]
    ratio = (largest["cpu"] / largest["trials"]) / (usual["cpu"] / usual["trials"])
    print(f"CPU per trial of {largest['trials']:,} / 10,000 trials: {ratio:.2f}× (wanted: below {FLAT:g}×)")
    memory = largest["peak_mb"] / usual["peak_mb"]
    print(f"memory of {largest['trials']:,} / 10,000 trials: {memory:.2f}× (wanted: below {FLAT:g}×)")
    return 0 if ratio < FLAT and memory < FLAT else 1


def _print(what: str, measured: dict[str, Any], trials: int, size: float | None) -> None:
    stored = "" if size is None else f"{size / trials:>12,.0f}"
    print(f"{what:>22}{1e6 * measured['cpu'] / trials:>10,.0f}{measured['peak_mb']:>9.0f}{stored}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
