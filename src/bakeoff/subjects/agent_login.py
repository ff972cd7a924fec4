"""Read the files of a user's login that an agent is given, and find the secrets in them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bakeoff.sandbox import take
from bakeoff.storage.redaction import SHORTEST, secrets_in

_MAX_BYTES = 4 * 1024 * 1024
_MAX_FILES = 200
_MAX_SECRETS = 64  # all output is searched for each of them, in many encodings
_LONGEST = 16_384
_ASSIGNED = re.compile(r"""([\w.-]+)["']?\s*[:=]\s*["']?([^\s"',;]+)""")
_WORD = re.compile(r"""[^\s"',;]+""")
_RUN = re.compile(r"[A-Za-z0-9_]{16,}")  # longer than words; names of models and dates have separators
_ADDRESS = re.compile(r"(https?://[^?@]*|[/~][^?@=]*)")


def login_files(paths: tuple[str, ...]) -> dict[str, bytes]:
    """Return the files of the login that the user allows the agent to have."""
    patterns = [pattern for path in paths for pattern in (path, f"{path}/**")]
    return take(Path.home(), patterns, max_bytes=_MAX_BYTES, max_files=_MAX_FILES).files if patterns else {}


def login_secrets(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts that are named like a secret or look like one, by the files they stand in."""
    found: dict[str, tuple[bool, str]] = {}
    for path, content in files.items():
        for name, text in _texts(content):
            called = bool(secrets_in({name: text}))
            if SHORTEST <= len(text) <= _LONGEST and (called or looks_secret(text)):
                found.setdefault(text, (not called, path))
    first = sorted(found, key=lambda text: found[text][0])[:_MAX_SECRETS]
    return {f"{found[text][1]}.{number}": text for number, text in enumerate(first, start=1)}


def looks_secret(text: str) -> bool:
    """Return whether the text is one word with a long run of letters and digits."""
    if any(character.isspace() for character in text) or is_address(text):
        return False
    runs = _RUN.findall(text)
    return any(re.search("[A-Za-z]", run) and re.search("[0-9]", run) for run in runs)


def is_address(text: str) -> bool:
    """Return whether the text is a URL or a path without a password and a query."""
    return _ADDRESS.fullmatch(text) is not None


def _texts(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield every text with its name, from JSON or from lines of another format."""
    text = content.decode(errors="replace")
    try:
        yield from _members(json.loads(text))
    except (ValueError, RecursionError):
        words = _WORD.findall(text)
        yield from _ASSIGNED.findall(text)
        yield from (("token" if len(words) == 1 else "", word) for word in words)  # some files hold nothing but a token


def _members(data: object) -> Iterator[tuple[str, str]]:
    queue = [("", data)]
    while queue:
        name, item = queue.pop()
        if isinstance(item, str):
            yield name, item
        elif isinstance(item, dict):
            queue.extend((str(key), value) for key, value in item.items())
        elif isinstance(item, list):
            queue.extend((name, value) for value in item)
