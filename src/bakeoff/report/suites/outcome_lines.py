"""Show the evals of one test: its line on the terminal, its failure, its tool calls, and its properties in JUnit.

`path::test[case] 0.82 42ms`, then tokens, tools and cost where they are known. A failure has score and threshold, input
and output, then each scorer, the worst first. Untrusted text is always escaped.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue
from pydantic_core import to_json

import bakeoff
from bakeoff._kernel.text import count_of, escaped, visible, without_command
from bakeoff.record import NO_USAGE, Record, Score, ToolCall
from bakeoff.report.formatting import cost
from bakeoff.report.suites.numbers import SuitesSummary
from bakeoff.report.suites.outcomes import EvalOutcome

Colour = Literal["red", "yellow", "green"]

_POOR, _FAIR = 0.5, 0.75
_MAX_SCORES = 5  # of one test that are shown one by one
_MAX_CALLS = 30  # of one round that are drawn
_MAX_DEPTH = 8
_MAX_NAME_LENGTH = 60
_MAX_PROPERTY_NAME = 100
_MAX_ARGUMENTS_LENGTH = 200
_MAX_ERROR_LENGTH = 200
_NARROWEST_LINE = 20  # columns that a node id gets, however narrow the terminal
_MAX_PROPERTY_LENGTH = 500
_MAX_ROUNDS = 20  # of a case that have JUnit properties of their own


def colour_of(outcomes: Sequence[EvalOutcome]) -> Colour:
    """Return the colour of the lowest score: yellow if there is no score, red if something could not be judged."""
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    if any(outcome.problem for outcome in outcomes):
        return "red"
    lowest = min(scores, default=_POOR)
    return "red" if lowest < _POOR else "yellow" if lowest < _FAIR else "green"


def score_words(outcomes: Sequence[EvalOutcome]) -> str:
    """Return `0.82 42ms 1,204 tokens 3 tools $0.0012`."""
    scores = ["–" if outcome.score is None else f"{outcome.score:.2f}" for outcome in outcomes]
    shown = scores if len(scores) <= _MAX_SCORES else [*scores[:_MAX_SCORES], f"(+{len(scores) - _MAX_SCORES})"]
    seconds = sum(outcome.seconds for outcome in outcomes)
    minutes = f"{seconds:.1f}s" if seconds < 120 else f"{seconds / 60:.1f}min"
    words = [*shown, f"{1000 * seconds:.0f}ms" if seconds < 10 else minutes]
    used = sum((outcome.used for outcome in outcomes), NO_USAGE)
    records = [record for outcome in outcomes for record in outcome.records]
    calls = sum(len(record.transcript.tool_calls) for record in records if record.transcript)
    words += [count_of(used.tokens, "token")] if used.tokens else []
    words += [count_of(calls, "tool")] if calls else []
    words += [cost(used.cost)] if used.cost is not None else []
    return " ".join(words)


def item_line(nodeid: str, word: str, outcomes: Sequence[EvalOutcome], width: int | None) -> tuple[str, str]:
    """Return the node id, cut if the line would not fit the width, and the rest of the line."""
    rest = " ".join(part for part in (word, score_words(outcomes)) if part)
    shown = without_command(visible(nodeid, 500))
    room = None if width is None else max(_NARROWEST_LINE, width - len(rest) - 1)
    if room is not None and len(shown) > room:
        shown = f"{shown[: room - 2]}…]" if shown.endswith("]") else f"{shown[: room - 1]}…"
    return shown, rest


def detail_lines(outcomes: Sequence[EvalOutcome], place: str, width: int | None) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a test under `-v`, each with True if it reports a failure.

    They show its place and, for each round, the tool calls (nested under their parents), the scores and the output.
    """
    lines = [(f"    {visible(place, _MAX_ARGUMENTS_LENGTH)}", False), *chain.from_iterable(map(_details, outcomes))]
    for line, wrong in lines:
        room = len(line) if width is None else max(_NARROWEST_LINE, width)
        yield without_command(line if len(line) <= room else f"{line[: room - 1]}…"), wrong


def _details(outcome: EvalOutcome) -> Iterator[tuple[str, bool]]:
    for number, record in enumerate(outcome.records):
        if len(outcome.records) > 1:
            yield f"    round {number + 1}", False
        calls = record.transcript.tool_calls if record.transcript else ()
        for depth, call in _nested(calls[:_MAX_CALLS]):
            wrong = call.error is not None or call.status in ("error", "failed")
            yield f"{'    ' * (depth + 1)}{'└ ' if depth else ''}{_call(call)}", wrong
        if len(calls) > _MAX_CALLS:
            yield f"    … {len(calls) - _MAX_CALLS} more calls", False
        for score in record.scores:
            yield f"    {visible(f'{score.name} {_verdict(score)}', _MAX_ARGUMENTS_LENGTH)}", score.failure is not None
        if record.transcript is not None:
            yield f"    output {visible(_text(record.transcript.output), _MAX_ARGUMENTS_LENGTH)}", False


def _call(call: ToolCall) -> str:
    name = visible(call.name, _MAX_NAME_LENGTH)
    took = "" if call.duration_ms is None else f" {call.duration_ms:.0f}ms"
    error = "" if call.error is None else f" error: {visible(call.error, _MAX_ERROR_LENGTH)}"
    given = call.arguments
    if isinstance(given, dict):
        shown = ", ".join(f"{name}={_plain(item)}" for name, item in given.items())
    else:
        shown = "" if given is None else _plain(given)
    result = "" if call.result is None else f" → {visible(_plain(call.result), _MAX_ARGUMENTS_LENGTH)}"
    return f"{name}({visible(shown, _MAX_ARGUMENTS_LENGTH)}){result}{took}{error}"


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
            yield min(depth, _MAX_DEPTH), calls[place]
            own = calls[place].id
            if own is not None:
                waiting += [(depth + 1, child) for child in reversed(children.get(own, ()))]


def properties_of(outcomes: Sequence[EvalOutcome]) -> list[tuple[str, object]]:
    """Return the properties of a test for the file of `--junitxml`; their names begin with `eval.`.

    If a test has several evals, they are numbered from the second on. All values are texts, so that they can be sent
    between processes.
    """
    found: list[tuple[str, object]] = []
    for number, outcome in enumerate(outcomes):
        prefix = f"eval.{number + 1}." if number else "eval."
        found += [(prefix + name, value) for name, value in _properties(outcome)]
    return found


def run_properties(summary: SuitesSummary) -> Iterator[tuple[str, str]]:
    """Yield the properties of the whole run for the file of `--junitxml`: its ledger, and the verdict of each gate."""
    ledger = summary.ledger
    yield from ((f"eval.{name}", str(getattr(ledger, name))) for name in ("planned", "passed", "failed", "recorded"))
    yield from ((f"eval.{kind.replace(' ', '-')}", str(count)) for kind, count in ledger.missing.items())
    yield "eval.complete", str(ledger.gap is None).lower()
    for gate in summary.gates:
        yield f"eval.gate.{gate.option.lstrip('-')}", visible(f"{gate.word}: {gate.sentence}", _MAX_PROPERTY_LENGTH)


def _properties(outcome: EvalOutcome) -> Iterator[tuple[str, str]]:
    yield "suite", visible(outcome.suite, _MAX_PROPERTY_NAME)
    yield "case", visible(outcome.case, _MAX_PROPERTY_NAME)
    yield "score", _number(outcome.score)
    if outcome.threshold is not None:
        yield "threshold", f"{outcome.threshold:g}"
    if outcome.problem:
        yield "problem", visible(outcome.problem, _MAX_PROPERTY_LENGTH)
    for number, record in enumerate(outcome.records[:_MAX_ROUNDS]):
        prefix = f"round.{number + 1}." if len(outcome.records) > 1 else ""
        for score in record.scores:
            name = f"{prefix}scorer.{visible(score.name, _MAX_PROPERTY_NAME)}"
            yield name, "error" if score.failure else _number(score.value)
            if reason := score.failure.message if score.failure else score.reason:
                yield f"{name}.reason", visible(reason, _MAX_PROPERTY_LENGTH)
    for prefix, usage in (("", outcome.used), ("judging.", outcome.judging)):
        if usage.tokens:
            yield f"{prefix}tokens", str(usage.tokens)
        if usage.cost is not None:
            yield f"{prefix}cost", f"{usage.cost:.6f}"


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:g}"


_USUAL_WIDTH = 80
_NARROWEST = 40
_MAX_LENGTH = 4000  # characters of an input or output that are shown
_UNSCORED_LAST = 2.0
_OURS = str(Path(bakeoff.__file__).parent)
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+), in (\S+)', re.MULTILINE)  # of a traceback


def failure_text(outcome: EvalOutcome, width: int = _USUAL_WIDTH) -> str:
    """Describe a failure in full, in lines of at most `width` columns."""
    lines = [headline(outcome)]
    for name, text in _fields(outcome):
        lines += _field(name, text, max(_NARROWEST, width))
    return "\n".join(map(without_command, lines))


def failure_line(outcome: EvalOutcome) -> str:
    """Describe a failure in one line, with the reason of the worst scorer if possible."""
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
    """Describe a failure by score, threshold and error, without the reasons of scorers."""
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
    """Yield the lines of a field: its name on the left, its text beside it, wrapped and indented."""
    first, rest = f"  {name:<9} ", " " * 12
    text = text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}… ({len(text) - _MAX_LENGTH:,} more characters)"
    if len(first) > width // 2:  # a very long name has lines of its own
        yield from textwrap.wrap(first.strip(), width, initial_indent="  ", subsequent_indent="    ")
        first = rest
    for line in text.splitlines() or [""]:
        longer = "x" * (len(first) - len(rest))  # stands for the part of the first line that a long name takes
        pieces = _wrapped(longer + without_command(escaped(line)), width - len(rest) - 1)  # room to break up a command
        pieces[0] = pieces[0].removeprefix(longer)
        for piece in pieces:
            yield f"{first}{piece}".rstrip()
            first = rest


def _wrapped(line: str, width: int) -> list[str]:
    """Break a line into pieces that fit the width; letters of some scripts take two columns."""
    if line.isascii():
        return textwrap.wrap(line, width, replace_whitespace=False) or [""]
    from rich.cells import cell_len, chop_cells

    narrow = cell_len(line) == len(line)
    return textwrap.wrap(line, width, replace_whitespace=False) if narrow else chop_cells(line, width)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value, indent=2).decode()
