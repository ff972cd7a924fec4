"""One grading for suites and exercises: settings in the case, one choice of toolchain, one rule for a grade."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.clock import CLOCK, Clock
from bakeoff.doors import door_of
from bakeoff.engine.trial import phase
from bakeoff.errors import GraderError
from bakeoff.grading.cases import GradedCase, graded_case, toolchain_for, toolchains_for
from bakeoff.grading.grades import Grade, compare_runs, grade_answer, share_metadata
from bakeoff.grading.references import REFERENCES, OpenReferences, ReferenceRun
from bakeoff.grading.syntax import SyntaxEdit
from bakeoff.grading.twins import Twin, Twins
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Grading, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Sandbox
from bakeoff.toolchains.outcome import TestOutcome, TestRun, run_each

BASE: dict[str, Any] = {"runner": "pytest", "solution": ("a.py",), "tests": ("test_a.py",), "seconds": 5.0}


def case(**settings: Any) -> Case:
    hidden = {"test_a.py": "", "validator.ts": "", "validator.py": ""}
    return Case(id="a", prompt="?", hidden=hidden, grading=Grading.model_validate({**BASE, **settings}))


def no_sandbox() -> Sandbox:
    raise LookupError


def ran(*states: str, **more: Any) -> TestRun:
    tests = [{"name": f"test {number}", "state": state} for number, state in enumerate(states)]
    return TestRun.model_validate({"tests": tests, **more})


def graded(run: TestRun, reference: ReferenceRun | None, **settings: Any) -> Grade:
    return compare_runs(graded_case(case(**settings)), reference, run)


@pytest.mark.parametrize("door", ["components", "agents"])
def test_a_plan_of_an_older_version_is_refused_with_the_way_out(door: str, tmp_path: Path) -> None:
    old = Case(id="counter", prompt="?", tags={"runner": "pytest", "test": "test_a.py", "seconds": "30"})
    plan = Plan(
        name="old",
        cases=(old,),
        subjects=(SubjectSpec(kind="nop", name="nop"),),
        scorers=(ScorerSpec(kind="suite"),),
        door=door,
    )
    with pytest.raises(GraderError, match=r"case 'counter' does not say how it is graded: .*start a new run"):
        door_of(plan).registry(plan, RunOptions(results=tmp_path))


def test_a_validator_that_is_not_there_is_named() -> None:
    with pytest.raises(GraderError, match=r"its validator 'other\.ts' is not among its hidden files"):
        graded_case(case(validator="other.ts"))


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({}, ["pytest"]),
        ({"runner": "vitest"}, ["vitest-typescript"]),
        ({"runner": "vitest", "solution": ["A.tsx"]}, ["vitest-react"]),
        ({"runner": "vitest", "solution": ["A.vue"], "validator": "validator.ts"}, ["vitest-vue"]),
        ({"runner": "vitest", "framework": "react"}, ["vitest-react"]),
        ({"runner": "vitest", "solution": ["A.vue"], "browser": True}, ["browser-vue"]),
        (
            {"runner": "vitest", "browser": True, "validator": "validator.ts"},
            ["browser-typescript", "vitest-typescript"],
        ),
        ({"validator": "validator.ts"}, ["pytest", "vitest-svelte"]),
        ({"validator": "validator.py"}, ["pytest"]),
        ({"runner": "junit", "command": ("make", "test")}, ["junit report.xml  make test"]),
        ({"track": "python"}, ["exercises python"]),
        ({"runner": "command", "track": "rust", "command": ("cargo test",)}, ["exercises rust by cargo test"]),
        ({"track": "python", "run_skipped": False}, ["exercises python without skipped tests"]),
        ({"processes": True}, ["pytest with processes"]),
        ({"track": "python", "processes": True}, ["exercises python with processes"]),
    ],
)
def test_a_case_needs_the_toolchains_of_its_tests_and_its_validator(settings: dict[str, Any], keys: list[str]) -> None:
    twice = [case(**settings), case(**settings).model_copy(update={"id": "b"})]
    assert [resource.key for resource in toolchains_for(twice, no_sandbox, 2)] == keys


def test_a_language_without_a_runner_needs_a_command() -> None:
    with pytest.raises(GraderError, match="pass --test-command"):
        toolchain_for(Grading.model_validate({**BASE, "track": "rust"}), no_sandbox)
    with pytest.raises(GraderError, match="grades exercises only"):
        toolchain_for(Grading.model_validate({**BASE, "runner": "jest"}), no_sandbox)


def test_tests_never_see_the_validator_and_answers_lie_over_pristine_files() -> None:
    found = graded_case(case(validator="validator.py"))
    assert found.with_answer({"a.py": "1"}) == {"test_a.py": "", "validator.ts": "", "a.py": "1"}


def test_an_error_outside_of_the_tests_voids_an_exercise_and_leaves_a_suite_its_counts() -> None:
    reference = ReferenceRun(names=("test 0", "test 1"))
    run = ran("passed", "passed", error="unhandled rejection")
    suite, exercise = graded(run, reference), graded(run, reference, track="python")
    assert (suite.ok, suite.passed.total(), suite.problem, suite.error) == (False, 2, None, "unhandled rejection")
    assert (exercise.ok, exercise.passed.total(), exercise.problem) == (False, 0, "unhandled rejection")


def test_a_command_that_our_own_runner_does_not_confirm_does_not_count() -> None:
    settings = {"runner": "command", "track": "python", "command": ("pytest",)}
    grade = graded(ran("passed", unconfirmed="test 0 fails"), ReferenceRun(names=("test 0",)), **settings)
    assert not grade.ok
    assert grade.problem == "the command says that the tests pass, but run apart from it they do not: test 0 fails"


def test_without_a_reference_every_test_counts_that_is_not_always_skipped() -> None:
    run = ran("passed", "skipped")
    strict = compare_runs(graded_case(case(track="python")), None, run)
    lenient = compare_runs(graded_case(case(track="python")), None, run, skipped=["test 1"])
    assert (strict.ok, strict.total, lenient.ok, lenient.total) == (False, 2, True, 1)
    assert not compare_runs(graded_case(case(track="python")), None, ran()).ok


async def test_test_files_share_one_limit_and_the_first_unfinished_one_is_the_last() -> None:
    limits: list[float] = []

    async def run_file(name: str, seconds: float) -> TestRun:
        limits.append(seconds)
        stop = "timeout" if name == "b" else "finished"
        outcome = TestOutcome(name=name, state="passed")
        return TestRun.model_validate({"tests": [outcome], "stop": stop, "seconds": 4.0})

    run = await run_each(run_file, ["a", "b", "c"], 10.0)
    assert limits == [10.0, 6.0]
    assert ([test.name for test in run.tests], run.stop, run.seconds) == (
        ["a", "b"],
        "timeout",
        8,
    )


def test_a_graded_case_is_the_case_with_its_settings() -> None:
    made = case()
    assert made.grading is not None
    assert graded_case(made) == GradedCase(made, made.grading)


def test_a_grade_names_the_tests_that_are_not_proven() -> None:
    twins = Twins(twins=(Twin(file="test_a.py", edits=((SyntaxEdit(0, 1, "2"),),), tests=(0,)),))
    found = graded(ran("passed", "passed"), ReferenceRun(names=("test 0", "test 1"), twins=twins))
    assert found.summary() == "2 of 2 tests passed; 1 of 2 tests proven"
    assert share_metadata(found)["tests_unproven"] == ["test 1"]
    assert share_metadata(found)["tests_proven"] == {"proven": 1, "total": 2}


def test_a_test_that_only_a_negation_fails_is_not_proven() -> None:
    negated = Twin(file="test_a.py", change="negation", edits=((SyntaxEdit(0, 1, "2"),),), tests=(0,))
    reference = ReferenceRun(names=("test 0", "test 1"), twins=Twins(twins=(negated,)))
    assert str(reference.proven_tests) == "not proven against forgery"
    assert list(reference.advice.values()) == [("test 0",), ("test 1",)]


class SlowGrader:
    """Hold up the run of an answer until the clock of its scoring would have rung."""

    async def run(self, files: Mapping[str, str], *, tests: Sequence[str] = (), seconds: float) -> TestRun:
        del tests, seconds
        if "a.py" in files:
            clock = CLOCK.get()
            await asyncio.sleep(clock.began + clock.seconds - asyncio.get_running_loop().time() + 0.01)
        return TestRun(tests=(TestOutcome(name="a", state="failed"),))


async def test_a_slow_answer_does_not_turn_its_failure_into_a_late_scoring(tmp_path: Path) -> None:
    resources = {"pytest": SlowGrader(), REFERENCES: OpenReferences(tmp_path, "verify")}
    step = partial(grade_answer, graded_case(case()), {"a.py": "slow"}, resources)
    grade, outcome = await phase(step, Clock(0.3), "grader", "grader")
    assert outcome.failure is None
    assert grade is not None
    assert (grade.ok, grade.failed.total()) == (False, 1)
