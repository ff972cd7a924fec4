"""Twenty trials of TypeScript exercises through the shared toolchain, and each by install-and-test, here and now."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.toolchains.exercise_folders import every_exercise

from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains import ExerciseToolchain, OpenExercises
from bakeoff.toolchains.tracks import TYPESCRIPT

WANTED = 5.0
SECONDS = 120.0
BLOCK = 4
INSTALL = ("npm", "install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
Verdict: TypeAlias = dict[str, str]  # the state of each test by its name


@dataclass(frozen=True, slots=True)
class Trial:
    """One solution of one exercise: its reference, or its stub."""

    name: str
    files: dict[str, str]
    tests: tuple[str, ...]


def trials() -> list[Trial]:
    made = []
    for each in every_exercise():
        if each.language == "typescript":
            made += [Trial(f"{each.name}, solved", each.reference, each.tests)]
            made += [Trial(f"{each.name}, as given", each.stub, each.tests)]
    return made


def main() -> int:
    return asyncio.run(compare())


async def compare() -> int:
    every = trials()
    sandbox = choose_sandbox("auto")
    async with ExerciseToolchain(lambda: sandbox, say=print).open():
        pass  # installed, once for this machine
    with project(every[0]) as folder:  # and npm's cache is warm
        install(folder)
    started = time.perf_counter()
    async with ExerciseToolchain(lambda: sandbox).open() as exercises:
        opening = time.perf_counter() - started
        # Both ways take turns in blocks, so that a busy moment of the machine meets them both.
        shared_seconds, installing, testing = opening, 0.0, 0.0
        differing: list[str] = []
        for start in range(0, len(every), BLOCK):
            block = every[start : start + BLOCK]
            seconds, shared = await shared_block(exercises, block)
            shared_seconds += seconds
            for trial in block:
                one, two, verdict = await asyncio.to_thread(install_and_test, trial)
                installing, testing = installing + one, testing + two
                if verdict != shared[trial.name]:
                    print(f"✗ {trial.name}: {shared[trial.name]} is not {verdict}")
                    differing.append(trial.name)
    return tell(sandbox.name, len(every), opening, shared_seconds, installing, testing, differing)


async def shared_block(exercises: OpenExercises, block: list[Trial]) -> tuple[float, dict[str, Verdict]]:
    started = time.perf_counter()
    runs = [await exercises.run(each.files, tests=each.tests, seconds=SECONDS) for each in block]
    seconds = time.perf_counter() - started
    named = zip(block, runs, strict=True)
    return seconds, {each.name: {test.name: test.state for test in run.tests} for each, run in named}


@contextlib.contextmanager
def project(trial: Trial) -> Iterator[Path]:
    """A folder as a person would have it, with every test switched on."""
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-bench-"))
    try:
        for name, text in trial.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(TYPESCRIPT.unskip(text) if name in trial.tests else text, encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder)


def install(folder: Path) -> None:
    subprocess.run(INSTALL, cwd=folder, check=True, capture_output=True)


def install_and_test(trial: Trial) -> tuple[float, float, Verdict]:
    with project(trial) as folder:
        started = time.perf_counter()
        install(folder)
        installed = time.perf_counter()
        argv = ["node", "node_modules/jest/bin/jest.js", "--ci", "--json", "--outputFile=out.json"]
        subprocess.run(argv, cwd=folder, check=False, capture_output=True)
        tested = time.perf_counter()
        report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    tests = [test for module in report["testResults"] for test in module["assertionResults"]]
    verdict = {" > ".join([*test["ancestorTitles"], test["title"]]): test["status"] for test in tests}
    return installed - started, tested - installed, verdict


def tell(
    sandbox_kind: str, many: int, opening: float, shared: float, installing: float, testing: float, differing: list[str]
) -> int:
    both = installing + testing
    print(f"{many} trials of TypeScript exercises; sandbox: {sandbox_kind}; {os.cpu_count()} cores")
    print(f"{'':46}{'s/trial':>10}{'ratio':>8}")
    rows = {
        "install with a warm npm cache, and test": both,
        "  of which the test alone, by `jest`": testing,
        f"shared toolchain, sandboxed (opened in {opening:.1f} s)": shared,
    }
    for name, seconds in rows.items():
        print(f"{name:46}{seconds / many:>10.3f}{both / seconds:>7.1f}×")
    print(f"verdicts that differ: {len(differing)} of {many}")
    print(f"wanted: at least {WANTED:g}× and none that differs")
    return 0 if both / shared >= WANTED and not differing else 1


if __name__ == "__main__":
    sys.exit(main())
