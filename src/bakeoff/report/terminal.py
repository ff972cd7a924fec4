"""Summaries and blocks for the terminal: aligned at any width, without colour where it is not wanted.

Nothing from outside reaches the terminal but through `visible`: control characters are shown, never emitted.
"""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from bakeoff.record import Verdict
from bakeoff.report.outputs import Block, Blocks, Difference, Grid, Heading, Listing, Paragraph, Quote, Words
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.report.words import UNKNOWN, cost, duration, percent, span, visible

_BAR = 10
_WIDE = 100  # columns, below which numbers need the room that bars would take
_LONGEST_QUOTE = 120


def print_summary(console: Console, summary: Summary) -> None:
    console.print(render_summary(summary, with_bars=console.width >= _WIDE))


def print_blocks(console: Console, blocks: Blocks) -> None:
    """Each block after an empty line, for the width of this console."""
    for number, block in enumerate(blocks):
        if number:
            console.print()
        console.print(render_block(block, console.width))


def render_block(block: Block, width: int = _WIDE) -> RenderableType:
    match block:
        case Heading():
            return Text(_words(block.words), style="bold" if block.level > 2 else "bold underline")
        case Paragraph():
            return Text(_words(block.words))
        case Listing():
            return _listing(block)
        case Grid():
            return _grid(block, width)
        case Difference():
            return Group(Text(f"{_words((block.title,))}:", style="dim"), *map(_difference_line, block.lines))


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
        cells = _cells(subject, summary.threshold, with_kinds=with_bars)
        table.add_row(*cells, *([_bar(subject.score)] if with_bars else []))
    return Group(table, Text(_footnote(summary, with_losses=not with_bars), style="dim"))


def _words(words: Sequence[Words]) -> str:
    return "".join(
        visible(word.text, _LONGEST_QUOTE) if isinstance(word, Quote) else visible(word, 2000) for word in words
    )


def _listing(block: Listing) -> Table:
    """A table, so that a wrapped line stands under the words and not under the bullet."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for item in block.items:
        table.add_row(Text("·"), Text(_words(item)))
    return table


def _grid(block: Grid, width: int) -> Table:
    shown = [place for place, column in enumerate(block.columns) if column.least_width <= width]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2 if width >= _WIDE else 1, 0, 0))
    for place in shown:
        column = block.columns[place]
        justify = "right" if column.numeric else "left"
        table.add_column(Text(column.title), justify=justify, no_wrap=column.numeric, overflow="fold")  # type: ignore[arg-type]
    for row in block.rows:
        table.add_row(*(Text(_words((row[place],))) for place in shown))
    return table


def _difference_line(line: str) -> Text:
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
    return Text(f"  {visible(line, _LONGEST_QUOTE)}", style=style)


def _cells(subject: SubjectSummary, threshold: float | None, *, with_kinds: bool) -> list[Text]:
    name = visible(subject.subject, 60) + (" *" if subject.bound else "")
    passed = f"{subject.passed}/{subject.scored}" if threshold is not None else f"{UNKNOWN}/{subject.scored}"
    lost = _losses(subject) if with_kinds else str(sum(subject.lost.values()))
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


def _losses(subject: SubjectSummary) -> str:
    return " ".join(f"{count} {verdict}" for verdict, count in subject.lost.items()) or "0"


def _bar(score: float | None) -> Text:
    full = round(_BAR * (score or 0))
    style = "red" if (score or 0) < 0.5 else "yellow" if (score or 0) < 0.75 else "green"
    return Text.assemble(("█" * full, style), ("░" * (_BAR - full), "dim"))


def _footnote(summary: Summary, *, with_losses: bool) -> str:
    cases, rounds = _count(summary.cases, "case"), _count(summary.rounds, "round")
    lines = [f"{cases} × {_count(len(summary.subjects), 'subject')} × {rounds}; score is the mean over cases"]
    methods = sorted({subject.interval.method for subject in summary.subjects if subject.interval})
    if methods:
        lines.append(f"interval: {', '.join(methods)}")
    if with_losses:
        lost = [subject for subject in summary.subjects if subject.lost]
        lines += [f"lost of {visible(subject.subject, 40)}: {_losses(subject)}" for subject in lost]
    if any(subject.interval is None for subject in summary.subjects):
        lines.append("undefined: fewer than two cases were scored")
    if any(subject.verdicts.get(Verdict.TIMEOUT) for subject in summary.subjects):
        lines.append("a timeout is the subject's and scores 0")
    if any(subject.bound for subject in summary.subjects):
        lines.append("* knows the hidden answers on purpose")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
