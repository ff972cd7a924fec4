"""pytest as a toolchain: a sandbox for each candidate, with tests of ours that must fail among the suite's own."""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError, InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files
from bakeoff.toolchains.canary import Canary, plain
from bakeoff.toolchains.junit import ended_by_limit, last_words
from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun
from bakeoff.toolchains.planted import Planted, plant
from bakeoff.toolchains.python import interpreter, pytest_folders

LIMITS = Limits(memory_mb=2048, processes=128, disk_mb=256, output_kb=4096)
PARENT = Path(__file__).with_name("pytest_parent.py").read_text(encoding="utf-8")
HARNESS = Path(__file__).with_name("pytest_harness.py").read_text(encoding="utf-8")
_FINISHED: RunStop = "finished"
_FORGED = "its result is not pytest's"


class _Report(FrozenModel):
    tests: tuple[TestOutcome, ...]
    exit_code: int | None
    forged: bool
    ready: bool
    error: str = ""
    interrupted: str = ""
    changed: str = ""
    odd: str = ""


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
        planted = plant(well_formed(files[chosen]))
        begun, proof = secrets.token_hex(16), secrets.token_hex(16)
        job: dict[str, Any] = {
            "file": chosen,
            "source": planted.source,
            "folders": [str(folder) for folder in self.folders],
            "outside": list(planted.expected) if planted.outside else [],
            "begun": begun,
            "proof": proof,
            "harness": HARNESS,
        }
        async with open_place() as place:
            put_files(place, {name: text.encode(errors="replace") for name, text in files.items() if name != chosen})
            argv = (interpreter(self.sandbox), "-I", "-B", "-c", PARENT)
            command = Command(argv, place, seconds, self.limits, stdin=json.dumps(job).encode(), readable=self.folders)
            done = await self.sandbox.run(command)
        return _judged(begun, proof, planted, done)


def well_formed(text: str) -> str:
    """Half of a surrogate pair, which JSON can hold and no file can, is shown as a question mark."""
    return text.encode(errors="replace").decode()


def _judged(begun: str, proof: str, planted: Planted, done: Completed) -> TestRun:
    if done.stop != "exited":
        return ended_by_limit(done)
    said = done.stdout.decode(errors="replace")
    if not said.startswith(begun):
        raise _unfit(done)
    before, found, text = said.removeprefix(begun).partition(proof)
    if not found or before:
        return _crashed(done, done.exit_code)
    try:
        report = _Report.model_validate_json(text)
    except ValidationError:
        return TestRun(error="what came back is no result", seconds=done.seconds, tampered=_FORGED)
    if not report.ready:
        raise _unfit(done)
    if report.exit_code is not None:
        return _crashed(replace(done, stdout=b""), report.exit_code)  # which was our own word
    canary = Canary()
    tests = [
        test.model_copy(update={"name": planted.told(test.name), "message": planted.told(plain(test.message))})
        for test in report.tests
    ]
    kept = [test for test in tests if test.name not in planted.expected]
    error, stop = planted.told(plain(report.error)) or None, _FINISHED
    if _all_failed(planted, tests):
        error = error if kept or error else "there is no test in it"
        kept.append(TestOutcome(name=canary.name, state="failed"))
    if report.interrupted and not report.forged:
        error, stop = f"{planted.told(report.interrupted)}, which ended the run: no further test ran", "crashed"
    tampered = planted.told(_tampered(report) or "") or None
    return canary.judge(kept, error=error, seconds=done.seconds, stop=stop, tampered=tampered)


def _unfit(done: Completed) -> InfraError:
    """Nothing of the candidate's was there yet: it is the Python that tests are run with, or its image."""
    words = done.stderr.decode(errors="replace").strip()[-1000:] or f"it ended with exit code {done.exit_code}"
    why = f"its Python cannot run pytest, which needs the whole standard library: {words}"
    return InfraError(f"tests cannot be run in this sandbox: {why}", permanent=True)


def _crashed(done: Completed, code: int) -> TestRun:
    error = f"its process ended with exit code {code} before its tests did: {last_words(done)}"
    return TestRun(error=error, stop="crashed", seconds=done.seconds)


def _all_failed(planted: Planted, tests: list[TestOutcome]) -> bool:
    """Each of the tests that must fail did so once, and for its own reason."""
    failed = [
        test.name for test in tests if test.state == "failed" and planted.expected.get(test.name, "\0") in test.message
    ]
    return bool(failed) and sorted(failed) == sorted(planted.expected)


def _tampered(report: _Report) -> str | None:
    if report.forged:
        return _FORGED
    if report.changed:
        return f"it replaced `{report.changed}`, which the tests are built on"
    return f"its result cannot be compared: {report.odd}" if report.odd else None
