"""The encodings in which no key may be readable: those that docs/explanation/redaction.md promises."""

import base64
import html
import json
import textwrap
from collections.abc import Callable
from urllib.parse import quote

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "lower case": str.lower,
    "upper case": str.upper,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON in JSON": lambda key: json.dumps(json.dumps(key)[1:-1])[1:-1],
    "URL": lambda key: quote(key, safe=""),
    "HTML": html.escape,
    "spaces": " ".join,
    "dots": ".".join,
    "lines": "\n".join,
    "a list": lambda key: json.dumps(list(key)),
    "hex": lambda key: key.encode().hex(),
    "hex in upper case": lambda key: key.encode().hex().upper(),
    "hex with colons": lambda key: key.encode().hex(":"),
    "\\x": lambda key: "".join(f"\\x{byte:02x}" for byte in key.encode()),
    "decimal": lambda key: ", ".join(map(str, key.encode())),
    "\\u": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "entities": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "hex entities": lambda key: "".join(f"&#x{ord(char):x};" for char in key),
    "percent": lambda key: "".join(f"%{byte:02X}" for byte in key.encode()),
    "quoted-printable": lambda key: "".join(f"={byte:02X}" for byte in key.encode()),
    "zero-width": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "combining": "\u0336".join,
    "UTF-16": lambda key: key.encode("utf-16-le").decode("latin-1"),
    "UTF-16 BE": lambda key: key.encode("utf-16-be").decode("latin-1"),
    "UTF-32": lambda key: key.encode("utf-32-be").decode("latin-1"),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "base64 in lines": lambda key: "\n".join(textwrap.wrap(base64.b64encode(key.encode()).decode(), 16)),
    "coloured": lambda key: "".join(f"\x1b[31m{char}\x1b[0m" for char in key),
}


BOUNDED_ENCODINGS = ("plain", "hex")
"""The encodings of the bounded form. That the others are recognised is shown where texts are redacted."""


def core(encoded: str, encoding: str) -> str:
    """Return the part of an encoded key that does not depend on what stands beside it."""
    return encoded[4:-4] if encoding.startswith("base64") else encoded
