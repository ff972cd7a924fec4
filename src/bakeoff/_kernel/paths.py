"""Decide which paths may go into a workspace and which may come out. Plans and the sandbox share these rules."""

import unicodedata


def pattern_problem(pattern: str) -> str:
    """Return why no file can be taken out of a workspace by this path or glob; empty if one can."""
    return path_problem(pattern) or next(filter(None, map(name_problem, pattern.split("/"))), "")


def path_problem(path: str) -> str:
    """Return why a path does not lead to something inside the workspace; empty if it does."""
    if not path or path.startswith("/"):
        return "is not a relative path"
    if {"", ".", ".."} & set(path.split("/")):
        return "has an empty, '.' or '..' component"
    return "contains a NUL" if "\0" in path else ""


def name_problem(name: str) -> str:
    """Return why a file of this name is refused; empty for an ordinary name."""
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if any(unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"} for character in name):
        return "has a control or invisible character in its name"
    if unicodedata.normalize("NFC", name) != name:
        return "has a name that looks like another one (not in Unicode form NFC)"
    if "\\" in name or name != name.strip() or name.startswith("-"):
        return "has a name that starts with a dash, or has a backslash or outer white space"
    return "has a name longer than 255 bytes" if len(encoded) > 255 else ""
