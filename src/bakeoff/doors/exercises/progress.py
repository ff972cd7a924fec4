"""`--show-progress`: what an agent changes, shown while it works."""

import asyncio
import sys
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.report.words import visible
from bakeoff.subjects.folder_changes import Tree, patch_of, read_tree

_SECONDS = 1.0
_LINES = 40  # of one look; the whole patch is in the record


async def show_changes(name: str, folder: Path, before: Tree) -> None:
    """Look at the folder again and again until cancelled; each change is shown once, as a diff to the look before."""
    last = before
    try:
        while True:
            await asyncio.sleep(_SECONDS)
            last = await _look(name, folder, last)
    except asyncio.CancelledError:
        await _look(name, folder, last)
        raise


async def _look(name: str, folder: Path, last: Tree) -> Tree:
    try:
        now = await asyncio.to_thread(read_tree, folder)
    except (InfraError, OSError):  # it may be gone, or full of things that change while they are read
        return last
    if patch := patch_of(last.files, now.files):
        sys.stderr.write(shown(name, patch))
        sys.stderr.flush()
    return now


def shown(name: str, patch: str) -> str:
    """A diff for people; control characters in it are shown, never emitted."""
    lines = patch.splitlines()
    more = [f"… and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    told = [f"--- {name} ---", *lines[:_LINES], *more]
    return "".join(f"{visible(line.expandtabs(4), 300)}\n" for line in told)
