"""What one attempt at an exercise is worth, and if nothing, of which kind the failure is."""

from collections import Counter
from collections.abc import Collection
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.exercises.cases import Grading
from bakeoff.doors.exercises.tampering import listed, meddling_of
from bakeoff.subjects.command_agent import AgentRun
from bakeoff.toolchains.outcome import TestRun
from bakeoff.toolchains.references import ReferenceRun

FailureClass = Literal["no change", "wrong", "partial", "timeout", "infra", "cheated"]

_MESSAGE = 2000  # characters of an error that are kept
_FAILURES = 100  # tests that are named
_ENDINGS = {
    "timeout": "the tests did not end within {seconds:g} s",
    "crashed": "the process that ran the tests ended before they did",
    "memory": "the tests took more memory than they may",
    "output": "the tests wrote more output than they may",
}


class Outcome(FrozenModel):
    """Everything that is known of one attempt once its tests have run; this is what a record keeps."""

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
    tampering: tuple[str, ...] = Field(default=(), description="what was found to be done to tests, tools and files")
    touched: tuple[str, ...] = Field(
        default=(), description="further files that were not the agent's, changed in ways that grading cannot depend on"
    )
    attack: str | None = Field(default=None, description="what one of our cheats says it did; no evidence of anything")


def judge(
    grading: Grading,
    reference: ReferenceRun | None,
    run: TestRun,
    agent: AgentRun,
    *,
    patch: str = "",
    unchanged: bool = False,
    skipped: Collection[str] = (),
) -> Outcome:
    """Pass only if the agent ended well, everything ran and passed, and it was what the example ran.

    Without an example, all that ran counts but the tests that are skipped whatever the solution.
    """
    problem = _problem(grading, reference, run)
    wanted = Counter(reference.counted if reference else [test.name for test in run.tests if test.name not in skipped])
    believed = run.tests if problem is None else ()
    passed = wanted & Counter(test.name for test in believed if test.state == "passed")
    failed = wanted - passed
    test_success = problem is None and bool(wanted) and not failed
    agent_error = agent_problem(agent)
    meddling = meddling_of(grading, agent, patch, run)
    outcome = Outcome(
        agent_success=agent_error is None,
        test_success=test_success,
        overall_success=test_success and agent_error is None,
        tests_passed=passed.total(),
        tests_total=wanted.total(),
        test_duration=round(1000 * run.seconds, 3),
        agent_error=agent_error,
        test_error=None if test_success else cut(problem or _first_failure(run, failed)),
        failed_tests=tuple(cut(name, 300) for name in list(failed)[:_FAILURES]),
        tampering=meddling.tampering,
        touched=meddling.touched,
        attack=agent.attack,
    )
    if outcome.overall_success:
        return outcome
    tampered = bool(meddling.tampering) or agent.attack is not None
    return outcome.model_copy(update={"failure_class": _class(outcome, agent, tampered=tampered, unchanged=unchanged)})


def _class(outcome: Outcome, agent: AgentRun, *, tampered: bool, unchanged: bool) -> FailureClass:
    if agent.stop == "timeout":
        return "timeout"
    if tampered and not outcome.test_success:
        return "cheated"
    if unchanged:
        return "no change"
    return "partial" if outcome.tests_passed else "wrong"


def summary(outcome: Outcome) -> str:
    """The outcome in a sentence; empty where there is nothing to say."""
    if outcome.overall_success:
        return ""
    counts = f"{outcome.tests_passed} of {outcome.tests_total} tests passed"
    error = outcome.test_error and _first_line(outcome.test_error)
    also = outcome.touched and f"it also touched {listed(outcome.touched)}"
    told = [part for part in (outcome.attack, *outcome.tampering[:5], outcome.agent_error, counts, error, also) if part]
    return cut(f"{outcome.failure_class}: {'; '.join(told)}", 1000)


def agent_problem(agent: AgentRun) -> str | None:
    """Why an agent did not succeed; None where it did."""
    if agent.stop == "timeout":
        return f"the agent was not finished after {agent.limit:g} s"
    if agent.stop != "exited":
        return f"the agent was ended: {agent.stop}"
    return None if agent.exit_code == 0 else f"the agent ended with exit code {agent.exit_code}"


def _problem(grading: Grading, reference: ReferenceRun | None, run: TestRun) -> str | None:
    """Why none of what was reported counts; None where it does."""
    if run.tampered is not None:
        return f"the solution interfered with the tests: {run.tampered}"
    if run.stop in _ENDINGS:
        return run.error or _ENDINGS[run.stop].format(seconds=grading.seconds)
    if run.error is not None:
        return run.error
    if grading.has_canary and not run.canary_seen:
        return "a test that had to fail was not seen failing: the solution interfered with the tests"
    if reference is not None and Counter(test.name for test in run.tests) != Counter(reference.names):
        return _other_tests(reference, run)
    if reference is not None and reference.confirmed and run.unconfirmed is not None:
        return f"the command says that the tests pass, but run apart from it they do not: {run.unconfirmed}"
    return None


def _other_tests(reference: ReferenceRun, run: TestRun) -> str:
    wanted, seen = Counter(reference.names), Counter(test.name for test in run.tests)
    told = [
        f"{what} {', '.join(list(names)[:5])}"
        for what, names in (("missing:", wanted - seen), ("unknown:", seen - wanted))
        if names
    ]
    return f"the tests that ran are not those of the example ({'; '.join(told)})"


def _first_failure(run: TestRun, failed: Counter[str]) -> str:
    for test in run.tests:
        if test.name in failed and test.state == "failed":
            return f"{test.name}: {test.message}"
    return "no test ran" if not run.tests else f"not passed: {', '.join(list(failed)[:5])}"


def cut(text: str, most: int = _MESSAGE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), text)
