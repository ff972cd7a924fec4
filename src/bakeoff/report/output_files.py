"""Write output files: either completely or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bakeoff._kernel.files import PUBLIC as PUBLIC
from bakeoff._kernel.files import is_stream
from bakeoff.errors import BakeoffError, UsageError


@contextmanager
def replace_file(target: Path, mode: int = PUBLIC, error: type[BakeoffError] = UsageError) -> Iterator[Path]:
    """Yield a temporary file that replaces the target at the end, without fsync.

    Nothing is left behind if the body raises. `error` is raised if the target cannot be written.
    """
    temporary = None
    stream = is_stream(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = None if stream else target.parent
        with tempfile.NamedTemporaryFile(dir=beside, prefix=".new-", suffix=target.suffix, delete=False) as made:
            temporary = Path(made.name)
        yield temporary
        if stream:
            with temporary.open("rb") as written, target.open("wb") as into:
                shutil.copyfileobj(written, into)
            return
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as problem:
        raise error(f"{target} cannot be written: {problem.strerror or problem}") from problem
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def replace_text(target: Path, mode: int = PUBLIC) -> Iterator[TextIO]:
    """Yield a text file that replaces the target at the end."""
    with replace_file(target, mode) as path, path.open("w", encoding="utf-8", newline="") as file:
        yield file


def refuse_unwritable(option: str, target: Path) -> None:
    """Raise a `UsageError` if an option's target is not writable. Call this before a run."""
    if target.is_dir():
        raise UsageError(f"{option} {target} is a folder: name a file")
    if is_stream(target) and os.access(target, os.W_OK):
        return
    above = next((folder for folder in target.absolute().parents if folder.exists()), Path("/"))
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{option} {target} cannot be written: {above} is not a folder that you may write to")
