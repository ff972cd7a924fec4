"""Which tool was wanted, and which was called: per model, across servers."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from bakeoff.doors.mcp_suite.calls import NO_TOOL, Call, Expected, tool_label
from bakeoff.mcp import ServerTool
from bakeoff.plan import Plan
from bakeoff.record import Record

UNREADABLE = "unreadable reply"
NO_ANSWER = "no answer"
OTHERS = "other tools"
_MOST_PAIRS = 10
_MOST_OTHERS = 30  # tools that nobody wanted and that have a column: a model may make up one for every call

Pair = tuple[str, str]
"""The tool that was wanted, and the one that was called in its place."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """One model's calls: in how many rounds each tool was called where each was wanted, and in how many it was."""

    model: str
    counts: Mapping[Pair, int]
    rounds: Mapping[str, int]

    def wanted(self) -> list[str]:
        return list(dict.fromkeys(wanted for wanted, _ in self.counts))

    def called(self) -> list[str]:
        """Those that were wanted first, in the same order, so that what is right stands on the diagonal."""
        wanted = self.wanted()
        others = sorted({called for _, called in self.counts} - set(wanted), key=lambda name: (_is_word(name), name))
        return [*wanted, *others]


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """A tool that was wanted and another that was called in its place, by all models together."""

    wanted: str
    called: str
    rounds: int
    models: tuple[str, ...]


def confusions(plan: Plan, records: Iterable[Record]) -> tuple[Confusion, ...]:
    """One for each model, in the plan's order. What was lost to others says nothing about a model."""
    rounds: dict[str, list[list[Pair]]] = {spec.name: [] for spec in plan.subjects}
    expected = {case.id: Expected.model_validate(case.expected) for case in plan.cases}
    for record in records:
        if record.verdict.counts:
            wanted = [tool_label(call.serverName, call.toolName) for call in expected[record.case].calls or ()]
            rounds[record.subject].append(_pairs(wanted, record))
    order = {label: at for at, label in enumerate(_labels(expected))}
    return tuple(_confusion(model, found, order) for model, found in rounds.items())


def _confusion(model: str, rounds: Sequence[Sequence[Pair]], order: Mapping[str, int]) -> Confusion:
    wanted = Counter(name for pairs in rounds for name in {wanted for wanted, _ in pairs})
    return Confusion(model, _sorted(_counted(rounds, order), order), wanted)


def confused_pairs(found: Sequence[Confusion], most: int = _MOST_PAIRS) -> tuple[ConfusedPair, ...]:
    """Those taken for each other most often first."""
    rounds: Counter[Pair] = Counter()
    models: dict[Pair, list[str]] = {}
    for confusion in found:
        for pair, count in confusion.counts.items():
            if pair[0] != pair[1] and pair[1] not in (UNREADABLE, NO_ANSWER, OTHERS):
                rounds[pair] += count
                models.setdefault(pair, []).append(confusion.model)
    return tuple(ConfusedPair(*pair, count, tuple(models[pair])) for pair, count in rounds.most_common(most))


def descriptions(tools: Iterable[ServerTool]) -> dict[str, str]:
    return {tool_label(tool.server, tool.name): tool.description for tool in tools}


def called_in(record: Record) -> list[Call]:
    """The calls that the scorer heard."""
    found = next((score.metadata.get("called") for score in record.scores), None)
    try:
        return [Call.model_validate(call) for call in found] if isinstance(found, list) else []
    except ValidationError:
        return []


def _pairs(wanted: Sequence[str], record: Record) -> list[Pair]:
    problem = _problem(record)
    if problem is not None:
        return [(name, problem) for name in wanted or [NO_TOOL]]
    called = [call.tool for call in called_in(record)]
    if not wanted and not called:
        return [(NO_TOOL, NO_TOOL)]
    return _aligned(wanted, called)


def _aligned(wanted: Sequence[str], called: Sequence[str]) -> list[Pair]:
    """Each wanted tool and the call that took its place: as many right ones as the order allows, then as many others.

    By their places alone, one call too few would make every call after it look like a confusion.
    """
    gains = _gains(wanted, called)
    found: list[Pair] = []
    at, place = 0, 0
    while at < len(wanted) and place < len(called):
        best = gains[at][place]
        if best == gains[at + 1][place + 1] + _gain(wanted[at], called[place], len(wanted)):
            found.append((wanted[at], called[place]))
            at, place = at + 1, place + 1
        elif best == gains[at + 1][place]:
            found.append((wanted[at], NO_TOOL))
            at += 1
        else:
            found.append((NO_TOOL, called[place]))
            place += 1
    return [*found, *((name, NO_TOOL) for name in wanted[at:]), *((NO_TOOL, name) for name in called[place:])]


def _gains(wanted: Sequence[str], called: Sequence[str]) -> list[list[int]]:
    """The most that can be gained from each place in the one, and each in the other, to the ends of both."""
    gains = [[0] * (len(called) + 1) for _ in range(len(wanted) + 1)]
    for at in reversed(range(len(wanted))):
        for place in reversed(range(len(called))):
            paired = gains[at + 1][place + 1] + _gain(wanted[at], called[place], len(wanted))
            gains[at][place] = max(paired, gains[at + 1][place], gains[at][place + 1])
    return gains


def _gain(wanted: str, called: str, most: int) -> int:
    """One right call is worth more than all the wrong ones that there can be."""
    return most + 1 if wanted == called else 1


def _problem(record: Record) -> str | None:
    if not record.scores:
        return NO_ANSWER
    found: JsonValue = record.scores[0].metadata.get("failure_class")
    return UNREADABLE if found == "unreadable reply" else None


def _labels(expected: Mapping[str, Expected]) -> list[str]:
    """Every tool that some case wants, server by server."""
    wanted = {tool_label(call.serverName, call.toolName) for one in expected.values() for call in one.calls or ()}
    none = [NO_TOOL] if any(not one.calls for one in expected.values()) else []
    return [*sorted(wanted), *none]


def _counted(rounds: Sequence[Sequence[Pair]], known: Container[str]) -> Counter[Pair]:
    """In how many rounds each was; tools that nobody wanted and that were called least are one, where too many."""
    called = Counter(name for pairs in rounds for _, name in pairs if name not in known and not _is_word(name))
    kept = {name for name, _ in called.most_common(_MOST_OTHERS)}
    counts: Counter[Pair] = Counter()
    for pairs in rounds:
        counts.update({(wanted, OTHERS if name in called and name not in kept else name) for wanted, name in pairs})
    return counts


def _sorted(found: Counter[Pair], order: Mapping[str, int]) -> dict[Pair, int]:
    pairs = sorted(found, key=lambda pair: (order.get(pair[0], len(order)), pair))
    return {pair: found[pair] for pair in pairs}


def _is_word(name: str) -> bool:
    """Whether it stands for something else than one tool."""
    return name in (NO_TOOL, UNREADABLE, NO_ANSWER, OTHERS)
