"""Make untrusted texts safe to print on one line, names different from each other, and counts agree with their noun."""

from collections.abc import Container, Iterable
from difflib import get_close_matches
from itertools import chain, count

LINE_LENGTH = 300


def escaped(text: str) -> str:
    """Return untrusted text on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def visible(text: str, longest: int = LINE_LENGTH) -> str:
    """Return untrusted text on one line, cut to `longest` characters, with control characters escaped."""
    shown = escaped(text[: longest + 1])
    return shown if len(text) <= longest else f"{shown[:longest]}…"


def shorten(text: str, most: int) -> str:
    """Return the text, cut to `most` characters; an ellipsis shows that there is more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def without_command(line: str) -> str:
    """Return the line without GitHub commands, which begin a line with `::` or stand anywhere after `##[`."""
    stripped = line.lstrip()
    begun = f"{line[: len(line) - len(stripped)]}: {stripped[1:]}" if stripped.startswith("::") else line
    return begun.replace("##[", "## [")


def quoted(text: str, longest: int = LINE_LENGTH) -> str:
    """Return the visible text in quotes. `repr` would escape the escapes again."""
    return f"'{visible(text, longest)}'"


def count_of(number: int, thing: str, things: str | None = None) -> str:
    """Return a number with its noun, such as `1 case` and `2 cases`. `things` is an irregular plural."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def part_of(part: int, whole: int, thing: str, verbs: str = "") -> str:
    """Return a part with its whole, such as `1 of 2 cases`. Of `verbs` (`is/are`), the first follows if either is 1."""
    one, _, many = verbs.partition("/")
    verb = f" {one if 1 in (part, whole) else many}" if verbs else ""
    return f"{part:,} of {count_of(whole, thing)}{verb}"


def free_name(name: str, taken: Container[str], form: str = "{} ({})") -> str:
    """Return the name, or the first numbered form of it that is not taken: `name (2)`, `name (3)` and so on."""
    numbered = (form.format(name, number) for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


def near_names(name: str, known: Iterable[str]) -> str:
    """Return `: did you mean …?` with similar names, or `: there are …` with all names."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    return f": did you mean {', '.join(map(repr, near))}?" if near else f": there are {', '.join(names[:10]) or 'none'}"
