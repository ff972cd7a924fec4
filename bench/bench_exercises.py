"""Twenty solutions of TypeScript exercises: one warm run of the tests, a grading with twins, and the track's way.

The track's way is its own command: it installs the packages, checks the types and runs Jest.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from bakeoff.doors.agents.exercises import bundled_folder, find_exercises
from bakeoff.doors.agents.plan import ExercisesRequest, case_of
from bakeoff.engine.resources import open_resources
from bakeoff.grading.cases import GradedCase, graded_case, run_tests, toolchains_for, type_errors
from bakeoff.grading.grades import grade_answer
from bakeoff.grading.references import References, reference_of
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.tracks import TYPESCRIPT

WANTED = 10.0  # times faster than the track's way, with twins
MAX_WITH_TWINS = 2.2  # times slower than one warm run
SECONDS = 120.0
BLOCK = 4
TYPE_CHECK = ("node", "node_modules/typescript/bin/tsc", "--noEmit", "-p", ".")
INSTALL = ("npm", "install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
Verdict: TypeAlias = dict[str, str]  # the state of each test by its name


@dataclass(frozen=True, slots=True)
class Trial:
    """One solution of one exercise: its example, or its stub."""

    name: str
    case: GradedCase
    answer: dict[str, str]

    @property
    def files(self) -> dict[str, str]:
        return self.case.with_answer(self.answer)


@dataclass(slots=True)
class Seconds:
    """Add up the time of each way."""

    warm: float = 0.0
    graded: float = 0.0
    installing: float = 0.0
    testing: float = 0.0


def trials() -> list[Trial]:
    folder = bundled_folder() / "typescript"
    request = ExercisesRequest(exercises=folder, test_timeout=SECONDS)
    made = []
    for exercise in find_exercises(folder, []).exercises:
        case = graded_case(case_of(exercise, request))
        stub = {name: exercise.files[name] for name in exercise.solution}
        made += [Trial(f"{exercise.name}, solved", case, dict(case.reference))]
        made += [Trial(f"{exercise.name}, as given", case, stub)]
    return made


def main() -> int:
    return asyncio.run(compare())


async def compare() -> int:
    every = trials()
    sandbox = choose_sandbox("auto")
    with project(every[0]) as folder:  # npm's cache is warm
        install(folder)
    wanted = toolchains_for([trial.case.case for trial in every], partial(choose_sandbox, sandbox.name), 1)
    seconds, differing = Seconds(), list[str]()
    async with open_resources((References("bakeoff agents verify"), *wanted)) as resources:
        for trial in every:
            await reference_of(trial.case, resources)  # twins are found once for each exercise
        # All ways take turns in blocks, so that a busy moment of the machine meets them all.
        for start in range(0, len(every), BLOCK):
            differing += await compare_block(every[start : start + BLOCK], resources, seconds)
    return tell(sandbox.name, len(every), seconds, differing)


async def compare_block(block: list[Trial], resources: Any, seconds: Seconds) -> list[str]:
    """Run a block each way, and return the trials whose tests differ."""
    differing = []
    started = time.perf_counter()
    for trial in block:
        await asyncio.gather(
            run_tests(trial.case, trial.answer, resources), type_errors(trial.case, trial.answer, resources)
        )
    seconds.warm += time.perf_counter() - started
    started = time.perf_counter()
    grades = [await grade_answer(trial.case, trial.answer, resources) for trial in block]
    seconds.graded += time.perf_counter() - started
    for trial, grade in zip(block, grades, strict=True):
        one, two, verdict = await asyncio.to_thread(install_and_test, trial)
        seconds.installing, seconds.testing = seconds.installing + one, seconds.testing + two
        passed = Counter(name for name, state in verdict.items() if state == "passed")
        if passed != grade.passed:
            print(f"✗ {trial.name}: {sorted(grade.passed)} is not {sorted(passed)}")
            differing.append(trial.name)
    return differing


@contextlib.contextmanager
def project(trial: Trial) -> Iterator[Path]:
    """A folder as a person would have it, with every test switched on."""
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-bench-"))
    try:
        for name, text in trial.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(TYPESCRIPT.unskip(text) if name in trial.case.settings.tests else text, encoding="utf-8")
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
        subprocess.run(TYPE_CHECK, cwd=folder, check=False, capture_output=True)
        argv = ["node", "node_modules/jest/bin/jest.js", "--ci", "--json", "--outputFile=out.json"]
        subprocess.run(argv, cwd=folder, check=False, capture_output=True)
        tested = time.perf_counter()
        report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    tests = [test for module in report["testResults"] for test in module["assertionResults"]]
    verdict = {" > ".join([*test["ancestorTitles"], test["title"]]): test["status"] for test in tests}
    return installed - started, tested - installed, verdict


def tell(sandbox_kind: str, many: int, seconds: Seconds, differing: list[str]) -> int:
    track = seconds.installing + seconds.testing
    slower = seconds.graded / seconds.warm
    print(f"{many} solutions of TypeScript exercises; sandbox: {sandbox_kind}; {os.cpu_count()} cores")
    print(f"{'':54}{'s/solution':>10}{'ratio':>8}")
    rows = {
        "the track's way: install with a warm cache, tsc, jest": track,
        "  of which tsc and jest": seconds.testing,
        "one warm run of the tests with a type check, sandboxed": seconds.warm,
        "graded with twins, sandboxed": seconds.graded,
    }
    for name, each in rows.items():
        print(f"{name:54}{each / many:>10.3f}{track / each:>7.1f}×")
    print(f"grading with twins takes {slower:.2f}× as long as one warm run")
    print(f"solutions whose tests differ: {len(differing)} of {many}")
    print(f"wanted: with twins at least {WANTED:g}×, at most {MAX_WITH_TWINS:g}× of a warm run, and none that differs")
    return 0 if track / seconds.graded >= WANTED and slower <= MAX_WITH_TWINS and not differing else 1


if __name__ == "__main__":
    sys.exit(main())
