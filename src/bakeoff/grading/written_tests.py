"""Read tests from source: their values, their assertions, and the values that these expect.

Each assertion also gives edits to its opposite, which right answers fail. They are `opposites` if
an object that agrees with everything passes both (`<` and `>=`), or else `flips` (`==` and `!=`).
"""

import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tree_sitter import Node

from bakeoff.grading.syntax import (
    PYTHON,
    Dialect,
    Kind,
    SyntaxEdit,
    ancestors,
    both_ways,
    called_base,
    called_name,
    dialect_of,
    nodes_of_tests,
    parse,
    python_tests,
    text_of,
    walk,
)

EXPECTED, ASSERTED, GIVEN = 0, 1, 2
"""Ranks of a value: what an assertion expects, another part of an assertion, and anywhere else in the test."""

Comparison: TypeAlias = Literal["equal", "made", "close", "part", "true", "false", "none"]
"""How an assertion compares a value: exactly, within a tolerance, as a part of a text, or not at all.

With "made", the value is an input of what the answer itself makes, which is expected. With "true" and "false" it is an
input of something that must hold, or must not.
"""

_Opposite: TypeAlias = tuple[SyntaxEdit, bool]
"""An edit that turns an assertion into its opposite, and True if an object that agrees with everything passes both."""

_COMPUTED = frozenset({"interpolation", "template_substitution"})
_FRAGMENTS = frozenset({"string_fragment", "string_content"})
_SIGNS = frozenset({"unary_operator", "unary_expression"})
_FROM_IMPORT = re.compile(r"^[ \t]*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]+)", re.MULTILINE)
_RELATIVE_IMPORT = re.compile(r"import\b([^;'\"]*?)\bfrom\s*['\"]\.")
_WRAPPED = ("parenthesized_expression", "as_expression", "satisfies_expression")
_BUILDS = re.compile(r"(approx|[A-Z]\w*|date|time|datetime|timedelta)$")  # calls that create an expected value
# Never change bounds, collections or precisions: a right answer may satisfy both values.
_TOLERANCES = frozenset({"places", "delta", "rel", "abs", "rel_tol", "abs_tol", "tolerance", "timeout"})
_BOUNDS = re.compile(r"assert(Greater|Less|In$|Not)|toBe(Greater|Less)|toSatisfy|toBeOneOf")
_NO_SUBJECT = re.compile(r"$|assert|expect$|to[A-Z]|raises$|approx$|(len|list|sorted|str|repr|tuple|set|dict|round)$")
_TOLERANT = frozenset({"assertAlmostEqual", "toBeCloseTo", "approx", "isclose"})
_PARTS = re.compile(
    r"assert(Raises|Warns)?Regex|raises|match|search|toContain|toMatch(?!Object)|toHave(TextContent|Class|Style)"
    r"|(get|find|query)(All)?By"
)
_EXACT = re.compile(
    r"assert\w*(Equal|Is)$|to(Be|Equal|StrictEqual|MatchObject|HaveLength|HaveValue|HaveDisplayValue|HaveAttribute|HaveProperty"
    r"|HaveAccessibleName|HaveBeenCalledTimes|HaveBeenLastCalledWith|HaveBeenNthCalledWith|HaveReturnedWith)$"
)

_OPPOSITES = both_ways({"==": "!=", "<": ">=", ">": "<=", "in": "not in", "is": "is not"})
_OPPOSITE_METHODS = {
    **both_ways(
        {
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
        }
    ),
    **dict.fromkeys(("assertListEqual", "assertDictEqual", "assertCountEqual"), "assertNotEqual"),
}
_TRUTHS = {"assertTrue": True, "assertFalse": False}
_OPPOSITE_MATCHERS = both_ways(
    {
        "toBeTruthy": "toBeFalsy",
        "toBeDefined": "toBeUndefined",
        "toBeDisabled": "toBeEnabled",
        "toBeValid": "toBeInvalid",
        "toBeGreaterThan": "toBeLessThanOrEqual",
        "toBeLessThan": "toBeGreaterThanOrEqual",
    }
)
_AGREEING = frozenset({"<", ">=", ">", "<=", "is", "is not"}) | {
    name for name in _OPPOSITE_METHODS if re.match("assertIs(?!Inst)|assert(Greater|Less)", name)
}
"""Assertions that an object can pass in both forms by agreeing with everything (`<`), or cannot agree with (`is`)."""
_UNUSUAL = ("BufferError", "ChildProcessError")  # honest solutions hardly raise these


@dataclass(frozen=True, slots=True)
class Value:
    """A literal in a test. Values with the same `role`, or position, can replace each other."""

    start: int
    end: int
    text: str
    kind: Kind
    role: str
    rank: int
    comparison: Comparison = "none"
    subject: str = ""
    """The function that the assertion calls, such as `is_leap`. Values with the same subject are the most alike."""


@dataclass(frozen=True, slots=True)
class TestSource:
    """One test in source: a function in Python, a call of `it` or `test` in JavaScript."""

    __test__ = False  # keep pytest from collecting it

    name: str | None
    """The qualified name, as in `TestLeap > test_year`; None in JavaScript, where titles may be computed."""
    title_at: int | None
    """Where the text of the title begins, in JavaScript and if it is written out."""
    values: tuple[Value, ...]
    rows: tuple[tuple[Value, ...], ...]
    """The values of each row, if a table makes several tests out of this one."""
    flips: tuple[SyntaxEdit, ...]
    """Edits that negate an assertion. An object that agrees with everything passes the test and fails these."""
    expects_rows: bool = False
    """True if an assertion expects a value of the rows, which otherwise are only inputs."""
    opposites: tuple[SyntaxEdit, ...] = ()
    """Edits that expect the opposite without a negation. An object that agrees with everything passes these too."""


def find_tests(path: str, text: str) -> list[TestSource]:
    """Return the tests of a file in order.

    The result is empty for other languages, and for files nested too deeply to compile.
    """
    try:
        return _found_tests(path, text)
    except RecursionError:
        return []


def _found_tests(path: str, text: str) -> list[TestSource]:
    dialect = dialect_of(path)
    if dialect is None:
        return []
    if dialect is PYTHON:
        root = parse(path, text)
        own = frozenset(_imported_by_python(text))
        return [_TestReader(node, dialect, own).read_python(name) for name, node in python_tests(root)]
    own = frozenset(name for names in _RELATIVE_IMPORT.findall(text) for name in re.findall(r"[\w$]+", names))
    return [_TestReader(node, dialect, own).read_javascript() for node in nodes_of_tests(path, text)]


def _imported_by_python(text: str) -> Iterator[str]:
    """Yield the names that a test file imports from outside the standard library."""
    for module, names in _FROM_IMPORT.findall(text):
        if module.partition(".")[0] not in sys.stdlib_module_names | {"pytest"}:
            yield from re.findall(r"\w+", names)


class _TestReader:
    """A reader of the name, body and assertions of one test."""

    def __init__(self, node: Node, dialect: Dialect, own: frozenset[str]) -> None:
        self.node, self.dialect, self.own = node, dialect, own
        self.is_python = dialect is PYTHON
        self.tables = {
            text_of(table) if table.type == "identifier" else table.start_byte
            for loop in walk(node)
            if (table := self._table_of(loop)) is not None
        }
        """The tables in the test that a loop runs over, by name or place, if their last column is expected."""

    def _table_of(self, loop: Node) -> Node | None:
        table, body = loop.child_by_field_name("right"), loop.child_by_field_name("body")
        names = _names_in(loop.child_by_field_name("left"))
        if loop.type not in ("for_statement", "for_in_statement") or table is None or body is None or len(names) < 2:
            return None
        return _bare(table) if self._expects_last_of(names, body) else None

    def _in_last_column(self, node: Node) -> bool:
        """Return True if a value is in the last column of a table that the test loops over."""
        row, table, holder = None, node, node.parent
        while holder is not None and (holder.type in self.dialect.containers or holder.type in _WRAPPED):
            if holder.type not in _WRAPPED:
                row = table if table.type in self.dialect.containers else None
            table, holder = holder, holder.parent
        if row is None or holder is None or not row.named_children:
            return False
        name = holder.child_by_field_name("left" if self.is_python else "name")
        looped = table.start_byte in self.tables or (name is not None and text_of(name) in self.tables)
        return looped and row.named_children[-1].start_byte <= node.start_byte

    def read_python(self, name: str) -> TestSource:
        """Read the test in a function. `name` is its qualified name."""
        tables = [
            rows
            for decorator in self.node.children
            if decorator.type == "decorator" and "parametrize" in text_of(decorator)
            for call in decorator.named_children
            if (given := call.child_by_field_name("arguments")) is not None
            for rows in given.named_children[1:2]
        ]
        definition = self.node.child_by_field_name("definition") or self.node
        body = definition.child_by_field_name("body") or definition
        rows, changes = self._rows(tables), list(_python_opposites(body))
        given = definition.child_by_field_name("parameters")
        expects = bool(rows) and self._expects_last_of(_names_in(given), body)
        return TestSource(name, None, self._values(body), rows, *_parted(changes, expects))

    def read_javascript(self) -> TestSource:
        """Read the test in a call of `it` or `test`."""
        given = self.node.child_by_field_name("arguments")
        arguments = given.named_children if given is not None else []
        title = arguments[0] if arguments and arguments[0].type in ("string", "template_string") else None
        values = tuple(value for each in arguments[1:] for value in self._values(each))
        changes = [change for each in arguments[1:] for change in _javascript_opposites(each)]
        at = title.start_byte + 1 if title is not None else None
        rows = self._rows(self._javascript_tables())
        expects = bool(rows) and self._expects_last_of(self._javascript_parameters(), self.node)
        return TestSource(None, at, values, rows, *_parted(changes, expects))

    def _javascript_parameters(self) -> list[str]:
        """Return the names that a table binds: parameters of the test or of the loop."""
        given = self.node.child_by_field_name("arguments")
        functions = [each for each in (given.named_children if given is not None else []) if "function" in each.type]
        for function in functions:
            parameters = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
            if names := _names_in(parameters):
                return names
        for _, around in ancestors(self.node):
            if around.type == "for_in_statement":
                return _names_in(around.child_by_field_name("left"))
            if around.type == "arrow_function" and (
                names := _names_in(around.child_by_field_name("parameters") or around.child_by_field_name("parameter"))
            ):
                return names
        return []

    def _javascript_tables(self) -> list[Node]:
        """Return the arrays that make several tests: of `it.each`, a loop or `forEach`."""
        callee = self.node.child_by_field_name("function")
        given = callee.child_by_field_name("arguments") if callee is not None else None
        tables = [given.named_children[0]] if given is not None and given.named_children else []
        for _, around in ancestors(self.node):
            if around.type == "for_in_statement":
                tables += [found] if (found := around.child_by_field_name("right")) is not None else []
            elif around.type == "call_expression" and (over := around.child_by_field_name("function")) is not None:
                looped = over.child_by_field_name("object")
                inner = over.child_by_field_name("arguments")
                if text_of(over.child_by_field_name("property")) == "forEach" and looped is not None:
                    tables.append(looped)
                elif inner is not None and inner.named_children:  # describe.each(table)(…)
                    tables.append(inner.named_children[0])
        return [table for table in map(_bare, tables) if table.type == "array"]

    # --------------------------------------------------------------------------------------------------- values

    def _rows(self, tables: list[Node]) -> tuple[tuple[Value, ...], ...]:
        return tuple(
            values for table in tables[:1] for row in table.named_children if (values := self._values(row, table=True))
        )

    def _values(self, node: Node, *, table: bool = False) -> tuple[Value, ...]:
        return tuple(self._walk(node, table=table))

    def _walk(self, node: Node, *, table: bool) -> Iterator[Value]:
        is_message = node.type == "keyword_argument" and text_of(node.child_by_field_name("name")) in ("msg", "reason")
        if is_message or node.type in ("comment", "type_annotation", "decorator", "as_pattern_target"):
            return
        kind = self._kind(node)
        if (
            node.type in _FRAGMENTS
            and node.parent is not None
            and (any(each.type in _COMPUTED for each in node.parent.children))
        ):
            kind = "text" if re.search("[a-zA-Z]{2}", text_of(node)) else None  # the literal parts of a computed text
        if kind is not None:
            role, rank = self._role(node), EXPECTED if table else self._rank(node)
            if rank is not None and not (rank == EXPECTED and _is_key(node)):
                comparison = "equal" if table else self._comparison(node, rank)
                if comparison == "equal" and rank == EXPECTED and self._is_made_by_answer(node):
                    comparison = "made"
                if comparison is not None:
                    subject = self._subject(node)
                    yield Value(node.start_byte, node.end_byte, text_of(node), kind, role, rank, comparison, subject)
        if kind in (None, "container") or node.type == "concatenated_string":
            for child in node.named_children:
                key = child.type in ("property_identifier",) or (
                    node.type == "pair" and child == node.child_by_field_name("key")
                )
                if not key or self.is_python:
                    yield from self._walk(child, table=table)

    def _kind(self, node: Node) -> Kind | None:
        """Return the kind of a literal; None if the value is computed."""
        if node.type in _SIGNS:
            argument = node.child_by_field_name("argument")
            return "number" if argument is not None and self.dialect.kinds.get(argument.type) == "number" else None
        if node.type in self.dialect.kinds:
            computed = any(child.type in _COMPUTED for piece in (node, *node.children) for child in piece.children)
            return None if computed else self.dialect.kinds[node.type]
        if node.type in self.dialect.containers:
            return "container" if all(map(self._is_literal, node.named_children)) else None
        return None

    def _is_literal(self, node: Node) -> bool:
        if node.type == "pair":
            value = node.child_by_field_name("value")
            return value is not None and self._kind(value) is not None
        return node.type == "comment" or self._kind(node) is not None

    def _rank(self, node: Node) -> int | None:
        """Return the rank of a value, or None for values to leave alone, such as messages."""
        return self._python_rank(node) if self.is_python else self._javascript_rank(node)

    def _role(self, node: Node) -> str:
        """Return the position of a value: an argument of a call, a comparison or an assignment."""
        path, child, parent = "", node, node.parent
        while parent is not None and (parent.type in self.dialect.containers or parent.type == "pair"):
            if parent.type == "pair":
                path = f".{text_of(parent.child_by_field_name('key'))}{path}"
            elif parent.parent is not None and parent.parent.type in self.dialect.containers:
                path = f"[{_index(parent, child)}]{path}"
            child, parent = parent, parent.parent
        if parent is None:
            return path
        if parent.type == "keyword_argument":
            return f"{text_of(parent.child_by_field_name('name'))}={path}"
        if parent.type == self.dialect.argument_lists and parent.parent is not None:
            return f"{called_name(parent.parent)} {_index(parent, child)}{path}"
        return f"{'=' if parent.type in self.dialect.assignments else parent.type}{path}"

    def _subject(self, node: Node) -> str:
        """Return the name of the tested function if an assertion contains the value, or ""."""
        around = [parent for _, parent in ancestors(node, self.node)]
        calls = [each for each in around if each.type == self.dialect.calls]
        asserting = [each for each in around if each.type == "assert_statement"]
        asserting += [each for each in calls if re.match("assert|expect$", called_base(each) or called_name(each))]
        top = max(asserting, key=lambda each: each.end_byte - each.start_byte, default=None)
        inner = (each for each in walk(top) if each.type in (self.dialect.calls, "new_expression")) if top else ()
        names = map(called_name, inner)
        return next((name for name in names if not _NO_SUBJECT.match(name)), "")

    def _python_rank(self, node: Node) -> int | None:
        calls = 0
        if self._in_last_column(node):
            return EXPECTED
        beside = node.parent.children if node.parent is not None else []
        if any(each.type in ("is", "is not") for each in beside) and node.type not in ("true", "false", "none"):
            return None  # Python warns about `is` with a number or a string
        for child, parent in ancestors(node, self.node):
            if parent.type == "assert_statement":
                if child != parent.named_child(0):
                    return None
                return ASSERTED if calls else EXPECTED
            if parent.type == "call":
                if called_name(parent).startswith("assert") or called_name(parent) == "raises":
                    return ASSERTED if calls else EXPECTED
                calls += not _BUILDS.match(called_name(parent))
            if not calls and _names_expected(parent.child_by_field_name("left")):
                return EXPECTED
        return GIVEN

    def _javascript_rank(self, node: Node) -> int:
        calls = 0
        if self._in_last_column(node):
            return EXPECTED
        for child, parent in ancestors(node, self.node):
            if parent.type == "call_expression":
                base = called_base(parent)
                callee = parent.child_by_field_name("function")
                if base in ("expect", "assert"):
                    if callee is not None and callee.type == "identifier" and base == "expect":
                        return EXPECTED if calls and _only_finds(parent) else ASSERTED
                    if child == parent.child_by_field_name("arguments"):
                        return EXPECTED  # even if a helper builds the expected value from it
                calls += 1
            if not calls and _names_expected(parent.child_by_field_name("name")):
                return EXPECTED
        return GIVEN

    def _comparison(self, node: Node, rank: int) -> Comparison | None:
        """Return how an assertion compares a value; None if the value must not change."""
        for child, parent in ancestors(node, self.node):
            if parent.type == "keyword_argument" and text_of(parent.child_by_field_name("name")) in _TOLERANCES:
                return None
            if rank == ASSERTED and (parent.type == "assert_statement" or called_name(parent) in _TRUTHS):
                must_hold = child.type == "call" if parent.type == "assert_statement" else _TRUTHS[called_name(parent)]
                return "true" if must_hold else "false" if child.type in ("not_operator", "argument_list") else "none"
            if rank == EXPECTED and parent.type == "comparison_operator":
                words = {" ".join(text_of(each).split()) for each in parent.children[1::2]}
                if words <= {"==", "is"}:
                    return "equal"
                is_text = child.type in ("string", "concatenated_string") and child == parent.named_children[0]
                return "part" if words == {"in"} and is_text else None
            if parent.type == self.dialect.calls and (found := _compared_by_call(parent, node, child)) != "none":
                return found if rank == EXPECTED else "none"
        return "equal" if rank == EXPECTED else "none"

    def _is_made_by_answer(self, node: Node) -> bool:
        around = [each for _, each in ancestors(node, self.node)]
        called = (each.child_by_field_name("constructor") or each.child_by_field_name("function") for each in around)
        return any(callee is not None and text_of(callee) in self.own for callee in called)

    def _expects_last_of(self, names: list[str], body: Node) -> bool:
        """Return True if an assertion in the body expects the last of these names."""
        if not names:
            return False
        return any(
            text_of(node) == names[-1] and self._rank(node) == EXPECTED and self._comparison(node, EXPECTED) == "equal"
            for node in walk(body)
            if node.type == "identifier"
        )


def _only_finds(expect: Node) -> bool:
    """Return True if an assertion only checks that a value exists."""
    matcher = expect.parent
    return matcher is not None and text_of(matcher.child_by_field_name("property")) == "toBeInTheDocument"


def _compared_by_call(call: Node, value: Node, argument: Node) -> Comparison | None:
    """Return how an assertion call compares a value; "none" for other calls."""
    name = called_name(call)
    if name in _TOLERANT:
        position = sum(each.end_byte <= value.start_byte for each in argument.named_children)
        return "close" if position <= (name in ("assertAlmostEqual", "isclose")) else None
    if _BOUNDS.match(name):
        return None
    if name.startswith("toThrow"):
        made = any(around.type == "new_expression" for _, around in ancestors(value, call))
        return "equal" if made else "part"
    if _PARTS.match(name):
        return "part"
    return "equal" if _EXACT.match(name) else "none"


def _names_in(pattern: Node | None) -> list[str]:
    """Return the names that parameters or a pattern bind, in order."""
    if pattern is None or pattern.type == "type_annotation":
        return []
    if pattern.type in ("identifier", "shorthand_property_identifier_pattern"):
        return [text_of(pattern)]
    return [name for child in pattern.named_children for name in _names_in(child)]


def _names_expected(name: Node | None) -> bool:
    return name is not None and re.match(r"expect|want|answer", text_of(name), re.IGNORECASE) is not None


def _index(parent: Node, child: Node) -> int:
    return next((number for number, each in enumerate(parent.named_children) if each == child), -1)


def _bare(node: Node) -> Node:
    """Return the expression inside `(…)` or before `as const`."""
    while node.type in _WRAPPED and node.named_children:
        node = node.named_children[0]
    return node


def _parted(changes: list[_Opposite], expects: bool) -> tuple[tuple[SyntaxEdit, ...], bool, tuple[SyntaxEdit, ...]]:
    """Return the flips, `expects` and the opposites, as `TestSource` has them."""
    flips, opposites = (tuple(edit for edit, agrees in changes if agrees is wanted) for wanted in (False, True))
    return flips, expects, opposites


def _python_opposites(node: Node) -> Iterator[_Opposite]:
    """Yield the edits that turn each assertion below a node into its opposite."""
    if node.type == "assert_statement" and (asserted := node.named_child(0)) is not None:
        if asserted.type == "not_operator" and (inner := asserted.child_by_field_name("argument")) is not None:
            yield SyntaxEdit(asserted.start_byte, inner.start_byte, ""), False
        elif asserted.type == "comparison_operator":
            operator = asserted.children[1]
            word = " ".join(text_of(operator).split())
            if word in _OPPOSITES and (asserted.child_count == 3 or word in _AGREEING):
                yield SyntaxEdit(operator.start_byte, operator.end_byte, _OPPOSITES[word]), word in _AGREEING
        elif asserted.type in ("call", "identifier", "attribute", "subscript"):
            yield SyntaxEdit(asserted.start_byte, asserted.start_byte, "not "), False
        elif asserted.type == "boolean_operator":
            yield SyntaxEdit(asserted.start_byte, asserted.end_byte, f"not ({text_of(asserted)})"), False
        return
    callee = node.child_by_field_name("function") if node.type == "call" else None
    name = callee.child_by_field_name("attribute") if callee is not None else None
    if name is not None and (opposite := _OPPOSITE_METHODS.get(text_of(name))):
        yield SyntaxEdit(name.start_byte, name.end_byte, opposite), text_of(name) in _AGREEING
        return
    given = node.child_by_field_name("arguments")
    if given is not None and called_name(node) in ("raises", "assertRaises", "assertRaisesRegex"):
        wanted = given.named_child(0)
        others = [] if wanted is None else [each for each in _UNUSUAL if not _is_a(each, text_of(wanted))]
        yield from ((SyntaxEdit(wanted.start_byte, wanted.end_byte, each), True) for each in others if wanted)
        return
    for child in node.named_children:
        yield from _python_opposites(child)


def _javascript_opposites(node: Node) -> Iterator[_Opposite]:
    """Yield the edit that turns each assertion below a node into its opposite.

    A negated assertion whose matcher has an opposite stays negated.
    """
    callee = node.child_by_field_name("function") if node.type == "call_expression" else None
    matcher = callee.child_by_field_name("property") if callee is not None else None
    before = callee.child_by_field_name("object") if callee is not None else None
    if matcher is not None and before is not None and called_base(node) == "expect" and before.type != "identifier":
        negated = before.child_by_field_name("property") if before.type == "member_expression" else None
        whole = before.child_by_field_name("object") if negated is not None else None
        thrown = node.child_by_field_name("arguments") if text_of(matcher).startswith("toThrow") else None
        if thrown is not None and re.fullmatch(r"\((?!URI)\w*Error\)", text_of(thrown)):
            yield SyntaxEdit(thrown.start_byte, thrown.end_byte, "(URIError)"), True
        elif (opposite := _OPPOSITE_MATCHERS.get(text_of(matcher))) is not None:
            yield SyntaxEdit(matcher.start_byte, matcher.end_byte, opposite), True
        elif negated is not None and whole is not None and text_of(negated) == "not":
            yield SyntaxEdit(whole.end_byte, negated.end_byte, ""), False
        else:
            yield SyntaxEdit(before.end_byte, before.end_byte, ".not"), False
        return
    for child in node.named_children:
        yield from _javascript_opposites(child)


def _is_key(node: Node) -> bool:
    """Return True for the key of a lookup, as in `expected["total"]`."""
    parent = node.parent
    return parent is not None and parent.type.startswith("subscript") and node != parent.named_children[0]


def _is_a(name: str, wanted: str) -> bool:
    """Return True if `raises(wanted)` also accepts the built-in exception `name`."""
    kinds = [getattr(builtins, word, None) for word in re.findall(r"\w+", wanted)]
    return any(isinstance(kind, type) and issubclass(getattr(builtins, name), kind) for kind in kinds)
