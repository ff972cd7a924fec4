"""Parse sources with tree-sitter, find the tests in them, and change them.

Python, JavaScript and TypeScript have much in common. A `Dialect` holds the differences.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from tree_sitter import Language, Node, Parser

Kind: TypeAlias = Literal["text", "number", "boolean", "nothing", "pattern", "container"]


class SyntaxEdit(NamedTuple):
    """Replaces the bytes from `start` to `end` of a file by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names that the grammar of a language uses."""

    kinds: Mapping[str, Kind]
    calls: str
    argument_lists: str
    containers: frozenset[str]
    assignments: frozenset[str]


PYTHON = Dialect(
    kinds={
        **dict.fromkeys(("string", "concatenated_string"), "text"),
        **dict.fromkeys(("integer", "float"), "number"),
        **dict.fromkeys(("true", "false"), "boolean"),
        "none": "nothing",
    },
    calls="call",
    argument_lists="argument_list",
    containers=frozenset({"list", "tuple", "set", "dictionary"}),
    assignments=frozenset({"assignment"}),
)
_JAVASCRIPT = Dialect(
    kinds={
        **dict.fromkeys(("string", "template_string"), "text"),
        "number": "number",
        **dict.fromkeys(("true", "false"), "boolean"),
        **dict.fromkeys(("null", "undefined"), "nothing"),
        "regex": "pattern",
    },
    calls="call_expression",
    argument_lists="arguments",
    containers=frozenset({"array", "object"}),
    assignments=frozenset({"variable_declarator", "assignment_expression"}),
)
_TEST_CALLS = frozenset({"it", "test", "fit", "xit", "xtest"})


def both_ways(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return a mapping of each word to its counterpart, in both directions."""
    return {**pairs, **{there: here for here, there in pairs.items()}}


def nodes_of_tests(path: str, text: str) -> list[Node]:
    """Return the syntax nodes of a file's tests with their decorators, in order."""
    dialect = dialect_of(path)
    if dialect is None:
        return []
    root = parse(path, text)
    return [node for _, node in python_tests(root)] if dialect is PYTHON else list(_javascript_tests(root))


def dialect_of(path: str) -> Dialect | None:
    """Return the dialect of a file by its suffix, or None for another language."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        return PYTHON
    return _JAVASCRIPT if re.fullmatch(r"\.[cm]?[jt]sx?", suffix) else None


def parse(path: str, text: str) -> Node:
    """Return the syntax tree of a file. The suffix of the path determines the language."""
    return _parser(PurePosixPath(path).suffix).parse(to_bytes(text)).root_node


def to_bytes(text: str) -> bytes:
    """Encode source code, because positions in syntax trees count bytes. Keep lone surrogates."""
    return text.encode(errors="surrogatepass")


def with_edits(text: str, edits: Iterable[SyntaxEdit]) -> str:
    """Return a source with edits applied. They must not overlap."""
    source = to_bytes(text)
    for start, end, instead in sorted(edits, reverse=True):
        source = source[:start] + to_bytes(instead) + source[end:]
    return source.decode(errors="surrogatepass")


@cache
def _parser(suffix: str) -> Parser:
    import tree_sitter_python
    import tree_sitter_typescript

    if suffix == ".py":
        return Parser(Language(tree_sitter_python.language()))
    if suffix in (".tsx", ".jsx"):
        return Parser(Language(tree_sitter_typescript.language_tsx()))
    return Parser(Language(tree_sitter_typescript.language_typescript()))


def python_tests(node: Node, prefix: str = "") -> Iterator[tuple[str, Node]]:
    """Yield the qualified name and the node of each test below a node, with decorators."""
    for child in node.named_children:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is None or inner.type not in ("function_definition", "class_definition"):
            if child.type in ("if_statement", "block", "try_statement", "else_clause"):
                yield from python_tests(child, prefix)
            continue
        name = text_of(inner.child_by_field_name("name"))
        if inner.type == "class_definition":
            yield from python_tests(inner.child_by_field_name("body") or inner, f"{prefix}{name} > ")
        elif name.startswith("test"):
            yield f"{prefix}{name}", child


def _javascript_tests(node: Node) -> Iterator[Node]:
    if node.type == "call_expression" and called_base(node) in _TEST_CALLS and _function_in(node):
        yield node
        return
    for child in node.named_children:
        yield from _javascript_tests(child)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all its descendants."""
    yield node
    for child in node.children:
        yield from walk(child)


def called_base(node: Node) -> str:
    """Return the first name in a chain of calls and members: `it` in `it.each(table)`."""
    inner: Node | None = node
    while inner is not None and inner.type in ("call_expression", "member_expression", "non_null_expression"):
        inner = inner.child_by_field_name("function") or inner.child_by_field_name("object") or inner.named_child(0)
    return text_of(inner) if inner is not None and inner.type == "identifier" else ""


def called_name(call: Node) -> str:
    """Return the last name before the arguments of a call: `toBe` in `expect(x).toBe(1)`."""
    callee = call.child_by_field_name("function")
    if callee is None:
        return ""
    name = callee.child_by_field_name("property") or callee.child_by_field_name("attribute")
    return text_of(name or callee)[:60]


def _function_in(call: Node) -> bool:
    given = call.child_by_field_name("arguments")
    kinds = ("arrow_function", "function_expression", "function")
    return given is not None and any(child.type in kinds for child in given.named_children)


def ancestors(node: Node, top: Node | None = None) -> Iterator[tuple[Node, Node]]:
    """Yield the ancestors of a node, innermost first, each after its child on the path.

    `top` is the ancestor to stop before.
    """
    child, parent = node, node.parent
    while parent is not None and parent != top:
        yield child, parent
        child, parent = parent, parent.parent


def text_of(node: Node | None) -> str:
    """Return the source of a node; empty for None."""
    return (node.text or b"").decode(errors="surrogatepass") if node is not None else ""
