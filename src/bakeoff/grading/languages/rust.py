"""Describe tests in Rust: functions with `#[test]` and assertion macros."""

import re
from collections.abc import Iterator

import tree_sitter_rust
from tree_sitter import Node

from bakeoff.grading.languages.reader import (
    Assertion,
    Definition,
    Language,
    Operand,
    negated,
    replaced,
    span,
)
from bakeoff.grading.syntax import both_ways, text_of, walk

_COMPARING = both_ways({"assert_eq": "assert_ne"})


def _definitions(root: Node) -> Iterator[tuple[bool, Definition]]:
    for node in walk(root):
        if node.type == "function_item":
            modules, around = list[str](), node.parent
            while around is not None:
                modules += [text_of(around.child_by_field_name("name"))] if around.type == "mod_item" else []
                around = around.parent
            name = text_of(node.child_by_field_name("name"))
            given = node.child_by_field_name("parameters")
            parameters = (
                [text_of(each.child_by_field_name("pattern")) for each in given.named_children] if given else []
            )
            is_test = any(re.fullmatch(r"#\[test\]", text_of(each)) for each in _attributes(node))
            qualified = "::".join([*reversed(modules), name]) if is_test else name
            yield is_test, Definition(qualified, node, tuple(parameters))


def _attributes(node: Node) -> Iterator[Node]:
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment"):
        yield before
        before = before.prev_named_sibling


def _assertions(node: Node) -> Iterator[Assertion]:
    for each in walk(node):
        if each.type != "macro_invocation":
            continue
        macro, tokens = each.child_by_field_name("macro"), each.children[-1]
        name, given = text_of(macro), _arguments(tokens)
        if macro is not None and name in _COMPARING and len(given) > 1:
            equal = name == "assert_eq"
            yield Assertion(given[:2] if equal else (), replaced(macro, _COMPARING[name]))
        elif name == "assert" and given:
            at = next((at for at, token in enumerate(given[0]) if token.type == "=="), 0)
            edit = negated(given[0])
            yield Assertion((given[0][:at], given[0][at + 1 :]), edit) if at else Assertion((), opposite=edit)


def _arguments(tokens: Node) -> tuple[Operand, ...]:
    """Split the tokens between the brackets of a macro at the commas."""
    groups: list[list[Node]] = [[]]
    for child in tokens.children[1:-1]:
        if child.type == ",":
            groups.append([])
        else:
            groups[-1].append(child)
    return tuple(tuple(group) for group in groups if group and span(tuple(group)).strip())


RUST = Language(
    grammar=tree_sitter_rust,
    literals={
        **dict.fromkeys(("string_literal", "raw_string_literal"), "text"),
        "char_literal": "container",
        **dict.fromkeys(("integer_literal", "float_literal"), "number"),
        "boolean_literal": "boolean",
    },
    definitions=_definitions,
    assertions=_assertions,
    bindings={"let_declaration": ("pattern", "value")},
    builds=re.compile(
        r"(?:[\w:.]*\.)?(?:to_string|to_owned|into|to_vec|iter|into_iter|cloned|copied|collect|as_ref|as_str|unwrap)"
        r"|vec|format|(?:\w+::)*(?:String|Vec|Box|Rc|HashMap|HashSet|BTreeMap|BTreeSet|VecDeque)::(?:from|new)|(?:\w+::)*[A-Z]\w*"
    ),
    makes=re.compile(r"(?:\w+::)*[A-Z]\w*::(?:new|from)"),
    opposites=lambda test: (replaced(each, "") for each in _attributes(test.node) if "should_panic" in text_of(each)),
)
