"""Show what an agent changes while it works: `--show-progress`."""

import asyncio
import sys
from pathlib import Path

from bakeoff._kernel.text import visible
from bakeoff.errors import InfraError
from bakeoff.subjects.folder_changes import Tree, patch_of, read_tree

_SECONDS = 1.0
_LINES = 40  # of one diff; the record has the whole patch


async def show_changes(name: str, folder: Path, before: Tree) -> None:
    """Print the changes in a folder every second until cancelled, each as a diff to the state before."""
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
    except (InfraError, OSError):  # it may be gone, or change while it is read
        return last
    if patch := patch_of(last.files, now.files):
        sys.stderr.write(format_diff(name, patch))
        sys.stderr.flush()
    return now


def format_diff(name: str, patch: str) -> str:
    """Return a diff for the terminal. Control characters are shown, never emitted."""
    lines = patch.splitlines()
    more = [f"… and {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    shown = [f"--- {name} ---", *lines[:_LINES], *more]
    return "".join(f"{visible(line.expandtabs(4), 300)}\n" for line in shown)
