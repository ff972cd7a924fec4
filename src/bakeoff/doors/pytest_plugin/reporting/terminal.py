"""What stands on the terminal beside pytest's own words, in its width and its colours."""

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.blocks import WORST, gate_word, summary_blocks
from bakeoff.doors.pytest_plugin.reporting.ending import Ending
from bakeoff.doors.pytest_plugin.reporting.lines import colour_of, item_line, no_command, tool_lines
from bakeoff.doors.pytest_plugin.reporting.plain import plain_lines
from bakeoff.report.blocks import Blocks
from bakeoff.report.words import visible

_NARROWEST = 40
_MANY_WORST = 10


def print_item(terminal: pytest.TerminalReporter, report: pytest.TestReport, outcomes: Sequence[EvalOutcome]) -> None:
    """`path::test[case] 0.82 42ms` on a line of its own, whatever dots there are before and after it."""
    writer = terminal._tw
    name, rest = item_line(report.nodeid, "" if report.passed else "FAILED", outcomes, width_of(terminal))
    if writer.width_of_current_line:
        writer.line()
    writer.write(f"{name} ")
    writer.line(rest, **{colour_of(outcomes): True})


def print_tools(terminal: pytest.TerminalReporter, outcomes: Sequence[EvalOutcome]) -> None:
    """Under the line that pytest has begun, and leaves to whoever comes next to end."""
    writer = terminal._tw
    for line, wrong in tool_lines(outcomes, width_of(terminal)):
        writer.line()
        writer.write(line, red=wrong, light=not wrong)


def width_of(terminal: pytest.TerminalReporter) -> int | None:
    """Columns that a line may have; None where nobody looks: what a program reads is never cut."""
    return terminal._tw.fullwidth - 1 if terminal.isatty else None


def print_ending(terminal: pytest.TerminalReporter, ending: Ending, *, verbosity: int, forgiven: int = 0) -> None:
    writer = terminal._tw
    worst = 0 if verbosity < 0 else WORST if verbosity == 0 else _MANY_WORST
    terminal.section("evals", "-" if verbosity < 0 else "=")
    blocks = list(summary_blocks(replace(ending.summary, gates=()), worst=worst))
    for line in rendered(blocks, writer.fullwidth, coloured=writer.hasmarkup):
        terminal.line(no_command(line))
    for gate in ending.summary.gates:
        colour = "yellow" if gate.met is None else "green" if gate.met else "red"
        sentence = f"{gate.option} {gate_word(gate.met)}: {visible(gate.sentence, 2000)}"
        terminal.line(no_command(sentence), **{colour: True})
    if forgiven:
        missed = (
            "1 eval that missed its threshold" if forgiven == 1 else f"{forgiven} evals that missed their thresholds"
        )
        verb = "is" if forgiven == 1 else "are"
        terminal.line(f"{missed} {verb} within that pass rate: pytest exits with 0 all the same", green=True)
    for note in ending.notes:
        terminal.line(no_command(visible(note, 1000)))
    for problem in ending.problems:
        terminal.line(no_command(f"error: {visible(problem, 1000)}"), red=True)
    for annotation in ending.annotations:
        terminal.line(annotation)


def rendered(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str]:
    """Blocks as lines that fit."""
    width = max(_NARROWEST, width)
    return plain_lines(blocks, width, coloured=coloured) or _laid_out(blocks, width, coloured=coloured)


def _laid_out(blocks: Blocks, width: int, *, coloured: bool) -> list[str]:
    from rich.console import Console

    from bakeoff.report.terminal import print_blocks

    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        legacy_windows=False,
    )
    print_blocks(console, blocks)
    return [line.rstrip() for line in file.getvalue().splitlines()]
