"""Implement `bakeoff mcp compare` and `tune`: compare versions of servers, and descriptions of a tool."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.files import read_file
from bakeoff._kernel.text import count_of
from bakeoff.cli.console import err, say, warn
from bakeoff.cli.declare import FAILED, INTERRUPTED, PASSED, Flags, command, flag, group_of
from bakeoff.cli.flags import CONFIG, ExitZero, GateFlags, PlanFlags, ReportFlags, Results, allowed_in
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.doors.mcp.suites import SelectedSuite
    from bakeoff.plan import Plan
    from bakeoff.report.compare.tool_versions import ToolsVersion, TuneReport
    from bakeoff.storage.run_folder import RunFolder

app = group_of()


class TuneFlags(Flags):
    """The options of `bakeoff mcp tune`."""

    path: Path | None = CONFIG
    descriptions: list[str] | None = flag(None, "A description to try.", "--description", metavar="TEXT")
    versions: Path | None = flag(None, "A file of descriptions, with lines of --- between them.", metavar="FILE")
    propose: int = flag(0, "Let a model propose this many.", min=0, max=20, metavar="N")
    proposer: str | None = flag(None, "The model that proposes. Default: the model under test.", metavar="NAME")
    model: str | None = flag(None, "The model under test. Default: the first of modelsToTest.", metavar="NAME")
    rounds: int | None = flag(None, "How often to try each case. Default: testRound.", min=1)
    hold_out: float = flag(0.5, "The share of cases that confirm the winner.", min=0.1, max=0.9, metavar="SHARE")


@command(app, "compare")
def compare(
    *,
    baseline: Annotated[
        str | None, Argument(metavar="BASELINE", help="The earlier run. Default: the last two runs.")
    ] = None,
    candidate: Annotated[str | None, Argument(metavar="CANDIDATE", help="The later run.")] = None,
    results: Results = Path("results"),
    wanted: GateFlags,
    exit_zero: ExitZero = False,
    shown_as: ReportFlags,
) -> int:
    """Show what changed in the servers between two runs, and the points that each tool won or lost.

    Exit codes: 0 no regression is shown, 1 a regression is shown, 3 too much is missing to compare.

    Example: bakeoff mcp compare --markdown
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.doors.mcp.runs import compare_servers, last_two_runs
    from bakeoff.report.compare.tool_versions import describe_versions
    from bakeoff.report.gates import GateEvidence, GateRule
    from bakeoff.report.readers import find_source

    if baseline is None:
        first, second = last_two_runs(results)
    elif candidate is None:
        raise UsageError(f"compare {baseline!r} with what? Name a second run, or none for the last two")
    else:
        first, second = find_source(results, baseline), find_source(results, candidate)
    rule = GateRule("regression", wanted.margin, wanted.undecidable)
    common = GateEvidence(allowed=allowed_in(wanted.allow_undecided), rule=rule)
    report = compare_servers(first, second, common)
    show_report(report.model_dump_json, describe_versions(report), shown_as)
    return PASSED if exit_zero and report.exit_code == FAILED else report.exit_code


@command(app, "tune")
def tune(
    *,
    tool: Annotated[str, Argument(metavar="TOOL", help="The tool, as `tool` or `server/tool`.")],
    wanted: TuneFlags,
    flags: PlanFlags,
    shown_as: ReportFlags,
) -> int:
    """Try several descriptions of a tool: some cases choose the best, and others confirm that it is better.

    Exit codes: 0 a better description is confirmed or the present one is best, 1 the winner is not confirmed.

    Example: bakeoff mcp tune get_weather --description "Return the weather of a city." --propose 3
    """

    from bakeoff.cli.run_plan import show_report
    from bakeoff.doors.mcp.model_writing import proposed_descriptions
    from bakeoff.mcp.tools import find_tool
    from bakeoff.report.compare.tool_versions import PRESENT, describe_tuning, split_cases, version_plan, versions_of

    selected = _suite(wanted, flags)
    plan, settings = selected.plan, selected.door.settings_of(selected.plan)
    found = find_tool(settings.tools, tool)
    training_cases, held_out_cases = split_cases(plan, found.label, wanted.hold_out)
    texts = [*(wanted.descriptions or ()), *_from_file(wanted.versions)]
    if wanted.propose:
        model = wanted.proposer or plan.subjects[0].name
        proposed, problems = asyncio.run(
            proposed_descriptions(found, settings.tools, model, wanted.propose, selected.door.environment_of(plan))
        )
        texts += proposed
        warn(problems)
    versions = versions_of(found, texts)
    training = version_plan(plan, found, versions, training_cases, "training")
    held_out = version_plan(plan, found, versions, held_out_cases, "held out")
    report = _tuned(selected, found.label, versions, training, held_out)
    if report is None:
        return INTERRUPTED
    show_report(report.model_dump_json, describe_tuning(report), shown_as)
    return PASSED if report.confirmed or report.winner == PRESENT else FAILED


def _suite(wanted: TuneFlags, flags: PlanFlags) -> "SelectedSuite":
    from bakeoff.doors.mcp.plan import EvaluationRequest
    from bakeoff.doors.mcp.suites import prepare, read_suites

    request = EvaluationRequest(path=wanted.path, rounds=wanted.rounds, models=[wanted.model] if wanted.model else [])
    suites = read_suites(request, flags.options()).suites
    if len(suites) > 1:
        names = ", ".join(str(selected.suite.file) for selected in suites)
        raise UsageError(f"there are {len(suites)} suites: name one with --config: {names}")
    selected = asyncio.run(prepare(suites[0]))
    if len(selected.plan.subjects) > 1:
        first = selected.plan.subjects[0]
        say(f"with {first.name}, the first of modelsToTest; choose another with --model")
        selected = replace(selected, plan=selected.plan.with_changes(subjects=(first,)))
    return selected


def _from_file(file: Path | None) -> list[str]:
    """Return the descriptions in a file, which are separated by lines of three dashes."""
    if file is None:
        return []
    try:
        text = read_file(file, pipes=True).decode()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--versions {file} cannot be read: {reason}") from error
    return [part.strip() for part in re.split(r"(?m)^[ \t]*---[ \t]*$", text)]


def _tuned(
    selected: "SelectedSuite", label: str, versions: "tuple[ToolsVersion, ...]", training: "Plan", held_out: "Plan"
) -> "TuneReport | None":
    """Choose the best description on some cases, and confirm it on others; None after Ctrl-C."""

    from bakeoff.report.compare.tool_versions import PRESENT, TuneReport, best_version, confirm

    say(f"{count_of(len(versions), 'description')} on {count_of(len(training.cases), 'case')}, until one is ahead")
    first = _run(selected, training)
    if first is None:
        return None
    ranked = best_version(training, versions, list(first.latest_records(training)))
    winner, model = ranked[0].name, selected.plan.subjects[0].name
    report = TuneReport(tool=label, model=model, versions=ranked, winner=winner, training=first.name)
    if winner == PRESENT:
        return report
    say(f"{winner} against the present description on {len(held_out.cases)} other cases")
    pair = tuple(spec for spec in held_out.subjects if spec.name in (PRESENT, winner))
    final = held_out.with_changes(subjects=pair)
    second = _run(selected, final)
    if second is None:
        return None
    compared, ruling = confirm(list(second.latest_records(final)), winner)
    return report.model_copy(update={"held_out": second.name, "comparison": compared, "ruling": ruling})


def _run(selected: "SelectedSuite", plan: "Plan") -> "RunFolder | None":
    from bakeoff.cli.run_plan import check_plan, watch
    from bakeoff.storage.run_folder import new_run_folder

    checked = check_plan(plan, selected.options, selected.door)
    folder = new_run_folder(checked.options.results, plan.name)
    if asyncio.run(watch(checked, replace(checked.options, folder=folder.path), err())):
        say(f"stopped; finished trials are kept in {folder.path}")
        return None
    return folder
