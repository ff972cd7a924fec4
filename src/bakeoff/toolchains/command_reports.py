"""Make test commands report each test, and read the reports.

Normal output of an answer does not get into the report: `go test -json` reads a separate stream,
and libtest, JUnit, Catch and Jest write files. But the answer shares the runner's process, and
could forge the report. So the report only shows which tests ran; the proof is by `bakeoff.grading`.
"""

import re
import secrets
import shlex
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from pydantic import BaseModel

from bakeoff._kernel.json import json_object
from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Sandbox
from bakeoff.sandbox import open_place, put_files, take
from bakeoff.toolchains.outcome import (
    MAX_TESTS,
    TestOutcome,
    TestRun,
    TestState,
    check_program,
    last_output,
    stopped_by_limit,
    without_colours,
)
from bakeoff.toolchains.tracks import CPP, GO, JAVA, RUST, Track, split_command

MAX_REPORT_SIZE = 16 << 20
LIMITS = Limits(memory_mb=4096, processes=256, disk_mb=1024, output_kb=4096)

Reader = Callable[[str, str], list[TestOutcome]]
"""Reads the tests of a report, and messages from the printed output. Raises `ValueError` if it is not a report."""
_MESSAGE = 4000  # characters
_ELEMENTS = 5  # XML elements per test
_PYTEST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
_TESTS_BY_SCRIPT = re.compile(r"(?:(?:corepack\s+)?(?:yarn|pnpm)|(npm))(?:\s+run)?\s+test")
_JEST_SCRIPT = re.compile(r"(?:corepack\s+)?(?:(?:yarn|pnpm)\s+)?jest\b")
_RUST_TEST = re.compile(r"^(?=(?:ok|failed|ignored)\b)", re.MULTILINE)
_RUST_MESSAGE = re.compile(r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", re.MULTILINE | re.DOTALL)
_GO_PACKAGE = re.compile(r"^package\s+(\w+)", re.MULTILINE)
_GO_OUTPUT = "TestBakeoffOutput"
_MAX_NAME = 1000  # no reference has a test with a longer name
# Runs before all tests. Gives the runner its own stream, which prints do not reach.
_GO_FIRST = """package {package}

import (
	"os"
	"testing"
)

func {name}(t *testing.T) {{
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {{
		os.Stdout, os.Stderr = null, null
	}}
}}
"""
_GO_LOGGED = re.compile(r"^\s+\S+_test\.go:\d+: ")


@dataclass(frozen=True, slots=True)
class JunitToolchain:
    """The resource that runs the command `argv`, which writes a JUnit report.

    `canary` names a test of the suite that must fail, to show that the report is honest. A suite
    without a canary is trusted.
    """

    sandbox: Callable[[], Sandbox]
    argv: tuple[str, ...]
    report: str
    canary: str | None = None

    @property
    def key(self) -> str:
        return f"junit {self.report} {self.canary or ''} {' '.join(self.argv)}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator["OpenJunit"]:
        yield OpenJunit(self.sandbox(), self)


@dataclass(frozen=True, slots=True)
class OpenJunit:
    """Runs the command once for each candidate, in a separate folder."""

    sandbox: Sandbox
    toolchain: JunitToolchain

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        """Run the command in a new folder with these files, and return the reported tests.

        Raise `GraderError` if the command is not installed.
        """
        del tests  # the command decides which tests run
        chosen = self.toolchain
        async with open_place() as place:
            put_files(place, {name: text for name, text in files.items() if name != chosen.report})
            command = Command(chosen.argv, place, seconds, LIMITS, graded=True)
            done = await self.sandbox.run(command)
            taken = take(place.work, [chosen.report], max_bytes=MAX_REPORT_SIZE, max_files=1)
        await check_program(self.sandbox, command, done, chosen.argv[0])
        if done.stop != "exited":
            return stopped_by_limit(done)
        written = next(iter(taken.files.values()), None)
        if written is None:
            missing = f"no {chosen.report} was written; exit code {done.exit_code}: {last_output(done)}"
            return TestRun(error=missing, seconds=done.seconds)
        try:
            reported = read_junit(written.decode(errors="replace"))
        except ValueError as problem:
            return TestRun(error=f"{chosen.report} is not a JUnit report: {problem}", seconds=done.seconds)
        canary, tampered = chosen.canary, None
        ran = tuple(test for test in reported if test.name != canary)
        if canary is not None and [test.state for test in reported if test.name == canary] != ["failed"]:
            tampered = f"{canary!r}, which must fail, was not seen failing"
        elif done.exit_code != 0 and not any(test.state == "failed" for test in reported):
            tampered = f"every test is reported as passed, but the exit code is {done.exit_code}"
        error = None if ran else f"no test ran; exit code {done.exit_code}: {last_output(done)}"
        return TestRun(tests=ran, error=error, seconds=done.seconds, tampered=tampered)


def read_junit(text: str, between: str = " > ") -> list[TestOutcome]:
    """Return the tests in a report, which may be hostile. Raise `ValueError` if it is invalid.

    `between` joins class and name of a test.
    """
    if len(text) > MAX_REPORT_SIZE:
        raise ValueError(f"it has {len(text)} characters, more than {MAX_REPORT_SIZE}")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities")
    try:
        root = ElementTree.fromstring(text, ElementTree.XMLParser(target=_BoundedTree()))  # noqa: S314 - see above
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    return [_outcome(test, between) for test in root.iter("testcase")]


class _BoundedTree(ElementTree.TreeBuilder):
    """A tree builder that limits the number of elements, since too many take minutes to read."""

    elements = 0

    def start(self, tag: Any, attrs: Any, /) -> ElementTree.Element:
        self.elements += 1
        if self.elements > _ELEMENTS * MAX_TESTS:
            raise ValueError(f"it has more than {_ELEMENTS * MAX_TESTS} elements")
        return super().start(tag, attrs)


def _outcome(test: ElementTree.Element, between: str) -> TestOutcome:
    name = between.join(part for part in (test.get("classname"), test.get("name")) if part)
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
    return TestOutcome(name=name, state=state, message=message[:_MESSAGE], seconds=seconds)


@dataclass(frozen=True, slots=True)
class CommandReport:
    """How a command reports each test. Without reports, it counts as a single test."""

    command: str
    file: str
    read: Reader = lambda _text, _printed: []
    env: Mapping[str, str] = field(default_factory=dict)
    required: bool = False  # a run without a report is invalid
    files: Mapping[str, str] = field(default_factory=dict)
    """Additional files that the command needs for its report."""

    @classmethod
    def wanted(cls, command: str, track: Track, files: Mapping[str, str]) -> "CommandReport":
        """Return the settings with which a track's test command reports each test.

        Args:
            command: The track's command, without the part that installs.
            track: The track, whose runner decides the format.
            files: The files of the exercise; `package.json` shows whether a script runs Jest.
        """
        name = f"report-{secrets.token_hex(8)}"
        if command in _REPORTING:
            return _REPORTING[command](name, files)
        if track.runner == "pytest":
            env = {**_PYTEST, "PYTEST_ADDOPTS": f"--junitxml={name}.xml"}
            return cls(command, f"{name}.xml", _read_cases, env)
        by_script = _TESTS_BY_SCRIPT.fullmatch(command)
        scripts = (json_object(files.get("package.json", "")) or {}).get("scripts")
        if by_script and isinstance(scripts, dict) and _JEST_SCRIPT.match(str(scripts.get("test"))):
            arguments = f"--ci --json --outputFile={name}.json"
            return cls(f"{command} {'-- ' if by_script[1] else ''}{arguments}", f"{name}.json", _read_jest)
        return cls(command, f"{name}.none")

    def check(self, command: str, done: CommandResult, written: bytes | None) -> TestRun:
        """Return the tests that ran, by the report and the exit code."""
        text = (written or b"").decode(errors="replace")
        try:
            tests = self.read(text, done.stdout.decode(errors="replace"))
        except ValueError:  # not a report, so only the exit code counts
            tests = []
        words = without_colours(f"{text[-_MESSAGE:]}\n{last_output(done)}" if self.required else last_output(done))
        if not tests and self.required:
            said = f"`{command}` ended with exit code {done.exit_code} before any test: {words}"
            return TestRun(error=said[:_MESSAGE], seconds=done.seconds)
        if not tests:
            state: TestState = "passed" if done.ok else "failed"
            tests = [TestOutcome(name=command, state=state, message="" if done.ok else words, seconds=done.seconds)]
        failed = any(test.state == "failed" for test in tests)
        error = None if done.ok or failed else f"`{command}` ended with exit code {done.exit_code}: {words}"
        tampered = "a test failed, but the command ended with 0" if done.ok and failed else None
        return TestRun(tests=tuple(tests), error=error, seconds=done.seconds, tampered=tampered)


# --- Jest ---------------------------------------------------------------------------------------------------------


class _JestTest(BaseModel):
    ancestorTitles: list[str]
    title: str
    status: str
    failureMessages: list[str] = []


class _JestFile(BaseModel):
    assertionResults: list[_JestTest]


class _JestReport(BaseModel):
    testResults: list[_JestFile]


def _read_jest(text: str, _printed: str) -> list[TestOutcome]:
    tests = [test for file in _JestReport.model_validate_json(text).testResults for test in file.assertionResults]
    states: dict[str, TestState] = {"passed": "passed", "failed": "failed"}
    return [
        TestOutcome(
            name=" > ".join([*test.ancestorTitles, test.title]),
            state=states.get(test.status, "skipped"),
            message=_message(text.split("\n    at ")[0] for text in test.failureMessages),
        )
        for test in tests
    ]


# --- compiled languages -------------------------------------------------------------------------------------------


def _report_go(name: str, files: Mapping[str, str]) -> CommandReport:
    packages = {
        str(PurePosixPath(path).parent / "0_bakeoff_test.go"): found[1]
        for path, text in files.items()
        if path.endswith("_test.go") and (found := _GO_PACKAGE.search(text)) is not None
    }
    first = {path: _GO_FIRST.format(package=package, name=_GO_OUTPUT) for path, package in packages.items()}
    return CommandReport(f"go test -json ./... > {name}", name, _read_go, required=True, files=first)


def _read_go(text: str, _printed: str) -> list[TestOutcome]:
    """Read the events of `go test -json`. Tests that did not end are left out.

    If the process exits with 0, Go reports the running test as passed. So a test counts as passed
    only with its own `--- PASS` line. Those with subtests count only if they fail.
    """
    states: dict[str, TestState] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    printed, ended = defaultdict[str, list[str]](list), dict[str, TestState]()
    for event in filter(None, map(json_object, text.splitlines())):
        name, action = event.get("Test"), event.get("Action")
        if not isinstance(name, str) or name == _GO_OUTPUT or len(name) > _MAX_NAME:
            continue
        if action == "output":
            printed[name].append(str(event.get("Output", "")))
        elif action == "pass" and not any("--- PASS: " in line for line in printed[name]):
            ended[name] = "failed"
        elif action in states:
            ended[name] = states[action]
    cuts = [(name[:at], name) for name in ended for at, letter in enumerate(name) if letter == "/"]
    around = [(parent, name) for parent, name in cuts if parent in ended]
    excused = {parent for parent, name in around if ended[name] == "failed"}
    left_out = {
        parent
        for parent, _ in around
        if ended[parent] != "failed" or (parent in excused and not any(map(_GO_LOGGED.match, printed[parent])))
    }
    return [
        TestOutcome(name=name, state=state, message=_message(printed[name]) if state == "failed" else "")
        for name, state in sorted(ended.items())
        if name not in left_out
    ]


def _report_rust(name: str, files: Mapping[str, str]) -> CommandReport:
    """Return a command that runs test files separately, so that their reports stay apart."""
    targets = [path.stem for path in map(PurePosixPath, files) if path.parent.name == "tests" and path.suffix == ".rs"]
    runs = [
        f"cargo test --offline --test {shlex.quote(each)} -- --include-ignored --logfile={name}.{at} || failed=$?"
        for at, each in enumerate(targets)
    ]
    command = "; ".join(["failed=0", *runs, f"cat {name}.* > {name}", "exit $failed"])
    return CommandReport(command, name, _read_rust, required=True)


def _read_rust(text: str, printed: str) -> list[TestOutcome]:
    """Read the log of Rust's test programs, sorted by name, because tests run in parallel."""
    states: dict[str, TestState] = {"ok": "passed", "failed": "failed", "ignored": "skipped"}
    messages = dict(_RUST_MESSAGE.findall(printed))
    # The state, a note for failed or ignored tests, and the name.
    entries = [entry for entry in map(str.split, _RUST_TEST.split(text)) if len(entry) == 2 or entry[:1] != ["ok"]]
    return [
        TestOutcome(name=name, state=states[state], message=_message([messages.get(name, "")]))
        for name, state in sorted((entry[-1], entry[0].rstrip(":")) for entry in entries if entry[1:2])
        if state in states
    ]


def _read_cases(text: str, _printed: str) -> list[TestOutcome]:
    return read_junit(text)


def _report_catch(name: str, _files: Mapping[str, str]) -> CommandReport:
    command = f"{split_command(str(CPP.command))[1]} --reporter junit --out {name}"
    return CommandReport(command, name, _read_catch, required=True)


def _read_catch(text: str, _printed: str) -> list[TestOutcome]:
    """Read Catch's XML. Drop the classes, which only repeat the program's name."""
    return [test.model_copy(update={"name": test.name.partition(" > ")[2]}) for test in read_junit(text)]


def _message(parts: Iterable[str]) -> str:
    return without_colours("\n".join(part.strip() for part in parts)).strip()[:_MESSAGE]


_REPORTING: Mapping[str, Callable[[str, Mapping[str, str]], CommandReport]] = {
    str(GO.command): _report_go,
    # Only the exercise's tests, since answers may contain their own.
    str(RUST.command): _report_rust,
    str(JAVA.command): lambda name, _files: CommandReport(
        f"{JAVA.command} --reports-dir={name}", f"{name}/TEST-junit-jupiter.xml", _read_cases, required=True
    ),
    split_command(str(CPP.command))[1]: _report_catch,
}
"""The commands that can report each test, each with the function that changes them."""
