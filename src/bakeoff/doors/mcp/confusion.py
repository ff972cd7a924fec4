"""Count which tool was wanted and which was called, per model and across servers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from bakeoff._kernel.model import FrozenModel
from bakeoff.mcp import ServerTool
from bakeoff.mcp.tools import tool_label
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.scorers.mcp.calls import NO_TOOL, UNREADABLE, Call, ExpectedMcpCall, turns_in

NO_ANSWER = "no answer"
OTHERS = "other tools"
ALL_MODELS = "all models"
_NOT_TOOLS = (NO_TOOL, UNREADABLE, NO_ANSWER, OTHERS)
_MAX_PAIRS = 10
_MAX_OTHERS = 30  # unwanted tools with a column of their own: a model may invent one for every call

Pair = tuple[str, str]
"""The tool that was wanted, and the one that was called instead."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """One model's calls: the rounds for each pair of a wanted and a called tool, and for each wanted tool."""

    model: str
    counts: Mapping[Pair, int]
    rounds: Mapping[str, int]

    def wanted(self) -> list[str]:
        return list(dict.fromkeys(wanted for wanted, _ in self.counts))

    def called(self) -> list[str]:
        """Return the wanted tools first, in the same order, so that correct calls are on the diagonal."""
        wanted = self.wanted()
        others = {called for _, called in self.counts} - set(wanted)
        return [*wanted, *sorted(others, key=lambda name: (name in _NOT_TOOLS, name))]


class ConfusedTools(FrozenModel):
    """A wanted tool and another that was called instead, over all models."""

    wanted: str
    called: str
    rounds: int
    models: tuple[str, ...]
    wantedDescription: str = ""
    calledDescription: str = ""


def confusions(plan: Plan, records: Iterable[Record]) -> tuple[Confusion, ...]:
    """Return one confusion matrix for each model, in the plan's order. Lost rounds are not counted."""
    rounds: dict[str, list[list[Pair]]] = {spec.name: [] for spec in plan.subjects}
    expected = {case.id: ExpectedMcpCall.model_validate(case.expected) for case in plan.cases}
    wanted = {id: [call.tool for call in each.calls or ()] for id, each in expected.items()}
    for record in records:
        if record.verdict.counts:
            turns = turns_in(record)
            asked = _labels(expected[record.case].turns[: len(turns)]) if turns else wanted[record.case]
            rounds[record.subject].append(_pairs(asked, record))
    labels = sorted({label for labels in wanted.values() for label in labels})
    if not all(wanted.values()):
        labels.append(NO_TOOL)
    order = {label: at for at, label in enumerate(labels)}
    return tuple(_confusion(model, found, order) for model, found in rounds.items())


def _labels(turns: Sequence[ExpectedMcpCall]) -> list[str]:
    """Return the wanted tools of the turns that were asked: a turn that fails ends the conversation."""
    return [call.tool for turn in turns for call in turn.calls or ()]


def _confusion(model: str, rounds: Sequence[Sequence[Pair]], order: Mapping[str, int]) -> Confusion:
    """Count the rounds of each pair. The rarest unwanted tools are counted together if there are too many."""
    wanted = Counter(name for pairs in rounds for name in {wanted for wanted, _ in pairs})
    called = Counter(name for pairs in rounds for _, name in pairs if name not in order and name not in _NOT_TOOLS)
    kept = {name for name, _ in called.most_common(_MAX_OTHERS)}
    counts: Counter[Pair] = Counter()
    for pairs in rounds:
        counts.update({(wanted, OTHERS if name in called and name not in kept else name) for wanted, name in pairs})
    ordered = sorted(counts, key=lambda pair: (order.get(pair[0], len(order)), pair))
    return Confusion(model, {pair: counts[pair] for pair in ordered}, wanted)


def pooled(found: Sequence[Confusion]) -> Confusion:
    """Return the counts of all models together."""
    counts: Counter[Pair] = Counter()
    rounds: Counter[str] = Counter()
    for one in found:
        counts.update(one.counts)
        rounds.update(one.rounds)
    return Confusion(ALL_MODELS, counts, rounds)


def most_confused(found: Sequence[Confusion], tools: Iterable[ServerTool]) -> tuple[ConfusedTools, ...]:
    """Return the pairs of tools that were confused most often, with the descriptions that models read."""
    texts = {tool_label(tool.server, tool.name): tool.description for tool in tools}
    rounds: Counter[Pair] = Counter()
    models: dict[Pair, list[str]] = {}
    for confusion in found:
        for pair, count in confusion.counts.items():
            if pair[0] != pair[1] and pair[1] not in (UNREADABLE, NO_ANSWER, OTHERS):
                rounds[pair] += count
                models.setdefault(pair, []).append(confusion.model)
    return tuple(
        ConfusedTools(
            wanted=wanted,
            called=called,
            rounds=count,
            models=tuple(models[wanted, called]),
            wantedDescription=texts.get(wanted, ""),
            calledDescription=texts.get(called, ""),
        )
        for (wanted, called), count in rounds.most_common(_MAX_PAIRS)
    )


def called_in(record: Record) -> list[Call]:
    """Return the calls that the scorer read from the reply."""
    found = next((score.metadata.get("called") for score in record.scores), None)
    try:
        return [Call.model_validate(call) for call in found] if isinstance(found, list) else []
    except ValidationError:
        return []


def _pairs(wanted: Sequence[str], record: Record) -> list[Pair]:
    if not record.scores:
        return [(name, NO_ANSWER) for name in wanted or [NO_TOOL]]
    if record.scores[0].metadata.get("failure_class") == UNREADABLE:
        return [(name, UNREADABLE) for name in wanted or [NO_TOOL]]
    called = [call.tool for call in called_in(record)]
    if not wanted and not called:
        return [(NO_TOOL, NO_TOOL)]
    return _align(wanted, called)


def _align(wanted: Sequence[str], called: Sequence[str]) -> list[Pair]:
    """Pair each wanted tool with the call in its place: as many correct pairs as the order allows, then others.

    Pairing by position alone would make every call after a missing one look like a confusion.
    """
    correct = len(wanted) + 1  # one correct pair is worth more than all wrong pairs together

    def gain(at: int, place: int) -> int:
        return correct if wanted[at] == called[place] else 1

    # gains[at][place] is the most that the rest of both lists can gain.
    gains = [[0] * (len(called) + 1) for _ in range(len(wanted) + 1)]
    for at in reversed(range(len(wanted))):
        for place in reversed(range(len(called))):
            paired = gains[at + 1][place + 1] + gain(at, place)
            gains[at][place] = max(paired, gains[at + 1][place], gains[at][place + 1])
    found: list[Pair] = []
    at, place = 0, 0
    while at < len(wanted) and place < len(called):
        best = gains[at][place]
        if best == gains[at + 1][place + 1] + gain(at, place):
            found.append((wanted[at], called[place]))
            at, place = at + 1, place + 1
        elif best == gains[at + 1][place]:
            found.append((wanted[at], NO_TOOL))
            at += 1
        else:
            found.append((NO_TOOL, called[place]))
            place += 1
    return [*found, *((name, NO_TOOL) for name in wanted[at:]), *((NO_TOOL, name) for name in called[place:])]
