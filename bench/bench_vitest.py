"""Forty candidates through the warm Vitest, once and with twins, and through a fresh `vitest run` process each."""

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
from pathlib import Path
from typing import Any, TypeAlias

from tests.toolchains.candidates import CANDIDATES, Candidate

from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.grading.grades import grade_answer
from bakeoff.grading.references import OpenReferences, reference_of
from bakeoff.grading.twins import FEW
from bakeoff.plan import Case, Grading
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.vitest import OpenVitest, VitestToolchain

SLOTS = 2
WANTED = 8.0
WANTED_WITH_TWINS = 3.0  # times faster than a fresh Vitest, and at most so many times slower than one warm run:
MAX_WITH_TWINS = 2.2
SECONDS = 60.0
CONFIG = """
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { svelteTesting } from '@testing-library/svelte/vite';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte({ compilerOptions: { runes: true } }), svelteTesting()],
  test: { globals: true, environment: 'jsdom', setupFiles: ['./setup.ts'], include: ['test.ts', 'test.svelte.ts'] },
});
"""
Verdict: TypeAlias = dict[str, str]  # the state of each test by its name; empty where none ran


def main() -> int:
    return asyncio.run(compare())


async def compare() -> int:
    sandbox = choose_sandbox("auto")
    async with VitestToolchain(lambda: sandbox, SLOTS).open() as vitest:
        # Both ways take turns in blocks, so that a busy moment of the machine meets them both.
        suites = [
            tuple(each for each in CANDIDATES if each.test == test) for test in {each.test for each in CANDIDATES}
        ]
        blocks = [suite[start : start + 8] for suite in suites for start in range(0, len(suite), 8)]
        references = OpenReferences(Path(tempfile.mkdtemp(prefix="bakeoff-bench-")), "bakeoff verify")
        resources = {"vitest-svelte": vitest, "references": references}
        warm_seconds = fresh_seconds = one_seconds = twins_seconds = 0.0
        pair = [0.0, 0.0]  # one warm run, and one pair of runs: suites with few tests need several pairs
        warm: dict[str, Verdict] = {}
        fresh: dict[str, Verdict] = {}
        for block in blocks:
            seconds, verdicts = await warm_block(vitest, block, at_once=SLOTS)
            warm_seconds, warm = warm_seconds + seconds, warm | verdicts
            one, verdicts = await warm_block(vitest, block, at_once=1)
            differing(warm, verdicts)
            reference = await reference_of(graded(block[0]), resources)  # twins are found once for each suite
            twins, verdicts = await graded_block(resources, block)
            differing(warm, verdicts)
            one_seconds, twins_seconds = one_seconds + one, twins_seconds + twins
            if reference and len(reference.twins.twins) >= FEW:
                pair = [pair[0] + one, pair[1] + twins]
            seconds, verdicts = await asyncio.to_thread(fresh_block, vitest.toolchain, block)
            fresh_seconds, fresh = fresh_seconds + seconds, fresh | verdicts
    seconds_by_way = (warm_seconds, one_seconds, twins_seconds, fresh_seconds)
    return tell(sandbox.name, *seconds_by_way, pair[1] / pair[0], differing(warm, fresh))


async def warm_block(
    vitest: OpenVitest, block: tuple[Candidate, ...], *, at_once: int
) -> tuple[float, dict[str, Verdict]]:
    gate = asyncio.Semaphore(at_once)

    async def one(candidate: Candidate) -> TestRun:
        async with gate:
            return await vitest.run(candidate.files, seconds=SECONDS)

    started = time.perf_counter()
    runs = await asyncio.gather(*map(one, block))
    seconds = time.perf_counter() - started
    named = zip(block, runs, strict=True)
    return seconds, {each.name: {test.name: test.state for test in run.tests} for each, run in named}


def graded(candidate: Candidate) -> GradedCase:
    """The suite of a candidate, with the first right one as its reference."""
    right = next(each for each in CANDIDATES if each.test == candidate.test and each.kind == "right")
    solution, tests = ("Component.svelte",), (candidate.test_name,)
    grading = Grading(runner="vitest", solution=solution, tests=tests, seconds=SECONDS)
    hidden = {candidate.test_name: candidate.test}
    reference = {"Component.svelte": right.component}
    return graded_case(Case(id="suite", prompt="?", hidden=hidden, reference=reference, grading=grading))


async def graded_block(resources: dict[str, Any], block: tuple[Candidate, ...]) -> tuple[float, dict[str, Verdict]]:
    started = time.perf_counter()
    grades = [await grade_answer(graded(each), {"Component.svelte": each.component}, resources) for each in block]
    seconds = time.perf_counter() - started
    named = zip(block, grades, strict=True)
    return seconds, {each.name: {test.name: test.state for test in grade.run.tests} for each, grade in named}


def fresh_block(toolchain: Path, block: tuple[Candidate, ...]) -> tuple[float, dict[str, Verdict]]:
    seconds, verdicts = 0.0, {}
    for candidate in block:
        with project(toolchain, candidate) as folder:
            started = time.perf_counter()
            verdicts[candidate.name] = vitest_run(folder)
            seconds += time.perf_counter() - started
    return seconds, verdicts


@contextlib.contextmanager
def project(toolchain: Path, candidate: Candidate) -> Iterator[Path]:
    """A folder as a person would have it: config, set-up file, component, test, and the installed packages."""
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-bench-"))
    try:
        given = {"vitest.config.mjs": CONFIG, "setup.ts": "import '@testing-library/jest-dom/vitest';\n"}
        for name, text in {**given, **candidate.files}.items():
            (folder / name).write_text(text, encoding="utf-8")
        packages = folder / "node_modules"  # writable, for Vite keeps things there; the packages themselves are linked
        packages.mkdir()
        for package in (toolchain / "node_modules").iterdir():
            (packages / package.name).symlink_to(package)
        yield folder
    finally:
        shutil.rmtree(folder)


def vitest_run(folder: Path) -> Verdict:
    argv = ["node", "node_modules/vitest/vitest.mjs", "run", "--reporter=json", "--outputFile=out.json"]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "NO_COLOR": "1"}
    subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False)
    report = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    tests = [test for module in report["testResults"] for test in module["assertionResults"]]
    return {" > ".join([*test["ancestorTitles"], test["title"]]): test["status"] for test in tests}


def differing(one: dict[str, Verdict], other: dict[str, Verdict]) -> list[str]:
    names = [name for name in other if one[name] != other[name]]
    for name in names:
        print(f"✗ {name}: {one[name]} is not {other[name]}")
    return names


def tell(
    sandbox_kind: str, warm: float, one: float, twins: float, fresh: float, slower: float, differences: list[str]
) -> int:
    many = len(CANDIDATES)
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(each.kind for each in CANDIDATES).items())
    print(f"{many} candidates: {kinds}; sandbox: {sandbox_kind}; {os.cpu_count()} cores")
    print(f"{'':38}{'s/candidate':>12}{'ratio':>8}")
    rows = {
        "fresh `vitest run`, no sandbox": fresh,
        "warm, one at a time, sandboxed": one,
        f"warm, {SLOTS} at a time, sandboxed": warm,
        "graded with twins, one at a time": twins,
    }
    for name, seconds in rows.items():
        print(f"{name:38}{seconds / many:>12.3f}{fresh / seconds:>7.1f}×")
    print(f"verdicts that differ: {len(differences)} of {many}")
    print(f"one pair of runs with twins takes {slower:.2f}× as long as one warm run")
    print(
        f"wanted: at least {WANTED:g}× and none that differs; with twins at least {WANTED_WITH_TWINS:g}×, "
        f"and at most {MAX_WITH_TWINS:g}× of a warm run"
    )
    fast = fresh / one >= WANTED and fresh / twins >= WANTED_WITH_TWINS and slower <= MAX_WITH_TWINS
    return 0 if fast and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
