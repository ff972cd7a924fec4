"""Build the tree of a YAML text from the events of the parser: fast, without recursion, and bounded from the start."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.composer import ComposerError

_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_EXPLAINED = 100_000  # characters of a text whose errors are worth a second, slower look


class TooMuch(Exception):
    """A text is nested too deeply, or has too many values."""

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        super().__init__(what)


@dataclass(slots=True)
class Node:
    """A value as it stands in the text: a scalar, or the nodes in it. In an object, keys and values alternate."""

    line: int
    tag: str | None = None
    plain: bool = False
    text: str = ""
    items: "list[Node] | None" = None
    is_object: bool = False


def compose(text: str, *, deepest: int, most: int) -> Node | None:
    """Return the tree of a text, None if it has no value. Raise YAMLError, or TooMuch beyond the limits.

    The parser in C is ten times as fast. The one in Python explains errors better.
    """
    try:
        return _Composer(deepest, most).compose(text, _FAST_LOADER)
    except yaml.YAMLError:
        if len(text) > _MAX_EXPLAINED or _FAST_LOADER is yaml.SafeLoader:
            raise
    return _Composer(deepest, most).compose(text, yaml.SafeLoader)


class _Composer:
    def __init__(self, deepest: int, most: int) -> None:
        self._deepest, self._most = deepest, most
        self._made = 0
        self._documents: list[Node] = []
        self._open: list[list[Node]] = [self._documents]  # the items of nodes that are not complete, outermost first
        self._anchors: dict[str, Node] = {}

    def compose(self, text: str, loader: Any) -> Node | None:
        events: Iterator[Any] = yaml.parse(text, Loader=loader)
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
            elif isinstance(event, yaml.NodeEvent):
                self._add(event)
            elif isinstance(event, yaml.DocumentStartEvent) and self._documents:
                raise _problem("but found another document", event)
        return self._documents[0] if self._documents else None

    def _add(self, event: Any) -> None:
        line = event.start_mark.line + 1
        self._made += 1
        if self._made > self._most:
            raise TooMuch(line, f"this has more than {self._most // 2:,} values")
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise _problem(f"found undefined alias {event.anchor!r}", event)
            self._open[-1].append(self._anchors[event.anchor])
            return
        node = _node_of(event, line)
        self._open[-1].append(node)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if node.items is not None:
            self._open.append(node.items)
            if len(self._open) > self._deepest + 2:
                raise TooMuch(line, f"this is nested more than {self._deepest} levels deep")


def _problem(what: str, event: Any) -> ComposerError:
    return ComposerError(None, None, what, event.start_mark)


def _node_of(event: yaml.NodeEvent, line: int) -> Node:
    if isinstance(event, yaml.ScalarEvent):
        return Node(line, event.tag, plain=event.style not in ("'", '"', "|", ">"), text=event.value)
    return Node(line, items=[], is_object=isinstance(event, yaml.MappingStartEvent))
