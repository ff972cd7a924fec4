"""Names under which tools are offered in a model's own function calling, where they must be unique and plain."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count

from bakeoff.mcp import ServerTool

LONGEST = 64
"""What every provider takes, with letters, digits, `_` and `-`."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(tools: Sequence[ServerTool]) -> Mapping[str, ServerTool]:
    """Each tool under a name of its own: the tool's, with its server's before it where two servers offer the same."""
    plain = [_plain(tool.name) for tool in tools]
    often = Counter(name.casefold() for name in plain)
    offered: dict[str, ServerTool] = {}
    for tool, name in zip(tools, plain, strict=True):
        wanted = name if often[name.casefold()] == 1 else _plain(f"{tool.server}__{tool.name}")
        numbered = (f"{wanted[: LONGEST - 4]}_{number}" for number in count(2))
        free = next(name for name in chain([wanted], numbered) if name not in offered)
        offered[free] = tool
    return offered


def _plain(name: str) -> str:
    return _UNFIT.sub("_", name)[:LONGEST]
