"""A run's summary for the terminal: as much of it, side by side, as the width has room for.

Names and denominators are never left out. What has no room gives way in the order of `_GIVING_WAY`; what was lost or
not run is then told under the table, and the last line says what a wider terminal would show.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bakeoff.record import NO_USAGE, Verdict
from bakeoff.report.outputs import sparkline
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.report.words import UNKNOWN, cost, duration, judging_note, percent, replay_note, span, visible

WIDE = 100
"""Columns of a terminal that has room to spare between the columns of a table."""

_BAR = 10
_FEW_ROUNDS = 2  # bars of so few say no more than the score
_LONGEST_NAME = 200
_NAME = 24  # columns that a longer name is given before anything gives way to it

_BARS, _KINDS, _WHOLE_TITLES = "bars", "kinds of losses", "whole titles"
_INTERVAL, _LOST, _NOT_RUN, _COST, _TIME, _ROUNDS = "95 % interval", "lost", "not run", "cost", "time", "by round"
_GIVING_WAY = (_BARS, _KINDS, _WHOLE_TITLES, _ROUNDS, _TIME, _COST, _NOT_RUN, _LOST, _INTERVAL)


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cells: tuple[Text, ...]
    numeric: bool = True

    @property
    def width(self) -> int:
        return max(cell_len(line) for line in (*self.title.split("\n"), *(cell.plain for cell in self.cells)))


def render_summary(summary: Summary, width: int = WIDE) -> RenderableType:
    """The table, and under it what its numbers are out of."""
    gap = 2 if width >= WIDE else 1
    columns, without = _columns_that_fit(summary, width, gap)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    names, *numbers = columns
    room = width - _taken(numbers, gap)
    table.add_column(names.title, overflow="fold", width=max(1, min(names.width, room)))
    for column in numbers:
        table.add_column(column.title, justify="right" if column.numeric else "left", no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return Group(table, Text("\n".join(_footnotes(summary, without)), style="dim"))


def _columns_that_fit(summary: Summary, width: int, gap: int) -> tuple[list[_Column], frozenset[str]]:
    """The fullest table that fits; where none does, the smallest, whose names are folded."""
    without: frozenset[str] = frozenset()
    columns = _columns(summary, without)
    for giving_way in _GIVING_WAY:
        if min(columns[0].width, _NAME) + _taken(columns[1:], gap) <= width:
            break
        without |= {giving_way}
        columns = _columns(summary, without)
    return columns, without


def _taken(columns: Sequence[_Column], gap: int) -> int:
    return sum(gap + column.width for column in columns)


def _columns(summary: Summary, without: frozenset[str]) -> list[_Column]:
    def column(title: str, cell: Callable[[SubjectSummary], Text], *, numeric: bool = True) -> _Column:
        shown = title if _WHOLE_TITLES not in without else _broken(title)
        return _Column(shown, tuple(cell(subject) for subject in summary.subjects), numeric)

    judged = summary.threshold is not None
    found = [
        column("subject", lambda one: Text(_name(one)), numeric=False),
        column("score", lambda one: Text(percent(one.score), style="bold")),
        column(_INTERVAL, lambda one: Text(span(one.interval))),
        column("passed/scored", lambda one: Text(f"{one.passed if judged else UNKNOWN}/{one.judged}")),
        column(_LOST, lambda one: _warning(_lost_words(one, kinds=_KINDS not in without), sum(one.lost.values()))),
        column(_NOT_RUN, lambda one: _warning(str(one.missing), one.missing)),
        column(_COST, lambda one: Text(cost(one.spent.cost))),
        column(_TIME, lambda one: Text(duration(one.seconds))),
    ]
    if summary.rounds > _FEW_ROUNDS and any(one.by_round for one in summary.subjects):
        found.append(column(_ROUNDS, _round_bars, numeric=False))
    if _BARS not in without:
        found.append(column("", lambda one: _bar(one.score), numeric=False))
    return [one for one in found if one.title.replace("\n", " ") not in without]


def _broken(title: str) -> str:
    """A title over two lines, where its numbers need less room than its words."""
    return title.replace("95 % ", "95 %\n").replace("/", "/\n").replace("not run", "not\nrun")


def _name(subject: SubjectSummary) -> str:
    return visible(subject.subject, _LONGEST_NAME) + (" *" if subject.bound else "")


def _warning(text: str, number: int) -> Text:
    return Text(text, style="yellow" if number else "")


def _lost_words(subject: SubjectSummary, *, kinds: bool) -> str:
    return _losses(subject) if kinds else str(sum(subject.lost.values()))


def _losses(subject: SubjectSummary) -> str:
    return " ".join(f"{count} {verdict}" for verdict, count in subject.lost.items()) or "0"


def _round_bars(subject: SubjectSummary) -> Text:
    return Text(sparkline([score for score in subject.by_round if score is not None]))


def _bar(score: float | None) -> Text:
    full = round(_BAR * (score or 0))
    style = "red" if (score or 0) < 0.5 else "yellow" if (score or 0) < 0.75 else "green"
    return Text.assemble(("█" * full, style), ("░" * (_BAR - full), "dim"))


def _footnotes(summary: Summary, without: frozenset[str]) -> list[str]:
    cases, rounds = _count(summary.cases, "case"), _count(summary.rounds, "round")
    subjects = summary.subjects
    lines = [f"{cases} × {_count(len(subjects), 'subject')} × {rounds}; score is the mean over cases"]
    methods = sorted({subject.interval.method for subject in subjects if subject.interval})
    if methods and _INTERVAL not in without:
        lines.append(f"interval: {', '.join(methods)}")
    if _KINDS in without:
        lines += [f"lost of {_name(subject)}: {_losses(subject)}" for subject in subjects if subject.lost]
    if _NOT_RUN in without:
        lines += [f"not run of {_name(subject)}: {subject.missing}" for subject in subjects if subject.missing]
    if any(subject.interval is None for subject in subjects) and _INTERVAL not in without:
        lines.append("undefined: fewer than two cases were scored")
    if any(subject.verdicts.get(Verdict.TIMEOUT) for subject in subjects):
        lines.append("a timeout is the subject's and scores 0")
    if any(subject.bound for subject in subjects):
        lines.append("* knows the hidden answers on purpose")
    if summary.judging != NO_USAGE:
        lines.append(judging_note(summary.judging.tokens, summary.judging.cost))
    if summary.replayed:
        lines.append(replay_note(summary.replayed, summary.finished))
    if hidden := [title for title in (_INTERVAL, _COST, _TIME) if title in without]:
        lines.append(f"a wider terminal also shows: {', '.join(hidden)}")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
