"""Score components: the scorer `suite`, and the verification that result files and `TestComponent` show."""

from bakeoff._kernel.text import shorten
from bakeoff.doors.components.results.model import FailedTest, Validation, Verification
from bakeoff.doors.components.results.steps import RESULT_WRITE, extract_result_write_content
from bakeoff.grading.cases import GradedCase
from bakeoff.grading.grades import Grade, grade_answer, grade_nothing, share_metadata
from bakeoff.protocols import ScoreInput
from bakeoff.record import UNIT_TESTS, Score, Transcript

SUITE = "suite"
_MESSAGE = 4000  # characters of an error that are kept; a component may throw a text of any length
_FAILURES = 200  # tests that are named


async def score_component(case: GradedCase, given: ScoreInput) -> Score:
    """Score the component that was handed in: the share of tests that passed, and 1 only if it passes altogether."""
    component = case.settings.solution[0]
    content = extract_result_write_content(given.transcript.steps)
    if content is None:
        content = given.artefacts.get(component)
    if content is None:
        grade = await grade_nothing(case, missing_submission(given.transcript), given.resources)
    else:
        grade = await grade_answer(case, {component: content}, given.resources)
    verification = verification_of(case.name, grade)
    return Score(
        name=SUITE,
        value=verification.value,
        reason="" if grade.ok else grade.summary(),
        metadata={
            "verification": verification.model_dump(mode="json"),
            UNIT_TESTS: verification.unit_tests.model_dump(),
            **share_metadata(grade),
        },
    )


def missing_submission(transcript: Transcript) -> str:
    """Return why there is no component. A refused call is another mistake than no call at all."""
    refused = [call.error for call in transcript.tool_calls if call.name == RESULT_WRITE and call.error is not None]
    if not refused:
        return f"no component was handed in: `{RESULT_WRITE}` was not called"
    return f"no component was handed in: `{RESULT_WRITE}` was called and refused: {refused[-1]}"


def verification_of(suite: str, grade: Grade) -> Verification:
    """Return a grade in the terms of a result file."""
    messages = {test.name: test.message or "" for test in grade.run.tests if test.state != "passed"}
    named = [name for name in grade.failed if name in messages][:_FAILURES]
    failed = tuple(FailedTest(full_name=name, error_message=shorten(messages[name], _MESSAGE)) for name in named)
    outcome = grade.validation
    error = grade.problem or grade.error
    return Verification.known(
        test_name=suite,
        passed=grade.ok,
        num_tests=grade.total,
        num_passed=grade.passed.total(),
        num_failed=grade.failed.total(),
        duration=round(1000 * grade.run.seconds),
        error=None if error is None else shorten(error, _MESSAGE),
        failed_tests=failed,
        validation=None
        if outcome is None
        else Validation(
            valid=outcome.valid, errors=tuple(shorten(error, _MESSAGE) for error in outcome.errors[:_FAILURES])
        ),
        validation_failed=True if grade.refused else None,
    )
