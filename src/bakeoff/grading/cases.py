"""Read how a case is graded, choose the toolchain, and run tests and validators with it."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import GraderError, UsageError
from bakeoff.plan import Case, Files, Grading, ScorerSpec, read_options
from bakeoff.protocols import Needs, Resource, Sandbox, ScoreInput
from bakeoff.record import Score
from bakeoff.toolchains.outcome import Grader, TestRun, ValidationOutcome, answered


@dataclass(frozen=True, slots=True)
class GradedCase:
    """A case with the settings for running its tests."""

    case: Case
    settings: Grading

    @property
    def name(self) -> str:
        return self.case.id

    @property
    def files(self) -> Files:
        """Return the folder that tests run in, before the answer and the validator are added."""
        hidden = {name: text for name, text in self.case.hidden.items() if name != self.settings.validator}
        return {**self.case.files, **hidden}

    @property
    def test_files(self) -> dict[str, str]:
        """Return the files that belong to the tests."""
        return {name: text for name, text in self.files.items() if name in self.settings.tests}

    @property
    def shown(self) -> "GradedCase":
        """Return the case with only the tests that the subject sees."""
        settings = self.settings.model_copy(update={"shown_tests": {}})
        hidden = {**self.case.hidden, **self.settings.shown_tests}
        return GradedCase(self.case.model_copy(update={"hidden": hidden, "grading": settings}), settings)

    @property
    def reference(self) -> Files:
        return self.case.reference

    @property
    def validator(self) -> str | None:
        return self.case.hidden[self.settings.validator] if self.settings.validator else None

    @property
    def is_exercise(self) -> bool:
        """Return True for an exercise, which passes as a whole. In suites, each test counts."""
        return bool(self.settings.track)

    def with_answer(self, answer: Mapping[str, str]) -> dict[str, str]:
        """Return the folder for running the tests on an answer."""
        return {**self.files, **answer}


def graded_case(case: Case) -> GradedCase:
    """Return a case with its grading settings. Raise `GraderError` if they are missing or wrong."""
    settings = case.grading
    if settings is None:
        raise GraderError(
            f"case {case.id!r} does not say how it is graded: an older version of bakeoff made the plan, "
            "or it was not made from suites or exercises; start a new run"
        )
    if settings.validator is not None and settings.validator not in case.hidden:
        raise GraderError(f"case {case.id!r}: its validator {settings.validator!r} is not among its hidden files")
    return GradedCase(case, settings)


@dataclass(frozen=True, slots=True)
class TestScorer:
    """A scorer for graded cases. `score` grades one trial."""

    __test__ = False  # keep pytest from collecting it

    name: str
    needs: Needs
    score: Callable[[GradedCase, ScoreInput], Awaitable[Score]]

    def check(self, case: Case) -> str | None:
        """Return why a case cannot be scored; None if it can."""
        try:
            graded_case(case)
        except GraderError as error:
            return str(error)
        return None

    def accepts_reference(self, case: Case) -> bool:
        """Return True if the case has reference files, which are a whole solution."""
        return bool(case.reference)

    async def __call__(self, given: ScoreInput) -> Score:
        return await self.score(graded_case(given.case), given)


def build_test_scorer(
    spec: ScorerSpec, score: Callable[[GradedCase, ScoreInput], Awaitable[Score]], resources: Sequence[Resource]
) -> TestScorer:
    """Build a scorer from a spec, which takes no options."""
    read_options(spec, FrozenModel)
    return TestScorer(spec.kind, Needs(resources=tuple(resources)), score)


VITEST = "vitest"
VALIDATOR_SECONDS = 30.0


def toolchain_for(settings: Grading, sandbox: Callable[[], Sandbox], slots: int = 1) -> Resource:
    """Return the resource for grading with these settings. Opening it gives a
    `bakeoff.toolchains.outcome.Grader`.

    `slots` is the number of answers that are tested at a time. Opening the resource installs and
    starts what it needs. Raise `GraderError` if no runner fits the settings.
    """
    if settings.track:
        from bakeoff.toolchains.exercises import ExerciseToolchain
        from bakeoff.toolchains.tracks import graded_track

        command = settings.command[0] if settings.command else None
        try:
            track = graded_track(settings.track, command)
        except UsageError as error:
            raise GraderError(str(error)) from error
        return ExerciseToolchain(
            sandbox, track, slots, run_skipped=settings.run_skipped, processes=settings.processes, command=command
        )
    if settings.runner == "vitest":
        from bakeoff.toolchains.vitest import VitestToolchain, framework_of

        framework = settings.framework or framework_of(settings.solution[0])
        if settings.browser:
            from bakeoff.toolchains.vitest import BrowserToolchain

            return BrowserToolchain(sandbox, slots, framework=framework)
        return VitestToolchain(sandbox, slots, framework=framework)
    if settings.runner == "pytest":
        from bakeoff.toolchains.pytest_runner import PytestToolchain

        return PytestToolchain(sandbox, settings.processes, slots)
    if settings.runner == "junit":
        from bakeoff.toolchains.command_reports import JunitToolchain

        return JunitToolchain(sandbox, settings.command, settings.report, settings.canary)
    raise GraderError(f"runner {settings.runner!r} grades exercises only, and the case names no track")


def toolchains_for(cases: Iterable[Case], sandbox: Callable[[], Sandbox], jobs: int) -> tuple[Resource, ...]:
    """Return the resources for grading these cases. Each job uses two processes at a time."""
    slots = min(2 * jobs, os.cpu_count() or 1)
    wanted: dict[str, Resource] = {}
    for case in map(graded_case, cases):
        settings = [case.settings]
        if _validator_language(case) == "ts":
            settings.append(_validating(case.settings))
        for each in settings:
            toolchain = toolchain_for(each, sandbox, slots)
            wanted.setdefault(toolchain.key, toolchain)
    return tuple(wanted.values())


async def run_tests(
    case: GradedCase,
    answer: Mapping[str, str],
    resources: Mapping[str, Any],
    tests: Mapping[str, str] | None = None,
    *,
    seconds: float | None = None,
    confirm: bool = False,
) -> TestRun:
    """Run the tests on an answer in a fresh folder.

    Args:
        case: The case.
        answer: The files of the answer.
        resources: The opened toolchains.
        tests: Test files that replace files of the same names.
        seconds: The time limit, if different from that of the case.
        confirm: Use our own runner, which confirms the result of the case's command.
    """
    grader: Grader = confirming_runner(case, resources) if confirm else _opened(case.settings, resources)
    files = {**case.with_answer(answer), **(tests or {})}
    return await answered(grader.run(files, tests=case.settings.tests, seconds=seconds or case.settings.seconds))


def confirming_runner(case: GradedCase, resources: Mapping[str, Any]) -> Any:
    """Return our own runner for a case that is tested by a command, or None."""
    return getattr(_opened(case.settings, resources), "confirming", None)


async def type_errors(case: GradedCase, answer: Mapping[str, str], resources: Mapping[str, Any]) -> str | None:
    """Return the type errors of an answer; None if there are none or types are not checked."""
    if not case.settings.type_check:
        return None
    found: str | None = await _opened(case.settings, resources).type_errors(
        case.with_answer(answer), case.settings.seconds
    )
    return found


async def run_validator(
    case: GradedCase, answer: Mapping[str, str], resources: Mapping[str, Any]
) -> ValidationOutcome | None:
    """Run the suite's validator on an answer. Return None if there is no validator.

    If the validator breaks only on the answer, the answer is refused. If it also breaks on the
    reference, raise `GraderError`.
    """
    language = _validator_language(case)
    if language is None or case.validator is None:
        return None
    from bakeoff.toolchains.validators import validate

    runner = _opened(case.settings if language == "py" else _validating(case.settings), resources)
    file, rest = case.settings.solution[0], (case.validator, language, VALIDATOR_SECONDS)
    try:
        return await validate(runner, answer[file], *rest)
    except GraderError as problem:
        if case.reference.get(file) in (None, answer[file]):
            raise
        await validate(runner, case.reference[file], *rest)
        why = f"the validator breaks on this answer, and not on the reference: {problem}"
        return ValidationOutcome(valid=False, errors=(why,))


def installation_of(case: GradedCase, resources: Mapping[str, Any]) -> str:
    """Return a text that changes with the installed packages that grade a case."""
    return str(_opened(case.settings, resources).toolchain.name) if case.settings.runner == VITEST else ""


def _validating(settings: Grading) -> Grading:
    """Return settings whose toolchain can run a TypeScript validator."""
    if settings.runner == VITEST:
        return settings.model_copy(update={"browser": False})
    return settings.model_copy(update={"runner": VITEST, "track": "", "framework": "svelte"})


def _opened(settings: Grading, resources: Mapping[str, Any]) -> Any:
    def unused() -> Sandbox:
        raise LookupError("only the key is needed")

    return resources[toolchain_for(settings, unused).key]


def _validator_language(case: GradedCase) -> Literal["ts", "py"] | None:
    if case.settings.validator is None:
        return None
    return "ts" if case.settings.validator.endswith(".ts") else "py"
