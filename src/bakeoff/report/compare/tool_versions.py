"""Compare two versions of MCP servers: how each tool changed, and the points it won or lost.

`mcp tune` chooses the best description of a tool on some cases, and confirms it on others.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.mcp.changes import CHANGE_LEVELS, ToolChange
from bakeoff.mcp.tools import tool_label
from bakeoff.plan import Case, Plan, SubjectSpec, UntilDecided
from bakeoff.record import Record
from bakeoff.report.blocks import (
    Block,
    Code,
    Column,
    Datum,
    Facts,
    ForestPlot,
    Quote,
    Report,
    Section,
    Table,
    Tone,
    Value,
    columns,
)
from bakeoff.report.compare.arms import Arm, FileName, countable, read_arm, refuse_copy, uncompared
from bakeoff.report.compare.description import (
    VERDICT_TONES,
    difference_cells,
    difference_tiles,
    gated_report,
    plotted_difference,
)
from bakeoff.report.formatting import UNKNOWN, percent, sentence
from bakeoff.report.gates import NO_EVIDENCE, GateDecision, GateEvidence, decide_gate
from bakeoff.report.readers import Source
from bakeoff.report.summary import is_control
from bakeoff.report.tools import LEVEL_TONES, listed_changes, text_diff
from bakeoff.scorers.mcp.calls import NO_TOOL, CaseExpectation
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison
from bakeoff.stats.gates import GateJudgement, GateVerdict, Losses, PairedArms, judge_pairs
from bakeoff.stats.power import POWER, cases_needed, too_few
from bakeoff.stats.sequential import PairDecisions, SequentialDecision, random_order
from bakeoff.storage.ledger import Ledger

_MAX_NAMED = 5  # tools in a sentence


class ToolPoints(FrozenModel):
    """The cases that expect one tool, before and after, and the changes of the tool."""

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
    """The judgement on all cases, or on single tools if only these are decided."""
    gate: str
    exit_code: int
    tools: tuple[ToolPoints, ...]
    advice: str | None = None
    """A sentence with the number of cases that would decide the comparison."""
    other_changes: tuple[ToolChange, ...] = ()
    """Changes of tools that no case expects, and of everything that is not a tool."""


def compare_versions(
    baseline: Source, candidate: Source, changes: Sequence[ToolChange], common: GateEvidence = NO_EVIDENCE
) -> VersionReport:
    """Compare the models that both runs have, over the cases with the same name and prompt.

    Expected calls may differ, because a renamed tool is expected under its new name. `changes` are
    the changes of the servers between the runs. Raises `UsageError` if no model is in both runs.
    """
    refuse_copy(baseline.path, candidate.path)
    ours, theirs = ([spec.name for spec in plan.subjects] for plan in (baseline.plan, candidate.plan))
    models = tuple(name for name in ours if name in theirs)
    if not models:
        raise UsageError(f"no model is in both runs: one has {', '.join(ours)}; the other has {', '.join(theirs)}")
    with countable(baseline, candidate), ExitStack() as opened:
        before, after = (
            [opened.enter_context(read_arm(source, model)) for model in models] for source in (baseline, candidate)
        )
        cells = _pooled(before), _pooled(after)
        losses = Losses.total([arm.losses for arm in before]), Losses.total([arm.losses for arm in after])
        names = (baseline.name, candidate.name)
        ledgers = {
            visible(name): Ledger.total(arm.ledger for arm in arms)
            for name, arms in zip(names, (before, after), strict=True)
        }
    overall, ruling = judge_pairs({"": PairedArms(*cells, losses=losses)}, margin=common.rule.margin)[""]
    compared = [case for case in candidate.plan.cases if _key(case) in cells[1]]
    wanted = list(dict.fromkeys(tool for case in compared for tool in _wanted(case)))
    arms = {tool: PairedArms(*_of_tool(candidate.plan, tool, cells), losses=losses) for tool in wanted}
    judged = judge_pairs(arms, margin=common.rule.margin)
    tools = tuple(
        ToolPoints(tool=tool, **judged[tool]._asdict(), changes=tuple(each for each in changes if _label(each) == tool))
        for tool in wanted
    )
    keys = [[_key(case) for case in plan.cases] for plan in (baseline.plan, candidate.plan)]
    judged_before = [spec.name for spec in baseline.plan.subjects if not is_control(spec, bound=False)]
    lacking = uncompared(keys[0], keys[1], gone={name: len(keys[0]) for name in judged_before if name not in models})
    evidence = replace(common, ledgers=ledgers, uncompared=lacking)
    decision = _decision(overall, ruling, tools, evidence)
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
        other_changes=tuple(each for each in changes if _label(each) not in wanted),
    )


def _pooled(arms: Sequence[Arm]) -> Cells:
    """Return each case once, with the rounds of all models, because models that share a case are not independent."""
    pooled: dict[CaseKey, Cell] = {}
    for arm in arms:
        for case in arm.plan.cases:
            cell = arm.records.cells(arm.spec.name).get(case.id)
            if cell is not None:
                key = _key(case)
                pooled[key] = Cell.joined([pooled[key], cell]) if key in pooled else cell
    return pooled


def _key(case: Case) -> CaseKey:
    return CaseKey(case.id, fingerprint(case.prompt))


def _wanted(case: Case) -> list[str]:
    calls = CaseExpectation.model_validate(case.expected).calls
    return list(dict.fromkeys(call.tool for call in calls)) if calls else [NO_TOOL]


def _of_tool(plan: Plan, tool: str, cells: tuple[Cells, Cells]) -> tuple[Cells, Cells]:
    """Return the scores, before and after, of the cases that expect a tool."""
    keys = {_key(case) for case in plan.cases if tool in _wanted(case)}
    before, after = ({key: cell for key, cell in arm.items() if key in keys} for arm in cells)
    return before, after


def _label(change: ToolChange) -> str:
    """Return the current name of the changed tool; empty if something else changed."""
    if change.part != "tool":
        return ""
    return tool_label(change.server, change.renamed or change.name)


def _decision(
    overall: Comparison, ruling: GateJudgement, tools: Sequence[ToolPoints], evidence: GateEvidence
) -> GateDecision:
    """Fail the gate if all tools together regressed, or if a single one did."""
    worse = [one for one in tools if one.ruling.verdict is GateVerdict.REGRESSED]
    if not worse or ruling.verdict is GateVerdict.REGRESSED:
        return decide_gate(replace(evidence, comparisons=((overall, ruling),)))
    judged = [(one.comparison, one.ruling) for one in worse]
    said = f"{visible(', '.join(one.tool for one in worse), 300)} got worse"
    return decide_gate(replace(evidence, comparisons=judged, sentence=said))


def _with_decided_tools(overall: Comparison, ruling: GateJudgement, tools: Sequence[ToolPoints]) -> GateJudgement:
    """Adjust the judgement if single tools got worse or, with no overall result, improved."""
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
    """Name some tools with their points."""
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


_NAME = 120


def describe_versions(report: VersionReport) -> Report:
    """Describe the verdict first, then each tool with its points and changes, then the texts that changed."""
    compared = report.comparison
    outcomes = f"{compared.wins:,} · {compared.ties:,} · {compared.losses:,}"
    tiles = (
        *difference_tiles(compared, report.ruling, outcomes, "cases in pairs"),
        ("Models", f"{len(report.models):,}", visible(", ".join(report.models), _NAME)),
    )
    told = (report.ruling.sentence, *filter(None, (report.advice,)))
    title = ("MCP servers in ", Quote(report.runs[1]), " against ", Quote(report.runs[0]))
    gate, headline = (report.exit_code, report.gate), " ".join(map(sentence, told))
    return gated_report(title, version_sections(report), gate, headline, tiles)


def version_sections(report: VersionReport) -> tuple[Section, ...]:
    """Return the tools with their points, and what changed."""
    found = [_tools_section(report)]
    everything = sorted(
        (*[change for one in report.tools for change in one.changes], *report.other_changes),
        key=lambda change: CHANGE_LEVELS.index(change.level),
    )
    if everything:
        lead = "Changes of the servers, and what models read about tools before and after."
        found.append(Section("server-changes", "Changes", tuple(listed_changes(everything)), lead))
    return tuple(found)


def _tools_section(report: VersionReport) -> Section:
    """Return a table and a plot of all tools, changed ones first."""
    titles = (
        *columns("Tool", "Changed", "Points>"),
        Column("Interval", align="end", help="95 % over all tools, adjusted by Holm's method", drop=3),
        Column("p", align="end", help="adjusted by Holm's method", drop=2),
        *columns("Before>", "After>"),
        Column("Cases", align="end", drop=1),
        Column("Verdict", drop=4),
    )
    ranked = sorted(report.tools, key=lambda one: (not one.changes, one.comparison.difference or 0.0))
    table = Table(titles, tuple(_tool_row(one) for one in ranked), "Points of each tool, changed ones first")
    plot = ForestPlot(
        "Paired difference, after minus before",
        tuple(
            plotted_difference(visible(one.tool, _NAME), one.comparison, one.ruling.verdict)
            for one in ranked
            if one.comparison.interval is not None
        ),
        caption="The line is the 95 % interval over all tools, adjusted by Holm's method.",
    )
    lead = (
        f"Compared with {visible(report.runs[0], _NAME)}: the cases that want a tool, over "
        f"{count_of(len(report.models), 'model')}. A case with several calls counts for each of its tools."
    )
    blocks: tuple[Block, ...] = (table, plot) if plot.rows else (table,)
    return Section("versions", "Points by tool", blocks, lead)


def _tool_row(one: ToolPoints) -> tuple[Value, ...]:
    compared, ruling = one.comparison, one.ruling
    worst = min((change.level for change in one.changes), key=CHANGE_LEVELS.index, default=None)
    kinds = dict.fromkeys(change.kind.replace("-", " ") for change in one.changes)
    changed = f"{worst} ({', '.join(kinds)})" if worst else UNKNOWN
    return (
        Datum(Quote(one.tool), tone="strong"),
        Datum(visible(changed, 200), tone=LEVEL_TONES[worst] if worst else "muted"),
        *difference_cells(compared, ruling),
        Datum(percent(compared.baseline), sort=compared.baseline),
        Datum(percent(compared.candidate), sort=compared.candidate),
        compared.cases,
        Datum(ruling.verdict.value, tone=VERDICT_TONES[ruling.verdict]),
    )


PRESENT = "present"
_MIN_CASES = 4  # two to choose a description, and two to confirm it


class ToolsVersion(FrozenModel):
    """A version of a tool's description, with its result on the training cases."""

    name: str
    description: str
    score: float | None = None
    cases: int = 0


class TuneReport(FrozenModel):
    """The winning description, and the comparison on held-out cases that may confirm it."""

    tool: str
    model: str
    versions: tuple[ToolsVersion, ...]
    winner: str
    training: FileName
    held_out: FileName | None = None
    comparison: Comparison | None = None
    ruling: GateJudgement | None = None

    @property
    def confirmed(self) -> bool:
        """Tell whether the winner is shown to be better than the present description."""
        return self.ruling is not None and self.ruling.verdict is GateVerdict.IMPROVED

    def description_of(self, name: str) -> str:
        """Return the description of the version with this name."""
        return next(version.description for version in self.versions if version.name == name)


def split_cases(plan: Plan, tool: str, share: float) -> tuple[list[Case], list[Case]]:
    """Split the cases at random into training cases and a held-out `share` for confirmation.

    Cases that expect the tool and others are split separately. Cases of one cluster stay together.
    """
    units = list(random_order(plan))
    groups = [
        [unit for unit in units if any(tool in _wanted(case) for case in unit) is wanted] for wanted in (True, False)
    ]
    if len(groups[0]) < _MIN_CASES:
        raise UsageError(
            f"{len(groups[0])} cases want {tool}: at least {_MIN_CASES} are needed, to choose a description by some "
            "and to confirm it by others; `bakeoff mcp generate` drafts more"
        )
    training: list[Case] = []
    held_out: list[Case] = []
    for group in groups:
        kept = min(len(group) - 1, max(1, round(share * len(group)))) if len(group) > 1 else 0
        held_out += [case for unit in group[:kept] for case in unit]
        training += [case for unit in group[kept:] for case in unit]
    return training, held_out


def versions_of(tool: ServerTool, texts: Iterable[str]) -> tuple[ToolsVersion, ...]:
    """Return the present description and the others, without duplicates."""
    given = dict.fromkeys(text.strip() for text in texts if text.strip())
    others = [text for text in given if text != tool.description.strip()]
    if not others:
        raise UsageError(f"there is no other description of {tool.name!r} to try: give one with --description")
    named = [ToolsVersion(name=f"version {number}", description=text) for number, text in enumerate(others, 1)]
    return (ToolsVersion(name=PRESENT, description=tool.description), *named)


def version_plan(
    plan: Plan, tool: ServerTool, versions: Sequence[ToolsVersion], cases: Sequence[Case], stage: str
) -> Plan:
    """Return the plan in which one model answers the cases with each version."""
    [model] = plan.subjects
    return plan.with_changes(
        name=f"{plan.name} {tool.name} {stage}",
        subjects=tuple(_subject(model, tool.label, version) for version in versions),
        cases=tuple(cases),
        until_decided=UntilDecided.in_new_order() if stage == "training" else None,
    )


def _subject(model: SubjectSpec, label: str, version: ToolsVersion) -> SubjectSpec:
    """Return the model as a subject that sees one version of the description."""
    if version.name == PRESENT:
        return model.model_copy(update={"name": PRESENT})
    told = {**model.options, "descriptions": {label: version.description}}
    return model.model_copy(update={"name": version.name, "options": told})


def best_version(plan: Plan, versions: Sequence[ToolsVersion], records: Iterable[Record]) -> tuple[ToolsVersion, ...]:
    """Return the versions with their training scores, the best first.

    A version that was shown to be worse in a decided pair comes after the others. The present one wins a tie.
    """
    kept = list(records)
    worse: dict[str, int] = dict.fromkeys((version.name for version in versions), 0)
    for pair in PairDecisions.of(plan, kept).results():
        if pair.decision in (SequentialDecision.IMPROVED, SequentialDecision.REGRESSED):
            worse[pair.first if pair.decision is SequentialDecision.IMPROVED else pair.second] += 1
    scored = []
    for version in versions:
        means = [cell.mean for cell in cells_of_subject(kept, version.name).values()]
        found = {"score": sum(means) / len(means) if means else None, "cases": len(means)}
        scored.append(version.model_copy(update=found))
    return tuple(sorted(scored, key=lambda version: (worse[version.name], -(version.score or 0.0))))


def cells_of_subject(records: Iterable[Record], subject: str) -> Cells:
    """Return the passes of a subject by case."""
    rounds: dict[CaseKey, list[float]] = {}
    for record in records:
        if record.subject == subject and record.verdict.counts:
            rounds.setdefault(CaseKey(record.case), []).append(float(record.verdict.ok))
    return {key: Cell.of(values) for key, values in rounds.items()}


def confirm(records: Sequence[Record], winner: str) -> tuple[Comparison, GateJudgement]:
    """Compare the winner with the present description on the held-out cases."""
    arms = PairedArms(cells_of_subject(records, PRESENT), cells_of_subject(records, winner))
    return judge_pairs({"": arms})[""]


def describe_tuning(report: TuneReport) -> Report:
    """Describe the verdict first, then every version, then what to change."""
    rows = tuple(
        (
            Datum(version.name, tone="strong" if version.name == report.winner else "plain"),
            Datum(percent(version.score), sort=version.score),
            version.cases,
            Quote(version.description[:500]),
        )
        for version in report.versions
    )
    table = Table(columns("Version", "Score>", "Cases>", "Description"), rows, "Training cases, the best first")
    lead = "Chosen by the training cases. A version is run until it is shown to be behind."
    sections = [Section("versions", "Versions", (table,), lead)]
    if report.comparison is not None and report.ruling is not None:
        found = report.comparison
        lead = f"{count_of(found.cases, 'case')} that did not choose the winner, each with both descriptions."
        facts = Facts(
            (
                (PRESENT, percent(found.baseline)),
                (report.winner, percent(found.candidate)),
                ("better, same, worse", f"{found.wins}, {found.ties}, {found.losses}"),
                ("verdict", report.ruling.sentence),
            )
        )
        sections.append(Section("held-out", "Held-out cases", (facts,), lead))
    if report.confirmed:
        before, after = report.description_of(PRESENT), report.description_of(report.winner)
        change = Code(text_diff(before, after), "diff", visible(report.tool, _NAME), folded=False)
        sections.append(Section("change", "The change", (change,)))
    runs = (("training", report.training), *((("held out", report.held_out),) if report.held_out else ()))
    sections.append(Section("runs", "Runs", (Facts(runs),)))
    badge, tone, headline = _verdict(report)
    title = ("Descriptions of ", Quote(report.tool), " for ", Quote(report.model))
    return Report(title, tuple(sections), badge, tone, headline)


def _verdict(report: TuneReport) -> tuple[str, Tone, str]:
    """Return the badge, its tone and the headline."""
    if report.winner == PRESENT:
        return "Kept", "pass", "No version did better than the present description on the training cases: keep it."
    assert report.ruling is not None
    if report.confirmed:
        return "Better", "pass", f"{report.winner.capitalize()} is better. {sentence(report.ruling.sentence)}"
    ahead = f"{report.winner.capitalize()} was ahead on the training cases, and held-out cases do not confirm it."
    return "Not confirmed", "partial", f"{ahead} {sentence(report.ruling.sentence)}"
