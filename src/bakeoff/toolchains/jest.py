"""Test TypeScript exercises with Jest, in worker processes that were made ready before the candidate came.

A compiler that is kept turns TypeScript into scripts with Babel and runs none of them. A worker has Jest's runner,
assertions, mocks and timers loaded, takes one job and ends. Tests that need more of Jest (mocked modules, snapshots,
further packages) get a whole `jest`. The tests alone decide that, never the candidate.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary
from bakeoff.toolchains.outcome import TestRun, run_each
from bakeoff.toolchains.tracks import TYPESCRIPT
from bakeoff.toolchains.vitest import WHOLE_LIMITS, read_whole_run, test_job
from bakeoff.toolchains.workers import PeerGone, WorkerPool, ended_without_answer

_GLOBALS = (
    *("afterAll", "afterEach", "beforeAll", "beforeEach", "describe", "expect", "fdescribe", "fit", "it", "jest"),
    *("test", "xdescribe", "xit", "xtest"),
)
_DECLARED = r"\bimport\b[^;'\"]*\b{0}\b[^;'\"]*\bfrom\b|\b(?:const|let|var|function|class)\s+{0}\b"
# It is one line, so that the line numbers of the suite shift by one at most. Every check in it must fail.
CANARY = (
    "import {{ test as t_{id}, expect as e_{id}, jest as j_{id} }} from '@jest/globals'; t_{id}({name}, () => {{"
    " let last; for (const check of ["
    " () => e_{id}([{word}]).toEqual([{other}]), () => e_{id}({{ a: [{word}] }}).toStrictEqual({{ a: [{other}] }}),"
    " () => e_{id}({word}).toContain({other}), () => e_{id}({word}).toMatch({other}),"
    " () => e_{id}([{{ a: {word} }}]).toMatchObject([{{ a: {other} }}]), () => e_{id}(1).toBeGreaterThan(2),"
    " () => e_{id}(1).toBeCloseTo(2), () => e_{id}(null).toBeTruthy(), () => e_{id}({word}).toBeUndefined(),"
    " () => e_{id}(() => 1).toThrow(), () => e_{id}(j_{id}.fn()).toHaveBeenCalled(),"
    " () => e_{id}({word}).not.toBe({word}), () => e_{id}({word}).toBe({other}),"
    " ]) {{ try {{ check(); }} catch (error) {{ last = error; continue; }} return; }} throw last; }});"
)


class OpenJest(WorkerPool):
    """Run the test files of an exercise, each in a worker of its own."""

    worker_script, compiler_script = "worker.cjs", "compiler.cjs"

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        async def run_file(entry: str, limit: float) -> TestRun:
            async with self._slots:
                return await self._run_file(files, entry, tests, limit)

        return await run_each(run_file, TYPESCRIPT.tests_among(tests, files), seconds)

    async def _run_file(self, files: Mapping[str, str], entry: str, tests: Sequence[str], seconds: float) -> TestRun:
        started, unfinished = time.monotonic(), "the solution was not compiled"
        try:
            prepared = await self.compile({"files": dict(files), "entry": entry, "tests": list(tests)}, seconds)
            if "fresh" in prepared:
                return await run_whole_jest(self.sandbox, self.toolchain, files, entry, tests, seconds=seconds)
            canary = Canary()
            async with self.worker() as worker:
                started, unfinished = time.monotonic(), "the tests did not end"
                answer = await worker.ask(test_job(canary, prepared), seconds=seconds)
        except TimeoutError:
            error = f"{unfinished} within {seconds:g} s"
            return TestRun(error=error, stop="timeout", seconds=time.monotonic() - started)
        except PeerGone as gone:
            return ended_without_answer(gone.completed, time.monotonic() - started)
        return canary.check_report(answer, time.monotonic() - started, source="the worker")


async def run_whole_jest(
    sandbox: Sandbox, toolchain: Path, files: Mapping[str, str], entry: str, tests: Sequence[str], *, seconds: float
) -> TestRun:
    """Run one candidate through a whole `jest` with our configuration. It sees no `package.json` or the like."""
    canary = Canary()
    given = {**files, **{name: with_globals(files[name]) for name in tests}}
    given[entry] = canary.add_to(given[entry], CANARY)
    job = json.dumps({"proof": canary.proof, "entry": entry, "tests": list(tests)}).encode()
    async with open_place() as place:
        put_files(place, {name: text.encode() for name, text in given.items()})
        argv = ("node", str(toolchain / "fresh.cjs"))
        done = await sandbox.run(Command(argv, place, seconds, WHOLE_LIMITS, stdin=job, readable=(toolchain,)))
    return read_whole_run(canary, done, "Jest")


def with_globals(source: str) -> str:
    """Import what Jest would make global, so that only the test has it and no candidate can take hold of it."""
    used = [name for name in _GLOBALS if re.search(rf"(?<![\w.$]){name}\b", source)]
    wanted = [name for name in used if not re.search(_DECLARED.format(name), source)]
    return f"import {{ {', '.join(wanted)} }} from '@jest/globals'; {source}" if wanted else source
