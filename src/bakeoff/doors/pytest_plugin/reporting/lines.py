"""One test's line and its tree of tool calls, as texts and colours; nothing from outside is shown as it is.

`path::test[case] 0.82 42ms`, then tokens, tools and cost where they are known.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue
from pydantic_core import to_json

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.record import ToolCall
from bakeoff.report.words import cost, visible

Colour = Literal["red", "yellow", "green"]

_POOR, _FAIR = 0.5, 0.75
_MOST_SCORES = 5  # of one test that are told one by one
_MOST_CALLS = 30  # of one round that are drawn
_DEEPEST = 8
_LONGEST_NAME = 60
_LONGEST_ARGUMENTS = 200
_LONGEST_ERROR = 200
_NARROWEST = 20  # columns that a node id is left, however narrow the terminal


def colour_of(outcomes: Sequence[EvalOutcome]) -> Colour:
    """By the lowest score; what has none is yellow, unless something broke."""
    scores = [outcome.score for outcome in outcomes if outcome.score is not None]
    if any(outcome.problem for outcome in outcomes):
        return "red"
    return score_colour(min(scores)) if scores else "yellow"


def score_colour(score: float) -> Colour:
    return "red" if score < _POOR else "yellow" if score < _FAIR else "green"


def score_words(outcomes: Sequence[EvalOutcome]) -> str:
    """`0.82 42ms 1,204 tokens 3 tools $0.0012`."""
    scores = ["–" if outcome.score is None else f"{outcome.score:.2f}" for outcome in outcomes]
    told = scores if len(scores) <= _MOST_SCORES else [*scores[:_MOST_SCORES], f"(+{len(scores) - _MOST_SCORES})"]
    return " ".join([*told, _milliseconds(sum(outcome.seconds for outcome in outcomes)), *_spent(outcomes)])


def _milliseconds(seconds: float) -> str:
    if seconds < 10:
        return f"{1000 * seconds:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 120 else f"{seconds / 60:.1f}min"


def _spent(outcomes: Sequence[EvalOutcome]) -> Iterator[str]:
    used = [record.used for outcome in outcomes for record in outcome.records]
    tokens = sum(usage.tokens for usage in used)
    calls = sum(len(calls) for outcome in outcomes for calls in calls_of(outcome))
    costs = [usage.cost for usage in used if usage.cost is not None]
    if tokens:
        yield f"{tokens:,} tokens"
    if calls:
        yield f"{calls} {'tool' if calls == 1 else 'tools'}"
    if costs:
        yield cost(sum(costs))


def item_line(nodeid: str, word: str, outcomes: Sequence[EvalOutcome], width: int | None) -> tuple[str, str]:
    """The node id, cut where the whole would not fit the width, and what follows it."""
    rest = " ".join(part for part in (word, score_words(outcomes)) if part)
    shown = visible(nodeid, 500)
    room = None if width is None else max(_NARROWEST, width - len(rest) - 1)
    if room is not None and len(shown) > room:
        shown = f"{shown[: room - 2]}…]" if shown.endswith("]") else f"{shown[: room - 1]}…"
    return shown, rest


def calls_of(outcome: EvalOutcome) -> list[tuple[ToolCall, ...]]:
    """The tool calls of each round."""
    return [record.transcript.tool_calls if record.transcript else () for record in outcome.records]


def tool_lines(outcomes: Sequence[EvalOutcome], width: int | None) -> Iterator[tuple[str, bool]]:
    """Each call on a line under the one that made it, and whether it went wrong."""
    for outcome in outcomes:
        rounds = calls_of(outcome)
        for number, calls in enumerate(rounds):
            if calls and len(rounds) > 1:
                yield f"    round {number + 1}", False
            for depth, call in _nested(calls[:_MOST_CALLS]):
                line = f"{'    ' * (depth + 1)}{'└ ' if depth else ''}{_call(call)}"
                yield no_command(_cut(line, width)), _is_wrong(call)
            if len(calls) > _MOST_CALLS:
                yield f"    … {len(calls) - _MOST_CALLS} more calls", False


def no_command(line: str) -> str:
    """The same line, in which GitHub hears no command: one begins a line with `::`, or stands anywhere after `##[`."""
    stripped = line.lstrip()
    begun = f"{line[: len(line) - len(stripped)]}: {stripped[1:]}" if stripped.startswith("::") else line
    return begun.replace("##[", "## [")


def _cut(line: str, width: int | None) -> str:
    room = len(line) if width is None else max(_NARROWEST, width)
    return line if len(line) <= room else f"{line[: room - 1]}…"


def _is_wrong(call: ToolCall) -> bool:
    return call.error is not None or call.status in ("error", "failed")


def _call(call: ToolCall) -> str:
    name = visible(call.name, _LONGEST_NAME)
    took = "" if call.duration_ms is None else f" {call.duration_ms:.0f}ms"
    error = "" if call.error is None else f" error: {visible(call.error, _LONGEST_ERROR)}"
    return f"{name}({_arguments(call.arguments)}){took}{error}"


def _arguments(value: JsonValue) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, dict):
        return visible(", ".join(f"{name}={_plain(item)}" for name, item in value.items()), _LONGEST_ARGUMENTS)
    return visible(_plain(value), _LONGEST_ARGUMENTS)


def _plain(value: JsonValue) -> str:
    if isinstance(value, str):
        return repr(value[: _LONGEST_ARGUMENTS + 1])
    return to_json(value, fallback=repr, inf_nan_mode="constants").decode()


def _nested(calls: Sequence[ToolCall]) -> Iterator[tuple[int, ToolCall]]:
    """Calls under their parents, in order. Ids are what an application says: one may name itself, or nobody."""
    known = {call.id for call in calls if call.id is not None}
    children: dict[str | None, list[int]] = {}
    for place, call in enumerate(calls):
        parent = call.parent_id if call.parent_id in known and call.parent_id != call.id else None
        children.setdefault(parent, []).append(place)
    drawn: set[int] = set()
    for root in (*children.get(None, ()), *range(len(calls))):  # the second time round, those that go in a circle
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
