"""Grading one component: validator first, tests regardless, and both compared with what the reference did."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bakeoff.doors.components.cases import Grading
from bakeoff.doors.components.references import reference_of
from bakeoff.doors.components.results.model import FailedTest, Validation, Verification
from bakeoff.doors.components.runners import run_tests, run_validator
from bakeoff.toolchains.outcome import TestRun, ValidationOutcome
from bakeoff.toolchains.references import ReferenceRun

_MESSAGE = 4000  # characters of an error that are kept: what a component throws may be of any length
_FAILURES = 200  # tests that are named
_ENDINGS = {
    "timeout": "the tests did not end within {seconds:g} s",
    "crashed": "the process that ran the tests ended before they did",
    "memory": "the tests took more memory than they may",
    "output": "the tests wrote more output than they may",
}


def summary(found: Verification) -> str:
    """The outcome in a sentence."""
    counts = f"{found.num_passed} of {found.num_tests} tests passed"
    told = [] if found.error is None else [_first_line(found.error)]
    if found.validation_failed and found.validation is not None:
        told.append(f"the validator objects: {'; '.join(found.validation.errors) or 'it does not say to what'}")
    if found.failed_tests and not told:
        told.append(f"failed: {', '.join(test.full_name for test in found.failed_tests)}")
    return cut(f"{counts}; {'; '.join(told)}" if told else counts, 1000)


async def verify_component(content: str, grading: Grading, resources: Mapping[str, Any]) -> Verification:
    """What a component is worth."""
    reference = await reference_of(grading, resources)
    validation = await run_validator(content, grading, resources)
    run = await run_tests(content, grading, resources)
    return judge(grading, reference, run, validation)


async def verify_nothing(why: str, grading: Grading, resources: Mapping[str, Any]) -> Verification:
    """One that was never handed in fails every test there is.

    The validator is asked about the reference: a suite whose validator is broken must count for nobody, or those who
    handed something in would be measured by fewer tests than those who did not.
    """
    reference = await reference_of(grading, resources)
    await run_validator(grading.reference, grading, resources)
    return _unrun(grading, reference, cut(why))


def judge(
    grading: Grading, reference: ReferenceRun, run: TestRun, validation: ValidationOutcome | None
) -> Verification:
    """Pass only if the validator is content, everything ran and passed, and it was what the reference ran."""
    problem = _problem(grading, reference, run)
    outside = None if run.error is None else cut(run.error)  # it fails the component, and leaves its tests their word
    refused = validation is not None and not validation.valid
    wanted = Counter(reference.counted)
    believed = run.tests if problem is None else ()
    passed = wanted & Counter(test.name for test in believed if test.state == "passed")
    failed = wanted - passed
    return Verification.known(
        test_name=grading.suite,
        passed=problem is None and outside is None and not refused and not failed,
        num_tests=wanted.total(),
        num_passed=passed.total(),
        num_failed=failed.total(),
        duration=round(1000 * run.seconds, 3),
        error=problem or outside,
        failed_tests=_failures(run, failed),
        validation=_validation(validation),
        validation_failed=True if refused else None,
    )


def _problem(grading: Grading, reference: ReferenceRun, run: TestRun) -> str | None:
    """Why none of what was reported counts; None where it does."""
    if run.tampered is not None:
        return cut(f"the component interfered with the tests: {run.tampered}")
    if run.stop in _ENDINGS:
        return cut(run.error or _ENDINGS[run.stop].format(seconds=grading.seconds))
    unseen = grading.has_canary and not run.canary_seen
    others = Counter(test.name for test in run.tests) != Counter(reference.names)
    if run.error is not None and (unseen or others):
        return cut(run.error)
    if unseen:
        return "a test that had to fail was not seen failing: the component interfered with the tests"
    return _other_tests(reference, run) if others else None


def _other_tests(reference: ReferenceRun, run: TestRun) -> str:
    wanted, seen = Counter(reference.names), Counter(test.name for test in run.tests)
    told = [
        f"{what} {', '.join(list(names)[:5])}"
        for what, names in (("missing:", wanted - seen), ("unknown:", seen - wanted))
        if names
    ]
    return cut(f"the tests that ran are not those of the reference ({'; '.join(told)})")


def _failures(run: TestRun, failed: Counter[str]) -> tuple[FailedTest, ...] | None:
    messages = {test.name: test.message or "" for test in run.tests if test.state != "passed"}
    named = [name for name in failed if name in messages][:_FAILURES]
    return tuple(FailedTest(full_name=name, error_message=cut(messages[name])) for name in named) or None


def _validation(outcome: ValidationOutcome | None) -> Validation | None:
    if outcome is None:
        return None
    return Validation(valid=outcome.valid, errors=tuple(cut(error) for error in outcome.errors[:_FAILURES]))


def _unrun(grading: Grading, reference: ReferenceRun, why: str) -> Verification:
    total = len(reference.counted)
    return Verification(
        test_name=grading.suite, passed=False, num_tests=total, num_passed=0, num_failed=total, duration=0.0, error=why
    )


def cut(text: str, most: int = _MESSAGE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), text)
