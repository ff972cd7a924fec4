"""Names and descriptions: whether models can tell tools apart, and providers take them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations

from bakeoff.doors.mcp_suite.lint.rules import Finding
from bakeoff.mcp import ServerTool
from bakeoff.mcp.words import quoted

_LONGEST_DESCRIPTION = 1024  # of a function, at OpenAI
_SHORTEST_DESCRIPTION = 20
_ALIKE, _NEARLY_EQUAL = 0.85, 0.95
_MOST_COMPARED = 400  # tools; each is compared with each
_MOST_PAIRS = 50
_COMPARED = 600  # characters of a description

# Who takes which names, as their documentation and their errors say.
PROVIDER_NAMES = {
    "OpenAI": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "Anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "Google": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
}


def naming_findings(tools: Sequence[ServerTool]) -> Iterator[Finding]:
    for tool in tools:
        yield from _name(tool)
        yield from _description(tool)
    yield from _clashes(tools)
    yield from _alike(tools)


def _name(tool: ServerTool) -> Iterator[Finding]:
    refusing = [who for who, names in PROVIDER_NAMES.items() if not names.fullmatch(tool.name)]
    if refusing:
        length = f" ({len(tool.name)} characters)" if len(tool.name) > 64 else ""
        yield _of(tool, "tool-name-not-portable", f"{quoted(tool.name, 80)}{length} is refused by {_listed(refusing)}")


def _description(tool: ServerTool) -> Iterator[Finding]:
    text = tool.description.strip()
    if not text:
        yield _of(tool, "tool-description-missing", "it has no description")
    elif len(text) > _LONGEST_DESCRIPTION:
        yield _of(tool, "tool-description-long", f"its description has {len(text):,} characters, over 1,024")
    elif len(text) < _SHORTEST_DESCRIPTION or _words(text) <= _words(tool.name):
        yield _of(tool, "tool-description-short", f"all that it says is {quoted(text)}")


def _clashes(tools: Sequence[ServerTool]) -> Iterator[Finding]:
    first: dict[str, ServerTool] = {}
    for tool in tools:
        other = first.setdefault(tool.name, tool)
        if other.server != tool.server:
            yield _of(tool, "tool-name-clash", f"the server {quoted(other.server, 80)} has a tool of this name too")


def _alike(tools: Sequence[ServerTool]) -> Iterator[Finding]:
    """Of all pairs; the words that two have in common are quickly counted, and rule most pairs out."""
    found = 0
    texts = [_Text.of(tool) for tool in tools[:_MOST_COMPARED]]
    for one, other in combinations(texts, 2):
        finding = _likeness(one, other)
        if finding is not None:
            yield finding
            found += 1
            if found == _MOST_PAIRS:
                return


@dataclass(frozen=True, slots=True)
class _Text:
    """What a tool is compared by."""

    tool: ServerTool
    name: str
    description: str
    words: frozenset[str]

    @classmethod
    def of(cls, tool: ServerTool) -> "_Text":
        text = " ".join(tool.description.casefold().split())[:_COMPARED]
        return cls(tool, _bare(tool.name), text, frozenset(_words(text)))

    def may_be_like(self, other: "_Text") -> bool:
        return 2 * len(self.words & other.words) >= len(self.words | other.words)


def _likeness(one: _Text, other: _Text) -> Finding | None:
    if not one.description or not other.description:
        return None
    named = f"{quoted(one.tool.name, 80)} of {quoted(one.tool.server, 80)}"
    if one.description == other.description:
        return _of(other.tool, "tool-description-duplicate", f"{named} is described with the same words")
    if one.name and one.name == other.name and one.tool.name != other.tool.name:
        return _of(other.tool, "tools-alike", f"{named} differs in nothing but case, `_` or `-`")
    if not one.may_be_like(other):
        return None
    described, called = _share(one.description, other.description), _share(one.name, other.name)
    if described < _ALIKE or (called < _ALIKE and described < _NEARLY_EQUAL):
        return None
    what = f"{named} is {called:.0%} the same in name and {described:.0%} in description"
    return _of(other.tool, "tools-alike", what)


def _share(one: str, other: str) -> float:
    """How much two texts have in common; the quick bounds come first, for most pairs have little."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() < 0.5 or matcher.quick_ratio() < _ALIKE:
        return min(matcher.quick_ratio(), 0.5)
    return matcher.ratio()


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", text.casefold().replace("_", " ")))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _of(tool: ServerTool, rule: str, what: str) -> Finding:
    return Finding(rule=rule, server=tool.server, tool=tool.name, what=what)
