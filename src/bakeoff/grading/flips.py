"""Turn assertions into their opposites: the edits of a test that must fail where the test passes."""

import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bakeoff.grading.syntax import SyntaxEdit, called_base, called_name, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_OPPOSITES = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
_OPPOSITE_METHODS = {
    "assertEqual": "assertNotEqual",
    "assertTrue": "assertFalse",
    "assertIn": "assertNotIn",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIsInstance": "assertNotIsInstance",
    "assertRegex": "assertNotRegex",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual",
    "assertListEqual": "assertNotEqual",
    "assertDictEqual": "assertNotEqual",
    "assertCountEqual": "assertNotEqual",
}
_OPPOSITE_METHODS |= {there: here for here, there in _OPPOSITE_METHODS.items() if there != "assertNotEqual"}
_OPPOSITE_METHODS["assertNotEqual"] = "assertEqual"
_OPPOSITE_MATCHERS = {
    "toBeTruthy": "toBeFalsy",
    "toBeDefined": "toBeUndefined",
    "toBeDisabled": "toBeEnabled",
    "toBeValid": "toBeInvalid",
    "toBeGreaterThan": "toBeLessThanOrEqual",
    "toBeLessThan": "toBeGreaterThanOrEqual",
}
_OPPOSITE_MATCHERS |= {there: here for here, there in _OPPOSITE_MATCHERS.items()}
_EXCEPTIONS = ("TypeError", "KeyError", "ValueError")
_UNUSUAL = "ZeroDivisionError"  # hardly an exception of a solution derives from it


def python_flips(node: "Node") -> Iterator[SyntaxEdit]:
    """Yield, for each assertion below a node, the edits that turn it into its opposite."""
    if node.type == "assert_statement" and (asserted := node.named_child(0)) is not None:
        yield from _flipped(asserted)
        return
    callee = node.child_by_field_name("function") if node.type == "call" else None
    name = callee.child_by_field_name("attribute") if callee is not None else None
    if name is not None and (opposite := _OPPOSITE_METHODS.get(text_of(name))):
        yield SyntaxEdit(name.start_byte, name.end_byte, opposite)
        return
    given = node.child_by_field_name("arguments")
    if given is not None and called_name(node) in ("raises", "assertRaises", "assertRaisesRegex"):
        wanted = given.named_child(0)
        others = [] if wanted is None else [each for each in _EXCEPTIONS if not _is_a(each, text_of(wanted))]
        chosen = [_UNUSUAL, others[0]] if others else []
        yield from (SyntaxEdit(wanted.start_byte, wanted.end_byte, each) for each in chosen if wanted is not None)
        return
    for child in node.named_children:
        yield from python_flips(child)


def javascript_flips(node: "Node") -> Iterator[SyntaxEdit]:
    """Yield, for each assertion below a node, the edit that turns it into its opposite."""
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    matcher = callee.child_by_field_name("property") if callee is not None else None
    before = callee.child_by_field_name("object") if callee is not None else None
    if matcher is not None and before is not None and called_base(node) == "expect" and before.type != "identifier":
        negated = before.child_by_field_name("property") if before.type == "member_expression" else None
        whole = before.child_by_field_name("object") if negated is not None else None
        if negated is not None and whole is not None and text_of(negated) == "not":
            yield SyntaxEdit(whole.end_byte, negated.end_byte, "")
        elif (opposite := _OPPOSITE_MATCHERS.get(text_of(matcher))) is not None:
            yield SyntaxEdit(matcher.start_byte, matcher.end_byte, opposite)
        else:
            yield SyntaxEdit(before.end_byte, before.end_byte, ".not")
        return
    for child in node.named_children:
        yield from javascript_flips(child)


def _flipped(asserted: "Node") -> Iterator[SyntaxEdit]:
    """Yield the edit that turns the condition of an `assert` into its opposite."""
    if asserted.type == "not_operator" and (inner := asserted.child_by_field_name("argument")) is not None:
        yield SyntaxEdit(asserted.start_byte, inner.start_byte, "")
    elif asserted.type == "comparison_operator" and asserted.child_count == 3:
        operator = asserted.children[1]
        word = " ".join(text_of(operator).split())
        if word in _OPPOSITES:
            yield SyntaxEdit(operator.start_byte, operator.end_byte, _OPPOSITES[word])
    elif asserted.type in ("call", "identifier", "attribute", "subscript", "comparison_operator"):
        yield SyntaxEdit(asserted.start_byte, asserted.start_byte, "not ")
    elif asserted.type == "boolean_operator":
        yield SyntaxEdit(asserted.start_byte, asserted.end_byte, f"not ({text_of(asserted)})")


def _is_a(name: str, wanted: str) -> bool:
    """Tell whether `raises(wanted)`, of one exception or a tuple, also accepts the built-in exception of that name."""
    kinds = [getattr(builtins, word, None) for word in re.findall(r"\w+", wanted)]
    return any(isinstance(kind, type) and issubclass(getattr(builtins, name), kind) for kind in kinds)
