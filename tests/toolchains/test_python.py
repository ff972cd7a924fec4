"""Suites of Python under pytest, and any command that writes JUnit XML."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bakeoff.errors import GraderError, InfraError
from bakeoff.protocols import Command, CommandResult, Sandbox
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains.command_reports import JunitToolchain, read_junit
from bakeoff.toolchains.install import pytest_folders
from bakeoff.toolchains.outcome import TestOutcome, TestRun
from bakeoff.toolchains.pytest_runner import OpenPytest, PytestToolchain
from bakeoff.toolchains.tracks import undo_later_skips

SECONDS = 60.0
TEST = """
import pytest
from solution import add

def test_adds():
    assert add(1, 2) == 3

class TestMore:
    @pytest.mark.parametrize("number", [1, 2])
    def test_doubles(self, number):
        assert add(number, number) == 2 * number

    @pytest.mark.skip(reason="not today")
    def test_skips(self): ...
"""
NAMES = ["test_adds", "TestMore > test_doubles[1]", "TestMore > test_doubles[2]", "TestMore > test_skips"]
RIGHT = "def add(a, b):\n    return a + b\n"


@pytest.fixture
async def python() -> AsyncIterator[OpenPytest]:
    async with PytestToolchain(lambda: choose_sandbox("auto")).open() as opened:
        yield opened


async def run(python: OpenPytest, solution: str, seconds: float = SECONDS) -> TestRun:
    return await python.run({"solution.py": solution, "test_solution.py": TEST}, seconds=seconds)


async def test_a_right_solution_passes_under_the_names_of_its_tests(python: OpenPytest) -> None:
    found = await run(python, RIGHT)
    assert found.ok, found
    assert [test.name for test in found.tests] == NAMES
    assert [test.state for test in found.tests] == ["passed", "passed", "passed", "skipped"]


async def test_a_message_that_is_no_valid_text_is_told_all_the_same(python: OpenPytest) -> None:
    found = await run(python, "def add(a, b):\n    raise ValueError('half \\ud800 of a pair')\n")
    assert found.tampered is None
    assert [test.state for test in found.tests] == ["failed", "failed", "failed", "skipped"]
    assert "half ? of a pair" in found.tests[0].message


def test_lines_are_counted_as_python_counts_them() -> None:
    source = 'WORDS = "a\x0cb"\n\ndef test_a(): ...\n\n@unittest.skip("later")\ndef test_b(): ...\n'
    assert undo_later_skips(source) == source.replace('@unittest.skip("later")', "")


@dataclass(frozen=True)
class OtherPython:
    """A sandbox with an interpreter of its own, as containers have one."""

    program: Path
    inner: Sandbox
    name: str = "bwrap"

    async def run(self, command: Command) -> CommandResult:
        argv = (str(self.program), *command.argv[1:])
        return await self.inner.run(replace(command, argv=argv, readable=(*command.readable, self.program)))


async def test_a_python_that_does_not_run_is_no_fault_of_the_solution(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no standard library >&2\nexit 1\n")
    program.chmod(0o755)
    python = OpenPytest(OtherPython(program, choose_sandbox("auto")), pytest_folders())
    with pytest.raises(InfraError, match=r"(?s)its Python cannot run pytest.*no standard library"):
        await run(python, RIGHT)
    await python.aclose()


async def test_a_pytest_that_cannot_be_imported_is_no_fault_of_the_solution(tmp_path: Path) -> None:
    (tmp_path / "_pytest").mkdir(mode=0o755)
    (tmp_path / "_pytest" / "__init__.py").write_text("raise ImportError('half an installation')\n")
    tmp_path.chmod(0o755)
    python = OpenPytest(choose_sandbox("auto"), (tmp_path,))
    with pytest.raises(InfraError, match="half an installation"):
        await run(python, RIGHT)
    await python.aclose()


async def test_a_failed_test_says_what_was_asserted(python: OpenPytest) -> None:
    found = await run(python, "def add(a, b):\n    return 3\n")
    assert not found.ok
    assert [test.state for test in found.tests] == ["passed", "failed", "failed", "skipped"]
    assert found.tests[1].message == "assert 3 == (2 * 1)\n +  where 3 = add(1, 1)"


async def test_a_solution_that_is_no_python_is_an_error_with_its_line(python: OpenPytest) -> None:
    found = await run(python, "def add(a, b:\n")
    assert found.tests == ()
    assert found.error is not None
    assert 'solution.py", line 1' in found.error
    assert "SyntaxError" in found.error


ATTACKS = {
    "exits at once": "import os; os._exit(0)",
    "exits politely": "raise SystemExit(0)",
    "prints a result": 'print(\'{"tests": [], "error": "", "changed": null}\'); import os; os._exit(0)',
    "prints a last line": 'import os; print(\'{"error": "", "interrupted": ""}\', flush=True); os._exit(0)',
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_fails(python: OpenPytest, name: str) -> None:
    found = await run(python, ATTACKS[name])
    assert not found.ok, found


async def test_a_loop_ends_at_its_limit(python: OpenPytest) -> None:
    found = await run(python, "while True: pass", seconds=3.0)
    assert (found.stop, found.tests) == ("timeout", ())


async def test_no_variable_of_the_host_is_seen(python: OpenPytest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", "sk-planted")
    found = await run(python, "import os\nraise RuntimeError(str(dict(os.environ)))")
    assert "PATH" in (found.error or "")
    assert "sk-planted" not in (found.error or "")


async def test_another_test_file_can_be_chosen(python: OpenPytest) -> None:
    files = {"solution.py": RIGHT, "checks.py": TEST}
    assert (await python.run(files, seconds=SECONDS, tests=["checks.py"])).ok
    with pytest.raises(GraderError, match=r"'test_solution\.py' is not among the files: checks\.py, solution\.py"):
        await python.run(files, seconds=SECONDS)


# ----------------------------------------------------------------------------------------------------------- JUnit

REPORT = """<?xml version="1.0"?><testsuites><testsuite name="s">
<testcase classname="A" name="one" time="0.5"/>
<testcase name="two"><failure message="was 3">long</failure></testcase>
<testcase name="three"><skipped/></testcase>
<testcase name="canary"><failure>as it must</failure></testcase>
</testsuite></testsuites>"""


def writer(report: str, code: int = 1) -> tuple[str, ...]:
    return (sys.executable, "-c", f"open('out.xml', 'w').write({report!r}); raise SystemExit({code})")


async def junit(argv: tuple[str, ...], canary: str | None = None, seconds: float = SECONDS) -> TestRun:
    async with JunitToolchain(lambda: choose_sandbox("auto"), argv, "out.xml", canary).open() as opened:
        return await opened.run({"out.xml": REPORT}, seconds=seconds)


async def test_a_report_is_read_and_its_canary_removed() -> None:
    found = await junit(writer(REPORT), canary="canary")
    assert found.tests == (
        TestOutcome(name="A > one", state="passed", seconds=0.5),
        TestOutcome(name="two", state="failed", message="was 3"),
        TestOutcome(name="three", state="skipped"),
    )
    assert found.tampered is None


async def test_a_canary_that_passes_is_not_believed() -> None:
    found = await junit(writer(REPORT.replace("<failure>as it must</failure>", "")), canary="canary")
    assert found.tampered == "'canary', which must fail, was not seen failing"


async def test_a_suite_without_a_canary_is_believed_without_one() -> None:
    found = await junit(writer('<testsuite><testcase name="a"/></testsuite>', code=0))
    assert found.ok


async def test_a_report_that_came_with_the_files_is_not_taken() -> None:
    found = await junit((sys.executable, "-c", ""))
    assert found.error is not None
    assert found.error.startswith("no out.xml was written; exit code 0")


async def test_all_passed_and_a_bad_exit_code_do_not_go_together() -> None:
    found = await junit(writer('<testsuite><testcase name="a"/></testsuite>', code=3))
    assert found.tampered == "every test is reported as passed, but the exit code is 3"


async def test_a_command_that_hangs_or_is_missing() -> None:
    assert (await junit((sys.executable, "-c", "while True: pass"), seconds=2.0)).stop == "timeout"
    with pytest.raises(GraderError, match="'no-such-program-here' cannot be run here"):
        await junit(("no-such-program-here",))


@pytest.mark.parametrize("text", ["", "<a", '<!DOCTYPE a [<!ENTITY b "c">]><a/>'])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_junit(text)
