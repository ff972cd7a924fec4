"""Evals on the terminal, beside pytest's own output: a line for each test, its tool calls, and the summary.

`path::test[case] 0.82 42ms`, then tokens, tools and cost where they are known. Untrusted text is always escaped.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import pytest
from pydantic import JsonValue
from pydantic_core import to_json

from bakeoff._kernel.text import count_of, visible, without_command
from bakeoff.doors.pytest.outcome import EvalOutcome
from bakeoff.doors.pytest.reporting.blocks import WORST, gate_word, summary_blocks
from bakeoff.doors.pytest.reporting.ending import SessionEnd
from bakeoff.record import NO_USAGE, ToolCall
from bakeoff.report.blocks import Block, Blocks, BulletList, Table, TextBlock
from bakeoff.report.formatting import UNKNOWN, cost
from bakeoff.report.render.text_tables import fit_table, plain_text

Colour = Literal["red", "yellow", "green"]

_POOR, _FAIR = 0.5, 0.75
_MAX_SCORES = 5  # of one test that are shown one by one
_MAX_CALLS = 30  # of one round that are drawn
_DEEPEST = 8
_MAX_NAME_LENGTH = 60
_MAX_ARGUMENTS_LENGTH = 200
_MAX_ERROR_LENGTH = 200
_NARROWEST_LINE = 20  # columns that a node id gets, however narrow the terminal
_NARROWEST = 40
_MANY_WORST = 10  # cases of a suite that -v names
_LONGEST = 2000
_ONE_COLUMN = f"{UNKNOWN}·…"  # characters beyond ASCII that take one column


def print_item(terminal: pytest.TerminalReporter, report: pytest.TestReport, outcomes: Sequence[EvalOutcome]) -> None:
    """Print `path::test[case] 0.82 42ms` on a line of its own, whatever dots come before and after it."""
    writer = terminal._tw
    name, rest = item_line(report.nodeid, "" if report.passed else "FAILED", outcomes, _width(terminal))
    if writer.width_of_current_line:
        writer.line()
    writer.write(f"{name} ")
    writer.line(rest, **{colour_of(outcomes): True})


def print_tools(terminal: pytest.TerminalReporter, outcomes: Sequence[EvalOutcome]) -> None:
    """Print tool calls under the line that pytest has begun and not ended yet."""
    writer = terminal._tw
    for line, wrong in tool_lines(outcomes, _width(terminal)):
        writer.line()
        writer.write(line, red=wrong, light=not wrong)


def _width(terminal: pytest.TerminalReporter) -> int | None:
    """Return the columns that a line may have; None if nobody watches: output for programs is never cut."""
    return terminal._tw.fullwidth - 1 if terminal.isatty else None


def print_ending(terminal: pytest.TerminalReporter, ending: SessionEnd, *, verbosity: int, forgiven: int = 0) -> None:
    """Print the summary, the gates and the files written; `forgiven` counts misses that the pass rate allows."""
    writer = terminal._tw
    worst = 0 if verbosity < 0 else WORST if verbosity == 0 else _MANY_WORST
    terminal.section("evals", "-" if verbosity < 0 else "=")
    blocks = list(summary_blocks(replace(ending.summary, gates=()), worst=worst))
    for line in rendered(blocks, writer.fullwidth, coloured=writer.hasmarkup):
        terminal.line(without_command(line))
    for gate in ending.summary.gates:
        colour = "yellow" if gate.met is None else "green" if gate.met else "red"
        sentence = f"{gate.option} {gate_word(gate.met)}: {visible(gate.sentence, _LONGEST)}"
        terminal.line(without_command(sentence), **{colour: True})
    if forgiven:
        missed = "1 eval missed its threshold" if forgiven == 1 else f"{forgiven} evals missed their thresholds"
        terminal.line(f"{missed}, which the pass rate allows: pytest exits with 0", green=True)
    for note in ending.notes:
        terminal.line(without_command(visible(note, 1000)))
    for problem in ending.problems:
        terminal.line(without_command(f"error: {visible(problem, 1000)}"), red=True)
    for annotation in ending.annotations:
        terminal.line(annotation)


def colour_of(outcomes: Sequence[EvalOutcome]) -> Colour:
    """Return the colour of the lowest score: yellow without one, red if something could not be judged."""
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    if any(outcome.problem for outcome in outcomes):
        return "red"
    lowest = min(scores, default=_POOR)
    return "red" if lowest < _POOR else "yellow" if lowest < _FAIR else "green"


def score_words(outcomes: Sequence[EvalOutcome]) -> str:
    """Return `0.82 42ms 1,204 tokens 3 tools $0.0012`."""
    scores = ["–" if outcome.score is None else f"{outcome.score:.2f}" for outcome in outcomes]
    shown = scores if len(scores) <= _MAX_SCORES else [*scores[:_MAX_SCORES], f"(+{len(scores) - _MAX_SCORES})"]
    return " ".join([*shown, _duration(sum(outcome.seconds for outcome in outcomes)), *_spent(outcomes)])


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{1000 * seconds:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 120 else f"{seconds / 60:.1f}min"


def _spent(outcomes: Sequence[EvalOutcome]) -> Iterator[str]:
    used = sum((outcome.used for outcome in outcomes), NO_USAGE)
    calls = sum(len(calls) for outcome in outcomes for calls in _calls(outcome))
    if used.tokens:
        yield count_of(used.tokens, "token")
    if calls:
        yield f"{calls} {'tool' if calls == 1 else 'tools'}"
    if used.cost is not None:
        yield cost(used.cost)


def item_line(nodeid: str, word: str, outcomes: Sequence[EvalOutcome], width: int | None) -> tuple[str, str]:
    """Return the node id, cut if the line would not fit the width, and the rest of the line."""
    rest = " ".join(part for part in (word, score_words(outcomes)) if part)
    shown = without_command(visible(nodeid, 500))
    room = None if width is None else max(_NARROWEST_LINE, width - len(rest) - 1)
    if room is not None and len(shown) > room:
        shown = f"{shown[: room - 2]}…]" if shown.endswith("]") else f"{shown[: room - 1]}…"
    return shown, rest


def tool_lines(outcomes: Sequence[EvalOutcome], width: int | None) -> Iterator[tuple[str, bool]]:
    """Yield a line for each tool call, nested under its parent, and whether the call failed."""
    for outcome in outcomes:
        rounds = _calls(outcome)
        for number, calls in enumerate(rounds):
            if calls and len(rounds) > 1:
                yield f"    round {number + 1}", False
            for depth, call in _nested(calls[:_MAX_CALLS]):
                line = f"{'    ' * (depth + 1)}{'└ ' if depth else ''}{_call(call)}"
                room = len(line) if width is None else max(_NARROWEST_LINE, width)
                shown = line if len(line) <= room else f"{line[: room - 1]}…"
                yield without_command(shown), call.error is not None or call.status in ("error", "failed")
            if len(calls) > _MAX_CALLS:
                yield f"    … {len(calls) - _MAX_CALLS} more calls", False


def _calls(outcome: EvalOutcome) -> list[tuple[ToolCall, ...]]:
    """Return the tool calls of each round."""
    return [record.transcript.tool_calls if record.transcript else () for record in outcome.records]


def _call(call: ToolCall) -> str:
    name = visible(call.name, _MAX_NAME_LENGTH)
    took = "" if call.duration_ms is None else f" {call.duration_ms:.0f}ms"
    error = "" if call.error is None else f" error: {visible(call.error, _MAX_ERROR_LENGTH)}"
    return f"{name}({_arguments(call.arguments)}){took}{error}"


def _arguments(value: JsonValue) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, dict):
        return visible(", ".join(f"{name}={_plain(item)}" for name, item in value.items()), _MAX_ARGUMENTS_LENGTH)
    return visible(_plain(value), _MAX_ARGUMENTS_LENGTH)


def _plain(value: JsonValue) -> str:
    if isinstance(value, str):
        return repr(value[: _MAX_ARGUMENTS_LENGTH + 1])
    return to_json(value, fallback=repr, inf_nan_mode="constants").decode()


def _nested(calls: Sequence[ToolCall]) -> Iterator[tuple[int, ToolCall]]:
    """Yield calls under their parents, in order. Ids come from the application: they may be unknown or circular."""
    known = {call.id for call in calls if call.id is not None}
    children: dict[str | None, list[int]] = {}
    for place, call in enumerate(calls):
        parent = call.parent_id if call.parent_id in known and call.parent_id != call.id else None
        children.setdefault(parent, []).append(place)
    drawn: set[int] = set()
    for root in (*children.get(None, ()), *range(len(calls))):  # the second pass draws calls in a circle
        waiting = [(0, root)]
        while waiting:
            depth, place = waiting.pop()
            if place in drawn:
                continue
            drawn.add(place)
            yield min(depth, _DEEPEST), calls[place]
            own = calls[place].id
            if own is not None:
                waiting += [(depth + 1, child) for child in reversed(children.get(own, ()))]


def rendered(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str]:
    """Return blocks as lines that fit the width."""
    width = max(_NARROWEST, width)
    return plain_lines(blocks, width, coloured=coloured) or _wrapped_lines(blocks, width, coloured=coloured)


def plain_lines(blocks: Blocks, width: int, *, coloured: bool = False) -> list[str] | None:
    """Return blocks as lines without loading rich, which takes long; None if something would have to be wrapped."""
    lines: list[str] = []
    for number, block in enumerate(blocks):
        found = _block_lines(block, width)
        if found is None or not all(len(line) <= width and _fits_columns(line) for line in found):
            return None
        if coloured and isinstance(block, Table):
            found[0] = f"\x1b[1m{found[0]}\x1b[0m"
        lines += ["", *found] if number else found
    return lines


def _fits_columns(line: str) -> bool:
    return line.isascii() or all(char.isascii() or char in _ONE_COLUMN for char in line)


def _block_lines(block: Block, width: int) -> list[str] | None:
    match block:
        case TextBlock():
            return [plain_text(block.text)]
        case BulletList():
            return [f"· {plain_text(item)}" for item in block.items]
        case Table():
            return [line.rstrip() for line in _table_lines(block, width)]
        case _:
            return None


def _table_lines(block: Table, width: int) -> Iterator[str]:
    fitted = fit_table(block, width)
    rows = [[column.title for column in fitted.columns], *([cell.text for cell in row] for row in fitted.rows)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        aligned = (
            cell.rjust(wide) if column.numeric else cell.ljust(wide)
            for column, cell, wide in zip(fitted.columns, row, widths, strict=True)
        )
        yield (" " * fitted.gap).join(aligned)
    yield from fitted.notes


def _wrapped_lines(blocks: Blocks, width: int, *, coloured: bool) -> list[str]:
    from rich.console import Console

    from bakeoff.report.render.terminal import print_blocks

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
