"""Test Python with pytest: one sandbox for each candidate, with tests of ours that must fail among the suite's own."""

import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
from bakeoff.toolchains.canary import Canary
from bakeoff.toolchains.install import pytest_folders, python_in
from bakeoff.toolchains.outcome import (
    RunStop,
    TestOutcome,
    TestRun,
    last_output,
    run_each,
    stopped_by_limit,
    without_colours,
)
from bakeoff.toolchains.planted_tests import Planted, plant
from bakeoff.toolchains.tracks import PYTHON

LIMITS = Limits(memory_mb=2048, processes=128, disk_mb=256, output_kb=4096)
PARENT = Path(__file__).with_name("pytest_parent.py").read_text(encoding="utf-8")
HARNESS = Path(__file__).with_name("pytest_harness.py").read_text(encoding="utf-8")
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
    """The resource that runs Python tests."""

    sandbox: Callable[[], Sandbox]
    key = "pytest"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenPytest"]:
        yield OpenPytest(self.sandbox(), pytest_folders())


@dataclass(frozen=True, slots=True)
class OpenPytest:
    """Run test files with pytest: isolated, without plugins, configuration and conftest.py.

    A test file is never written to the candidate's folder. It travels on the input of the process.
    """

    sandbox: Sandbox
    folders: tuple[Path, ...]

    async def run(
        self, files: Mapping[str, str], *, tests: Sequence[str] = ("test_solution.py",), seconds: float
    ) -> TestRun:
        return await run_each(
            lambda name, limit: self._run_file(files, name, limit), PYTHON.tests_among(tests, files), seconds
        )

    async def _run_file(self, files: Mapping[str, str], test_file: str, seconds: float) -> TestRun:
        if test_file not in files:
            raise GraderError(f"{test_file!r} is not among the files: {', '.join(sorted(files))}")
        # JSON can hold a lone surrogate and a file cannot.
        planted = plant(files[test_file].encode(errors="replace").decode())
        begun, proof = secrets.token_hex(16), secrets.token_hex(16)
        job: dict[str, Any] = {
            "file": test_file,
            "source": planted.source,
            "folders": [str(folder) for folder in self.folders],
            "outside": list(planted.expected) if planted.outside else [],
            "begun": begun,
            "proof": proof,
            "harness": HARNESS,
        }
        async with open_place() as place:
            put_files(place, {name: text.encode(errors="replace") for name, text in files.items() if name != test_file})
            argv = (python_in(self.sandbox), "-I", "-B", "-c", PARENT)
            command = Command(argv, place, seconds, LIMITS, stdin=json.dumps(job).encode(), readable=self.folders)
            done = await self.sandbox.run(command)
        return _read_run(begun, proof, planted, done)


def _read_run(begun: str, proof: str, planted: Planted, done: Completed) -> TestRun:
    if done.stop != "exited":
        return stopped_by_limit(done)
    output = done.stdout.decode(errors="replace")
    if not output.startswith(begun):
        raise _unusable_python(done)
    before, found, text = output.removeprefix(begun).partition(proof)
    if not found or before:
        return _crashed(done, done.exit_code)
    try:
        report = _Report.model_validate_json(text)
    except ValidationError:
        return TestRun(error="the runner returned no result", seconds=done.seconds, tampered=_FORGED)
    if not report.ready:
        raise _unusable_python(done)
    if report.exit_code is not None:
        return _crashed(replace(done, stdout=b""), report.exit_code)  # the output is the report of our own parent
    return _check(report, planted, done.seconds)


def _check(report: _Report, planted: Planted, seconds: float) -> TestRun:
    canary = Canary()
    original = planted.with_original_names
    tests = [
        test.model_copy(update={"name": original(test.name), "message": original(without_colours(test.message))})
        for test in report.tests
    ]
    own = [test for test in tests if test.name not in planted.expected]
    error: str | None = original(without_colours(report.error)) or None
    stop: RunStop = "finished"
    if _all_failed(planted, tests):
        error = error if own or error else "there is no test in it"
        own.append(TestOutcome(name=canary.name, state="failed"))
    if report.interrupted and not report.forged:
        error, stop = f"{original(report.interrupted)}, which ended the run: no further test ran", "crashed"
    tampered = original(_tampering(report) or "") or None
    return canary.check(own, error=error, seconds=seconds, stop=stop, tampered=tampered)


def _unusable_python(done: Completed) -> InfraError:
    """Return the error for a Python that cannot run pytest. Nothing of the candidate was there yet."""
    words = done.stderr.decode(errors="replace").strip()[-1000:] or f"it ended with exit code {done.exit_code}"
    why = f"its Python cannot run pytest, which needs the whole standard library: {words}"
    return InfraError(f"tests cannot be run in this sandbox: {why}", permanent=True)


def _crashed(done: Completed, code: int) -> TestRun:
    error = f"its process ended with exit code {code} before its tests did: {last_output(done)}"
    return TestRun(error=error, stop="crashed", seconds=done.seconds)


def _all_failed(planted: Planted, tests: list[TestOutcome]) -> bool:
    """Tell whether each planted test failed once, and for its own reason."""
    failed = [
        test.name for test in tests if test.state == "failed" and planted.expected.get(test.name, "\0") in test.message
    ]
    return bool(failed) and sorted(failed) == sorted(planted.expected)


def _tampering(report: _Report) -> str | None:
    if report.forged:
        return _FORGED
    if report.changed:
        return f"it replaced `{report.changed}`, which the tests are built on"
    return f"its result cannot be compared: {report.odd}" if report.odd else None
