"""Describe how two versions of servers differ, and the points that each tool won or lost."""

from difflib import unified_diff

from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.mcp.snapshot.changes import LEVELS, Level, ToolChange
from bakeoff.doors.mcp.versions import ToolPoints, VersionReport
from bakeoff.report.blocks import (
    Block,
    Code,
    Column,
    Datum,
    Difference,
    ForestPlot,
    Quote,
    Report,
    Section,
    Table,
    Tone,
    Value,
    columns,
)
from bakeoff.report.compare.description import VERDICT_TONES, ends, ends_text, points
from bakeoff.report.formatting import UNKNOWN, percent, sentence
from bakeoff.stats.gates import GateVerdict

_NAME = 120
_MAX_TEXTS = 50  # changed descriptions that are shown in full
_LEVEL_TONES: dict[Level, Tone] = {"breaking": "fail", "risky": "partial", "cosmetic": "muted"}


def describe_versions(report: VersionReport) -> Report:
    """Describe the verdict first, then each tool with its points and changes, then the texts that changed."""
    compared = report.comparison
    around = f"95 %: {ends_text(compared.interval)}" if compared.interval else "interval undefined"
    tiles = (
        ("Difference", f"{points(compared.difference)} points", around),
        ("Better · same · worse", f"{compared.wins:,} · {compared.ties:,} · {compared.losses:,}", "cases in pairs"),
        ("Score", f"{percent(compared.baseline)} → {percent(compared.candidate)}", "over the compared cases"),
        (
            "p",
            UNKNOWN if report.ruling.p_value is None else f"{report.ruling.p_value:.2g}",
            f"all cases, {compared.test}",
        ),
        ("Models", f"{len(report.models):,}", visible(", ".join(report.models), _NAME)),
    )
    told = (report.ruling.sentence, report.gate, *filter(None, (report.advice,)), f"exit code {report.exit_code}")
    return Report(
        ("MCP servers in ", Quote(report.runs[1]), " against ", Quote(report.runs[0])),
        version_sections(report),
        report.ruling.verdict.value.capitalize(),
        VERDICT_TONES[report.ruling.verdict],
        " ".join(map(sentence, told)),
        tiles,
    )


def version_sections(report: VersionReport) -> tuple[Section, ...]:
    """Return the tools with their points, and what changed."""
    found = [_tools(report)]
    if texts := tuple(_texts(report)):
        lead = "What models read about tools, before and after."
        found.append(Section("descriptions", "Changed descriptions", texts[:_MAX_TEXTS], lead))
    everything = sorted((*_of_tools(report), *report.other_changes), key=lambda change: LEVELS.index(change.level))
    if everything:
        rows = tuple(_change_row(change) for change in everything)
        table = Table(columns("Level", "Where", "Change"), rows, "Changes of the servers")
        found.append(Section("server-changes", "Changes", (table,)))
    return tuple(found)


def _of_tools(report: VersionReport) -> list[ToolChange]:
    return [change for one in report.tools for change in one.changes]


def _change_row(change: ToolChange) -> tuple[Value, ...]:
    return Datum(change.level, tone=_LEVEL_TONES[change.level]), Quote(change.where), visible(change.what, 300)


def _tools(report: VersionReport) -> Section:
    titles = (
        Column("Tool"),
        Column("Changed"),
        Column("Points", align="end"),
        Column("Interval", align="end", help="95 % over all tools, adjusted by Holm's method", drop=3),
        Column("p", align="end", help="adjusted by Holm's method", drop=2),
        Column("Before", align="end"),
        Column("After", align="end"),
        Column("Cases", align="end", drop=1),
        Column("Verdict", drop=4),
    )
    ranked = sorted(report.tools, key=lambda one: (not one.changes, one.comparison.difference or 0.0))
    table = Table(titles, tuple(_tool_row(one) for one in ranked), "Points of each tool, changed ones first")
    plot = ForestPlot(
        "Paired difference, after minus before",
        tuple(
            Difference(
                visible(one.tool, _NAME),
                one.comparison.difference,
                ends(one.comparison.interval),
                ends(one.comparison.inner),
                one.ruling.verdict.value,
                shown=one.ruling.verdict in (GateVerdict.IMPROVED, GateVerdict.REGRESSED),
            )
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
    worst = min((change.level for change in one.changes), key=LEVELS.index, default=None)
    changed = f"{worst} ({', '.join(dict.fromkeys(_kind(change) for change in one.changes))})" if worst else "–"
    return (
        Datum(Quote(one.tool), tone="strong"),
        Datum(visible(changed, 200), tone=_LEVEL_TONES[worst] if worst else "muted"),
        Datum(points(compared.difference), sort=compared.difference, tone="strong"),
        Datum(ends_text(compared.interval) if compared.interval else "undefined"),
        Datum(UNKNOWN if ruling.p_value is None else f"{ruling.p_value:.2g}", sort=ruling.p_value),
        Datum(percent(compared.baseline), sort=compared.baseline),
        Datum(percent(compared.candidate), sort=compared.candidate),
        compared.cases,
        Datum(ruling.verdict.value, tone=VERDICT_TONES[ruling.verdict]),
    )


def _kind(change: ToolChange) -> str:
    return change.kind.replace("-", " ")


def _texts(report: VersionReport) -> list[Block]:
    """Return the descriptions that changed, of tools with the largest differences first."""
    ranked = sorted(report.tools, key=lambda one: -abs(one.comparison.difference or 0.0))
    changed = [*(change for one in ranked for change in one.changes), *report.other_changes]
    return [
        Code(
            "\n".join(_lines(change.before or "", change.after or "")),
            "diff",
            visible(change.where, _NAME),
            folded=False,
        )
        for change in changed
        if change.before is not None and change.after is not None
    ]


def _lines(before: str, after: str) -> list[str]:
    return list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3))[2:]
