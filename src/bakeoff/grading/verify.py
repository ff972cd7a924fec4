"""Check that cases measure something: the reference passes, and answers that must fail do."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bakeoff.errors import GraderError, InfraError
from bakeoff.grading.cases import GradedCase, graded_case
from bakeoff.grading.grades import Grade, compare_runs, run_answer
from bakeoff.grading.references import ReferenceRun, as_reference, is_partly_sound, keep_reference, reference_problem
from bakeoff.grading.runners import run_tests, run_validator
from bakeoff.plan import Case


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """An answer that must fail. `problem` says what is wrong with the case if it passes."""

    name: str
    files: Mapping[str, str]
    problem: str


@dataclass(frozen=True, slots=True)
class VerificationCheck:
    """The grades of the answers to one case, by name. The case is fit for use if there are no `problems`."""

    case: Case
    grades: Mapping[str, Grade] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    reference: ReferenceRun | None = None

    @property
    def ok(self) -> bool:
        return not self.problems


async def verify_cases(
    cases: Sequence[tuple[Case, Sequence[WrongAnswer]]],
    resources: Mapping[str, Any],
    jobs: int,
    *,
    reference: str = "reference",
) -> list[VerificationCheck]:
    """Check cases, several at a time.

    Args:
        cases: Each case with the answers that must fail.
        resources: The opened toolchains and references.
        jobs: The number of cases that are checked at a time.
        reference: The users' word for the reference.
    """
    free = asyncio.Semaphore(jobs)

    async def check(case: Case, wrong: Sequence[WrongAnswer]) -> VerificationCheck:
        async with free:
            try:
                return await _check(graded_case(case), wrong, resources, reference)
            except (GraderError, InfraError) as error:
                return VerificationCheck(case, problems=(str(error),))

    return await asyncio.gather(*(check(case, wrong) for case, wrong in cases))


async def _check(
    case: GradedCase, wrong: Sequence[WrongAnswer], resources: Mapping[str, Any], name: str
) -> VerificationCheck:
    if not case.reference:
        return VerificationCheck(case.case, problems=(f"it has no {name}, so nothing shows that its tests can pass",))
    started = asyncio.get_running_loop().time()
    run = await run_tests(case, case.reference, resources)
    if (why := reference_problem(run)) is not None:
        partly = {name: compare_runs(case, as_reference(run), run)} if is_partly_sound(case, run) else {}
        return VerificationCheck(case.case, partly, (f"the {name} does not pass: {why}",), run.seconds)
    found = await keep_reference(case, run, resources)
    grades = {
        name: compare_runs(
            case,
            found,
            await run_answer(case, found, case.reference, resources),
            await run_validator(case, case.reference, resources),
        )
    }
    problems = [] if grades[name].ok else [f"the {name} does not pass: {grades[name].summary()}"]
    if found.type_errors is not None:
        problems.append(f"the {name} has {found.type_errors}; `--no-type-check` tests without types")
    for answer in wrong:
        grades[answer.name] = await _grade(case, found, answer, resources)
        problems += [answer.problem] if grades[answer.name].ok else []
    return VerificationCheck(case.case, grades, tuple(problems), asyncio.get_running_loop().time() - started, found)


async def _grade(case: GradedCase, found: ReferenceRun, answer: WrongAnswer, resources: Mapping[str, Any]) -> Grade:
    validation = await run_validator(case, answer.files, resources)
    return compare_runs(case, found, await run_answer(case, found, answer.files, resources), validation)
