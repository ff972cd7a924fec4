"""Show the evals of one test: its line on the terminal, its tool calls, and its properties in JUnit.

`path::test[case] 0.82 42ms`, then tokens, tools and cost where they are known. Untrusted text is always escaped.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue
from pydantic_core import to_json

from bakeoff._kernel.text import count_of, visible, without_command
from bakeoff.record import NO_USAGE, ToolCall
from bakeoff.report.formatting import cost
from bakeoff.report.suites.outcomes import EvalOutcome

Colour = Literal["red", "yellow", "green"]

_POOR, _FAIR = 0.5, 0.75
_MAX_SCORES = 5  # of one test that are shown one by one
_MAX_CALLS = 30  # of one round that are drawn
_DEEPEST = 8
_MAX_NAME_LENGTH = 60
_MAX_PROPERTY_NAME = 100
_MAX_ARGUMENTS_LENGTH = 200
_MAX_ERROR_LENGTH = 200
_NARROWEST_LINE = 20  # columns that a node id gets, however narrow the terminal
_MAX_PROPERTY_LENGTH = 500
_MAX_ROUNDS = 20  # of a case that have JUnit properties of their own


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
    seconds = sum(outcome.seconds for outcome in outcomes)
    minutes = f"{seconds:.1f}s" if seconds < 120 else f"{seconds / 60:.1f}min"
    words = [*shown, f"{1000 * seconds:.0f}ms" if seconds < 10 else minutes]
    used = sum((outcome.used for outcome in outcomes), NO_USAGE)
    calls = sum(len(calls) for outcome in outcomes for calls in _calls(outcome))
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
    given = call.arguments
    if isinstance(given, dict):
        shown = ", ".join(f"{name}={_plain(item)}" for name, item in given.items())
    else:
        shown = "" if given is None else _plain(given)
    return f"{name}({visible(shown, _MAX_ARGUMENTS_LENGTH)}){took}{error}"


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


def properties_of(outcomes: Sequence[EvalOutcome]) -> list[tuple[str, object]]:
    """Return the properties of a test for the file of `--junitxml`; their names begin with `eval.`.

    The evals of a test with several are numbered from the second on. All values are texts, so that they can be sent
    between processes.
    """
    found: list[tuple[str, object]] = []
    for number, outcome in enumerate(outcomes):
        prefix = f"eval.{number + 1}." if number else "eval."
        found += [(prefix + name, value) for name, value in _properties(outcome)]
    return found


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
