"""Describe a failed eval: score and threshold, input, output, then each scorer, the worst first."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bakeoff
from bakeoff._kernel.text import count_of, escaped, without_command
from bakeoff.record import Record, Score
from bakeoff.report.suites.outcomes import EvalOutcome

_USUAL_WIDTH = 80
_NARROWEST = 40
_LONGEST = 4000  # characters of an input or output that are shown
_UNSCORED_LAST = 2.0
_OURS = str(Path(bakeoff.__file__).parent)
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+), in (\S+)', re.MULTILINE)  # of a traceback


def failure_text(outcome: EvalOutcome, width: int = _USUAL_WIDTH) -> str:
    """Return a failure with everything that explains it, in lines of at most `width` columns."""
    lines = [headline(outcome)]
    for name, text in _fields(outcome):
        lines += _field(name, text, max(_NARROWEST, width))
    return "\n".join(map(without_command, lines))


def failure_line(outcome: EvalOutcome) -> str:
    """Return a failure in one line, with what the worst scorer says."""
    record = _worst(outcome)
    told = outcome.problem or record is None or not record.scores or (record.attempt and record.attempt.failure)
    if told or record is None or outcome.score is None or outcome.threshold is None:
        return without_command(headline(outcome))
    score = min(record.scores, key=_badness)
    if not (reason := " ".join(_verdict(score).split()[1:])):
        return without_command(headline(outcome))
    why = escaped(f"{score.name}: {reason}")
    return without_command(f"score {outcome.score:.2f} < {outcome.threshold:.2f}: {why}")


def headline(outcome: EvalOutcome) -> str:
    """Return the failure in one line."""
    if outcome.problem:
        return f"could not be scored: {escaped(outcome.problem)}"
    record = _worst(outcome)
    score = "no score" if outcome.score is None else f"score {outcome.score:.2f}"
    against = "no threshold" if outcome.threshold is None else f"threshold {outcome.threshold:.2f}"
    single = outcome.rule.gate == "mean" and len(outcome.records) < 2
    how = "" if single else f" ({outcome.rule.gate} of {count_of(len(outcome.records), 'round')})"
    failure = record.attempt.failure if record and record.attempt else None
    why = f": {escaped(failure.message)}" if failure else ""
    return f"{score}, {against}{how}{why}"


def _fields(outcome: EvalOutcome) -> Iterator[tuple[str, str]]:
    record = _worst(outcome)
    if outcome.input:
        yield "input", outcome.input
    if record is not None and record.transcript is not None:
        yield "output", _text(record.transcript.output)
    if outcome.expected is not None:
        yield "expected", _text(outcome.expected)
    if record is None:
        return
    if len(outcome.records) > 1:
        in_order = sorted(outcome.records, key=lambda each: each.round)
        values = ", ".join("–" if each.value is None else f"{each.value:.2f}" for each in in_order)
        yield "rounds", f"{values} (the worst is shown)"
    for score in sorted(record.scores, key=_badness):
        yield escaped(score.name), _verdict(score)


def _worst(outcome: EvalOutcome) -> Record | None:
    """Return the round with the lowest score; a round without a score counts as lower than any."""
    return min(outcome.records, key=lambda record: -1.0 if record.value is None else record.value, default=None)


def _badness(score: Score) -> float:
    if score.failure is not None:
        return -1.0
    return _UNSCORED_LAST if score.value is None else score.value


def _verdict(score: Score) -> str:
    rationale = score.metadata.get("rationale")
    reason = score.reason or (rationale if isinstance(rationale, str) else "")
    if score.failure is not None:
        kind = "" if score.failure.type == "GraderError" else f"{score.failure.type}: "
        frames = [frame for frame in _FRAME.findall(score.failure.detail) if not frame[0].startswith(_OURS)]
        file, line, function = frames[-1] if frames else ("", "", "")
        place = f" ({Path(file).name}:{line}, in {function})" if frames else ""  # in the scorer's own code
        return f"failed  {kind}{score.failure.message}{place}"
    value = "unscored" if score.value is None else f"{score.value:.2f}"
    return f"{value}  {reason}".rstrip() if reason != "unscored" else value


def _field(name: str, text: str, width: int) -> Iterator[str]:
    """Yield the lines of a name with a text beside it, wrapped and indented."""
    first, rest = f"  {name:<9} ", " " * 12
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"
    if len(first) > width // 2:  # a very long name has lines of its own
        yield from textwrap.wrap(first.strip(), width, initial_indent="  ", subsequent_indent="    ")
        first = rest
    for line in text.splitlines() or [""]:
        longer = "x" * (len(first) - len(rest))  # stands for what a long name takes of the first line
        pieces = _wrapped(longer + without_command(escaped(line)), width - len(rest) - 1)  # room to break up a command
        pieces[0] = pieces[0].removeprefix(longer)
        for piece in pieces:
            yield f"{first}{piece}".rstrip()
            first = rest


def _wrapped(line: str, width: int) -> list[str]:
    """Return the line in pieces that fit the columns; letters of some scripts take two."""
    if line.isascii():
        return textwrap.wrap(line, width, replace_whitespace=False) or [""]
    from rich.cells import cell_len, chop_cells

    narrow = cell_len(line) == len(line)
    return textwrap.wrap(line, width, replace_whitespace=False) if narrow else chop_cells(line, width)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    from pydantic_core import to_json

    return to_json(value, indent=2).decode()
