"""Find the better of several descriptions of a tool: chosen on some cases, and confirmed on others.

The versions are the subjects of one plan, so that each case is answered with every version. The cases that chose the
best cannot also show that it is better: by chance, one of several is always ahead there.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerTool
from bakeoff.mcp.description_patch import DescriptionPatch
from bakeoff.plan import Case, Plan, SubjectSpec, UntilDecided
from bakeoff.record import Record
from bakeoff.report.blocks import Block, Code, Datum, Facts, Quote, Report, Section, Table, TextBlock, Tone, columns
from bakeoff.report.compare.comparison import FileName
from bakeoff.report.formatting import percent, sentence
from bakeoff.scorers.mcp.calls import CaseExpectation
from bakeoff.stats.cells import CaseKey, Cell, Cells
from bakeoff.stats.comparison import Comparison, compare
from bakeoff.stats.gates import GateJudgement, GateVerdict, judge
from bakeoff.stats.sequential import PairDecisions, SequentialDecision, random_order

PRESENT = "present"
_MIN_CASES = 4  # two to choose by, and two to confirm by


class ToolsVersion(FrozenModel):
    """A description, and how it fared on the training cases."""

    name: str
    description: str
    score: float | None = None
    cases: int = 0


class TuneReport(FrozenModel):
    """Which description won, and whether cases that did not choose it confirm that."""

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
        return next(version.description for version in self.versions if version.name == name)


class Split(NamedTuple):
    training: tuple[Case, ...]
    held_out: tuple[Case, ...]


def split_cases(plan: Plan, tool: str, share: float) -> Split:
    """Return the cases to choose by and those to confirm by, at random by the seed of the plan.

    Cases that want the tool and others are split separately. Cases of one cluster stay together.
    """
    units = list(random_order(plan))
    groups = [[unit for unit in units if _wants(unit, tool) is wanted] for wanted in (True, False)]
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
    return Split(tuple(training), tuple(held_out))


def _wants(unit: Iterable[Case], tool: str) -> bool:
    return any(call.tool == tool for case in unit for call in CaseExpectation.model_validate(case.expected).calls or ())


def versions_of(tool: ServerTool, texts: Iterable[str]) -> tuple[ToolsVersion, ...]:
    """Return the present description and the others, without repetitions."""
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
        until_decided=UntilDecided() if stage == "training" else None,
    )


def _subject(model: SubjectSpec, label: str, version: ToolsVersion) -> SubjectSpec:
    """Return the model as a subject that is told one version of the description."""
    if version.name == PRESENT:
        return model.model_copy(update={"name": PRESENT})
    told = {**model.options, "descriptions": {label: version.description}}
    return model.model_copy(update={"name": version.name, "options": told})


def best_version(plan: Plan, versions: Sequence[ToolsVersion], records: Iterable[Record]) -> tuple[ToolsVersion, ...]:
    """Return the versions with their training scores, the best first.

    A version that a decided pair has shown to be worse comes after the others. The present one wins a tie.
    """
    kept = list(records)
    worse: dict[str, int] = dict.fromkeys((version.name for version in versions), 0)
    for pair in PairDecisions.of(plan, kept).results():
        if pair.decision in (SequentialDecision.IMPROVED, SequentialDecision.REGRESSED):
            worse[pair.first if pair.decision is SequentialDecision.IMPROVED else pair.second] += 1
    scored = [_scored(version, cells_of_subject(kept, version.name)) for version in versions]
    return tuple(sorted(scored, key=lambda version: (worse[version.name], -(version.score or 0.0))))


def _scored(version: ToolsVersion, cells: Cells) -> ToolsVersion:
    score = sum(cell.mean for cell in cells.values()) / len(cells) if cells else None
    return version.model_copy(update={"score": score, "cases": len(cells)})


def cells_of_subject(records: Iterable[Record], subject: str) -> Cells:
    """Return the passes of a subject by case."""
    rounds: dict[CaseKey, list[float]] = {}
    for record in records:
        if record.subject == subject and record.verdict.counts:
            rounds.setdefault(CaseKey(record.case), []).append(float(record.verdict.ok))
    return {key: Cell.of(values) for key, values in rounds.items()}


def confirm(records: Sequence[Record], winner: str) -> tuple[Comparison, GateJudgement]:
    """Compare the winner with the present description on the held-out cases."""
    compared = compare(cells_of_subject(records, PRESENT), cells_of_subject(records, winner))
    return compared, judge(compared)


_NAME = 120


def describe_tuning(report: TuneReport, patch: DescriptionPatch | None) -> Report:
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
    sections = [
        Section(
            "versions",
            "Versions",
            (table,),
            "Chosen by the training cases. A version is run until it is shown to be behind.",
        )
    ]
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
        sections.append(Section("patch", "The change", _change(report, patch)))
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


def _change(report: TuneReport, patch: DescriptionPatch | None) -> tuple[Block, ...]:
    """Return the patch, or a comparison of both texts if there is none."""
    if patch is not None and patch.text is not None:
        return (Code(patch.text, "diff", "Patch", folded=False),)
    before, after = report.description_of(PRESENT), report.description_of(report.winner)
    lines = [*(f"-{line}" for line in before.splitlines()), *(f"+{line}" for line in after.splitlines())]
    diff = Code("\n".join(lines), "diff", visible(report.tool, _NAME), folded=False)
    return (TextBlock(f"There is no patch: {patch.refused}.", tone="muted"), diff) if patch else (diff,)
