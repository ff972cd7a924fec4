"""From what was asked for to plans that can be run: all that can be wrong is found before a model is called."""

from collections.abc import Iterator
from dataclasses import dataclass

from bakeoff._kernel.yaml_with_lines import gathered
from bakeoff.doors import door_of
from bakeoff.doors.mcp_suite.choosing import Asked, in_no_suite, parts_of
from bakeoff.doors.mcp_suite.config import Suite, read_suite, unknown_tools
from bakeoff.doors.mcp_suite.find import find_configs, suite_environment
from bakeoff.doors.mcp_suite.plan import build_plan, case_id, chosen_cases, run_options
from bakeoff.doors.mcp_suite.providers import check_models
from bakeoff.doors.mcp_suite.request import EvaluationRequest
from bakeoff.doors.mcp_suite.servers import hub_of
from bakeoff.doors.mcp_suite.settings import evaluation_of
from bakeoff.errors import BakeoffError, InfraError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan


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
