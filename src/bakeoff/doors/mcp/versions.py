"""Compare two runs of an evaluation: what changed in the servers, and the points that each tool won or lost by it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of
from bakeoff.doors.mcp.calls import NO_TOOL, ExpectedMcpCall, tool_label
from bakeoff.doors.mcp.plan import DOOR, settings_of
from bakeoff.doors.mcp.snapshot.changes import ToolChange, changes
from bakeoff.doors.mcp.snapshot.files import Snapshot
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.plan import Case, Plan
from bakeoff.report.compare.comparison import Arm, FileName, countable, read_arm
from bakeoff.report.formatting import visible
from bakeoff.report.readers import Source, find_source
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import GateDecision, GateJudgement, GateVerdict, Losses, decide, exit_code_of, judge, judge_all
from bakeoff.stats.power import POWER, cases_needed, too_few
from bakeoff.stats.several import compare_all
from bakeoff.storage.run_folder import RunFolder, run_folders

_MAX_RUNS = 50  # earlier runs to look through
_MAX_NAMED = 5  # tools in a sentence


class ToolPoints(FrozenModel):
    """The cases that want one tool, before and after, and what changed about it."""

    tool: str
    comparison: Comparison
    ruling: GateJudgement
    changes: tuple[ToolChange, ...] = ()


class VersionReport(FrozenModel):
    """Two versions of servers: the points of all models together, each case once."""

    runs: tuple[FileName, FileName]
    models: tuple[str, ...]
    comparison: Comparison
    ruling: GateJudgement
    """On all cases together, or on the tools that are decided where all cases together are not."""
    gate: str
    exit_code: int
    tools: tuple[ToolPoints, ...]
    advice: str | None = None
    """How many cases would decide."""
    other_changes: tuple[ToolChange, ...] = ()
    """What changed about tools that no case wants, and about everything that is not a tool."""


def compare_versions(baseline: Source, candidate: Source) -> VersionReport:
    """Compare the models that both runs have, over the cases with the same name and prompt.

    Expected calls may differ, because a tool that was renamed is wanted by its new name.
    """
    _check_door(baseline)
    _check_door(candidate)
    models = _common_models(baseline.plan, candidate.plan)
    with countable(baseline, candidate), ExitStack() as opened:
        before, after = (
            [opened.enter_context(read_arm(source, model)) for model in models] for source in (baseline, candidate)
        )
        cells = _pooled(before), _pooled(after)
        losses = _losses(before), _losses(after)
    overall = compare(*cells)
    ruling = judge(overall, losses=losses)
    by_tool = compare_all({tool: _of_tool(candidate.plan, tool, cells) for tool in _tools(candidate.plan, cells[1])})
    rulings = judge_all(by_tool, losses=dict.fromkeys(by_tool, losses))
    found = changes(*(Snapshot.of_tools(settings_of(source.plan).tools) for source in (baseline, candidate)))
    tools = tuple(
        ToolPoints(
            tool=tool,
            comparison=compared,
            ruling=rulings[tool],
            changes=tuple(each for each in found if _label(each) == tool),
        )
        for tool, compared in by_tool.items()
    )
    decision = _decision(overall, ruling, tools)
    ruling = _with_decided_tools(overall, ruling, tools)
    return VersionReport(
        runs=(baseline.name, candidate.name),
        models=models,
        comparison=overall,
        ruling=ruling,
        gate=decision.sentence,
        exit_code=decision.exit_code,
        tools=tools,
        advice=_advice(overall, ruling, cells),
        other_changes=tuple(each for each in found if _label(each) not in by_tool),
    )


def last_two_runs(results: Path) -> tuple[Source, Source]:
    """Return the newest run of an evaluation, and the one of the same configuration before it.

    A damaged run among them could be one of the two, so others are not taken in its place.
    """
    found = _mcp_runs(reversed(run_folders(results)), skip_damaged=False)
    newest = next(found, None)
    if newest is None:
        raise UsageError(f"{results} has no run of an MCP evaluation: make one with `bakeoff mcp evaluate`")
    earlier = next((each.folder for each in found if each.file == newest.file), None)
    if earlier is None:
        raise UsageError(
            f"{results} has only one run of {visible(newest.file, 200)}: change the server and run "
            "`bakeoff mcp evaluate` again, or name two runs (`bakeoff runs` lists them)"
        )
    return _source(results, earlier), _source(results, newest.folder)


def compare_with_run_before(folder: RunFolder, plan: Plan) -> VersionReport | None:
    """Compare a run with the one of the same configuration before it, if the tools have changed since."""
    settings, results = settings_of(plan), folder.path.parent.parent
    older = list(takewhile(lambda each: each.path != folder.path, run_folders(results)))
    runs = _mcp_runs(older[: -_MAX_RUNS - 1 : -1])
    before = next((each.folder for each in runs if each.file == settings.file), None)
    try:
        if before is None or settings_of(before.read_plan()).tools_hash == settings.tools_hash:
            return None
        return compare_versions(_source(results, before), _source(results, folder))
    except BakeoffError:  # the page of a run does not depend on another run
        return None


class _McpRun(NamedTuple):
    folder: RunFolder
    file: str


def _mcp_runs(folders: Iterable[RunFolder], *, skip_damaged: bool = True) -> Iterator[_McpRun]:
    for folder in folders:
        try:
            plan = folder.read_plan()
            if plan.door == DOOR:
                yield _McpRun(folder, settings_of(plan).file)
        except BakeoffError as error:
            if not skip_damaged:
                way_out = f"name two others, or remove the folder {folder.path}"
                raise UsageError(f"one of the last runs is damaged: {error}; {way_out}") from error


def _source(results: Path, folder: RunFolder) -> Source:
    return find_source(results, str(folder.path))


def _check_door(source: Source) -> None:
    if source.plan.door != DOOR:
        raise UsageError(
            f"{source.name} is not a run of an MCP evaluation: compare it with `bakeoff compare`, or name runs of "
            "`bakeoff mcp evaluate`"
        )


def _common_models(before: Plan, after: Plan) -> tuple[str, ...]:
    ours, theirs = ([spec.name for spec in plan.subjects] for plan in (before, after))
    common = tuple(name for name in ours if name in theirs)
    if not common:
        raise UsageError(f"no model is in both runs: one has {', '.join(ours)}; the other has {', '.join(theirs)}")
    return common


def _pooled(arms: Sequence[Arm]) -> Cells:
    """Return each case once, with the rounds of all models, because models that share a case are not independent."""
    pooled: dict[CaseKey, Cell] = {}
    for arm in arms:
        for case in arm.plan.cases:
            cell = arm.records.cells(arm.spec.name).get(case.id)
            if cell is None:
                continue
            key = _key(case)
            known = pooled.get(key)
            pooled[key] = cell if known is None else _sum(known, cell)
    return pooled


def _key(case: Case) -> CaseKey:
    return CaseKey(case.id, fingerprint(case.prompt))


def _sum(one: Cell, other: Cell) -> Cell:
    return Cell(one.rounds + other.rounds, one.total + other.total, one.squares + other.squares, one.cluster)


def _losses(arms: Sequence[Arm]) -> Losses:
    found = [arm.losses for arm in arms]
    to = next((each.to for each in found if each.lost), "infrastructure")
    return Losses(sum(each.trials for each in found), sum(each.lost for each in found), to)


def _wanted(case: Case) -> list[str]:
    calls = ExpectedMcpCall.model_validate(case.expected).calls
    return list(dict.fromkeys(call.tool for call in calls)) if calls else [NO_TOOL]


def _tools(plan: Plan, cells: Cells) -> list[str]:
    return list(dict.fromkeys(tool for case in plan.cases if _key(case) in cells for tool in _wanted(case)))


def _of_tool(plan: Plan, tool: str, cells: tuple[Cells, Cells]) -> tuple[Cells, Cells]:
    keys = {_key(case) for case in plan.cases if tool in _wanted(case)}
    before, after = ({key: cell for key, cell in arm.items() if key in keys} for arm in cells)
    return before, after


def _label(change: ToolChange) -> str:
    """Return the tool of a change by its present name, or nothing."""
    if change.part != "tool":
        return ""
    return tool_label(change.server, change.renamed or change.name)


def _decision(overall: Comparison, ruling: GateJudgement, tools: Sequence[ToolPoints]) -> GateDecision:
    """Shut the gate if all tools together regressed, or one of them did."""
    parts = {"all tools": decide(overall, ruling)}
    parts |= {one.tool: decide(one.comparison, one.ruling) for one in tools}
    code = exit_code_of([parts["all tools"].exit_code, *(each.exit_code == 1 for each in parts.values())])
    worse = [tool for tool, each in parts.items() if each.exit_code == 1 and tool != "all tools"]
    if worse and parts["all tools"].exit_code != 1:
        return GateDecision(code, f"the gate is shut: {visible(', '.join(worse), 300)} got worse")
    return GateDecision(code, parts["all tools"].sentence)


def _with_decided_tools(overall: Comparison, ruling: GateJudgement, tools: Sequence[ToolPoints]) -> GateJudgement:
    """Return the ruling with the tools that it does not show: one that got worse, or better where nothing is shown."""
    worse, better = (
        [one for one in tools if one.ruling.verdict is verdict]
        for verdict in (GateVerdict.REGRESSED, GateVerdict.IMPROVED)
    )
    shown = ruling.verdict is not GateVerdict.UNDECIDABLE
    if ruling.refused or ruling.verdict is GateVerdict.REGRESSED or not (worse or (better and not shown)):
        return ruling
    parts = [f"{found[0].ruling.verdict}: {_points_of(found)}" for found in (worse, better) if found]
    chance = "" if ruling.p_value is None else f", p = {ruling.p_value:.2g}"
    whole = f"all {overall.cases} cases together: {100 * (overall.difference or 0.0):+.1f} points{chance}"
    sentence = f"{'; '.join(parts)}; {whole}, {ruling.verdict}"
    verdict = GateVerdict.REGRESSED if worse else GateVerdict.IMPROVED
    return GateJudgement(verdict=verdict, sentence=sentence, p_value=ruling.p_value)


def _points_of(tools: Sequence[ToolPoints]) -> str:
    named = [
        f"{visible(one.tool, 100)} ({100 * (one.comparison.difference or 0.0):+.1f} points in "
        f"{count_of(one.comparison.cases, 'case')}, p = {one.ruling.p_value or 0.0:.2g})"
        for one in tools[:_MAX_NAMED]
    ]
    return ", ".join(named) + (" and others" if len(tools) > _MAX_NAMED else "")


def _advice(overall: Comparison, ruling: GateJudgement, cells: tuple[Cells, Cells]) -> str | None:
    """Say how many cases would decide an undecidable comparison, and how to get them."""
    if ruling.verdict is not GateVerdict.UNDECIDABLE or ruling.refused or not overall.paired:
        return None
    draft = "`bakeoff mcp generate` drafts more"
    needed = cases_needed(*cells)
    if needed is not None and needed > overall.cases:
        found = f"would show a difference of this size with a probability of {100 * POWER:g} %"
        return f"about {needed:,} cases like these {overall.cases:,} {found}; {draft}"
    few = too_few(overall.cases)
    return few and f"{few}; {draft}"
