"""Find the tools, parameters and enum values that no case of a suite exercises."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import count_of, visible
from bakeoff.doors.mcp.cases import McpCase
from bakeoff.mcp import ServerTool
from bakeoff.mcp.schemas import Schema, resolved
from bakeoff.mcp.tools import tool_label
from bakeoff.report.formatting import percent
from bakeoff.scorers.matchers import Matcher, is_matcher
from bakeoff.scorers.mcp.calls import ExpectedMcpCall
from bakeoff.verdict import reaches

_MAX_DEPTH = 8
_MAX_SHOWN = 3


class ToolCoverage(FrozenModel):
    """The number of items, such as tools, and how many of them cases exercise."""

    covered: int
    total: int


class CoverageGap(FrozenModel):
    """The parts of one tool that no case exercises. A tool without cases has no further entries."""

    server: str
    tool: str
    noCase: bool = False
    parameters: tuple[str, ...] = ()
    enumValues: dict[str, tuple[JsonValue, ...]] = {}


class Coverage(FrozenModel):
    """The parts of tools that the cases of a suite exercise, also those that are not selected for a run."""

    tools: ToolCoverage
    parameters: ToolCoverage
    enumValues: ToolCoverage
    share: float
    uncovered: tuple[CoverageGap, ...] = ()
    minimum: float | None = None

    @property
    def passed(self) -> bool:
        """Return True if the share reaches the minimum, or if there is none."""
        return self.minimum is None or reaches(self.share, self.minimum)

    @property
    def sentence(self) -> str:
        """Return the figures as a sentence, without its full stop."""
        found = ((self.tools, "tool"), (self.parameters, "parameter"), (self.enumValues, "enum value"))
        counts = ", ".join(f"{one.covered} of {count_of(one.total, thing)}" for one, thing in found)
        needed = "" if self.minimum is None else f"; {percent(self.minimum)} needed"
        return f"Coverage {percent(self.share)}: {counts}{needed}"

    @property
    def first_gaps(self) -> str:
        """Return a few of the first items that no case exercises, as text."""
        gaps: list[str] = []
        for each in self.uncovered:
            label = visible(tool_label(each.server, each.tool), 80)
            gaps += [label] if each.noCase else [f"{label} {visible(name, 60)}" for name in each.parameters]
            for name, values in each.enumValues.items():
                shown = ", ".join(visible(json.dumps(value, ensure_ascii=False), 40) for value in values)
                gaps.append(f"{label} {visible(name, 60)} = {shown}")
        more = f" and {len(gaps) - _MAX_SHOWN} more" if len(gaps) > _MAX_SHOWN else ""
        return f"{', '.join(gaps[:_MAX_SHOWN])}{more}"


def coverage_of(cases: Sequence[McpCase], tools: Sequence[ServerTool], minimum: float | None = None) -> Coverage:
    """Compare the expected calls of cases, and their alternatives, with the tools."""
    calls: dict[tuple[str, str], list[ExpectedMcpCall]] = {}
    for part in (part for case in cases for part in case.parts):
        for sequence in (part.expectedOutput, *part.alternatives):
            for call in sequence or ():
                calls.setdefault((call.serverName, call.toolName), []).append(call)
    totals: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    uncovered: list[CoverageGap] = []
    for tool in tools:
        own = calls.get((tool.server, tool.name), [])
        parts = tool.parameters
        choices = {name: found for name, part in parts.items() if (found := _choices(part, tool.input_schema))}
        unused = [name for name in parts if not any(_is_used(name, call) for call in own)]
        unnamed = {
            name: tuple(
                value
                for value in values
                if not any(_is_used(name, call) and value in _values(call.parameters[name]) for call in own)
            )
            for name, values in choices.items()
        }
        unnamed = {name: values for name, values in unnamed.items() if values}
        totals.update(tools=1, parameters=len(parts), enumValues=sum(map(len, choices.values())))
        missing.update(tools=not own, parameters=len(unused), enumValues=sum(map(len, unnamed.values())))
        if not own:
            uncovered.append(CoverageGap(server=tool.server, tool=tool.name, noCase=True))
        elif unused or unnamed:
            told = {name: values for name, values in unnamed.items() if name not in unused}
            uncovered.append(CoverageGap(server=tool.server, tool=tool.name, parameters=tuple(unused), enumValues=told))
    names, whole = ("tools", "parameters", "enumValues"), totals.total()
    return Coverage(
        **{name: ToolCoverage(covered=totals[name] - missing[name], total=totals[name]) for name in names},
        share=(whole - missing.total()) / whole if whole else 1.0,
        uncovered=tuple(uncovered),
        minimum=minimum,
    )


def _choices(schema: JsonValue | Schema, root: Schema, depth: int = 0) -> list[JsonValue]:
    """Return the values of an enum, also of a list's items, behind a reference or in a union."""
    schema = resolved(schema, root)
    if depth > _MAX_DEPTH:
        return []
    if isinstance(choices := schema.get("enum"), list):
        return [choice for choice in choices if choice is not None]
    several = schema.get("anyOf") or schema.get("oneOf")
    inner = several if isinstance(several, list) else [schema["items"]] if "items" in schema else []
    if several and all(isinstance(each, dict) and "const" in each for each in inner):
        return [each["const"] for each in inner if isinstance(each, dict)]
    return [choice for each in inner for choice in _choices(each, root, depth + 1)]


def _is_used(name: str, call: ExpectedMcpCall) -> bool:
    """Return True if a call must have a parameter. Optional parameters do not show that a model used them."""
    if name not in call.parameters:
        return False
    expected = call.parameters[name]
    return not (is_matcher(expected) and Matcher.model_validate(expected).optional)


def _values(expected: JsonValue) -> Iterable[JsonValue]:
    """Yield every value that an expectation names."""
    if is_matcher(expected):
        matcher = Matcher.model_validate(expected)
        inner = matcher.oneOf if matcher.oneOf is not None else [matcher.value]
        for each in inner:
            yield from _values(each)
            if matcher.caseInsensitive and isinstance(each, str):
                yield from (each.lower(), each.upper(), each.capitalize())
        return
    yield expected
    for each in expected if isinstance(expected, list) else ():
        yield from _values(each)
