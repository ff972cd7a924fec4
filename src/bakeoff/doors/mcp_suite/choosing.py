"""Which part of each suite is meant where a folder has several: what one of them lacks, another may have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bakeoff.doors.mcp_suite.config import Suite
from bakeoff.doors.mcp_suite.config_checks import near_names
from bakeoff.doors.mcp_suite.plan import chosen_cases
from bakeoff.doors.mcp_suite.request import EvaluationRequest
from bakeoff.errors import UsageError


@dataclass(frozen=True, slots=True)
class Asked:
    """A suite, and what was asked for as far as the suite has it."""

    suite: Suite
    request: EvaluationRequest


def parts_of(suites: Sequence[Suite], request: EvaluationRequest) -> Iterator[Asked]:
    """Of every suite its part. One of which nothing is left is not there, as a case is that was filtered out."""
    for suite in suites:
        models = tuple(name for name in request.models if name in suite.config.modelsToTest)
        cases = tuple(wanted for wanted in request.cases if _has_case(suite, wanted))
        part = request.model_copy(update={"models": models, "cases": cases})
        lacks = (request.models and not models) or (request.cases and not cases)
        if not lacks and _leaves_cases(suite, part):
            yield Asked(suite, part)


def in_no_suite(suites: Sequence[Suite], request: EvaluationRequest) -> list[str]:
    """What is wrong with a request that no suite of the folder can fulfil."""
    problems = [*_unknown_models(suites, request), *_unknown_cases(suites, request)]
    if not problems and not any(parts_of(suites, request)):
        return [f"nothing in {request.path} is left by --prompt, --case and --model: ask for less"]
    return problems


def _unknown_models(suites: Sequence[Suite], request: EvaluationRequest) -> Iterator[str]:
    known = {name for suite in suites for name in suite.config.modelsToTest}
    for name in request.models:
        if name not in known:
            yield f"--model {name!r} is not among modelsToTest of any suite in {request.path}{near_names(name, known)}"


def _unknown_cases(suites: Sequence[Suite], request: EvaluationRequest) -> Iterator[str]:
    known = {case.name for suite in suites for case in suite.config.testCases if case.name}
    for wanted in request.cases:
        if not any(_has_case(suite, wanted) for suite in suites):
            near = near_names(wanted, known)
            yield f"--case {wanted!r} is no name, number or tag of a case of any suite in {request.path}{near}"


def _has_case(suite: Suite, wanted: str) -> bool:
    return _leaves_cases(suite, EvaluationRequest(cases=(wanted,)))


def _leaves_cases(suite: Suite, request: EvaluationRequest) -> bool:
    try:
        return bool(chosen_cases(suite, request))
    except UsageError:
        return False
