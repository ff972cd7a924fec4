"""Describe tests in C++: `TEST_CASE` of Catch2."""

import re
from collections.abc import Iterator

import tree_sitter_cpp
from tree_sitter import Node

from bakeoff.grading.languages.reader import Assertion, Definition, Language, negated, replaced
from bakeoff.grading.syntax import both_ways, text_of, walk

_COMPARING = {"==": "!=", "!=": "=="}
_OPPOSITES = both_ways(
    {
        "REQUIRE": "REQUIRE_FALSE",
        "CHECK": "CHECK_FALSE",
        "REQUIRE_THROWS": "REQUIRE_NOTHROW",
        "CHECK_THROWS": "CHECK_NOTHROW",
    }
)
_UNUSUAL = "std::bad_alloc"  # answers do not raise it
_TITLE = re.compile(r'"((?:\\.|[^"\\])*)"')


def _definitions(root: Node) -> Iterator[tuple[bool, Definition]]:
    for node in walk(root):
        if node.type == "compound_statement" and (before := node.prev_named_sibling) is not None:
            title = _TITLE.search(text_of(before))
            if text_of(before).startswith("TEST_CASE") and title is not None:
                yield True, Definition(re.sub(r"\\(.)", r"\1", title[1]), node)
        elif node.type == "function_definition" and (declared := node.child_by_field_name("declarator")) is not None:
            given = declared.child_by_field_name("parameters")
            declarators = [each.child_by_field_name("declarator") for each in given.named_children] if given else []
            names = [text_of(each).lstrip("&* ") for each in declarators]
            yield False, Definition(text_of(declared.child_by_field_name("declarator")), node, tuple(names))


def _assertions(node: Node) -> Iterator[Assertion]:
    for each in walk(node):
        name = each.child_by_field_name("function") if each.type == "call_expression" else None
        given = each.child_by_field_name("arguments") if name is not None else None
        if name is None or given is None or not given.named_children:
            continue
        word, (first, *more) = text_of(name), given.named_children
        if (
            word in ("REQUIRE", "CHECK")
            and first.type == "binary_expression"
            and text_of(first.children[1]) in _COMPARING
        ):
            left, operator, right = first.children
            equal, close = text_of(operator) == "==", "Approx" in text_of(first)
            operands = ((left,), (right,)) if equal else ()
            flip = negated((first,)) if close else replaced(operator, _COMPARING[text_of(operator)])
            yield Assertion(operands, flip, "close" if close else "equal")
        elif word in ("REQUIRE_THAT", "CHECK_THAT") and more:
            matcher = more[0].child_by_field_name("arguments")
            exact = re.search(r"(Equals|VectorContains)\W*$", text_of(more[0].child_by_field_name("function")))
            if matcher is not None and matcher.named_children:
                expected = tuple((each,) for each in matcher.named_children[:1])
                yield Assertion(expected, comparison="equal" if exact else "close", actual=(first,))
        elif word.endswith(("_THROWS_AS", "_THROWS_WITH")) and more:
            kind = word.endswith("_AS")
            edit = replaced(more[0], _UNUSUAL) if kind else None
            yield Assertion(() if kind else ((more[0],),), actual=(first,), opposite=edit)
        elif word in _OPPOSITES:
            yield Assertion((), opposite=replaced(name, _OPPOSITES[word]))


CPP = Language(
    grammar=tree_sitter_cpp,
    literals={
        **dict.fromkeys(("string_literal", "concatenated_string", "raw_string_literal"), "text"),
        "char_literal": "container",
        "number_literal": "number",
        **dict.fromkeys(("true", "false"), "boolean"),
    },
    definitions=_definitions,
    assertions=_assertions,
    bindings={"init_declarator": ("declarator", "value")},
    builds=re.compile(
        r"(?:std::|Catch::)*(?:string|vector|map|set|pair|make_pair|tuple|make_tuple|array|optional|Approx|margin|epsilon)"
    ),
    makes=re.compile(r"(?:\w+::)*(?:[A-Z]\w*|\w+)"),
)
