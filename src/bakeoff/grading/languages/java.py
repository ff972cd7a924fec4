"""Describe tests in Java: methods with `@Test` and assertions of JUnit 5 or AssertJ."""

import re
from collections.abc import Iterator

import tree_sitter_java
from tree_sitter import Node

from bakeoff.grading.languages.reader import Assertion, Definition, Language, replaced
from bakeoff.grading.syntax import both_ways, text_of, walk
from bakeoff.grading.written_tests import Comparison

_OPPOSITES = both_ways(
    {
        "isTrue": "isFalse",
        "isEqualTo": "isNotEqualTo",
        "isEmpty": "isNotEmpty",
        "isNull": "isNotNull",
        "isPresent": "isNotPresent",
        "isInstanceOf": "isNotInstanceOf",
        "contains": "doesNotContain",
        "startsWith": "doesNotStartWith",
        "assertTrue": "assertFalse",
        "assertEquals": "assertNotEquals",
        "assertNull": "assertNotNull",
        "assertSame": "assertNotSame",
    }
)
_EXPECTING = re.compile(
    r"isEqualTo(?:IgnoringCase)?|isSameAs|contains(?:Exactly|Only)\w*|hasSize|hasMessage|hasToString|hasValue|withMessage"
    r"|isCloseTo|contains|containsEntry|startsWith|endsWith|hasMessageContaining|withMessageContaining"
)
_PARTS = re.compile(r"contains|containsEntry|startsWith|endsWith|\w+Containing")
_COMPARING = re.compile(r"assert(?:Array|Iterable|Lines)?(?:Equals|Same|Match)")
_THROWING = ("assertThatExceptionOfType", "assertThrows", "assertThrowsExactly")
_UNUSUAL = "java.util.zip.DataFormatException.class"  # answers do not raise it


def _definitions(root: Node) -> Iterator[tuple[bool, Definition]]:
    for node in walk(root):
        if node.type == "method_declaration":
            classes, around = list[str](), node.parent
            while around is not None:
                declared = around.type == "class_declaration"
                classes += [text_of(around.child_by_field_name("name"))] if declared else []
                around = around.parent
            given = node.child_by_field_name("parameters")
            parameters = [text_of(each.child_by_field_name("name")) for each in given.named_children] if given else []
            name = text_of(node.child_by_field_name("name"))
            modifiers = next((child for child in node.children if child.type == "modifiers"), None)
            is_test = re.search(r"@Test\b", text_of(modifiers)) is not None
            qualified = f"{'$'.join(reversed(classes))} > {name}" if is_test else name
            yield is_test, Definition(qualified, node, tuple(parameters))


def _assertions(node: Node) -> Iterator[Assertion]:
    for each in walk(node):
        if each.type != "method_invocation":
            continue
        name, given = each.child_by_field_name("name"), each.child_by_field_name("arguments")
        word, arguments = text_of(name), given.named_children if given is not None else []
        flip = replaced(name, _OPPOSITES[word]) if name is not None and word in _OPPOSITES else None
        if _COMPARING.fullmatch(word) and len(arguments) > 1:
            close = len(arguments) > 2 and arguments[2].type.startswith("decimal_floating")
            yield Assertion(tuple((each,) for each in arguments[:2]), flip, "close" if close else "equal")
        elif word in _THROWING and arguments:
            yield Assertion((), opposite=replaced(arguments[0], _UNUSUAL))
        elif (actual := _asserted(each)) is not None:
            expected = tuple((each,) for each in arguments) if _EXPECTING.fullmatch(word) else ()
            how: Comparison = "close" if word == "isCloseTo" else "part" if _PARTS.fullmatch(word) else "equal"
            operands = expected[:1] if how == "close" else expected
            yield Assertion(operands, flip if operands else None, how, (actual,), None if operands else flip)
        elif flip is not None and word.startswith("assert"):
            yield Assertion((), opposite=flip)


def _asserted(call: Node) -> Node | None:
    """Return the argument of the `assertThat…` that begins a chain of calls."""
    inner = call.child_by_field_name("object")
    while inner is not None and inner.type == "method_invocation":
        given = inner.child_by_field_name("arguments")
        if text_of(inner.child_by_field_name("name")).startswith("assertThat"):
            return given.named_children[0] if given is not None and given.named_children else inner
        inner = inner.child_by_field_name("object")
    return None


JAVA = Language(
    grammar=tree_sitter_java,
    literals={
        "string_literal": "text",
        "character_literal": "container",
        **dict.fromkeys(("decimal_integer_literal", "decimal_floating_point_literal"), "number"),
        **dict.fromkeys(("true", "false"), "boolean"),
    },
    definitions=_definitions,
    assertions=_assertions,
    bindings={"variable_declarator": ("name", "value")},
    builds=re.compile(
        r"(?:[\w.]*\.)?(?:of|ofEntries|entry|asList|singletonList|emptyList|emptyMap|emptySet|valueOf|empty|copyOf|join)"
        r"|new|(?:ArrayList|HashSet|LinkedList|BigInteger|BigDecimal|TreeSet|int|char|String)"
    ),
    makes=re.compile(r"[A-Z]\w*"),
)
