"""Run any command that writes JUnit XML as a grader, and read such reports."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from xml.etree import ElementTree

from bakeoff.errors import GraderError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files, take
from bakeoff.toolchains.outcome import TestOutcome, TestRun, TestState, last_output, stopped_by_limit

MAX_REPORT_SIZE = 16 << 20
LIMITS = Limits(memory_mb=4096, processes=256, disk_mb=1024, output_kb=4096)
_MAX_MESSAGE_LENGTH = 4000


@dataclass(frozen=True, slots=True)
class JunitToolchain:
    """The resource that runs `argv` in the folder of the files, where it writes its report.

    A canary has to be in the language of the tests, so the suite brings its own: `canary` is the name of a test that
    must fail. A suite without one is trusted without one.
    """

    sandbox: Callable[[], Sandbox]
    argv: tuple[str, ...]
    report: str
    canary: str | None = None
    limits: Limits = LIMITS

    @property
    def key(self) -> str:
        return f"junit {self.report} {self.canary or ''} {' '.join(self.argv)}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenJunit"]:
        yield OpenJunit(self.sandbox(), self)


@dataclass(frozen=True, slots=True)
class OpenJunit:
    """Run the command once for each candidate, in a folder of its own."""

    sandbox: Sandbox
    toolchain: JunitToolchain

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        del tests  # the command knows its tests
        chosen = self.toolchain
        async with open_place() as place:
            put_files(place, {name: text.encode() for name, text in files.items() if name != chosen.report})
            done = await self.sandbox.run(Command(chosen.argv, place, seconds, chosen.limits, graded=True))
            taken = take(place.work, [chosen.report], max_bytes=MAX_REPORT_SIZE, max_files=1)
        if done.exit_code == 127 and done.stop == "exited":
            raise GraderError(f"{chosen.argv[0]!r} cannot be run here: {last_output(done)}")
        if done.stop != "exited":
            return stopped_by_limit(done)
        written = next(iter(taken.files.values()), None)
        if written is None:
            error = f"no {chosen.report} was written; exit code {done.exit_code}: {last_output(done)}"
            return TestRun(error=error, seconds=done.seconds)
        return self._check(written.decode(errors="replace"), done)

    def _check(self, report: str, done: Completed) -> TestRun:
        try:
            reported = read_junit(report)
        except ValueError as problem:
            return TestRun(error=f"{self.toolchain.report} is not a JUnit report: {problem}", seconds=done.seconds)
        canary = self.toolchain.canary
        tests = tuple(test for test in reported if test.name != canary)
        seen = canary is None or [test.state for test in reported if test.name == canary] == ["failed"]
        tampered, error = None, None
        if not seen:
            tampered = f"{canary!r}, which must fail, was not seen failing"
        elif done.exit_code != 0 and not any(test.state == "failed" for test in reported):
            tampered = f"every test is reported as passed, but the exit code is {done.exit_code}"
        if not tests:
            error = f"no test ran; exit code {done.exit_code}: {last_output(done)}"
        return TestRun(tests=tests, error=error, seconds=done.seconds, tampered=tampered)


def read_junit(text: str) -> list[TestOutcome]:
    """Return the tests of a report that may be hostile. Raise `ValueError` if it is no report."""
    return [_outcome(test) for test in testcases_in(text)]


def testcases_in(text: str) -> list[ElementTree.Element]:
    """Return the `testcase` elements of a report that may be hostile. Raise `ValueError` if it is no report."""
    if len(text) > MAX_REPORT_SIZE:
        raise ValueError(f"it has {len(text)} characters, more than {MAX_REPORT_SIZE}")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - entities are refused above
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    return list(root.iter("testcase"))


def _outcome(test: ElementTree.Element) -> TestOutcome:
    name = " > ".join(part for part in (test.get("classname"), test.get("name")) if part)
    state: TestState = "passed"
    message = ""
    for child in test:
        if child.tag in {"failure", "error"}:
            state, message = "failed", child.get("message") or (child.text or "").strip()
        elif child.tag == "skipped" and state == "passed":
            state, message = "skipped", child.get("message") or ""
    try:
        seconds = float(test.get("time") or 0)
    except ValueError:
        seconds = 0.0
    seconds = seconds if 0 <= seconds < 1e9 else 0.0
    return TestOutcome(name=name, state=state, message=message[:_MAX_MESSAGE_LENGTH], seconds=seconds)
