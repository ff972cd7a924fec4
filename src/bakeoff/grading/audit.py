"""Check without a model that cases measure something: `verify_cases` fast, `audit_cases` fully.

Each case is graded with answers of known verdict. The reference must always pass. The starting
files, the suite's wrong answers and all cheats must fail. The tests must notice small faults in the
reference (`mutants.py`). An audit includes all checks of `verify_cases`.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, ValidationError

from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import FrozenModel, fingerprint, first_problem
from bakeoff._version import __version__
from bakeoff.errors import GraderError, InfraError, UsageError
from bakeoff.grading.attacks import SAMPLE, SLOW, HostileSolution, attacks_on
from bakeoff.grading.cases import GradedCase, graded_case, run_tests, run_validator
from bakeoff.grading.grades import Grade, compare_runs, first_line, run_answer
from bakeoff.grading.mutants import Mutant, choose_mutants, find_mutants
from bakeoff.grading.references import (
    ReferenceRun,
    grading_digest,
    is_partly_usable,
    keep_reference,
    reference_problem,
)
from bakeoff.plan import Case
from bakeoff.toolchains.outcome import TestRun

FORMAT = 2
Fate: TypeAlias = Literal["killed", "survived", "equivalent"]
_MIN_SECONDS, _TIMES_LONGER = 10.0, 5  # a mutant or a cheat may never end
_NAMED = 3
_MAX_RUN_SECONDS = 60.0  # for all runs that search for flaky tests, if each were as fast as the fastest
_MIN_RUNS = 5
_SHINGLE = 5  # length of a sequence of words and signs
_MIN_SHINGLES, _MAX_OVERLAP = 8, 0.4


class AuditSettings(FrozenModel):
    """How thorough an audit is, and the values that a case must reach."""

    rounds: int = Field(default=44, ge=1, description="how often the tests run on the reference")
    mutants: int = Field(default=20, ge=0, description="of each case, without the equivalent ones")
    cheats: int = Field(default=10, ge=0, description="of each case")
    seed: int = 0
    least_killed: float = Field(default=0.75, ge=0, le=1, description="the share of mutants that tests must notice")


class TriedMutant(FrozenModel):
    """A mutant of the reference, and whether the tests noticed it."""

    kind: str
    place: str
    before: str
    after: str
    fate: Fate
    why: str = ""


class CaseAudit(FrozenModel):
    """The audit result of one case. The case is usable if there are no `problems`."""

    case: str
    track: str = ""
    digest: str = Field(description="changes with the tests, the reference, and how they are run")
    tests: int = 0
    unproven: dict[str, tuple[str, ...]] = Field(
        default={}, description="tests that are not proven, by what would make them provable"
    )
    rounds: int = Field(default=0, description="runs of the tests on the reference")
    oracle_failures: tuple[str, ...] = Field(default=(), description="why, for each run the reference did not pass")
    overlap: float = Field(default=0.0, description="the share of the reference that stands in what subjects see")
    nop_passed: tuple[str, ...] = Field(default=(), description="tests that the starting files pass")
    cheats: tuple[str, ...] = ()
    cheats_passed: tuple[str, ...] = ()
    mutants: tuple[TriedMutant, ...] = ()
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    audited: bool = Field(default=True, description="false if the machine was in the way, so that nothing is known")

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def proven(self) -> int:
        """Return the number of proven tests."""
        return self.tests - sum(map(len, self.unproven.values()))

    def count(self, fate: Fate) -> int:
        """Return the number of mutants with this result."""
        return sum(mutant.fate == fate for mutant in self.mutants)

    @property
    def killed(self) -> float | None:
        """Return the share of mutants that the tests noticed; None if there are none."""
        return _killed(self)


class Audit(FrozenModel):
    """The audit results of several cases, as kept in a file."""

    format: int = FORMAT
    bakeoff: str = __version__
    code: str = Field(default_factory=grading_digest, description="the digest of the code that graded the cases")
    made: str
    settings: AuditSettings
    cases: tuple[CaseAudit, ...]
    seal: str = Field(default="", description="the digest of everything else in this file")

    @property
    def digest(self) -> str:
        """Return a digest of everything except the seal."""
        return fingerprint(self.model_dump(mode="json", exclude={"seal"}))

    def sealed(self) -> Self:
        """Return the audit with a seal, so that later changes are noticed."""
        return self.model_copy(update={"seal": self.digest})

    @property
    def excluded(self) -> tuple[CaseAudit, ...]:
        """Return the cases that failed."""
        return tuple(case for case in self.cases if not case.ok)

    def count(self, fate: Fate) -> int:
        """Return the number of mutants of all cases with this result."""
        return sum(case.count(fate) for case in self.cases)

    @property
    def killed(self) -> float | None:
        """Return the share of all mutants that the tests noticed; None if there are none."""
        return _killed(self)


def _killed(audit: CaseAudit | Audit) -> float | None:
    judged = audit.count("killed") + audit.count("survived")
    return audit.count("killed") / judged if judged else None


def read_audit(path: Path) -> Audit:
    """Read an audit file. Raise `UsageError` if it is another kind of file, or another version."""
    try:
        audit = Audit.model_validate_json(read_file(path, pipes=True))
    except OSError as error:
        raise UsageError(
            f"--require-audit {path} cannot be read: {error.strerror}; `bakeoff audit` writes it"
        ) from error
    except ValidationError as error:
        raise UsageError(
            f"--require-audit {path} is not the file of an audit ({first_problem(error)}): "
            "`bakeoff audit` writes one as audit.json"
        ) from error
    if audit.format != FORMAT:
        raise UsageError(f"--require-audit {path} has format {audit.format}, not {FORMAT}: run `bakeoff audit` again")
    if audit.seal != audit.digest:
        raise UsageError(
            f"--require-audit {path} was changed since `bakeoff audit` wrote it: its seal does not fit; "
            "run `bakeoff audit` again"
        )
    return audit


def audit_digest(case: Case) -> str:
    """Return a digest of all parts of a case that an audit depends on.

    The prompt, the time limit and the choice of visible tests are left out.
    """
    settings = case.grading.model_dump(mode="json", exclude={"seconds", "shown_tests"}) if case.grading else {}
    return fingerprint(settings, {**case.files, **case.hidden}, case.reference)


def unaudited(cases: Iterable[Case], audit: Audit) -> dict[str, str]:
    """Return unusable cases by id, with the reason: audit failed, case changed, or not audited."""
    known: dict[str, list[CaseAudit]] = {}
    for entry in audit.cases:
        known.setdefault(entry.case, []).append(entry)
    reasons: dict[str, str] = {}
    for case in cases:
        entries = known.get(case.id, [])
        fitting = [entry for entry in entries if entry.digest == audit_digest(case)]
        if not entries:
            reasons[case.id] = "it is not in the audit"
        elif not fitting:
            reasons[case.id] = "it has changed since its audit"
        elif not fitting[0].ok:
            reasons[case.id] = f"it failed its audit: {'; '.join(fitting[0].problems)}"
    return reasons


async def audit_cases(
    cases: Sequence[tuple[Case, Sequence["WrongAnswer"]]],
    settings: AuditSettings,
    resources: Mapping[str, Any],
    jobs: int,
    on_run: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[CaseAudit]:
    """Audit cases with several test runs at a time, and yield each result when it is complete.

    Args:
        cases: The cases, each with answers that must fail.
        settings: How thorough the audit is.
        resources: The opened toolchains and references.
        jobs: The number of parallel test runs.
        on_run: Called after each test run with the id of the case.
    """
    free, slots = asyncio.Semaphore(jobs), asyncio.Semaphore(jobs)

    async def audit(case: Case, wrong: Sequence[WrongAnswer]) -> CaseAudit:
        async with free:
            try:
                return await _CaseAuditor(graded_case(case), wrong, settings, resources, slots, on_run).audit()
            except GraderError as error:
                return CaseAudit(case=case.id, digest=audit_digest(case), problems=(str(error),))
            except InfraError as error:
                why = f"it could not be audited: {error}"
                return CaseAudit(case=case.id, digest=audit_digest(case), problems=(why,), audited=False)

    tasks = [asyncio.create_task(audit(case, wrong)) for case, wrong in cases]
    try:
        for finished in asyncio.as_completed(tasks):
            yield await finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _CaseAuditor:
    """Audits one case."""

    case: GradedCase
    wrong: Sequence["WrongAnswer"]
    settings: AuditSettings
    resources: Mapping[str, Any]
    slots: asyncio.Semaphore
    on_run: Callable[[str], None]

    async def audit(self) -> CaseAudit:
        """Return the result for the case. Raise `GraderError` or `InfraError` if that fails."""
        started = asyncio.get_running_loop().time()
        case = self.case
        blank = CaseAudit(case=case.name, track=case.settings.track, digest=audit_digest(case.case))
        if not case.reference:
            return blank.model_copy(update={"problems": ("it has no reference, so nothing can be audited",)})
        runs = await self._run_reference()
        failures = tuple(first_line(why) for run in runs if (why := reference_problem(run)) is not None)
        blank = blank.model_copy(
            update={"rounds": len(runs), "oracle_failures": failures, "overlap": round(_overlap(case), 3)}
        )
        if failures:
            return blank.model_copy(update={"problems": tuple(_problems(blank, self.settings))})
        async with self.slots:
            check = await _check(case, self.wrong, self.resources, "reference")
        if check.reference is None:
            return blank.model_copy(update={"problems": check.problems})
        found = blank.model_copy(update=await self._results(check.reference, max(run.seconds for run in runs)))
        problems = (*check.problems, *_problems(found, self.settings))
        seconds = round(asyncio.get_running_loop().time() - started, 1)
        return found.model_copy(update={"problems": problems, "seconds": seconds})

    async def _run_reference(self) -> list[TestRun]:
        """Run the tests on the reference repeatedly, often enough to find most flaky tests."""
        runs: list[TestRun] = []
        while len(runs) < self.settings.rounds:
            async with self.slots:
                runs.append(await run_tests(self.case, self.case.reference, self.resources))
            self.on_run(self.case.name)
            if len(runs) >= _MIN_RUNS and (
                len(runs) * min(run.seconds for run in runs) > _MAX_RUN_SECONDS or all(map(reference_problem, runs))
            ):
                break
        return runs

    async def _results(self, reference: ReferenceRun, seconds: float) -> dict[str, Any]:
        """Grade the starting files, cheats and mutants. `seconds` is the reference's test time."""
        case = self.case
        limit = min(case.settings.seconds, max(_MIN_SECONDS, _TIMES_LONGER * seconds))
        quick = replace(self, case=replace(case, settings=case.settings.model_copy(update={"seconds": limit})))
        nothing = {} if case.is_exercise else dict.fromkeys(case.settings.solution, "")  # the answer of doing nothing
        nop = await quick._run(reference, nothing)
        seed = f"{self.settings.seed} {case.name}"
        # Begin with the cheats of the sample. Scripts, which change other files, are left out.
        known = [each for each in attacks_on(case) if isinstance(each, HostileSolution) and each.name not in SLOW]
        random.Random(seed).shuffle(known)  # noqa: S311 - reproducible, and no secret
        known.sort(key=lambda attack: attack.name not in SAMPLE)
        cheats = {attack.name: attack.files(case) for attack in known[: self.settings.cheats]}
        cheated = await asyncio.gather(*(quick._grade(reference, files) for files in cheats.values()))
        mutants = choose_mutants(find_mutants(case.reference), self.settings.mutants, seed)
        return {
            "tests": reference.proven_tests.total,
            "unproven": reference.advice,
            "nop_passed": tuple(dict.fromkeys(nop.passed)),
            "cheats": tuple(cheats),
            "cheats_passed": tuple(name for name, grade in zip(cheats, cheated, strict=True) if grade.ok),
            "mutants": tuple(await asyncio.gather(*(quick._try(reference, mutant) for mutant in mutants))),
        }

    async def _grade(self, reference: ReferenceRun, answer: Mapping[str, str]) -> Grade:
        async with self.slots:
            grade = await _grade(self.case, reference, answer, self.resources)
        self.on_run(self.case.name)
        return grade

    async def _run(self, reference: ReferenceRun, answer: Mapping[str, str]) -> Grade:
        """Grade an answer that is known to be honest, without twins and validator."""
        async with self.slots:
            run = await run_tests(self.case, answer, self.resources)
        self.on_run(self.case.name)
        return compare_runs(self.case, reference, run)

    async def _try(self, reference: ReferenceRun, mutant: Mutant) -> TriedMutant:
        fate: Fate = "equivalent"
        why = mutant.equivalent
        if why is None:
            grade = await self._run(reference, mutant.apply(self.case.reference))
            fate, why = ("survived", "") if grade.ok else ("killed", grade.summary()[:200])
        changed = mutant.model_dump(include={"kind", "before", "after"})
        return TriedMutant(place=mutant.place, fate=fate, why=why, **changed)


def _problems(found: CaseAudit, settings: AuditSettings) -> Iterable[str]:
    """Yield the reasons why a case is not usable."""
    failed = len(found.oracle_failures)
    if failed and failed == found.rounds:
        yield f"its reference does not pass: {found.oracle_failures[0]}"
    elif failed:
        yield (
            f"its reference is flaky: it failed {failed} of {found.rounds} runs ({failed / found.rounds:.0%}), "
            f"first with: {found.oracle_failures[0]}"
        )
    if found.overlap > _MAX_OVERLAP:
        yield f"subjects see the answer: {found.overlap:.0%} of the reference stands in the prompt and the files"
    if found.cheats_passed:
        yield f"cheats pass: {', '.join(found.cheats_passed[:_NAMED])}"
    if found.killed is not None and found.killed < settings.least_killed:
        yield f"its tests notice only {found.killed:.0%} of the mutants, less than {settings.least_killed:.0%}"


def _overlap(case: GradedCase) -> float:
    """Return the share of the reference that the prompt and other visible files reveal."""
    solution = case.settings.solution
    own = _shingles(case.reference.values()) - _shingles(case.case.files.get(name, "") for name in solution)
    shown = _shingles([case.case.prompt, *(text for name, text in case.case.files.items() if name not in solution)])
    return len(own & shown) / len(own) if len(own) >= _MIN_SHINGLES else 0.0


def _shingles(texts: Iterable[str]) -> set[tuple[str, ...]]:
    """Return all sequences of a few consecutive words and signs in the texts."""
    words = [re.findall(r"\w+|[^\w\s]", text) for text in texts]
    return {tuple(each[at : at + _SHINGLE]) for each in words for at in range(len(each) - _SHINGLE + 1)}


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """An answer that must fail. If it passes, `problem` tells what is wrong with the case."""

    name: str
    files: Mapping[str, str]
    problem: str


@dataclass(frozen=True, slots=True)
class VerificationCheck:
    """The grades of the answers to a case. If there are no `problems`, the case is usable."""

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
    """Check several cases at a time.

    Args:
        cases: The cases, each with answers that must fail.
        resources: The opened toolchains and references.
        jobs: The number of cases to check at a time.
        reference: The word for the reference in messages to users.
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
        partly = {name: compare_runs(case, ReferenceRun.of(run), run)} if is_partly_usable(case, run) else {}
        return VerificationCheck(case.case, partly, (f"the {name} does not pass: {why}",), run.seconds)
    found = await keep_reference(case, run, resources)
    grades = {name: await _grade(case, found, case.reference, resources)}
    problems = [] if grades[name].ok else [f"the {name} does not pass: {grades[name].summary()}"]
    if found.type_errors is not None:
        problems.append(f"the {name} has {found.type_errors}; `--no-type-check` tests without types")
    for answer in wrong:
        grades[answer.name] = await _grade(case, found, answer.files, resources)
        problems += [answer.problem] if grades[answer.name].ok else []
    return VerificationCheck(case.case, grades, tuple(problems), asyncio.get_running_loop().time() - started, found)


async def _grade(
    case: GradedCase, reference: ReferenceRun, answer: Mapping[str, str], resources: Mapping[str, Any]
) -> Grade:
    validation = await run_validator(case, answer, resources)
    return compare_runs(case, reference, await run_answer(case, reference, answer, resources), validation)
