"""Make texts of servers safe to print."""

LINE_LENGTH = 300


def visible(text: str, longest: int = LINE_LENGTH) -> str:
    """Return the text on one line, cut to `longest` characters, with control characters escaped."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in cut
    )


def quoted(text: str, longest: int = LINE_LENGTH) -> str:
    """Return the visible text in quotes. `repr` would escape the escapes again."""
    return f"'{visible(text, longest)}'"
