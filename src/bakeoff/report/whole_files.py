"""Files for other people and programs: there whole or not at all, and readable by everyone."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bakeoff.errors import UsageError

_PUBLIC = 0o644


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A file beside the target that takes its place at the end."""
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".new-", suffix=target.suffix, delete=False) as made:
            temporary = Path(made.name)
        yield temporary
        temporary.chmod(_PUBLIC)
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def whole_text(target: Path) -> Iterator[TextIO]:
    with whole_file(target) as path, path.open("w", encoding="utf-8", newline="") as file:
        yield file


def refuse_unwritable(option: str, target: Path) -> None:
    """Say before anything is paid for that its result would have no place."""
    if target.is_dir():
        raise UsageError(f"{option} {target} is a folder: name a file")
    above = next((folder for folder in target.absolute().parents if folder.exists()), Path("/"))
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{option} {target} cannot be written: {above} is not a folder that you may write to")
