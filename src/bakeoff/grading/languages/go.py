"""Describe tests in Go: functions `Test…` that call `t.Error` or `t.Fatal`, and tables."""

import re
from collections import Counter
from collections.abc import Iterator

import tree_sitter_go
from tree_sitter import Node

from bakeoff.grading.languages.reader import (
    Assertion,
    Definition,
    Language,
    Operand,
    SuiteReader,
    negated,
    replaced,
)
from bakeoff.grading.syntax import text_of, walk
from bakeoff.grading.written_tests import TestSource, Value

_COMPARING = {"==": "!=", "!=": "=="}
_FAILS = re.compile(r"\bt\w*\.(?:Error|Fatal|Fail)")
_EXPECTS = re.compile(r"err|want|expect|exp\b|ok|valid|fail|panic|should", re.IGNORECASE)


def _definitions(root: Node) -> Iterator[tuple[bool, Definition]]:
    for node in root.named_children:
        if node.type == "function_declaration":
            name, given = text_of(node.child_by_field_name("name")), node.child_by_field_name("parameters")
            declared = [each.children_by_field_name("name") for each in given.named_children] if given else []
            parameters = tuple(text_of(each) for names in declared for each in names)
            is_test = re.match(r"Test(?![a-z])", name) is not None and "testing.T" in text_of(given)
            yield is_test, Definition(name, node, parameters)


def _conditions(node: Node) -> Iterator[Node]:
    """Yield the conditions of `if` or `case` under which a test fails."""
    for each in walk(node):
        if each.type == "if_statement":
            condition, then = each.child_by_field_name("condition"), each.child_by_field_name("consequence")
            if condition is not None and _FAILS.search(text_of(then)) and not re.search(r"\bif\b", text_of(then)):
                yield condition
        elif each.type == "expression_case" and (value := each.child_by_field_name("value")) is not None:
            switch = each.parent
            if switch is not None and switch.child_by_field_name("value") is None and _FAILS.search(text_of(each)):
                yield value.named_children[0] if value.type == "expression_list" else value


def _assertions(node: Node) -> Iterator[Assertion]:
    for condition in _conditions(node):
        found = [each for part in _alternatives(condition) for each in _compared(part)]
        first, *more = found or [Assertion(())]
        yield first if first.flip or first.opposite else first._replace(opposite=negated((condition,)))
        yield from more


def _alternatives(condition: Node) -> Iterator[Node]:
    """Yield the parts of `a || b`. Each of them alone fails the test."""
    if condition.type == "parenthesized_expression":
        yield from _alternatives(condition.named_children[0])
    elif condition.type == "binary_expression" and text_of(condition.children[1]) == "||":
        yield from (part for side in condition.children[::2] for part in _alternatives(side))
    else:
        yield condition


def _compared(part: Node) -> Iterator[Assertion]:
    if part.type == "binary_expression" and text_of(part.children[1]) in _COMPARING:
        left, operator, right = part.children
        edit, absent = replaced(operator, _COMPARING[text_of(operator)]), text_of(right) in ("nil", "true", "false")
        operands: tuple[Operand, ...] = ((left,), (right,)) if text_of(operator) == "!=" and not absent else ()
        yield Assertion(operands, None if absent else edit, opposite=edit if absent else None)
    elif part.type == "binary_expression" and "Abs(" in text_of(part):
        sides = [each for each in walk(part) if each.type == "binary_expression" and text_of(each.children[1]) == "-"]
        yield from (Assertion(((each.children[0],), (each.children[2],)), None, "close") for each in sides[:1])
    elif part.type == "unary_expression" and (call := part.child_by_field_name("operand")) is not None:
        given = call.child_by_field_name("arguments")
        if given is not None and "Equal" in text_of(call.child_by_field_name("function")):
            yield Assertion(tuple((each,) for each in given.named_children[:2]), negated((part,)))


# --- tables -------------------------------------------------------------------------------------------------------


def _expand(reader: SuiteReader, file: str, test: Definition) -> Iterator[tuple[str, TestSource]]:
    """Yield a test for each row of a table or, without subtests, one test for all rows."""
    loops = [each for each in walk(test.node) if each.type == "range_clause"]
    for loop in loops:
        left, right = loop.child_by_field_name("left"), loop.child_by_field_name("right")
        if left is None or right is None or loop.parent is None:
            continue
        names = [text_of(each) for each in left.named_children]
        found = next(_tables(reader, file, test.node, right), None)
        fields = list(_expected_fields(reader, loop.parent, names[-1])) if found else []
        if found is None or not fields:
            continue
        where, table = found
        rows = [_row_values(reader, row, fields, text_of(right)) for row in _rows(table)]
        title = _title(loop.parent, names)
        if title is None:
            yield where, TestSource(test.name, None, tuple(value for row in rows for value in row), (), ())
            continue
        seen = Counter[str]()
        for row, values in zip(_rows(table), rows, strict=True):
            name = _subtest_name(row, title)
            seen[name] += 1
            unique = name if seen[name] == 1 else f"{name}#{seen[name] - 1:02}"
            yield where, TestSource(f"{test.name}/{unique}", None, values, (), ())


def _tables(reader: SuiteReader, file: str, within: Node, table: Node) -> Iterator[tuple[str, Node]]:
    """Yield the literal of a table and its file. The table may be a variable of any test file."""
    if table.type == "composite_literal":
        yield file, table
    local = reader.resolved((table,), within)[0]
    if local != table and local.type == "composite_literal":
        yield file, local
    for name, root in reader.roots.items():
        for declared in root.named_children:
            if declared.type == "var_declaration":
                found = reader.resolved((table,), declared)[0]
                if found != table and found.type == "composite_literal":
                    yield name, found


def _rows(table: Node) -> Iterator[Node]:
    """Yield the rows of a table. The rows of a map include the keys."""
    body = table.child_by_field_name("body")
    yield from (each for each in body.named_children if each.type != "comment") if body is not None else ()


def _fields(row: Node) -> dict[str, Node]:
    """Return the values of a row by field, as named by the row itself or by its struct."""
    body = next((each for each in walk(row) if each.type == "literal_value"), row)
    named = {
        text_of(each.child_by_field_name("key")): value
        for each in body.named_children
        if each.type == "keyed_element" and (value := each.child_by_field_name("value")) is not None
    }
    if named:
        return named
    kind = row.parent.parent.child_by_field_name("type") if row.parent is not None and row.parent.parent else None
    top = row
    while top.parent is not None:
        top = top.parent
    struct = _struct_of(kind, top)
    names = [text_of(name) for name in struct]
    return dict(zip(names, [each for each in body.named_children if each.type != "comment"], strict=False))


def _struct_of(kind: Node | None, root: Node) -> list[Node]:
    """Return the field names of a struct, defined in place or by a named type of the file."""
    if kind is None:
        return []
    declared = [each for each in walk(kind) if each.type == "field_declaration"]
    if not declared:
        specs = [each for each in walk(root) if each.type == "type_spec"]
        wanted = {text_of(each) for each in walk(kind) if each.type == "type_identifier"}
        declared = [
            each
            for spec in specs
            if text_of(spec.child_by_field_name("name")) in wanted
            for each in walk(spec)
            if each.type == "field_declaration"
        ]
    return [name for each in declared for name in each.children_by_field_name("name")]


def _expected_fields(reader: SuiteReader, loop: Node, row: str) -> Iterator[str]:
    """Yield the fields of a row that a test compares with, the most certain ones last."""
    operands = [each for found in (*_assertions(loop), *reader.by_helpers(loop)) for each in found.operands if each]
    compared = [text_of(reader.resolved(each, loop)[0]) for each in operands]
    conditions = [text_of(each) for each in _conditions(loop)]
    conditions += [text_of(each.child_by_field_name("condition")) for each in walk(loop) if each.type == "if_statement"]
    prefix = re.escape(row)
    asked = [name for text in conditions for name in re.findall(rf"\b{prefix}\.(\w+)", text) if _EXPECTS.search(name)]
    sure = [found[1] or "" for text in compared if (found := re.fullmatch(rf"{prefix}(?:\.(\w+))?", text))]
    yield from dict.fromkeys([*(name for name in asked if name not in sure), *sure])


def _row_values(reader: SuiteReader, row: Node, fields: list[str], table: str) -> tuple[Value, ...]:
    given = {"": row.child_by_field_name("value") or row, **_fields(row)}
    bare = {name: node.named_children[0] if node.type == "literal_element" else node for name, node in given.items()}
    operands = [(name, (bare[name],)) for name in fields if name in bare]
    return tuple(
        value
        for name, operand in operands
        if reader.is_written_out(operand)
        for value in reader.values_of(operand, f"{table[:60]}.{name}")
    )


def _title(loop: Node, names: list[str]) -> str | None:
    """Return the field with the name of a row's subtest: empty if unknown, None if not used."""
    found = re.search(r"\.Run\(\s*([\w.]+)\s*,", text_of(loop))
    if found is None:
        return "" if ".Run(" in text_of(loop) else None
    variable, _, member = found[1].partition(".")
    return member if variable == names[-1] else "key" if not member and variable == names[0] else ""


def _subtest_name(row: Node, title: str) -> str:
    """Return the name that Go gives to the subtest of a row."""
    key = row.child_by_field_name("key") if title == "key" else None
    node = key or _fields(row).get(title)
    text = text_of(node).strip('"`')
    return re.sub(r"\s", "_", re.sub(r"\\(.)", r"\1", text))


GO = Language(
    grammar=tree_sitter_go,
    literals={
        **dict.fromkeys(("interpreted_string_literal", "raw_string_literal"), "text"),
        "rune_literal": "container",
        **dict.fromkeys(("int_literal", "float_literal"), "number"),
        **dict.fromkeys(("true", "false"), "boolean"),
    },
    definitions=_definitions,
    assertions=_assertions,
    bindings={
        "short_var_declaration": ("left", "right"),
        "var_spec": ("name", "value"),
        "const_spec": ("name", "value"),
    },
    builds=re.compile(
        r"(?:errors\.New|fmt\.Errorf|string|float64|float32|u?int\d*|byte|rune|strings\.Repeat|time\.Date)"
    ),
    makes=re.compile(r"New\w*"),
    expand=_expand,
)
