import re
from fractions import Fraction

SIGNS = {
    "½": Fraction(1, 2),
    "⅓": Fraction(1, 3),
    "⅔": Fraction(2, 3),
    "¼": Fraction(1, 4),
    "¾": Fraction(3, 4),
    "⅛": Fraction(1, 8),
    "⅜": Fraction(3, 8),
    "⅝": Fraction(5, 8),
    "⅞": Fraction(7, 8),
}
SIGN = f"[{''.join(SIGNS)}]"
QUANTITY = rf"(?:[0-9]+ +[0-9]+/[0-9]+|[0-9]+/[0-9]+|[0-9]+\.[0-9]+|[0-9]+ *{SIGN}|{SIGN}|[0-9]+)"
LINE = re.compile(rf"({QUANTITY})(?: *- *({QUANTITY}))? +(.*)", re.DOTALL)
TEASPOONS = {"tsp": 1, "tbsp": 3, "cup": 48, "cups": 48}


def read_quantity(text: str) -> Fraction:
    if not re.fullmatch(QUANTITY, text):
        raise ValueError(f"not a quantity: {text}")
    parts = re.findall(rf"[0-9./]+|{SIGN}", text)
    try:
        return sum((SIGNS[part] if part in SIGNS else Fraction(part) for part in parts), Fraction(0))
    except ZeroDivisionError:
        raise ValueError(f"not a quantity: {text}") from None


def write_quantity(quantity: Fraction) -> str:
    whole, rest = divmod(quantity, 1)
    if not rest:
        return str(whole)
    return f"{whole} {rest}" if whole else str(rest)


def scale(line: str, factor: Fraction | int) -> str:
    match = LINE.fullmatch(line)
    if not match:
        return line
    low, high, rest = match.groups()
    amounts = [read_quantity(part) * factor for part in (low, high) if part]
    unit, *others = re.split(r"(?=\s)", rest, maxsplit=1)
    if unit in TEASPOONS:
        amounts, unit = _in_suitable_unit([amount * TEASPOONS[unit] for amount in amounts])
    return f"{'-'.join(map(write_quantity, amounts))} {unit}{''.join(others)}"


def scale_recipe(text: str, servings: int, wanted: int) -> str:
    if servings < 1 or wanted < 1:
        raise ValueError("servings are whole numbers of at least 1")
    factor = Fraction(wanted, servings)
    lines = []
    for line in text.split("\n"):
        content = line.lstrip(" ")
        lines.append(" " * (len(line) - len(content)) + scale(content, factor))
    return "\n".join(lines)


def _in_suitable_unit(teaspoons: list[Fraction]) -> tuple[list[Fraction], str]:
    if teaspoons[0] >= 12:
        cups = [amount / 48 for amount in teaspoons]
        return cups, "cups" if cups[-1] > 1 else "cup"
    if teaspoons[0] >= 3:
        return [amount / 3 for amount in teaspoons], "tbsp"
    return teaspoons, "tsp"
