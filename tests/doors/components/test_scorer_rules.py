"""Test when a component passes, and what counts where it does not: every rule on plain data."""

from itertools import product
from typing import Any

import pytest

from bakeoff.doors.components.results.model import Verification
from bakeoff.doors.components.scoring import missing_submission, verification_of
from bakeoff.doors.components.scoring import test_report as report_of
from bakeoff.grading.cases import GradedCase
from bakeoff.grading.grades import Grade, compare_runs
from bakeoff.grading.references import ReferenceRun, reference_problem
from bakeoff.plan import Case, Grading
from bakeoff.record import Step, ToolCall, Transcript
from bakeoff.toolchains.outcome import TestOutcome, TestRun, ValidationOutcome

SETTINGS = Grading(runner="vitest", solution=("Component.svelte",), tests=("test.ts",), seconds=10.0)
CASE = GradedCase(Case(id="counter", prompt="", hidden={"test.ts": ""}), SETTINGS)
NAMES = ("counter > starts", "counter > counts", "counter > resets")
REFERENCE = ReferenceRun(names=NAMES)
FINE = ValidationOutcome(valid=True)
OBJECTS = ValidationOutcome(valid=False, errors=("uses $effect",))


def ran(states: str = "ppp", names: tuple[str, ...] = NAMES, **more: object) -> TestRun:
    words = {"p": "passed", "f": "failed", "s": "skipped"}
    tests = [
        TestOutcome.model_validate({"name": name, "state": words[state], "message": "boom" if state == "f" else ""})
        for name, state in zip(names, states, strict=True)
    ]
    return TestRun.model_validate({"tests": tests, "seconds": 0.25, **more})


def graded(run: TestRun, validation: ValidationOutcome | None = None) -> Grade:
    return compare_runs(CASE, REFERENCE, run, validation)


def verified(run: TestRun, validation: ValidationOutcome | None = None) -> Verification:
    return verification_of("counter", graded(run, validation))


def test_all_tests_of_the_reference_passed_is_a_pass() -> None:
    assert verified(ran()).model_dump(mode="json") == {
        "testName": "counter",
        "passed": True,
        "numTests": 3,
        "numPassed": 3,
        "numFailed": 0,
        "duration": 250,
        "failedTests": [],
    }


def test_a_failed_test_is_named_with_its_message_and_the_rest_counts() -> None:
    found = verified(ran("pfp"))
    assert (found.passed, found.num_passed, found.num_failed, found.value) == (False, 2, 1, 2 / 3)
    assert found.model_dump(mode="json")["failedTests"] == [{"fullName": "counter > counts", "errorMessage": "boom"}]


def test_what_the_validator_objects_to_fails_while_the_counts_are_what_ran() -> None:
    found = verified(ran("ppf"), OBJECTS)
    assert (found.num_passed, found.num_failed, found.value, found.passed) == (2, 1, 0.0, False)
    assert found.model_dump(mode="json")["validation"] == {"valid": False, "errors": ["uses $effect"]}
    assert found.model_dump(mode="json")["validationFailed"] is True
    content = verified(ran(), FINE).model_dump(mode="json")
    assert content["validation"] == {"valid": True, "errors": []}
    assert "validationFailed" not in content


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (TestRun(error="unexpected token"), "unexpected token"),
        (ran(stop="timeout"), "did not end within 10 s"),
        (ran(stop="crashed"), "ended before they did"),
        (ran(stop="memory"), "more memory"),
        (ran(tampered="expect was replaced"), "interfered with the tests: expect was replaced"),
        (ran("pp", NAMES[:2]), "missing: counter > resets"),
        (ran("pppp", (*NAMES, "counter > bonus")), "unknown: counter > bonus"),
        (ran("pppp", (*NAMES, NAMES[0])), "unknown: counter > starts"),
        (ran("pp", NAMES[:2], error="the module broke off"), "the module broke off"),
    ],
)
def test_a_run_that_is_not_whole_or_not_to_be_believed_is_0_of_n_with_the_reason(run: TestRun, why: str) -> None:
    found = verified(run, FINE)
    assert (found.passed, found.num_tests, found.num_passed, found.num_failed, found.value) == (False, 3, 0, 3, 0.0)
    assert found.error is not None
    assert why in found.error
    assert why in graded(run, FINE).summary()


@pytest.mark.parametrize(("states", "passed", "value"), [("ppf", 2, 2 / 3), ("ppp", 3, 2 / 3), ("fff", 0, 0.0)])
def test_an_error_outside_of_the_tests_fails_the_component_and_leaves_the_counts(
    states: str, passed: int, value: float
) -> None:
    run = ran(states, error="unhandled rejection: no network")
    found = verified(run, FINE)
    assert (found.passed, found.num_passed, found.num_failed, found.value) == (False, passed, 3 - passed, value)
    assert found.error == "unhandled rejection: no network"
    assert "no network" in graded(run, FINE).summary()


def test_a_test_that_the_component_had_skipped_is_not_passed() -> None:
    found = verified(ran("pps"))
    assert (found.passed, found.num_failed) == (False, 1)


def test_what_the_suite_itself_skips_counts_for_nobody() -> None:
    reference = ReferenceRun(names=NAMES, skipped=NAMES[2:])
    found = compare_runs(CASE, reference, ran("pps"))
    assert (found.ok, found.total, found.passed.total()) == (True, 2, 2)


def test_a_full_score_and_a_pass_are_the_same_whatever_happens() -> None:
    states = ("ppp", "ppf", "fff", "pps")
    changes: tuple[dict[str, Any], ...] = ({}, {"stop": "timeout"}, {"error": "x"}, {"tampered": "x"})
    for state, change, validation in product(states, changes, (None, FINE, OBJECTS)):
        found = verified(ran(state, **change), validation)
        assert (found.value == 1.0) == found.passed


def test_what_a_component_throws_is_kept_only_in_part() -> None:
    found = graded(TestRun(error="x" * 1_000_000))
    assert len(str(verification_of("counter", found).model_dump(mode="json"))) < 10_000
    assert len(found.summary()) <= 1000


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (ran("ppf"), "failed: counter > resets"),
        (ran(stop="timeout"), "it was ended: timeout"),
        (ran(tampered="must fail was not seen failing"), "not seen failing"),
        (ran("sss"), "no test ran"),
        (ran(), None),
    ],
)
def test_a_reference_serves_only_if_it_passes_its_own_tests(run: TestRun, why: str | None) -> None:
    problem = reference_problem(run)
    assert problem is None if why is None else problem is not None and why in problem


def test_the_last_refusal_says_why_there_is_nothing() -> None:
    calls = [
        ToolCall(name="ResultWrite", arguments={}, error="takes `content`"),
        ToolCall(name="ResultWrite", arguments='{"content": "half', error="its arguments are not JSON"),
        ToolCall(name="lookup", error="no such page"),
    ]
    told = missing_submission(Transcript(steps=(Step(parts=tuple(calls)),)))
    assert told == "no component was handed in: `ResultWrite` was called and refused: its arguments are not JSON"
    assert missing_submission(Transcript(steps=(Step(parts=(calls[2],)),))).endswith("`ResultWrite` was not called")


def test_the_test_tool_answers_in_the_shape_that_models_know() -> None:
    passed = report_of("counter", graded(ran(), FINE))
    assert passed == {
        "success": True,
        "message": "All 3 tests passed.",
        "passed": 3,
        "failed": 0,
        "total": 3,
        "duration": 250,
        "validation": {"valid": True, "errors": []},
    }
    failed = report_of("counter", graded(ran("pfp"), OBJECTS))
    assert failed["success"] is False
    assert failed["failedTests"] == [{"name": "counter > counts", "error": "boom"}]
    assert failed["validationFailed"] is True
    assert report_of("counter", graded(TestRun(error="unexpected token")))["error"] == "unexpected token"
