"""Describe which description of a tool won, with its figures."""

from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.mcp.description_patch import DescriptionPatch
from bakeoff.doors.mcp.tuning import PRESENT, TuneReport
from bakeoff.report.blocks import Block, Code, Datum, Facts, Quote, Report, Section, Table, TextBlock, Tone, columns
from bakeoff.report.formatting import percent, sentence

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
    if report.winner == PRESENT:
        return "Kept", "pass", "No version did better than the present description on the training cases: keep it."
    assert report.ruling is not None
    if report.confirmed:
        return "Better", "pass", f"{report.winner.capitalize()} is better. {sentence(report.ruling.sentence)}"
    ahead = f"{report.winner.capitalize()} was ahead on the training cases, and held-out cases do not confirm it."
    return "Not confirmed", "partial", f"{ahead} {sentence(report.ruling.sentence)}"


def _change(report: TuneReport, patch: DescriptionPatch | None) -> tuple[Block, ...]:
    if patch is not None and patch.text is not None:
        return (Code(patch.text, "diff", "Patch", folded=False),)
    before, after = report.description_of(PRESENT), report.description_of(report.winner)
    lines = [*(f"-{line}" for line in before.splitlines()), *(f"+{line}" for line in after.splitlines())]
    diff = Code("\n".join(lines), "diff", visible(report.tool, _NAME), folded=False)
    return (TextBlock(f"There is no patch: {patch.refused}.", tone="muted"), diff) if patch else (diff,)
