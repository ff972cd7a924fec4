"""A summary as a table for the terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from bakeoff.record import Verdict
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.report.words import UNKNOWN, cost, duration, percent, span, visible

_BAR = 10
_WIDE = 100  # columns, below which numbers need the room that bars would take


def print_summary(console: Console, summary: Summary) -> None:
    console.print(render_summary(summary, with_bars=console.width >= _WIDE))


def render_summary(summary: Summary, *, with_bars: bool = True) -> RenderableType:
    """The table, and under it what its numbers are out of."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2 if with_bars else 1, 0, 0))
    table.add_column("subject", overflow="fold", min_width=7)
    table.add_column("score", justify="right", no_wrap=True)
    for heading in ("95 % interval", "passed/scored", "lost", "not run", "cost", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    if with_bars:
        table.add_column("", no_wrap=True)
    for subject in summary.subjects:
        cells = _cells(subject, summary.threshold)
        table.add_row(*cells, *([_bar(subject.score)] if with_bars else []))
    return Group(table, Text(_footnote(summary), style="dim"))


def _cells(subject: SubjectSummary, threshold: float | None) -> list[Text]:
    name = visible(subject.subject, 60) + (" *" if subject.bound else "")
    passed = f"{subject.passed}/{subject.scored}" if threshold is not None else f"{UNKNOWN}/{subject.scored}"
    lost = " ".join(f"{count} {verdict}" for verdict, count in subject.lost.items()) or "0"
    return [
        Text(name),
        Text(percent(subject.score), style="bold"),
        Text(span(subject.interval)),
        Text(passed),
        Text(lost, style="yellow" if subject.lost else ""),
        Text(str(subject.missing), style="yellow" if subject.missing else ""),
        Text(cost(subject.spent.cost)),
        Text(duration(subject.seconds)),
    ]


def _bar(score: float | None) -> Text:
    full = round(_BAR * (score or 0))
    style = "red" if (score or 0) < 0.5 else "yellow" if (score or 0) < 0.75 else "green"
    return Text.assemble(("█" * full, style), ("░" * (_BAR - full), "dim"))


def _footnote(summary: Summary) -> str:
    cases, rounds = _count(summary.cases, "case"), _count(summary.rounds, "round")
    lines = [f"{cases} × {_count(len(summary.subjects), 'subject')} × {rounds}; score is the mean over cases"]
    methods = sorted({subject.interval.method for subject in summary.subjects if subject.interval})
    if methods:
        lines.append(f"interval: {', '.join(methods)}")
    if any(subject.interval is None for subject in summary.subjects):
        lines.append("undefined: fewer than two cases were scored")
    if any(subject.verdicts.get(Verdict.TIMEOUT) for subject in summary.subjects):
        lines.append("a timeout is the subject's and scores 0")
    if any(subject.bound for subject in summary.subjects):
        lines.append("* knows the hidden answers on purpose")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
