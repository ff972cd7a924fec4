"""Store large texts once, named by the hash of their content."""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bakeoff._kernel.files import MAX_FILE_SIZE, os_errors_explained, read_file, write_atomically
from bakeoff.errors import RunFolderError

LONG = 4 * 1024
"""Strings with more characters than this are moved into a blob."""

MAX_TEXTS_SIZE = MAX_FILE_SIZE
"""The most bytes of blobs that belong to one record. A line may name the same blob many times."""

_DIGEST = re.compile(r"[0-9a-f]{64}")

Place = list[str | int]
"""The keys and indices that lead to a string inside JSON data."""

Reference = tuple[Place, str]


@dataclass(frozen=True, slots=True)
class Blobs:
    """The blobs of one run folder."""

    folder: Path

    def path(self, digest: str) -> Path:
        """Return the file of a blob. Raise RunFolderError if the digest is malformed."""
        if not _DIGEST.fullmatch(digest):
            raise RunFolderError(f"{digest!r} is not the digest of a blob")
        return self.folder / digest[:2] / digest

    def write(self, data: bytes) -> str:
        """Store the data and return its digest. A damaged blob is replaced."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        with suppress(OSError):
            if read_file(path, MAX_TEXTS_SIZE) == data:
                return digest
        write_atomically(path, data)
        return digest

    def read(self, digest: str, most: int = MAX_TEXTS_SIZE) -> str:
        """Return a blob's text. Raise RunFolderError if it is missing, damaged or too large."""
        path = self.path(digest)
        with os_errors_explained(f"blob {digest}", "read"):
            data = read_file(path, most)
        if hashlib.sha256(data).hexdigest() != digest:
            raise RunFolderError(f"blob {digest} is damaged: its content has another hash")
        return data.decode()

    def take_out(self, data: Any) -> list[Reference]:
        """Replace long strings in JSON data by blobs. Return the place and digest of each."""
        return [(place, self.write(text.encode())) for place, text in _cut_long_strings(data, [])]

    def put_back(self, data: Any, references: list[Reference]) -> None:
        """Put the strings of blobs back into the data: the inverse of `take_out`."""
        room = MAX_TEXTS_SIZE
        for (*parents, last), digest in references:
            target = data
            for key in parents:
                target = target[key]
            text = target[last] = self.read(digest, room)
            room -= len(text)


def _cut_long_strings(data: Any, place: Place) -> list[tuple[Place, str]]:
    found: list[tuple[Place, str]] = []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(items):
        here = [*place, key]
        if isinstance(value, str) and len(value) > LONG:
            data[key] = ""
            found.append((here, value))
        else:
            found += _cut_long_strings(value, here)
    return found
