"""Which tool was wanted, and which was called: per model, across servers."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

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


@dataclass(frozen=True, slots=True)
class Confusion:
    """One model's calls: how often each tool was called where each was wanted."""

    model: str
    counts: Mapping[tuple[str, str], int]

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
    counts: dict[str, Counter[tuple[str, str]]] = {spec.name: Counter() for spec in plan.subjects}
    expected = {case.id: Expected.model_validate(case.expected) for case in plan.cases}
    for record in records:
        if record.verdict.counts:
            wanted = [tool_label(call.serverName, call.toolName) for call in expected[record.case].calls or ()]
            counts[record.subject].update(_pairs(wanted, record))
    order = {label: at for at, label in enumerate(_labels(expected))}
    return tuple(Confusion(model, _sorted(_gathered(found, order), order)) for model, found in counts.items())


def confused_pairs(found: Sequence[Confusion], most: int = _MOST_PAIRS) -> tuple[ConfusedPair, ...]:
    """Those taken for each other most often first."""
    rounds: Counter[tuple[str, str]] = Counter()
    models: dict[tuple[str, str], list[str]] = {}
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


def _pairs(wanted: Sequence[str], record: Record) -> list[tuple[str, str]]:
    problem = _problem(record)
    if problem is not None:
        return [(name, problem) for name in wanted or [NO_TOOL]]
    called = [call.tool for call in called_in(record)]
    if not wanted and not called:
        return [(NO_TOOL, NO_TOOL)]
    return list(zip_longest(wanted, called, fillvalue=NO_TOOL))


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


def _gathered(found: Counter[tuple[str, str]], known: Container[str]) -> Counter[tuple[str, str]]:
    """With the tools that nobody wanted and that were called least taken together, where they are too many."""
    called: Counter[str] = Counter()
    for (_, name), count in found.items():
        if name not in known and not _is_word(name):
            called[name] += count
    if len(called) <= _MOST_OTHERS:
        return found
    kept = {name for name, _ in called.most_common(_MOST_OTHERS)}
    gathered: Counter[tuple[str, str]] = Counter()
    for (wanted, name), count in found.items():
        gathered[wanted, OTHERS if name in called and name not in kept else name] += count
    return gathered


def _sorted(found: Counter[tuple[str, str]], order: Mapping[str, int]) -> dict[tuple[str, str], int]:
    pairs = sorted(found, key=lambda pair: (order.get(pair[0], len(order)), pair))
    return {pair: found[pair] for pair in pairs}


def _is_word(name: str) -> bool:
    """Whether it stands for something else than one tool."""
    return name in (NO_TOOL, UNREADABLE, NO_ANSWER, OTHERS)
