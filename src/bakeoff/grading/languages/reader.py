"""Read the tests of compiled languages: expected values, and opposites of assertions.

A `Language` describes the syntax of tests, assertions and literals. A literal in an assertion, or
in a variable that it uses, is an expected value; other operands come from the answer. If a helper
compares its parameter, the arguments of its calls are expected values.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import NamedTuple, TypeAlias

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser

from bakeoff.grading.syntax import Kind, SyntaxEdit, text_of, to_bytes, walk
from bakeoff.grading.written_tests import EXPECTED, Comparison, TestSource, Value

Operand: TypeAlias = tuple[Node, ...]
"""Adjacent nodes of a syntax tree that form one value: grammars do not group the words inside a macro."""

_NUMBER = re.compile(r"-?\d[\d_']*(?:\.[\d_']+)?(?:[eE][+-]?\d+)?")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`|\'(?:\\.|[^\'\\])+\'', re.DOTALL)
_CALL = re.compile(r"([A-Za-z_][\w:.]*?)\s*(?:<[^<>()]*>|::<[^()]*>)?\s*!?\(")
_FREE = re.compile(r"(?<![\w.:'])[a-z_]\w*\b(?!\s*(?:::|!|\(|<))(?!\s*:[^:])")
_LAST_CALL = re.compile(r"(\w+)\s*\(")
_WORDS = re.compile(
    r"nil|true|false|null|nullptr|new|string|bool|byte|rune|long|double|float|char|short|unsigned|auto|const|struct|map"
    r"|interface|error|any|vec|mut|as|std|str|u?int\d*|float\d\d|[iuf]\d+|[iu]size"
)
"""Words that are not variables in any of the languages."""


class Assertion(NamedTuple):
    """One assertion of a test or of a helper."""

    operands: tuple[Operand, ...]
    """The values that it compares."""
    flip: SyntaxEdit | None = None
    """The edit that negates a comparison."""
    comparison: Comparison = "equal"
    actual: Operand = ()
    """The value that the answer gives, if the form of the assertion shows it."""
    opposite: SyntaxEdit | None = None
    """The edit that expects the opposite of a condition: no value of these languages is both true and false."""


class Definition(NamedTuple):
    """A function: a test, or a helper that tests call."""

    name: str
    node: Node
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Language:
    """The syntax of the tests of a language."""

    grammar: ModuleType
    literals: Mapping[str, Kind]
    definitions: Callable[[Node], Iterator[tuple[bool, Definition]]]
    """Yields the functions of a file, each with True if it is a test."""
    assertions: Callable[[Node], Iterator[Assertion]]
    bindings: Mapping[str, tuple[str, str]]
    """The fields of a name and of its value, by the type of the node that binds them."""
    builds: re.Pattern[str]
    """Matches calls that build an expected value from literals."""
    makes: re.Pattern[str]
    """Matches calls that make an expected value with the answer's own code."""
    arguments: frozenset[str] = frozenset({"arguments", "argument_list"})
    types: frozenset[str] = frozenset({"template_argument_list", "type_arguments", "array_type", "slice_type"})
    """Nodes in which literals are part of a type."""
    opposites: Callable[[Definition], Iterator[SyntaxEdit]] = lambda _test: iter(())
    """Yields further edits by which a test expects the opposite."""
    expand: "Callable[[SuiteReader, str, Definition], Iterator[tuple[str, TestSource]]] | None" = None
    """Yields the tests that a table makes of one function, each with its file."""

    @cached_property
    def parser(self) -> Parser:
        return Parser(Grammar(self.grammar.language()))


def span(operand: Operand) -> str:
    """Return the source of an operand."""
    first, last = operand[0], operand[-1]
    if first == last or first.parent is None:
        return text_of(first)
    start = first.parent.start_byte
    inner = to_bytes(text_of(first.parent))[first.start_byte - start : last.end_byte - start]
    return inner.decode(errors="surrogatepass")


def called(operand: Operand) -> str:
    """Return the name of the last call in an operand, or its whole text."""
    blank = _QUOTED.sub('""', span(operand)) if operand else ""
    names = _LAST_CALL.findall(blank)
    return names[-1] if names else blank[:60]


@dataclass
class SuiteReader:
    """Reads the test files of one suite."""

    language: Language
    files: Mapping[str, str]
    roots: dict[str, Node] = field(init=False)
    helpers: dict[str, tuple[int, ...]] = field(init=False)
    """The positions of the parameters that a helper expects, by its name."""

    def __post_init__(self) -> None:
        self.roots = {name: self.language.parser.parse(to_bytes(text)).root_node for name, text in self.files.items()}
        found = [each for root in self.roots.values() for each in self.language.definitions(root)]
        self.helpers = {each.name: at for test, each in found if not test and (at := self._expected_parameters(each))}

    def read(self) -> Iterator[tuple[str, TestSource]]:
        """Yield the tests of all files, each with the file of its values."""
        for name, root in self.roots.items():
            for is_test, test in self.language.definitions(root):
                if is_test:
                    expanded = list(self.language.expand(self, name, test)) if self.language.expand else []
                    yield from expanded or [(name, self._read_test(test))]

    def _read_test(self, test: Definition) -> TestSource:
        asserted = list(self.language.assertions(test.node))
        values = [value for each in (*asserted, *self.by_helpers(test.node)) for value in self._values(each, test.node)]
        flips = tuple(each.flip for each in asserted if each.flip is not None)
        opposites = (*self.language.opposites(test), *(each.opposite for each in asserted if each.opposite is not None))
        return TestSource(test.name, None, tuple(dict.fromkeys(values)), (), flips, opposites=opposites)

    def _values(self, assertion: Assertion, within: Node) -> Iterator[Value]:
        resolved = [self.resolved(operand, within) for operand in assertion.operands]
        pure = [operand for operand in resolved if self.is_written_out(operand)]
        made = [operand for operand in resolved if self.is_written_out(operand, made=True)]
        if not assertion.actual and len(pure) == len(resolved) > 1:
            pure = pure[-1:]
        others = [operand for operand in resolved if operand not in pure] if pure else resolved[:1]
        role = called(self.resolved(assertion.actual or (others[0] if others else ()), within))
        for operand in pure or made[-1:]:
            yield from self.values_of(operand, role, assertion.comparison if pure else "made")

    def values_of(self, operand: Operand, role: str, comparison: Comparison = "equal") -> Iterator[Value]:
        """Yield the literals of an operand: first the whole operand, then the parts."""
        inner = [node for each in operand for node in self._literals(each)]
        text = span(operand)
        if len(inner) == 1 and text_of(inner[0]) == text:
            yield self._literal(inner[0], role, comparison)
            return
        if comparison in ("equal", "made"):
            at = operand[0].start_byte, operand[-1].end_byte
            yield Value(*at, text, "container", role, EXPECTED, comparison, subject=role)
        for node in inner[:1] if comparison == "close" else inner:
            yield self._literal(node, f"{role} {node.type}", comparison)

    def _literal(self, node: Node, role: str, comparison: Comparison) -> Value:
        text, kind, subject = text_of(node), self.language.literals[node.type], role.partition(" ")[0]
        if kind == "number" and (found := _NUMBER.match(text)) is not None and text[:2] not in ("0x", "0b", "0o"):
            role, text = f"{role} {text[found.end() :]}".rstrip(), found[0]  # without the type suffix
        at = node.start_byte, node.start_byte + len(to_bytes(text))
        return Value(*at, text, kind, role, EXPECTED, comparison, subject=subject)

    def _literals(self, node: Node) -> Iterator[Node]:
        if node.type in self.language.types:
            return
        if node.type in self.language.literals:
            yield node
            return
        for at, child in enumerate(node.children):
            if node.field_name_for_child(at) not in ("key", "type"):
                yield from self._literals(child)

    def is_written_out(self, operand: Operand, *, made: bool = False) -> bool:
        """Return True if an operand has no variables. `made` also allows types of the answer."""
        if not operand:
            return False
        blank = _QUOTED.sub('""', span(operand))
        fits = [self.language.builds, *([self.language.makes] if made else [])]
        calls = _CALL.findall(blank)
        free = [word for word in _FREE.findall(blank) if not _WORDS.fullmatch(word)]
        return not free and all(any(each.fullmatch(name) for each in fits) for name in calls)

    def resolved(self, operand: Operand, within: Node) -> Operand:
        """Return the operand, replaced by its value if it is a variable of the test."""
        seen = set[str]()
        while operand and (name := span(operand).lstrip("&*")).isidentifier() and name not in seen:
            seen.add(name)
            found = [value for bound, value in self._bound(within) if bound == name]
            if len(found) != 1:
                break
            operand = (found[0],)
        return operand

    def _bound(self, within: Node) -> Iterator[tuple[str, Node]]:
        for node in walk(within):
            if node.type in self.language.bindings:
                name, value = (node.child_by_field_name(each) for each in self.language.bindings[node.type])
                while value is not None and value.type == "expression_list" and value.named_child_count == 1:
                    value = value.named_children[0]
                if name is not None and value is not None:
                    yield text_of(name), value

    def _expected_parameters(self, helper: Definition) -> tuple[int, ...]:
        operands = [each for assertion in self.language.assertions(helper.node) for each in assertion.operands]
        compared = {span(each).lstrip("&*") for each in operands if each}
        return tuple(at for at, name in enumerate(helper.parameters) if name in compared)

    def by_helpers(self, node: Node) -> Iterator[Assertion]:
        for each in walk(node):
            if each.type in self.language.arguments and each.parent is not None:
                callee = each.prev_named_sibling
                given = [argument for argument in each.named_children if argument.type != "comment"]
                places = self.helpers.get(re.sub(r".*\W", "", text_of(callee), flags=re.DOTALL), ())
                if callee is not None and places:
                    yield Assertion(tuple((given[at],) for at in places if at < len(given)), actual=(callee,))


def negated(condition: Operand) -> SyntaxEdit:
    """Return the edit that negates a condition, written as a person would."""
    start, end, text = condition[0].start_byte, condition[-1].end_byte, span(condition)
    is_simple = re.search(r"&&|\|\||[=!<>]=| [<>] ", text) is None
    if text.startswith("!") and is_simple:
        return SyntaxEdit(start, start + 1, "")
    return SyntaxEdit(start, end, f"!{text}" if is_simple else f"!({text})")


def replaced(node: Node, text: str) -> SyntaxEdit:
    """Return the edit that puts a text in place of a node."""
    return SyntaxEdit(node.start_byte, node.end_byte, text)
