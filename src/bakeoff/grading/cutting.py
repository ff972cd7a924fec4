"""Remove tests from test files, so that a share of them can be hidden from subjects."""

import random
from collections.abc import Collection, Iterable, Mapping

from tree_sitter import Node

from bakeoff.grading.syntax import SyntaxEdit, called_base, nodes_of_tests, parse, text_of, to_bytes, walk, with_edits

_BLOCKS = ("program", "module", "statement_block", "block")
_SUITES = frozenset({"describe", "xdescribe", "fdescribe", "suite"})
_CLASSES = ("class_definition", "decorated_definition")
_COMPOUND = ("class_definition", "if_statement", "else_clause", "for_statement")


def hide_share(files: Mapping[str, str], tests: Iterable[str], share: float, seed: str) -> dict[str, str]:
    """Return the changed test files, without a random share of their tests.

    The same seed always hides the same tests, and a larger share hides more in addition. At least
    one test is hidden and one stays; a single test stays. Tests made by a loop or a table count
    once.

    Args:
        files: All files of the case.
        tests: The names of its test files.
        share: The share of the tests to hide.
        seed: Decides which tests are hidden.
    """
    known = [(name, index) for name in tests for index in range(len(nodes_of_tests(name, files[name])))]
    count = max(1, min(len(known) - 1, round(share * len(known))))
    if not share or len(known) < 2:
        return {}
    drawn = random.Random(seed).sample(known, len(known))[:count]  # noqa: S311 - it must be the same every time
    hidden: dict[str, set[int]] = {}
    for name, index in drawn:
        hidden.setdefault(name, set()).add(index)
    return {name: cut_tests(name, files[name], hidden[name]) for name in tests if name in hidden}


def cut_tests(path: str, text: str, hidden: Collection[int]) -> str:
    """Return a test file without some tests and their decorators, tables and comments.

    A suite or class is removed if none of its tests is left.

    Args:
        path: The name of the file, which determines its language.
        text: The file.
        hidden: The tests to remove, by their positions in the result of `find_tests`.
    """
    nodes = nodes_of_tests(path, text)
    source = to_bytes(text)
    kept = [node for index, node in enumerate(nodes) if index not in hidden]
    edits: dict[int, SyntaxEdit] = {}
    for index in sorted(hidden):
        part = _statement(nodes[index])
        while (around := _suite_around(part)) is not None and not any(
            around.start_byte <= other.start_byte and other.end_byte <= around.end_byte for other in kept
        ):
            part = around
        start, end = _lines_of(part, source)
        edits[start] = SyntaxEdit(start, end, "")
    return _filled(path, with_edits(text, edits.values()))


def _statement(node: Node) -> Node:
    while node.parent is not None and node.parent.type not in _BLOCKS:
        node = node.parent
    return node


def _suite_around(part: Node) -> Node | None:
    """Return the statement of the suite or class around a statement, or None."""
    block = part.parent
    if block is None or block.parent is None:
        return None
    owner = block.parent
    if owner.type in _CLASSES:
        others = [child for child in block.named_children if child.type != "comment" and child != part]
        inner = [child.child_by_field_name("definition") or child for child in others]
        tests = all(text_of(child.child_by_field_name("name")).startswith("test") for child in inner)
        whole = owner.parent if owner.parent is not None and owner.parent.type == "decorated_definition" else owner
        return whole if tests else None
    statement = _statement(owner)
    call = statement.named_child(0)
    return statement if call is not None and called_base(call) in _SUITES else None


def _lines_of(part: Node, source: bytes) -> tuple[int, int]:
    """Return where a statement's lines begin and end in bytes, with comments and blank lines."""
    first = part
    while (before := first.prev_sibling) is not None and before.type == "comment":
        alone = source[_line_start(source, before.start_byte) : before.start_byte].strip() == b""
        if not alone or before.end_point[0] + 1 != first.start_point[0]:
            break
        first = before
    start, end = _line_start(source, first.start_byte), part.end_byte
    if source[start : first.start_byte].strip():
        return first.start_byte, end  # other code is on the same line
    rest = source.find(b"\n", end)
    line = source[end:] if rest < 0 else source[end:rest]
    if line.strip(b" \t\r;") and not line.strip().startswith((b"//", b"#")):
        return start, end
    end = len(source) if rest < 0 else rest + 1
    while end < len(source) and not source[end : _line_end(source, end)].strip():
        end = _line_end(source, end)
    return start, end


def _line_start(source: bytes, place: int) -> int:
    return source.rfind(b"\n", 0, place) + 1


def _line_end(source: bytes, place: int) -> int:
    found = source.find(b"\n", place)
    return len(source) if found < 0 else found + 1


def _filled(path: str, text: str) -> str:
    """Put `pass` into Python blocks that would be empty."""
    if not path.endswith(".py"):
        return text
    edits = [
        SyntaxEdit(node.end_byte, node.end_byte, " pass")
        for node in walk(parse(path, text))
        if node.type == ":" and node.parent is not None and node.parent.type in _COMPOUND
        if node.next_named_sibling is None or not node.next_named_sibling.named_child_count
    ]
    return with_edits(text, edits)
