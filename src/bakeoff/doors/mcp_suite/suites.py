"""Find the suites that were asked for, check them, and prepare their plans, all before a model is called."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.yaml_with_lines import gathered
from bakeoff.doors.mcp_suite.config import CONFIG_NAME, Suite, near_names, read_suite, unknown_tools
from bakeoff.doors.mcp_suite.door import McpDoor
from bakeoff.doors.mcp_suite.plan import (
    EvaluationRequest,
    PlanSettings,
    build_plan,
    case_id,
    chosen_cases,
    full_environment,
    has_case,
    matching_cases,
    run_options,
    settings_of,
    with_tools,
)
from bakeoff.doors.mcp_suite.providers import check_models
from bakeoff.doors.mcp_suite.servers import hub_of
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan

_SKIPPED = ("node_modules", "venv", "__pycache__")  # and folders whose names start with a dot
_BYTES_SEARCHED = 1 << 20  # of a file, for `testCases`
_CASES = re.compile(rb"""(?:^|[{,]\s*)["']?testCases["']?\s*:""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SelectedSuite:
    """A suite, the part of it that was asked for, and the plan of that part without tools."""

    suite: Suite
    request: EvaluationRequest
    plan: Plan
    settings: PlanSettings
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A suite that can be run, and warnings for its user."""

    suite: Suite
    plan: Plan
    settings: PlanSettings
    door: McpDoor
    options: RunOptions
    warnings: tuple[str, ...] = ()


def find_configs(path: Path | None, start: Path | None = None) -> tuple[Path, ...]:
    """Return the configuration files of a path. Without a path, return the nearest one in `start` or above."""
    if path is None:
        return (_nearest(start or Path()),)
    if path.is_dir():
        found = tuple(sorted(file for file in _yaml_files(path) if _has_cases(file)))
        if not found:
            raise UsageError(f"{path} has no YAML file with `testCases` below it: name another folder or a file")
        return found
    if not path.is_file():
        raise UsageError(f"{path} does not exist: name a YAML file, or a folder of them")
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
        yield from (Path(place, name) for name in files if name.endswith((".yaml", ".yml")))


def _has_cases(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _CASES.search(opened.read(_BYTES_SEARCHED)) is not None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error


def read_suites(request: EvaluationRequest, options: RunOptions) -> tuple[SelectedSuite, ...]:
    """Read every suite that was asked for, and check files, models and keys. One error lists all problems."""
    files = find_configs(request.path)
    suites: list[Suite] = []
    problems: list[str] = []
    for file in files:
        try:
            suites.append(read_suite(file))
        except BakeoffError as error:
            problems.append(str(error))
    parts = list(_parts(suites, request)) if len(files) > 1 else [(suite, request) for suite in suites]
    if len(files) > 1 and not problems:  # a file that cannot be read may have what the others lack
        problems += _unmatched(suites, request)
        if not problems and not parts:
            problems.append(f"--prompt, --case and --model leave nothing in {request.path}: select more")
    selected: list[SelectedSuite] = []
    for suite, part in parts:
        try:
            selected.append(_checked(suite, part, options))
        except BakeoffError as error:
            problems.append(str(error))
    gathered(problems)
    return tuple(selected)


def _parts(suites: Sequence[Suite], request: EvaluationRequest) -> Iterator[tuple[Suite, EvaluationRequest]]:
    """Yield the matching part of every suite. A suite without a match is skipped, like a case that is filtered out."""
    for suite in suites:
        models = tuple(name for name in request.models if name in suite.config.modelsToTest)
        cases = tuple(wanted for wanted in request.cases if has_case(suite, wanted))
        part = request.model_copy(update={"models": models, "cases": cases})
        lacks = (request.models and not models) or (request.cases and not cases)
        if not lacks and matching_cases(suite, part):
            yield suite, part


def _unmatched(suites: Sequence[Suite], request: EvaluationRequest) -> Iterator[str]:
    """Yield a sentence for each model and case that no suite of the folder has."""
    models = {name for suite in suites for name in suite.config.modelsToTest}
    for name in request.models:
        if name not in models:
            yield f"--model {name!r} is not among modelsToTest of any suite in {request.path}{near_names(name, models)}"
    names = {case.name for suite in suites for case in suite.config.testCases if case.name}
    for wanted in request.cases:
        if not any(has_case(suite, wanted) for suite in suites):
            near = near_names(wanted, names)
            yield f"--case {wanted!r} is not the name, number or tag of a case of any suite in {request.path}{near}"


def _checked(suite: Suite, request: EvaluationRequest, options: RunOptions) -> SelectedSuite:
    """Build the plan of a suite, and check the providers and keys of all its models at once."""
    gathered(list(_duplicate_ids(suite)))
    plan = build_plan(suite, request)
    check_models(suite, [spec.name for spec in plan.subjects], offline=options.replay == "strict")
    return SelectedSuite(suite, request, plan, settings_of(plan), full_environment(suite))


def _duplicate_ids(suite: Suite) -> Iterator[str]:
    """Find different cases that reports could not tell apart, such as names that differ only in a tab."""
    seen: dict[str, int] = {}
    for at, case in enumerate(suite.config.testCases):
        shown = case_id(at + 1, case.name, case.prompt)
        if shown in seen:
            what = f"it is shown as {shown!r}, like testCases[{seen[shown]}]: give it another name"
            yield suite.lines.problem(("testCases", at, "name" if case.name else "prompt"), what)
        seen.setdefault(shown, at)


async def prepare(selected: SelectedSuite, options: RunOptions) -> Prepared:
    """Ask the servers for their tools, and add these to the plan. Raise `InfraError` if a server does not start."""
    suite = selected.suite
    try:
        async with hub_of(selected.settings.servers, selected.environment).open() as hub:
            tools = await hub.tools()
    except InfraError as error:
        raise InfraError(f"{suite.file}: {error}\nnothing was run") from error
    warnings = unknown_tools(suite, tools, {number for number, _ in chosen_cases(suite, selected.request)})
    if suite.config.passThreshold is None:
        warnings.append(f"{suite.file}: passThreshold is not set: every round must pass")
    plan, settings = with_tools(selected.plan, selected.settings, tools, warnings)
    door = McpDoor(settings, selected.environment)
    return Prepared(suite, plan, settings, door, run_options(settings, options, selected.environment), tuple(warnings))
