"""Finding configurations: the nearest above, one that is named, or all of a folder."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.yaml_with_lines import gathered
from bakeoff.doors import door_of
from bakeoff.doors.mcp_suite.config import CONFIG_NAME, Suite, near_names, read_suite, suite_environment, unknown_tools
from bakeoff.doors.mcp_suite.plan import (
    EvaluationRequest,
    build_plan,
    case_id,
    chosen_cases,
    evaluation_of,
    run_options,
)
from bakeoff.doors.mcp_suite.providers import check_models
from bakeoff.doors.mcp_suite.servers import hub_of
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan

_ENDINGS = (".yaml", ".yml")
_SKIPPED = ("node_modules", "venv", "__pycache__")  # dot-folders besides
_LOOKED_AT = 1 << 20  # bytes of a file in which `testCases` has to turn up
_CASES = re.compile(rb"""(?:^|[{,]\s*)["']?testCases["']?\s*:""", re.MULTILINE)


def find_configs(path: Path | None, start: Path | None = None) -> tuple[Path, ...]:
    """The files to evaluate, by name."""
    if path is None:
        return (_nearest(start or Path()),)
    if path.is_dir():
        found = tuple(sorted(file for file in _yaml_files(path) if _has_cases(file)))
        if not found:
            raise UsageError(f"{path} has no YAML file with `testCases` below it: name another folder or a file")
        return found
    if not path.is_file():
        raise UsageError(f"{path} is not there: name a YAML file, or a folder of them")
    return (path,)


def _nearest(start: Path) -> Path:
    here = start.resolve()
    for folder in (here, *here.parents):
        file = folder / CONFIG_NAME
        if file.is_file():
            return file.relative_to(here) if folder == here else file
    raise UsageError(
        f"there is no {CONFIG_NAME} here or in a folder above: name a file, or make one with `bakeoff mcp init`"
    )


def _yaml_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        yield from (Path(place, name) for name in files if name.endswith(_ENDINGS))


def _has_cases(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _CASES.search(opened.read(_LOOKED_AT)) is not None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


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


@dataclass(frozen=True, slots=True)
class Prepared:
    """A suite that only has to be run, and what its user should know before."""

    suite: Suite
    plan: Plan
    options: RunOptions
    warnings: tuple[str, ...] = ()


def read_suites(request: EvaluationRequest, options: RunOptions) -> tuple[Asked, ...]:
    """Every suite that was asked for, checked as far as it can be without asking anyone: files, models and keys."""
    files = find_configs(request.path)
    suites: list[Suite] = []
    problems: list[str] = []
    for file in files:
        try:
            suites.append(read_suite(file, suite_environment(file.parent)))
        except BakeoffError as error:
            problems.append(str(error))
    asked = tuple(parts_of(suites, request) if len(files) > 1 else (Asked(suite, request) for suite in suites))
    if len(files) > 1 and not problems:  # a file that cannot be read may have what the others lack
        problems.extend(in_no_suite(suites, request))
    for one in asked:
        try:
            check_suite(one.suite, one.request, options)
        except BakeoffError as error:
            problems.append(str(error))
    gathered(problems)
    return asked


def check_suite(suite: Suite, request: EvaluationRequest, options: RunOptions) -> None:
    """Unknown providers and missing keys, of all models at once."""
    if options.replay != "strict" and not request.models:  # of a part, `resolved` tells without the lines of the file
        check_models(suite, suite_environment(suite.folder))
    gathered(list(_named_alike(suite)))
    plan = build_plan(suite, request)
    door_of(plan).registry(plan, options).resolve(plan, offline=options.replay == "strict")


def _named_alike(suite: Suite) -> Iterator[str]:
    """Cases that differ, and that a report could not tell apart: by a tab, or by a name that looks like a number's."""
    seen: dict[str, int] = {}
    for at, case in enumerate(suite.config.testCases):
        shown = case_id(at + 1, case)
        if shown in seen:
            what = f"it is shown as {shown!r}, as testCases[{seen[shown]}] is: give it another name"
            yield suite.lines.problem(("testCases", at, "name" if case.name else "prompt"), what)
        seen.setdefault(shown, at)


async def prepare(suite: Suite, request: EvaluationRequest, options: RunOptions) -> Prepared:
    """Ask the servers for their tools. One that does not start is told with the last lines of what it said."""
    evaluation = evaluation_of(build_plan(suite, request))
    try:
        async with hub_of(evaluation.config.mcpServers, evaluation.environment()).open() as hub:
            tools = await hub.tools()
    except InfraError as error:
        raise InfraError(f"{suite.file}: {error}\nnothing was run") from error
    warnings = unknown_tools(suite, tools, {number for number, _ in chosen_cases(suite, request)})
    if suite.config.passThreshold is None:
        warnings.append(f"{suite.file}: passThreshold is not set: every round has to pass")
    plan = build_plan(suite, request, tools, warnings)
    return Prepared(
        suite, plan, run_options(evaluation_of(plan).config, options, evaluation.environment()), tuple(warnings)
    )
