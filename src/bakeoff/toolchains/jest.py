"""Test TypeScript exercises with Jest, in worker processes that were made ready before the candidate came.

A compiler that is kept turns TypeScript into scripts with Babel and runs none of them. A worker has Jest's runner,
assertions, mocks and timers loaded, takes one job and ends. Tests that need more of Jest (mocked modules, snapshots,
further packages, files) get a whole `jest`.
"""

from collections.abc import Mapping, Sequence

from bakeoff.toolchains.outcome import TestRun, run_each
from bakeoff.toolchains.tracks import TYPESCRIPT
from bakeoff.toolchains.workers import WorkerPool


class OpenJest(WorkerPool):
    """Run the test files of an exercise, each in a worker of its own."""

    worker_script, compiler_script, whole_script = "worker.cjs", "compiler.cjs", "fresh.cjs"

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        async def run_file(entry: str, limit: float) -> TestRun:
            question = {"files": dict(files), "entry": entry, "tests": list(tests)}
            run = await self.run_warm(question, limit)
            return await self.run_whole(files, entry, limit) if run is None else run

        return await run_each(run_file, TYPESCRIPT.tests_among(tests, files), seconds)
