"""Large texts, stored once under the hash of their content."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bakeoff._kernel.files import write_atomically
from bakeoff.errors import RunFolderError

LONG = 4 * 1024
"""Strings of more characters than this are worth a blob of their own."""

_DIGEST = re.compile(r"[0-9a-f]{64}")

Place = list[str | int]
"""The keys and indices that lead to a string inside JSON data."""

Reference = tuple[Place, str]


@dataclass(frozen=True, slots=True)
class Blobs:
    """The blobs of one run folder."""

    folder: Path

    def path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise RunFolderError(f"{digest!r} is not the name of a blob")
        return self.folder / digest[:2] / digest

    def write(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not _holds(path, digest):
            write_atomically(path, data)
        return digest

    def read(self, digest: str) -> str:
        """A blob's text, or an error where it is missing or is not what its name says."""
        path = self.path(digest)
        if path.exists() and not path.is_file():  # reading a pipe would never end
            raise RunFolderError(f"blob {digest} cannot be read: it is not a file")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RunFolderError(f"blob {digest} cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise RunFolderError(f"blob {digest} is damaged: its content has another hash")
        return data.decode()

    def take_out(self, data: Any) -> list[Reference]:
        """Move every long string of JSON data, in place, into blobs; returns where each belongs."""
        return [(place, self.write(text.encode())) for place, text in _cut_long_strings(data, [])]

    def put_back(self, data: Any, references: list[Reference]) -> None:
        """Undo `take_out`, in place."""
        for (*parents, last), digest in references:
            target = data
            for key in parents:
                target = target[key]
            target[last] = self.read(digest)


def _holds(path: Path, digest: str) -> bool:
    """Whether the blob is there and whole; a damaged one is written again."""
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


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
