"""Make mutants of a reference: copies with one small fault each, which the tests must notice.

Python, JavaScript and TypeScript share one walk over the syntax tree. In Svelte and Vue components,
scripts and expressions in the markup are changed. Mutants are valid syntax, and the same for the
same seed.
"""

import ast
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tree_sitter import Node

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import visible
from bakeoff.grading.syntax import SyntaxEdit, ancestors, both_ways, dialect_of, parse, text_of, to_bytes, with_edits

_SHOWN = 60  # characters of changed code
_PARSED_AS = "region.ts"

_BOUNDARIES = both_ways({"<": "<=", ">": ">="})
_OPPOSITES = both_ways({"==": "!=", "===": "!==", "in": "not in", "is": "is not"})
_BOOLEAN = {**both_ways({"and": "or", "&&": "||"}), "??": "&&"}
_ARITHMETIC = {
    **both_ways({"+": "-", "*": "/", "|": "&", "+=": "-=", "*=": "/=", "|=": "&=", "++": "--"}),
    **dict.fromkeys(("//", "%", "**"), "*"),
    **dict.fromkeys(("//=", "%="), "*="),
}
_OPERATIONS = frozenset(
    {
        *("comparison_operator", "boolean_operator", "binary_operator", "augmented_assignment"),
        *("binary_expression", "augmented_assignment_expression", "update_expression"),
    }
)
_TRUTHS = frozenset({"comparison_operator", "boolean_operator", "not_operator", "true", "false"})
_CONDITIONAL = frozenset({"if_statement", "elif_clause", "while_statement", "if_clause"})
_TERNARIES = frozenset({"conditional_expression", "ternary_expression"})
_ENDINGS = frozenset(
    {"return_statement", "raise_statement", "throw_statement", "continue_statement", "break_statement"}
)
_TEXTS = frozenset({"string", "template_string", "concatenated_string"})
_CONTAINERS = {
    **dict.fromkeys(("list", "list_comprehension", "array"), "[]"),
    **dict.fromkeys(("dictionary", "dictionary_comprehension", "object"), "{}"),
    **dict.fromkeys(("set", "set_comprehension"), "set()"),
    "tuple": "()",
}
_EFFECTS = frozenset(
    {
        *("call", "await", "augmented_assignment", "delete_statement"),
        *("call_expression", "await_expression", "augmented_assignment_expression", "assignment_expression"),
        "update_expression",
    }
)
_SYMMETRIC = frozenset({"min", "max", "Math.min", "Math.max", "math.gcd", "math.isclose", "Object.is"})
# Code without an effect on results, such as imports and types.
_PASSED_OVER = frozenset(
    {
        *("import_statement", "import_from_statement", "future_import_statement", "comment", "decorator", "type"),
        *("interface_declaration", "type_alias_declaration", "type_annotation", "type_arguments", "type_parameters"),
        *("implements_clause", "export_specifier", "export_clause"),
    }
)


class Mutant(FrozenModel):
    """A reference with one fault."""

    kind: str
    file: str
    line: int
    before: str
    after: str
    edit: SyntaxEdit
    equivalent: str | None = None
    """Why the fault changes nothing, where that is obvious. No test can find it."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    def apply(self, reference: Mapping[str, str]) -> dict[str, str]:
        """Return the reference with the fault added."""
        return {**reference, self.file: with_edits(reference[self.file], [self.edit])}


@dataclass(frozen=True, slots=True)
class _Fault:
    kind: str
    edit: SyntaxEdit
    equivalent: str | None = None


@dataclass(frozen=True, slots=True)
class _Region:
    """A part of a file that is code. Expressions of markup are parsed in parentheses."""

    path: str
    text: str
    offset: int
    """The place of `text` in the file, in bytes."""
    is_condition: bool = False


def find_mutants(reference: Mapping[str, str]) -> list[Mutant]:
    """Return all mutants of a reference, ordered by line."""
    return [mutant for name, text in reference.items() for mutant in _of_file(name, text)]


def choose_mutants(mutants: Sequence[Mutant], count: int, seed: str) -> list[Mutant]:
    """Return `count` mutants, spread over all kinds, and all equivalent mutants in addition."""
    draw = random.Random(seed)  # noqa: S311 - a sample
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in draw.sample(mutants, len(mutants)):
        if mutant.equivalent is None:
            by_kind.setdefault(mutant.kind, []).append(mutant)
    chosen: list[Mutant] = []
    while by_kind and len(chosen) < count:
        for kind in sorted(by_kind, key=lambda kind: (-len(by_kind[kind]), kind))[: count - len(chosen)]:
            chosen.append(by_kind[kind].pop())
            if not by_kind[kind]:
                del by_kind[kind]
    kept = {mutant.edit for mutant in chosen}
    return [mutant for mutant in mutants if mutant.equivalent is not None or mutant.edit in kept]


def _of_file(name: str, text: str) -> Iterator[Mutant]:
    source, seen = to_bytes(text), set[SyntaxEdit]()
    for region in _regions(name, text):
        for fault in _faults(region):
            start, end, instead = fault.edit
            edit = SyntaxEdit(start + region.offset, end + region.offset, instead)
            if edit in seen or not _is_valid(region, fault.edit):
                continue
            seen.add(edit)
            yield Mutant(
                kind=fault.kind,
                file=name,
                line=source.count(b"\n", 0, edit.start) + 1,
                before=_shown(source[edit.start : edit.end].decode(errors="replace")),
                after=_shown(instead),
                edit=edit,
                equivalent=fault.equivalent,
            )


def _shown(code: str) -> str:
    return visible(" ".join(code.split()), _SHOWN)


def _is_valid(region: _Region, edit: SyntaxEdit) -> bool:
    changed = with_edits(region.text, [edit])
    if parse(region.path, changed).has_error:
        return False
    if region.path.endswith(".py"):
        try:
            ast.parse(changed)
        except (SyntaxError, ValueError):
            return False
    return True


# --------------------------------------------------------------------------------------------------------- regions

_ELEMENT = re.compile(rb"<(script|style)\b[^>]*>(.*?)</\1\s*>|<!--.*?-->", re.DOTALL)
_TAG = re.compile(rb"\{\s*(#if|:else if|#each|#key|#await|@const|@render|@html|\.\.\.|[#:/@]\w*)?")
_SKIPPED = re.compile(rb"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|/\*.*?\*/""", re.DOTALL)
_EACH = re.compile(rb"(.*?)\s+as\s", re.DOTALL)
_CONST = re.compile(rb"\s*[\w$]+\s*=\s*")
_MUSTACHE = re.compile(rb"\{\{(.*?)\}\}", re.DOTALL)
_DIRECTIVE = re.compile(rb"""\s(?:v-([\w-]+)|[:@#][\w.:-]+)\s*=\s*"([^"]*)\"""", re.DOTALL)
_FOR = re.compile(rb".*?\s(?:in|of)\s+", re.DOTALL)
_NO_EXPRESSIONS = (b"model", b"slot")


def _regions(name: str, text: str) -> Iterator[_Region]:
    if dialect_of(name) is not None:
        yield _Region(name, text, 0)
    elif PurePosixPath(name).suffix == ".svelte":
        yield from _svelte_regions(to_bytes(text))
    elif PurePosixPath(name).suffix == ".vue":
        yield from _vue_regions(to_bytes(text))


def _scripts_and_markup(source: bytes) -> tuple[list[_Region], bytearray]:
    """Return the scripts of a component, and its source with only the markup left."""
    scripts, markup = list[_Region](), bytearray(source)
    for found in _ELEMENT.finditer(source):
        if found[1] == b"script":
            scripts.append(_Region(_PARSED_AS, found[2].decode(errors="replace"), found.start(2)))
        markup[found.start() : found.end()] = b" " * len(found[0])
    return scripts, markup


def _in_parentheses(expression: bytes, start: int, *, is_condition: bool) -> _Region:
    return _Region(_PARSED_AS, f"({expression.decode(errors='replace')})", start - 1, is_condition=is_condition)


def _vue_regions(source: bytes) -> Iterator[_Region]:
    scripts, markup = _scripts_and_markup(source)
    yield from scripts
    found = [(each[1], each.start(1), b"") for each in _MUSTACHE.finditer(markup)]
    found += [(each[2], each.start(2), each[1] or b"") for each in _DIRECTIVE.finditer(markup)]
    for expression, start, directive in sorted(found, key=lambda each: each[1]):
        before = loop.end() if directive == b"for" and (loop := _FOR.match(expression)) is not None else 0
        if directive not in _NO_EXPRESSIONS:
            is_condition = directive in (b"if", b"else-if", b"show")
            yield _in_parentheses(expression[before:], start + before, is_condition=is_condition)


def _svelte_regions(source: bytes) -> Iterator[_Region]:
    scripts, markup = _scripts_and_markup(source)
    yield from scripts
    at = 0
    while (tag := _TAG.search(markup, at)) is not None:
        end = _closing(markup, tag.end())
        at = end + 1
        word, start = bytes(tag[1] or b""), tag.end()
        inner = bytes(markup[start:end])
        if word == b"#each" and (each := _EACH.match(inner)) is not None:
            inner = each[1]
        elif word == b"@const" and (const := _CONST.match(inner)) is not None:
            start, inner = start + const.end(), inner[const.end() :]
        elif word not in (b"", b"#if", b":else if", b"#key", b"@render", b"@html", b"..."):
            continue
        yield _in_parentheses(inner, start, is_condition=word in (b"#if", b":else if"))


def _closing(markup: bytearray, at: int) -> int:
    """Return the position of the brace that closes the brace just before `at`."""
    depth = 1
    while at < len(markup):
        if (skipped := _SKIPPED.match(markup, at)) is not None:
            at = skipped.end()
            continue
        depth += {0x7B: 1, 0x7D: -1}.get(markup[at], 0)
        if not depth:
            return at
        at += 1
    return at


# ---------------------------------------------------------------------------------------------------------- faults


def _faults(region: _Region) -> Iterator[_Fault]:
    root = parse(region.path, region.text)
    if root.has_error:
        return
    maker = _FaultMaker(is_python=region.path.endswith(".py"))
    if region.is_condition and (whole := _inner(root)) is not None:
        yield maker.negated(whole)
    yield from maker.walk(root)


def _inner(root: Node) -> Node | None:
    """Return the node inside the parentheses that enclose a region."""
    statement = _child(root, 0)
    parenthesized = _child(statement, 0) if statement is not None else None
    return _child(parenthesized, 0) if parenthesized is not None else None


class _FaultMaker:
    """Yields the faults of one syntax tree."""

    def __init__(self, *, is_python: bool) -> None:
        self.is_python = is_python
        self.nothing = "None" if is_python else "undefined"
        self.true = "True" if is_python else "true"

    def walk(self, node: Node) -> Iterator[_Fault]:
        """Yield the faults of a node and its descendants."""
        if node.type in _PASSED_OVER or node.type.endswith("_type") or self._is_passed_over(node):
            return
        yield from self._of(node)
        for child in node.named_children:
            if node.type not in _TEXTS or self.is_python or child.type == "template_substitution":
                yield from self.walk(child)

    def _is_passed_over(self, node: Node) -> bool:
        if node.type == "expression_statement":  # a docstring or 'use strict'
            only = _child(node, 0)
            return node.named_child_count == 1 and only is not None and only.type in ("string", "concatenated_string")
        if node.parent is not None and node.parent.type == "jsx_attribute":
            return node.type == "string"  # not changed, like plain attributes of other markup
        if node.type == "if_statement" or node.type == "assignment":
            return text_of(node).startswith(("if __name__", "__all__"))
        return False

    def _of(self, node: Node) -> Iterator[_Fault]:  # noqa: C901, PLR0912 - one branch for each kind of node
        kind, text = node.type, text_of(node)
        if kind in _OPERATIONS:
            yield from self._operator(node)
        if kind in _CONDITIONAL or kind in _TERNARIES:
            condition = _condition(node)
            if condition is not None and condition.type not in ("true", "integer", "number"):
                yield self.negated(condition)
        if kind in ("if_statement", "elif_clause", "else_clause"):
            yield from self._branch(node)
        if kind == "return_statement" and (value := _child(node, 0)) is not None:
            yield from self._result(value)
        if kind in ("arrow_function", "lambda") and (value := node.child_by_field_name("body")) is not None:
            yield from self._result(value) if value.type != "statement_block" else ()
        if kind in ("unary_operator", "unary_expression") and text.startswith("-"):
            yield _Fault("arithmetic operator", SyntaxEdit(node.start_byte, node.start_byte + 1, ""))
        if kind in ("not_operator", "unary_expression") and text.startswith(("not", "!")) and not _is_condition(node):
            yield self.negated(node)
        if kind in ("integer", "number") and re.fullmatch(r"\d[\d_]*", text) and not _is_key(node):
            yield _Fault("off by one", _replace(node, str(int(text) + 1)))
        if kind in ("true", "false"):
            flipped = {"True": "False", "False": "True", "true": "false", "false": "true"}[text]
            yield _Fault("flipped boolean", _replace(node, flipped))
        if kind in _TEXTS and not _is_key(node) and text.strip("rbfuRBFU\"'`") and not _is_error_text(node):
            yield _Fault("emptied text", _replace(node, '""' if self.is_python else "''"))
        if kind in _CONTAINERS and node.named_child_count and not _is_key(node):
            yield _Fault("emptied collection", _replace(node, _CONTAINERS[kind]))
        if kind in ("call", "call_expression"):
            yield from self._swapped(node)
        if kind == "expression_statement" and (done := _child(node, 0)) is not None and self._has_effect(done):
            yield _Fault("dropped statement", _replace(node, "pass" if self.is_python else ";"))

    def negated(self, condition: Node) -> _Fault:
        """Return the fault that negates a condition."""
        if condition.type == "parenthesized_expression" and condition.named_child_count == 1:
            inner = _child(condition, 0)
            condition = inner if inner is not None else condition
        text = text_of(condition)
        argument = condition.child_by_field_name("argument")
        if condition.type == "not_operator" or (condition.type == "unary_expression" and text.startswith("!")):
            opposite = f"({text_of(argument)})"
        else:
            opposite = f"not ({text})" if self.is_python else f"!({text})"
        if condition.parent is not None and condition.parent.type in _TERNARIES and self.is_python:
            opposite = f"({opposite})"
        return _Fault("negated condition", _replace(condition, opposite))

    def _operator(self, node: Node) -> Iterator[_Fault]:
        found = node.child_by_field_name("operator") or node.child_by_field_name("operators")
        if found is None:
            return
        word = " ".join(text_of(found).split())
        if word in _BOUNDARIES:
            yield _Fault("comparison", _replace(found, _BOUNDARIES[word]), _keeps_the_same(node))
        elif word in _OPPOSITES and not _is_condition(node):
            yield _Fault("comparison", _replace(found, _OPPOSITES[word]))
        elif word in _BOOLEAN:
            yield _Fault("boolean operator", _replace(found, _BOOLEAN[word]))
        elif word in _ARITHMETIC:
            instead = "//" if self.is_python and _ARITHMETIC[word] == "/" else _ARITHMETIC[word]
            yield _Fault("arithmetic operator", _replace(found, instead))

    def _branch(self, node: Node) -> Iterator[_Fault]:
        body = node.child_by_field_name("consequence") or node.child_by_field_name("body")
        if node.type == "else_clause" and body is None:
            body = _child(node, 0)
        if body is None or body.type == "if_statement" or not body.named_child_count:
            return
        statements = body.named_children if body.type in ("block", "statement_block") else [body]
        ends = statements[-1].type in _ENDINGS and node.child_by_field_name("alternative") is None
        if statements[-1].type != "pass_statement":
            yield _Fault(
                "dropped early return" if ends else "dropped branch", _replace(body, "pass" if self.is_python else "{}")
            )

    def _result(self, value: Node) -> Iterator[_Fault]:
        while value.type == "parenthesized_expression" and value.named_child_count == 1:
            value = _child(value, 0) or value
        operator = value.child_by_field_name("operator")
        is_truth = value.type in _TRUTHS or (
            value.type in ("binary_expression", "unary_expression")
            and text_of(operator) in {*_BOUNDARIES, *_OPPOSITES, "&&", "||", "!"}
        )
        constant = self.true if is_truth else self.nothing
        if text_of(value) not in ("None", "undefined", "null", "True", "true", "False", "false"):
            yield _Fault("constant result", _replace(value, constant))

    def _swapped(self, call: Node) -> Iterator[_Fault]:
        arguments = call.child_by_field_name("arguments")
        given = [child for child in arguments.named_children if child.type != "comment"] if arguments else []
        unfit = {"keyword_argument", "list_splat", "dictionary_splat", "spread_element"}
        if len(given) < 2 or {given[0].type, given[1].type} & unfit:
            return
        first, second = given[:2]
        if (one := text_of(first)) == (other := text_of(second)) or arguments is None:
            return
        whole = to_bytes(text_of(arguments))
        between = whole[first.end_byte - arguments.start_byte : second.start_byte - arguments.start_byte].decode()
        name = text_of(call.child_by_field_name("function"))
        symmetric = f"`{name}` takes its arguments in any order" if name in _SYMMETRIC and len(given) == 2 else None
        yield _Fault(
            "swapped arguments", SyntaxEdit(first.start_byte, second.end_byte, f"{other}{between}{one}"), symmetric
        )

    def _has_effect(self, done: Node) -> bool:
        if done.type == "assignment":  # only of attributes and items: a missing variable is found at once
            left = done.child_by_field_name("left")
            return left is not None and left.type in ("attribute", "subscript")
        return done.type in _EFFECTS


def _condition(node: Node) -> Node | None:
    if node.type == "conditional_expression":
        return _child(node, 1)
    return _child(node, 0) if node.type == "if_clause" else node.child_by_field_name("condition")


def _is_condition(node: Node) -> bool:
    """Return True if a node is a whole condition, which can be negated."""
    whole = node.parent if node.parent is not None and node.parent.type == "parenthesized_expression" else node
    around = whole.parent
    return around is not None and around.type in _CONDITIONAL | _TERNARIES and _condition(around) == whole


def _keeps_the_same(comparison: Node) -> str | None:
    """Return why a change of a boundary has no effect, or None."""
    sides = {text_of(child) for child in comparison.named_children}
    around = comparison.parent
    if around is not None and around.type == "parenthesized_expression":
        around = around.parent
    if around is None or len(sides) != 2 or not _is_condition(comparison):
        return None
    if around.type == "ternary_expression":
        results = {text_of(around.child_by_field_name(name)) for name in ("consequence", "alternative")}
    elif around.type == "conditional_expression":
        results = {text_of(_child(around, 0)), text_of(_child(around, 2))}
    else:
        return None
    return "where both sides are equal, either branch gives the same" if results == sides else None


def _is_error_text(node: Node) -> bool:
    """Return True if a text is part of an error message, whose words tasks rarely prescribe."""
    for _, around in ancestors(node):
        if around.type.endswith(("_statement", "_definition", "block")):
            return around.type in ("raise_statement", "throw_statement")
        callee = around.child_by_field_name("function") or around.child_by_field_name("constructor")
        if text_of(callee).endswith(("Error", "Exception")):
            return True
    return False


def _is_key(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "pair" and node == node.parent.child_by_field_name("key")


def _child(node: Node, index: int) -> Node | None:
    return node.named_children[index] if index < node.named_child_count else None


def _replace(node: Node, text: str) -> SyntaxEdit:
    return SyntaxEdit(node.start_byte, node.end_byte, text)
