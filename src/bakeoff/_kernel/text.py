"""Format text for people: untrusted text, counts with nouns, plain messages for pydantic errors."""

import re
from collections.abc import Container, Iterable
from itertools import chain, count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LINE_LENGTH = 300


def escaped(text: str) -> str:
    """Return untrusted text on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def escaped_lines(text: str) -> str:
    """Return untrusted text with control characters escaped, except line breaks."""
    return "\n".join(map(escaped, text.split("\n")))


def visible(text: str, longest: int = LINE_LENGTH) -> str:
    """Return untrusted text on one line, escaped and cut to `longest` characters."""
    shown = escaped(text[: longest + 1])
    return shown if len(text) <= longest else f"{shown[:longest]}…"


def shorten(text: str, most: int) -> str:
    """Return the text cut to `most` characters, with an ellipsis if it was longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def without_command(line: str) -> str:
    """Return the line without GitHub workflow commands: `::` at its start, or `##[` anywhere."""
    stripped = line.lstrip()
    begun = f"{line[: len(line) - len(stripped)]}: {stripped[1:]}" if stripped.startswith("::") else line
    return begun.replace("##[", "## [")


def quoted(text: str, longest: int = LINE_LENGTH) -> str:
    """Return the `visible` text in quotes, without escaping it twice as `repr` would."""
    return f"'{visible(text, longest)}'"


def count_of(number: int, thing: str, things: str | None = None) -> str:
    """Return a number with its noun, such as `2 cases`. `things` is the plural if irregular."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def part_of(part: int, whole: int, thing: str, verbs: str = "") -> str:
    """Return a part with its whole, such as `1 of 2 cases`.

    Of `verbs`, such as `is/are`, the first is appended if either number is 1, else the second.
    """
    one, _, many = verbs.partition("/")
    verb = f" {one if 1 in (part, whole) else many}" if verbs else ""
    return f"{part:,} of {count_of(whole, thing)}{verb}"


def free_name(name: str, taken: Container[str], form: str = "{} ({})") -> str:
    """Return the name, or a numbered form such as `name (2)` if the name is taken."""
    numbered = (form.format(name, number) for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


_NAMES_SHOWN = 10


def near_names(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean …?` with similar names, or `: there are …` with all names."""
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    more = ", …" if len(names) > _NAMES_SHOWN else ""
    some = f"{', '.join(names[:_NAMES_SHOWN]) or 'none'}{more}"
    return f": did you mean {', '.join(map(repr, near))}?" if near else f": there are {some}"


_MAX_SHOWN_LENGTH = 80

_WHOLE, _NUMBER, _TRUTH = "has to be a whole number", "has to be a number", "has to be true or false"
_TEXT, _LIST, _OBJECT = "has to be a text", "has to be a list", "has to be an object, with keys and values"
_WANTED = {
    "missing": "is missing",
    "extra_forbidden": "is not a key that is known here",
    "json_invalid": "this is not JSON: {}",
    "none_required": "has to be null",
    "invalid_key": "has to have texts as keys",
    "union_tag_invalid": "has to be of one of the types {}",
    "union_tag_not_found": "needs the key {}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _TRUTH),
    **dict.fromkeys(("string_type", "path_type", "bytes_type", "url_type"), _TEXT),
    "string_too_short": "needs at least {} characters",
    "string_too_long": "may have at most {} characters",
    "string_pattern_mismatch": "does not match {}",
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type", "iterable_type"), _LIST),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type", "is_instance_of"),
        _OBJECT,
    ),
    "too_short": "needs at least {}",
    "too_long": "may have at most {}",
    "greater_than_equal": "has to be at least {}",
    "greater_than": "has to be more than {}",
    "less_than_equal": "has to be at most {}",
    "less_than": "has to be less than {}",
    "multiple_of": "has to be a multiple of {}",
    "finite_number": "has to be a finite number",
}
_LIMITS = (
    *("expected_tags", "discriminator", "ge", "gt", "le", "lt"),
    *("multiple_of", "min_length", "max_length", "pattern", "error"),
)
_WITHOUT_VALUE = ("value_error", "assertion_error", "missing", "extra_forbidden", "json_invalid")
_OTHERS = re.compile(r"^[A-Z]\w* should ")  # how pydantic's own messages begin


def in_our_words(item: "ErrorDetails") -> str:
    """Describe one pydantic error: the value, and what was expected instead."""
    if item["type"] in _WITHOUT_VALUE:
        return expectation(item)
    hidden = {"env", "headers", "clientSecret"} & set(item["loc"])  # values that may be secret
    value = "" if hidden else f"{shown(item['input'])}: "
    return f"{value}{expectation(item)}{_hint(item)}"


def _hint(item: "ErrorDetails") -> str:
    if item["type"] == "string_type" and isinstance(item["input"], int | float):
        return ": put it in quotes"
    known = re.findall(r"'([^']+)'", str(item.get("ctx", {}).get("expected", "")))
    from difflib import get_close_matches

    near = get_close_matches(str(item["input"]), known, n=1)
    return f": did you mean {near[0]!r}?" if near else ""


def expectation(item: "ErrorDetails") -> str:
    """Describe what was expected, according to one pydantic error."""
    context = item.get("ctx", {})
    if item["type"] in ("value_error", "assertion_error"):  # our own message, which names the value if it may be shown
        return item["msg"].partition(", ")[2]
    if item["type"] in ("literal_error", "enum"):
        return f"has to be {context['expected']}"
    limit = next((context[name] for name in _LIMITS if name in context), "")
    if item["type"] == "string_too_short" and limit == 1:
        return "must not be empty"
    wanted = _WANTED.get(item["type"])
    shown_limit = f"{limit:g}" if isinstance(limit, float) else str(limit)
    return _OTHERS.sub("has to ", item["msg"]) if wanted is None else wanted.format(shown_limit)


def shown(value: object) -> str:
    """Format a value for an error. Objects show only their keys, because their values may be secret."""
    if isinstance(value, dict):
        return f"an object with {', '.join(map(str, value))}"[:_MAX_SHOWN_LENGTH] if value else "{}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return f"a list of {len(value)}"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _MAX_SHOWN_LENGTH else f"{text[:_MAX_SHOWN_LENGTH]}…"
