"""Which paths a workspace takes in, and which it gives out: one rule for plans and for the copy."""

import unicodedata


def unfit(pattern: str) -> str:
    """Why nothing can be taken out of a workspace by this path or glob; empty where something can."""
    return astray(pattern) or next(filter(None, map(odd_name, pattern.split("/"))), "")


def astray(path: str) -> str:
    """Why a path does not plainly lead to something inside; empty where it does."""
    if not path or path.startswith("/"):
        return "is not a relative path"
    if {"", ".", ".."} & set(path.split("/")):
        return "has an empty, '.' or '..' component"
    return "contains a NUL" if "\0" in path else ""


def odd_name(name: str) -> str:
    """Why a file of this name is not taken; empty for an ordinary one."""
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
