"""Whatever graded code does to itself is its own failure, and what it cannot cause is ours."""

import sys

import pytest
from scripts.hostile.deaths import GRADERS, INSTALLED, REPORTS, SOURCES, excuses

from bakeoff.errors import GraderError, InfraError
from bakeoff.grading.cases import graded_case, run_validator
from bakeoff.plan import Case, Grading
from bakeoff.protocols import Command, CommandResult, Sandbox
from bakeoff.sandbox import choose_sandbox
from bakeoff.toolchains import pytest_runner
from bakeoff.toolchains.command_reports import JunitToolchain, read_junit
from bakeoff.toolchains.outcome import MAX_TESTS, TestOutcome, TestRun, answered
from bakeoff.toolchains.pytest_runner import PytestToolchain


@pytest.mark.full
@pytest.mark.parametrize("grader", INSTALLED)
async def test_no_way_to_die_is_excused(grader: str) -> None:
    ways = [*GRADERS[grader].ways, *SOURCES]
    assert len(ways) >= 60
    assert await excuses(grader, choose_sandbox("auto"), ways) == {}


@pytest.mark.parametrize("report", [name for name in REPORTS if "flood" not in name and "never" not in name])
def test_a_report_is_read_or_refused_and_never_breaks_the_reader(report: str) -> None:
    text = eval(REPORTS[report])
    text = text if isinstance(text, str) else text.decode(errors="replace")
    try:
        tests = read_junit(text)
    except ValueError:
        return
    assert all(isinstance(test, TestOutcome) for test in tests)


async def test_what_cannot_be_read_and_what_is_too_much_is_the_answers() -> None:
    async def broken(problem: Exception) -> TestRun:
        raise problem

    async def flood() -> TestRun:
        return TestRun(tests=(TestOutcome(name="a", state="passed"),) * (MAX_TESTS + 1))

    for problem in (ValueError("no JSON"), RecursionError("deep"), MemoryError(), UnicodeError("half a pair")):
        run = await answered(broken(problem))
        assert (run.stop, run.ok) == ("crashed", False)
    assert not (await answered(flood())).ok
    for ours in (InfraError("no sandbox"), GraderError("no program"), OSError("the disk is full")):
        with pytest.raises(type(ours)):
            await answered(broken(ours))


async def test_exit_code_127_is_ours_only_if_the_program_is_missing_without_an_answer() -> None:
    def toolchain(*argv: str) -> JunitToolchain:
        return JunitToolchain(lambda: choose_sandbox("process"), argv, "report.xml")

    async with toolchain("sh", "-c", "exit 127").open() as grader:
        run = await grader.run({}, seconds=20.0)
        assert "exit code 127" in (run.error or "")
    async with toolchain("no-such-runner").open() as grader:
        with pytest.raises(GraderError, match="'no-such-runner' cannot be run here"):
            await grader.run({}, seconds=20.0)


class Ending:
    """A sandbox in which every command ends in one way."""

    name = "ending"

    def __init__(self, result: CommandResult) -> None:
        self.result = result

    async def run(self, command: Command) -> CommandResult:
        del command
        return self.result


@pytest.mark.parametrize("stop", ["exited", "timeout", "memory", "killed"])
async def test_a_runner_that_never_got_to_the_answer_is_ours(stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytest_runner, "python_in", lambda _sandbox: sys.executable)
    result = CommandResult(1, b"", b"no such interpreter", 1.0, stop)  # type: ignore[arg-type]
    sandbox: Sandbox = Ending(result)
    async with PytestToolchain(lambda: sandbox).open() as grader:
        with pytest.raises(InfraError, match="tests cannot be run in this sandbox"):
            await grader.run({"test_solution.py": ""}, seconds=1.0)


@pytest.mark.parametrize(("breaks_on", "is_ours"), [("bad", False), ("", True)])
async def test_a_validator_that_breaks_on_one_answer_refuses_it(breaks_on: str, is_ours: bool) -> None:
    validator = (
        f"def validate(code):\n    assert {breaks_on!r} not in code\n    return {{'valid': True, 'errors': []}}\n"
    )
    names = {"solution": ("solution.py",), "tests": ("test_solution.py",), "validator": "validator.py"}
    case = Case(
        id="one",
        prompt="",
        hidden={"test_solution.py": "", "validator.py": validator},
        reference={"solution.py": "good"},
        grading=Grading(runner="pytest", seconds=20.0, **names),
    )
    toolchain = PytestToolchain(lambda: choose_sandbox("process"))
    async with toolchain.open() as opened:
        asked = run_validator(graded_case(case), {"solution.py": "bad"}, {toolchain.key: opened})
        if is_ours:
            with pytest.raises(GraderError, match="AssertionError"):
                await asked
            return
        found = await asked
    assert found is not None
    assert not found.valid
    assert "breaks on this answer, and not on the reference" in found.errors[0]
