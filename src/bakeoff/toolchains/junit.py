"""Any command that writes JUnit XML, as a toolchain; and the reader of such files."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from xml.etree import ElementTree

from bakeoff.errors import GraderError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Sandbox
from bakeoff.sandbox import open_place, put_files, take
from bakeoff.toolchains.outcome import RunStop, TestOutcome, TestRun, TestState

LARGEST_REPORT = 16 << 20
LIMITS = Limits(memory_mb=4096, processes=256, disk_mb=1024, output_kb=4096)
STOPS: dict[str, RunStop] = {"timeout": "timeout", "memory": "memory", "output": "output"}
_TAIL = 2000
_LONGEST_MESSAGE = 4000


@dataclass(frozen=True, slots=True)
class JunitToolchain:
    """The resource: `argv` runs in the folder of the files and writes its report there.

    A canary has to be written in the language of the tests, so the suite brings it: `canary` is the name of a test
    among its own that must fail. A suite without one is believed without one.
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
    """Runs the command once for each candidate, in a place of its own."""

    sandbox: Sandbox
    toolchain: JunitToolchain

    async def run(self, files: Mapping[str, str], *, seconds: float, test: str | None = None) -> TestRun:
        del test  # the command knows its tests
        chosen = self.toolchain
        async with open_place() as place:
            put_files(place, {name: text.encode() for name, text in files.items() if name != chosen.report})
            done = await self.sandbox.run(Command(chosen.argv, place, seconds, chosen.limits))
            taken = take(place.work, [chosen.report], max_bytes=LARGEST_REPORT, max_files=1)
        if done.exit_code == 127 and done.stop == "exited":
            raise GraderError(f"{chosen.argv[0]!r} cannot be run here: {last_words(done)}")
        if done.stop != "exited":
            return ended_by_limit(done)
        written = next(iter(taken.files.values()), None)
        if written is None:
            error = f"no {chosen.report} was written; exit code {done.exit_code}: {last_words(done)}"
            return TestRun(error=error, seconds=done.seconds)
        return self._judged(written.decode(errors="replace"), done)

    def _judged(self, report: str, done: Completed) -> TestRun:
        try:
            reported = read_junit(report)
        except ValueError as problem:
            return TestRun(error=f"{self.toolchain.report} is not a JUnit report: {problem}", seconds=done.seconds)
        canary = self.toolchain.canary
        tests = tuple(test for test in reported if test.name != canary)
        seen = canary is None or [test.state for test in reported if test.name == canary] == ["failed"]
        failed = any(test.state == "failed" for test in reported)
        tampered, error = None, None
        if not seen:
            tampered = f"{canary!r}, which must fail, was not seen failing"
        elif done.exit_code != 0 and not failed:
            tampered = f"every test is reported as passed, but the exit code is {done.exit_code}"
        if not tests:
            error = f"no test ran; exit code {done.exit_code}: {last_words(done)}"
        return TestRun(tests=tests, error=error, seconds=done.seconds, canary_seen=seen, tampered=tampered)


def ended_by_limit(done: Completed) -> TestRun:
    stop = STOPS.get(done.stop, "crashed")
    return TestRun(error=f"ended by the {done.stop} limit", stop=stop, seconds=done.seconds)


def read_junit(text: str) -> list[TestOutcome]:
    """The tests of a report that may be hostile; `ValueError` where it is none."""
    if len(text) > LARGEST_REPORT:
        raise ValueError(f"it has {len(text)} characters, and {LARGEST_REPORT} are the most")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - entities are refused above
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    return [_outcome(test) for test in root.iter("testcase")]


def _outcome(test: ElementTree.Element) -> TestOutcome:
    name = " > ".join(part for part in (test.get("classname"), test.get("name")) if part)
    state: TestState = "passed"
    message = ""
    for child in test:
        if child.tag in {"failure", "error"}:
            state, message = "failed", child.get("message") or (child.text or "").strip()
        elif child.tag == "skipped" and state == "passed":
            state, message = "skipped", child.get("message") or ""
    return TestOutcome(name=name, state=state, message=message[:_LONGEST_MESSAGE], seconds=_seconds(test.get("time")))


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text or 0)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 1e9 else 0.0


def last_words(done: Completed) -> str:
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
    return text[-_TAIL:] or "no output"
