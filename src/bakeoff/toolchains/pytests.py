"""pytest as a toolchain: one sandboxed process for each candidate, with a test of ours that must fail among its own."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff.errors import GraderError
from bakeoff.frozen import Frozen
from bakeoff.limits import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary, plain
from bakeoff.toolchains.junit import ended_by_limit, last_words
from bakeoff.toolchains.outcome import TestOutcome, TestRun
from bakeoff.toolchains.python import interpreter, pytest_folders

LIMITS = Limits(memory_mb=2048, processes=128, disk_mb=256, output_kb=4096)
HARNESS = Path(__file__).with_name("pytest_harness.py").read_text(encoding="utf-8")


class _Report(Frozen):
    tests: tuple[TestOutcome, ...]
    error: str
    changed: str | None


@dataclass(frozen=True, slots=True)
class PytestToolchain:
    """The resource. `test_file` is the one file whose tests are run."""

    sandbox: Callable[[], Sandbox]
    test_file: str = "test_solution.py"
    limits: Limits = LIMITS

    @property
    def key(self) -> str:
        return "pytest" if self.test_file == "test_solution.py" else f"pytest {self.test_file}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenPytest"]:
        yield OpenPytest(self.sandbox(), pytest_folders(), self.test_file, self.limits)


@dataclass(frozen=True, slots=True)
class OpenPytest:
    """Runs suites of Python. The test file is never written to the candidate's folder: it travels on the input."""

    sandbox: Sandbox
    folders: tuple[Path, ...]
    test_file: str
    limits: Limits = LIMITS

    async def run(self, files: Mapping[str, str], *, seconds: float, test_file: str | None = None) -> TestRun:
        chosen = test_file or self.test_file
        if chosen not in files:
            raise GraderError(f"{chosen!r} is not among the files: {', '.join(sorted(files))}")
        canary = Canary()
        job: dict[str, Any] = {
            "file": chosen,
            "source": files[chosen],
            "folders": [str(folder) for folder in self.folders],
        }
        job |= {"canary": canary.name, "word": canary.word, "place": canary.place, "proof": canary.proof}
        async with open_place() as place:
            put_files(place, {name: text.encode() for name, text in files.items() if name != chosen})
            argv = (interpreter(self.sandbox), "-I", "-B", "-c", HARNESS)
            command = Command(argv, place, seconds, self.limits, stdin=json.dumps(job).encode(), readable=self.folders)
            done = await self.sandbox.run(command)
        return _judged(canary, done)


def _judged(canary: Canary, done: Completed) -> TestRun:
    if done.stop != "exited":
        return ended_by_limit(done)
    before, found, text = done.stdout.decode(errors="replace").partition(canary.proof)
    if not found or before:
        error = f"its process ended with exit code {done.exit_code} before its tests did: {last_words(done)}"
        return TestRun(error=error, stop="crashed", seconds=done.seconds)
    try:
        report = _Report.model_validate_json(text)
    except ValidationError:
        return TestRun(error="what came back is no result", seconds=done.seconds, tampered="its result is not pytest's")
    tampered = f"it replaced `{report.changed}`, which the tests are built on" if report.changed else None
    tests = [test.model_copy(update={"message": plain(test.message)}) for test in report.tests]
    return canary.judge(tests, error=plain(report.error) or None, seconds=done.seconds, tampered=tampered)
