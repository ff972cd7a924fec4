"""Look at the first bytes of a file: enough to tell what it is, however large it is."""

import re
from pathlib import Path

from bakeoff._kernel.files import open_file

_HEAD = 1 << 16
# A string without an end is one token up to the end: read again from each of its quotes, it would take minutes.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|[{}\[\]]')


def first_bytes(path: Path) -> bytes:
    """Return the beginning of a file."""
    with open_file(path) as file:
        return file.read(_HEAD)


def outer_keys(head: bytes) -> tuple[set[str], set[str]]:
    """Return the keys of the first JSON object of a file, and those of the objects in it, as far as `head` has them."""
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    keys: tuple[set[str], set[str]] = (set(), set())
    depth = 0
    for found in _TOKEN.finditer(text) if text.startswith("{") else ():
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth == 0:
                break
        elif depth in (1, 2) and text[found.end() : found.end() + 20].lstrip().startswith(":"):
            keys[depth - 1].add(found[0][1:-1])
    return keys
