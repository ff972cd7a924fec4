"""Test components with Vitest, in worker processes that were made ready before the candidate came.

The few suites that need what only a whole `vitest run` can do, such as mocked modules and snapshots, get one.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bakeoff.errors import GraderError
from bakeoff.plan import Framework
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.install import Say, install_vitest, permission_flags, quiet
from bakeoff.toolchains.outcome import TestRun, ValidationOutcome
from bakeoff.toolchains.validators import read_outcome
from bakeoff.toolchains.workers import PeerGone, WorkerPool, ended_without_answer, parse_answer

_WHOLE_SECONDS = 30.0  # a whole Vitest takes up to this long before its first test, on a busy machine
_TEST_FILE = re.compile(r"test\.(?:svelte\.)?[jt]sx?")
_FRAMEWORKS: Mapping[str, Framework] = {".svelte": "svelte", ".tsx": "react", ".jsx": "react", ".vue": "vue"}


def framework_of(component: str) -> Framework:
    """Return what a component is written with, by the ending of its name."""
    return _FRAMEWORKS.get(PurePosixPath(component).suffix, "typescript")


@dataclass(frozen=True, slots=True)
class VitestToolchain:
    """The resource that tests components of one framework, in `slots` runs at a time."""

    sandbox: Callable[[], Sandbox]
    slots: int = 1
    say: Say = quiet
    framework: Framework = "svelte"

    @property
    def key(self) -> str:
        return f"vitest-{self.framework}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenVitest"]:
        toolchain, sandbox = await install_vitest(self.say), self.sandbox()
        flags = await permission_flags(sandbox)
        async with AsyncExitStack() as stack:
            opened = OpenVitest(sandbox, toolchain, self.slots, flags, self.framework)
            stack.push_async_callback(opened.close)
            await opened.warm_up()
            yield opened


class OpenVitest(WorkerPool):
    """Run the tests of components, and validators that are written in TypeScript."""

    worker_script, compiler_script, whole_script = "start.cjs", "compiler.mjs", "fresh.mjs"

    def __init__(
        self, sandbox: Sandbox, toolchain: Path, slots: int, flags: Sequence[str], framework: Framework
    ) -> None:
        self.settings = {"framework": framework}
        super().__init__(sandbox, toolchain, slots, flags)

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run one test file: the one in `tests`, or else `test.ts`, `test.tsx` or `test.svelte.ts`."""
        entry = next((name for name in tests or files if tests or _TEST_FILE.fullmatch(name)), None)
        if entry is None or entry not in files:
            return TestRun(error=f"there is no {entry or 'test.ts, test.tsx or test.svelte.ts'}")
        run = await self.run_warm({"files": dict(files), "entry": entry}, seconds)
        return await self.run_whole(files, entry, seconds + _WHOLE_SECONDS) if run is None else run

    async def validate(self, code: str, source: str, seconds: float) -> ValidationOutcome:
        """Ask a validator in TypeScript. Raise `GraderError` if it has no proper answer."""
        async with self._slots:
            try:
                prepared = await self.compile({"source": source}, seconds)
                if "error" in prepared:
                    raise GraderError(f"the validator does not compile: {prepared['error']}")
                async with self.worker() as worker:
                    return read_outcome(parse_answer(await worker.ask({**prepared, "code": code}, seconds=seconds)))
            except TimeoutError as problem:
                raise GraderError(f"the validator did not answer within {seconds:g} s") from problem
            except PeerGone as gone:
                why = ended_without_answer(gone.completed, 0.0).error
                raise GraderError(f"the validator gave no answer: {why}") from gone
