"""Find and check suites and their providers, and prepare their plans, all before a model is called."""

import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from bakeoff._kernel.files import open_file, os_errors_explained
from bakeoff._kernel.imports import import_object, importable
from bakeoff._kernel.text import count_of, near_names
from bakeoff._kernel.yaml import Key, gathered
from bakeoff.doors.mcp.config import CONFIG_NAME, McpSuite, read_suite, repeated
from bakeoff.doors.mcp.coverage import coverage_of
from bakeoff.doors.mcp.door import McpDoor
from bakeoff.doors.mcp.expectations import destructive_calls, impossible_calls, unknown_offers, unknown_tools
from bakeoff.doors.mcp.plan import (
    EvaluationRequest,
    build_plan,
    case_id,
    full_environment,
    selected_cases,
    settings_of,
    with_tools,
)
from bakeoff.doors.mcp.servers import hub_of, suite_with_headers
from bakeoff.errors import BakeoffError, InfraError, UsageError
from bakeoff.mcp import RunningHub, ServerTool
from bakeoff.mcp.tools import is_destructive
from bakeoff.models.providers import Provider, check_factory, compatible, known_model_name, known_providers
from bakeoff.options import RunOptions
from bakeoff.plan import Plan

_SKIPPED = ("node_modules", "venv", "__pycache__")  # and folders whose names start with a dot
_BYTES_SEARCHED = 1 << 20  # of a file, for keys of a suite
_ENDINGS = (".yaml", ".yml")
_SUITE = re.compile(rb"""(?:^|[{,]\s*)["']?(?:testCases|modelsToTest)["']?\s*:""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SelectedSuite:
    """A suite, the selected part of it, and how to run that part. `prepare` adds the tools."""

    suite: McpSuite
    request: EvaluationRequest
    plan: Plan
    door: McpDoor
    options: RunOptions


def find_configs(path: Path | None) -> tuple[Path, ...]:
    """Return the configuration files of a path. Without a path, return the nearest one here or above.

    For a folder, return all YAML files below it that have `testCases` or `modelsToTest`. Raises `UsageError` if there
    is none.
    """
    if path is None:
        here = Path.cwd()
        file = next((place / CONFIG_NAME for place in (here, *here.parents) if (place / CONFIG_NAME).is_file()), None)
        if file is None:
            raise UsageError(
                f"there is no {CONFIG_NAME} here or in a folder above: name a file, or make one with `bakeoff mcp init`"
            )
        return (file.relative_to(here) if file.parent == here else file,)
    if path.is_dir():
        found = tuple(_suites_below(path))
        if not found:
            raise UsageError(f"{path} has no YAML file with `testCases` below it: name another folder or a file")
        return found
    if not path.is_file():
        raise UsageError(f"{path} does not exist: name a YAML file, or a folder of them")
    return (path,)


def find_suites(path: Path | None) -> tuple[Path, ...]:
    """Return the files to evaluate.

    Without a path, these are all suites below the current folder, or else the nearest configuration
    above. A missing path selects all suites with this text in the name of their file or folder.
    """
    if path is None:
        return tuple(_suites_below(Path())) or find_configs(None)
    if path.exists() or len(path.parts) > 1 or path.suffix in _ENDINGS:
        return find_configs(path)
    below = _suites_below(Path())
    found = tuple(file for file in below if any(path.name in part for part in file.parts))
    if not found:
        near = near_names(path.name, {file.stem for file in below})
        raise UsageError(f"{path} is no file or folder here, nor a part of the name of a suite below{near}")
    return found


def _suites_below(folder: Path) -> list[Path]:
    """Return the suites below a folder, also those that lost their cases, without hidden and installed files."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        found += [file for name in files if name.endswith(_ENDINGS) and _is_suite(file := Path(place, name))]
    return sorted(found)


def _is_suite(file: Path) -> bool:
    """Return True if a file has a key that only suites have, without parsing it."""
    with os_errors_explained(file, "read", kind=UsageError), open_file(file, pipes=True) as opened:
        return _SUITE.search(opened.read(_BYTES_SEARCHED)) is not None


@dataclass(frozen=True, slots=True)
class ReadSuites:
    """The suites that can be run, and the problems of the others by file."""

    suites: tuple[SelectedSuite, ...]
    problems: Mapping[Path, str]


def read_suites(request: EvaluationRequest, options: RunOptions, given: McpSuite | None = None) -> ReadSuites:
    """Read every suite that was asked for, and check files, models and keys, before anything is called.

    `given` is a suite that replaces the files. Raises one error if no suite is left.
    """
    files = find_suites(request.path) if given is None else (given.file,)
    suites: list[McpSuite] = [] if given is None else [given]
    selected: list[SelectedSuite] = []
    problems: dict[Path, str] = {}
    for file in files if given is None else ():
        try:
            suites.append(suite_with_headers(read_suite(file), request.headers))
        except BakeoffError as error:
            problems[file] = str(error)
    parts = list(_parts(suites, request))
    if not problems:  # an unreadable file may have what the others lack
        place, nothing = str(files[0]), f"--prompt and --case leave no case of {files[0]}: select more"
        if len(files) > 1:
            place = f"any suite in {request.path or Path()}"
            nothing = f"--prompt, --case and --model leave nothing in {request.path or Path()}: select more"
        gathered(_unmatched(suites, request, place) or ([] if parts else [nothing]))
    for suite, part in parts:
        try:
            selected.append(_checked(suite, part, options))
        except BakeoffError as error:
            problems[suite.file] = str(error)
    if not selected:
        gathered([*problems.values()])
    return ReadSuites(tuple(selected), problems)


def _parts(suites: Sequence[McpSuite], request: EvaluationRequest) -> Iterator[tuple[McpSuite, EvaluationRequest]]:
    """Yield the matching part of every suite. Suites without a match are skipped, like filtered cases."""
    for suite in suites:
        models = tuple(name for name in request.models if name in suite.config.modelsToTest)
        cases = tuple(wanted for wanted in request.cases if wanted in suite.case_names)
        part = request.model_copy(update={"models": models, "cases": cases})
        lacks = (request.models and not models) or (request.cases and not cases)
        if not lacks and selected_cases(suite, part):
            yield suite, part


def _unmatched(suites: Sequence[McpSuite], request: EvaluationRequest, place: str) -> list[str]:
    """Return a sentence for each requested model and case that no suite has."""
    models = {name for suite in suites for name in suite.config.modelsToTest}
    found = [
        f"--model {name!r} is not among modelsToTest of {place}{near_names(name, models)}"
        for name in request.models
        if name not in models
    ]
    names = {case.name for suite in suites for case in suite.config.testCases if case.name}
    return found + [
        f"--case {wanted!r} is not the name, number or tag of a case of {place}{near_names(wanted, names)}"
        for wanted in request.cases
        if not any(wanted in suite.case_names for suite in suites)
    ]


def _checked(suite: McpSuite, request: EvaluationRequest, options: RunOptions) -> SelectedSuite:
    """Build the plan of a suite, and check the providers and keys of all its models at once."""
    cases = suite.config.testCases
    shown = [case_id(number, case.name, case.prompt) for number, case in enumerate(cases, 1)]
    gathered(  # different cases that reports could not tell apart, such as names that differ only in a tab
        [
            suite.lines.problem(
                ("testCases", at, "name" if cases[at].name else "prompt"),
                f"it is shown as {shown[at]!r}, like testCases[{first}]: give it another name",
            )
            for at, first in repeated(shown)
        ]
    )
    plan = build_plan(suite, request)
    check_models(suite, [spec.name for spec in plan.subjects], offline=options.replay == "strict")
    settings = settings_of(plan)
    options = replace(options, jobs=settings.concurrencyLimit)
    return SelectedSuite(suite, request, plan, McpDoor(settings, full_environment(suite)), options)


def case_places(file: Path) -> dict[str, tuple[str, int]]:
    """Return file and line of each case by its name in reports, or nothing if the file cannot be read any more."""
    with suppress(BakeoffError):
        suite = read_suite(file)
        return {
            case_id(number, case.name, case.prompt): (str(file), suite.lines.lines.get(("testCases", number - 1), 1))
            for number, case in enumerate(suite.config.testCases, 1)
        }
    return {}


async def prepare(selected: SelectedSuite, stack: AsyncExitStack | None = None) -> SelectedSuite:
    """Ask the servers for their tools, check the expected calls against these, and add them to the plan.

    With a stack, the servers run until it is closed, so that the run does not start them again, unless each trial
    starts its own. Raise `InfraError` if a server does not start.
    """
    suite, door, plan = selected.suite, selected.door, selected.plan
    settings, environment = door.settings_of(plan), door.environment_of(plan)
    hub, running = hub_of(settings.servers, environment, settings.toolTimeout), None
    try:
        if stack is not None and settings.serverScope == "run":
            running = RunningHub(hub, await stack.enter_async_context(hub.open()))
        async with (running or hub).open() as opened:
            tools = await opened.tools()
    except InfraError as error:
        raise InfraError(f"{suite.file}: {error}\nnothing was run") from error
    numbers = {number for number, _ in selected_cases(suite, selected.request)}
    gathered(
        [
            *unknown_offers(suite, tools, numbers),
            *impossible_calls(suite, tools, numbers),
            *destructive_calls(suite, tools, numbers),
        ]
    )
    warnings = [*unknown_tools(suite, tools, numbers), *_remarks(suite, tools)]
    if suite.config.mode != "json":
        from bakeoff.doors.mcp.subjects import changed_names

        warnings += [f"{suite.file}: {text}" for text in changed_names(tools)]
    minimum = selected.request.min_coverage
    coverage = coverage_of(suite.config.testCases, tools, suite.config.minCoverage if minimum is None else minimum)
    plan, settings = with_tools(plan, settings, tools, warnings, coverage)
    return replace(selected, plan=plan, door=McpDoor(settings, environment, running))


def _remarks(suite: McpSuite, tools: Sequence[ServerTool]) -> Iterator[str]:
    """Yield notes for the user before the run; none of them is an error."""
    config = suite.config
    if config.passThreshold is None:
        yield f"{suite.file}: passThreshold is not set: every round must pass"
    if config.judge is None and any((config.gradingPrompt, *(case.gradingPrompt for case in config.testCases))):
        yield f"{suite.file}: gradingPrompt without a judge: each model grades its own results; name a `judge`"
    if config.mode == "agent" and not config.allowDestructive:
        for tool in filter(is_destructive, tools):
            why = "is marked as destructive and is not executed: write `allowDestructive: true`"
            yield f"{suite.file}: {tool.label!r} {why}"
    told = config.executeTools is False
    for key in ("expectedResults", "expectedError"):
        checked = [case for case in config.testCases if any(getattr(part, key) is not None for part in case.parts)]
        if unchecked := [case for case in checked if not config.executes(case)]:
            number = count_of(len(unchecked), "case")
            yield f"{suite.file}: {key} is not checked in {number}, because executeTools is false"
    if any(case.endState and not config.executes(case) for case in config.testCases):
        yield f"{suite.file}: endState is not checked where executeTools is false"
    ungraded = [case for case in config.testCases if case.expectedOutput is not None and not config.executes(case)]
    if config.gradingPrompt is not None and ungraded:
        why = "executeTools is false" if told else "their tools are not executed: write `executeTools: true`"
        yield f"{suite.file}: gradingPrompt does not grade {count_of(len(ungraded), 'case')}, because {why}"


def added_providers(suite: McpSuite) -> dict[str, Provider]:
    """Return the added providers by name. One error names the place of each that cannot be imported."""
    found: dict[str, Provider] = {}
    problems: list[str] = []
    for name, config in suite.config.providers.items():
        own, key = name.strip().lower(), config.key_variable
        try:
            if config.target is None:
                assert config.base_url is not None, "the configuration is checked: a provider has one of the two"
                found[own] = compatible(name, config.base_url, key)
                continue
            with importable(suite.folder):
                factory = import_object(config.target, f"provider {name!r}")
            check_factory(factory, f"provider {name!r}")
            found[own] = Provider(name, "custom", (key,) if key else (), factory=factory, options=config.options)
        except UsageError as error:
            problems.append(suite.lines.problem(("providers", name), str(error)))
    gathered(problems)
    return found


def check_models(suite: McpSuite, models: Container[str] | None = None, *, offline: bool = False) -> None:
    """Raise one error for all of these models (None: all) and the judge that lack a provider, a key or weights.

    With `offline`, only recorded answers are used, so that keys and weights are not needed.
    """
    providers = known_providers(added_providers(suite))
    named: list[tuple[Key, str]] = [
        (("modelsToTest", at), name)
        for at, name in enumerate(suite.config.modelsToTest)
        if models is None or name in models
    ]
    if suite.config.judge is not None:
        named.append((("judge",), suite.config.judge))
    problems: list[str] = []
    from bakeoff.models.access import what_is_missing  # takes a second to load: not before a suite was read

    for key, text in named:
        try:
            name = known_model_name(text, providers)
            missing = [] if offline else what_is_missing(name, providers[name.provider], suite.environment)
        except UsageError as error:
            missing = [str(error)]
        problems += [suite.lines.problem(key, problem) for problem in missing]
    gathered(problems)
