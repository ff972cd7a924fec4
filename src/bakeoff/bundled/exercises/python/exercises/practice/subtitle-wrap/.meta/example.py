import unicodedata

JOINER = "\u200d"
SOFT_HYPHEN = "\u00ad"
CLOSING = set("、。，．！？）」』】")
OPENING = set("（「『【")


def clusters(text: str) -> list[str]:
    found: list[str] = []
    for character in text:
        if found and _belongs_to(found[-1], character):
            found[-1] += character
        else:
            found.append(character)
    return found


def width(text: str) -> int:
    return sum(_width(cluster) for cluster in clusters(text))


def wrap(text: str, columns: int) -> list[str]:
    if columns < 2:
        raise ValueError(f"not enough columns: {columns}")
    return [line for paragraph in text.split("\n") for line in _wrap_paragraph(clusters(paragraph), columns)]


def _wrap_paragraph(rest: list[str], columns: int) -> list[str]:
    lines = []
    while True:
        rest = _without_leading_spaces(rest)
        if _needs(rest, False) <= columns:
            return [*lines, _shown(rest, False)] if rest or not lines else lines
        end, hyphen = _break(rest, columns)
        lines.append(_shown(rest[:end], hyphen))
        rest = rest[end:]


def _break(rest: list[str], columns: int) -> tuple[int, bool]:
    """Returns how many clusters fit into the line, and whether it ends with a visible hyphen."""
    allowed = cut = 0
    for end in range(1, len(rest)):
        if _needs(rest[:end], False) > columns:
            break
        cut = end
        if _may_break(rest[end - 1], rest[end]) and _needs(rest[:end], rest[end - 1] == SOFT_HYPHEN) <= columns:
            allowed = end
    if allowed:
        return allowed, rest[allowed - 1] == SOFT_HYPHEN
    return cut, False


def _may_break(before: str, after: str) -> bool:
    if " " in (before, after) or before == SOFT_HYPHEN:
        return True
    return 2 in (_width(before), _width(after)) and before not in OPENING and after not in CLOSING


def _needs(line: list[str], hyphen: bool) -> int:
    return width(_shown(line, hyphen))


def _shown(line: list[str], hyphen: bool) -> str:
    return "".join(line).replace(SOFT_HYPHEN, "").rstrip(" ") + "-" * hyphen


def _without_leading_spaces(line: list[str]) -> list[str]:
    start = 0
    while start < len(line) and line[start] == " ":
        start += 1
    return line[start:]


def _belongs_to(cluster: str, character: str) -> bool:
    if unicodedata.category(character).startswith("M") or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    if character == JOINER or cluster.endswith(JOINER):
        return True
    return len(cluster) == 1 and _is_indicator(cluster) and _is_indicator(character)


def _is_indicator(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _width(cluster: str) -> int:
    first = cluster[0]
    if "\ufe0f" in cluster or (len(cluster) > 1 and _is_indicator(first) and _is_indicator(cluster[1])):
        return 2
    if unicodedata.east_asian_width(first) in "WF":
        return 2
    return 0 if unicodedata.category(first)[0] == "M" or unicodedata.category(first) in ("Cc", "Cf") else 1
