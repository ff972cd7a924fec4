"""Forty candidates through the warm Vitest, and each through a fresh `vitest run` process, on this machine, now."""

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
from typing import TypeAlias

from tests.toolchains.candidates import CANDIDATES, Candidate

from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains import OpenVitest, TestRun, VitestToolchain

SLOTS = 2
WANTED = 8.0
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
    async with VitestToolchain(lambda: sandbox, SLOTS, say=print).open() as vitest:
        # Both ways take turns in blocks, so that a busy moment of the machine meets them both.
        blocks = [CANDIDATES[start : start + 8] for start in range(0, len(CANDIDATES), 8)]
        warm_seconds = fresh_seconds = one_seconds = 0.0
        warm: dict[str, Verdict] = {}
        fresh: dict[str, Verdict] = {}
        for block in blocks:
            seconds, verdicts = await warm_block(vitest, block, at_once=SLOTS)
            warm_seconds, warm = warm_seconds + seconds, warm | verdicts
            seconds, verdicts = await warm_block(vitest, block, at_once=1)
            one_seconds += seconds
            differing(warm, verdicts)
            seconds, verdicts = await asyncio.to_thread(fresh_block, vitest.toolchain, block)
            fresh_seconds, fresh = fresh_seconds + seconds, fresh | verdicts
    return tell(sandbox.name, warm_seconds, one_seconds, fresh_seconds, differing(warm, fresh))


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


def tell(sandbox_kind: str, warm: float, one: float, fresh: float, differences: list[str]) -> int:
    many = len(CANDIDATES)
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(each.kind for each in CANDIDATES).items())
    print(f"{many} candidates: {kinds}; sandbox: {sandbox_kind}; {os.cpu_count()} cores")
    print(f"{'':38}{'s/candidate':>12}{'ratio':>8}")
    rows = {
        "fresh `vitest run`, no sandbox": fresh,
        "warm, one at a time, sandboxed": one,
        f"warm, {SLOTS} at a time, sandboxed": warm,
    }
    for name, seconds in rows.items():
        print(f"{name:38}{seconds / many:>12.3f}{fresh / seconds:>7.1f}×")
    print(f"verdicts that differ: {len(differences)} of {many}")
    print(f"wanted: at least {WANTED:g}× and none that differs")
    return 0 if fresh / one >= WANTED and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
