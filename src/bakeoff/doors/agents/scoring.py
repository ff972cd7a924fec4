"""Score attempts at exercises: the scorer `exercise`, the class of a failure, and the tool for more tries."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, part_of, shorten
from bakeoff.doors.agents.tampering import find_tampering, listed
from bakeoff.grading.cases import GradedCase, graded_case, run_tests, type_errors
from bakeoff.grading.grades import Grade, first_line, grade_answer, share_metadata
from bakeoff.plan import Case, Plan
from bakeoff.protocols import ScoreInput, Tool
from bakeoff.record import Failure, Record, Score
from bakeoff.report.blocks import Column, Datum, Quote, Section, Table, Value
from bakeoff.subjects.agent_run import AgentRun, agent_run_in, patch_in
from bakeoff.subjects.command_agent import TESTS_TOOL
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.tracks import is_protected_name
from bakeoff.verdict import Verdict

EXERCISE = "exercise"
FAILURE_CLASS = "failure_class"
"""Key in a score's metadata that names the class of a failure, for reports that count them."""

FailureClass = Literal["no change", "wrong", "partial", "agent error", "timeout", "infra", "cheated"]

_MESSAGE = 2000  # characters of an error that are kept
_FAILURES = 100  # tests that are named


class ExerciseOutcome(FrozenModel):
    """Everything known about one attempt after its tests have run. It is kept in the record."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    agent_success: bool
    test_success: bool
    overall_success: bool
    failure_class: FailureClass | None = None
    tests_passed: int = 0
    tests_total: int = 0
    test_duration: float = Field(default=0.0, description="milliseconds")
    agent_error: str | None = None
    test_error: str | None = None
    failed_tests: tuple[str, ...] = ()
    tampering: tuple[str, ...] = Field(default=(), description="changes to tests, tools and files that tests depend on")
    touched: tuple[str, ...] = Field(
        default=(), description="further files that were not the agent's, changed in ways that grading cannot depend on"
    )
    attack: str | None = Field(default=None, description="what the cheat subject says it did; not evidence")

    def summary(self) -> str:
        """Return the outcome in one line, empty for a success."""
        if self.overall_success:
            return ""
        counts = f"{self.tests_passed} of {count_of(self.tests_total, 'test')} passed"
        error = self.test_error and first_line(self.test_error)
        also = self.touched and f"it also touched {listed(self.touched)}"
        parts = [part for part in (self.attack, *self.tampering[:5], self.agent_error, counts, error, also) if part]
        return shorten(f"{self.failure_class}: {'; '.join(parts)}", 1000)


async def score_exercise(case: GradedCase, given: ScoreInput) -> Score:
    """Score an agent's solution: 1 if the agent ended well and every test passes, 0 otherwise.

    The original tests run on the solution in a second, pristine copy.
    """
    agent = agent_run_in(given.transcript)
    answer = accepted_files(case, given.artefacts)
    grade = await grade_answer(case, answer, given.resources)
    unchanged = all(case.files.get(name) == text for name, text in answer.items())
    outcome = outcome_of_attempt(case, grade, agent, patch=patch_in(given.transcript), unchanged=unchanged)
    classed: dict[str, JsonValue] = {FAILURE_CLASS: outcome.failure_class} if outcome.failure_class else {}
    timeout = None
    if agent.stop == "timeout":  # this fails the agent, whatever its tests say
        timeout = Failure(kind="timeout", type="TimeoutError", message=outcome.agent_error or "")
    return Score(
        name=EXERCISE,
        value=1.0 if outcome.overall_success else 0.0,
        reason=outcome.summary(),
        metadata={
            EXERCISE: outcome.model_dump(mode="json", by_alias=True, exclude_none=True),
            **classed,
            **share_metadata(grade),
        },
        failure=timeout,
    )


def accepted_files(case: GradedCase, artefacts: Mapping[str, str]) -> dict[str, str]:
    """Return the files that go into grading: declared solution files, and new sources with harmless names."""
    solution = case.settings.solution
    return {name: text for name, text in artefacts.items() if name in solution or _is_new_source(name, case)}


def _is_new_source(name: str, case: GradedCase) -> bool:
    if name in case.files or is_protected_name(name):
        return False
    path = PurePosixPath(name)
    in_the_way = {str(parent) for parent in path.parents} & case.files.keys()
    sources = {PurePosixPath(known).suffix for known in case.settings.solution}
    return path.suffix in sources and not in_the_way and not _shadows(path, case)


def _shadows(path: PurePosixPath, case: GradedCase) -> bool:
    """Tell whether an import of a pristine file or folder could find this file instead: `cases.ts` for `cases.json`."""
    pristine = [PurePosixPath(name) for name in case.files]
    modules = {each.with_suffix("") for each in pristine}
    folders = {parent for each in pristine for parent in each.parents}
    if path.with_suffix("") in modules | folders or modules & set(path.parents):
        return True
    # In a folder that has files of the exercise, it would run first.
    beside = {str(each) for each in pristine if each.parent == path.parent}
    return path.stem in ("__init__", "index") and bool(beside) and not beside & set(case.settings.solution)


def outcome_of_attempt(
    case: GradedCase, grade: Grade, agent: AgentRun, *, patch: str = "", unchanged: bool = False
) -> ExerciseOutcome:
    """Return the outcome of an attempt: a success if the agent ended well and its solution passes."""
    agent_error = _agent_error(agent)
    tampering = find_tampering(case, agent, patch, grade.run)
    outcome = ExerciseOutcome(
        agent_success=agent_error is None,
        test_success=grade.ok,
        overall_success=grade.ok and agent_error is None,
        tests_passed=grade.passed.total(),
        tests_total=grade.total,
        test_duration=round(1000 * grade.run.seconds, 3),
        agent_error=agent_error,
        test_error=None if grade.ok else shorten(_why_failed(grade), _MESSAGE),
        failed_tests=tuple(shorten(name, 300) for name in list(grade.failed)[:_FAILURES]),
        tampering=tampering.serious,
        touched=tampering.harmless,
        attack=agent.attack,
    )
    if outcome.overall_success:
        return outcome
    cheated = (bool(tampering.serious) or agent.attack is not None) and not grade.ok
    failure = _failure_class(outcome, agent, cheated=cheated, unchanged=unchanged)
    return outcome.model_copy(update={"failure_class": failure})


def _failure_class(outcome: ExerciseOutcome, agent: AgentRun, *, cheated: bool, unchanged: bool) -> FailureClass:
    if agent.stop == "timeout":
        return "timeout"
    if cheated:
        return "cheated"
    if outcome.test_success:  # the answer is right, but the agent did not end well
        return "agent error"
    if unchanged:
        return "no change"
    return "partial" if outcome.tests_passed else "wrong"


def _agent_error(agent: AgentRun) -> str | None:
    if agent.stop == "timeout":
        return f"the agent was not finished after {agent.limit:g} s"
    if agent.stop != "exited":
        return f"the agent was ended: {agent.exceeded or agent.stop}"
    if agent.exit_code == 0:
        return None
    return f"the agent ended with exit code {agent.exit_code}{f': {agent.last_words}' if agent.last_words else ''}"


def _why_failed(grade: Grade) -> str:
    """Say why the grade failed: by the run as a whole, type errors, or the first failed test."""
    failure = grade.problem
    if not failure and (grade.failed or not grade.error):
        tests = grade.run.tests
        told = [
            f"{test.name}: {test.message}" for test in tests if test.name in grade.failed and test.state == "failed"
        ]
        failure = (told or [f"not passed: {', '.join(list(grade.failed)[:5])}" if tests else "no test ran"])[0]
    return "\n".join(filter(None, (grade.error, failure)))


_MAX_FAILURES = 20
_MAX_LENGTH = 6000  # characters that an agent is shown


def try_tools(case: Case, resources: Mapping[str, Any]) -> tuple[Tool, ...]:
    """Return the tool that tests the agent's current solution, without mentioning hidden tests."""
    graded = graded_case(case).shown

    async def test(arguments: Mapping[str, JsonValue]) -> JsonValue:
        given = arguments.get("files")
        answer = accepted_files(graded, given if isinstance(given, dict) else {})  # type: ignore[arg-type]  # texts
        run = await run_tests(graded, answer, resources)
        types = await type_errors(graded, answer, resources)
        return None if run.ok and types is None else _output(run, types)

    return (Tool(TESTS_TOOL, "Test the files of an answer.", {"type": "object"}, test),)


def _output(run: TestRun, types: str | None) -> str:
    failed = [f"{test.name}: {test.message}".strip() for test in run.tests if test.state == "failed"]
    passed = sum(test.state == "passed" for test in run.tests)
    counts = f"{part_of(passed, len(run.tests), 'test')} passed."
    said = [counts, *filter(None, (types, run.error)), *failed[:_MAX_FAILURES]]
    return "\n\n".join(said)[:_MAX_LENGTH]


def tries_section(plan: Plan, records: Iterable[Record]) -> Section | None:
    """Show how many trials each agent solved with each try; None if the plan allows only one."""
    most = max((_tries_of(spec.options) for spec in plan.subjects), default=1)
    if most < 2:
        return None
    solved: dict[str, list[int]] = {spec.name: [0] * most for spec in plan.subjects if _tries_of(spec.options) > 1}
    scored = dict.fromkeys(solved, 0)
    for record in records:
        if record.subject in solved and record.verdict.counts and record.transcript is not None:
            scored[record.subject] += 1
            if record.verdict is Verdict.PASS:
                used = agent_run_in(record.transcript).tries
                solved[record.subject][min(max(used, 1), most) - 1] += 1
    titles = (Column("Subject"), *(Column(f"By try {number}", align="end") for number in range(1, most + 1)))
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (Quote(name), *(_share(sum(counts[: number + 1]), scored[name]) for number in range(most)))
        for name, counts in solved.items()
    )
    note = (
        "A later try sees what the tests said of the one before. Scores count every exercise that the last try solved."
    )
    return Section("tries", "Tries", (Table(titles, rows, "Trials solved, by try", (note,)),))


def _tries_of(options: Mapping[str, Any]) -> int:
    found = options.get("tries", 1)
    return found if isinstance(found, int) else 1


def _share(solved: int, scored: int) -> Datum:
    share = solved / scored if scored else None
    return Datum("–" if share is None else f"{100 * share:.1f} % ({solved}/{scored})", sort=share)
