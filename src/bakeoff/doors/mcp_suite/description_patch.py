"""Make a patch that gives a tool another description in the source of its server."""

import os
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

_SOURCES = (
    *(".py", ".ts", ".js", ".mjs", ".cjs", ".tsx", ".go", ".rs", ".java", ".kt", ".cs", ".rb", ".php", ".swift"),
    *(".json", ".yaml", ".yml", ".toml"),
)
_SKIPPED = frozenset({"node_modules", "__pycache__", "results", "mcp-report", "dist", "build", "target", "venv"})
_LARGEST = 1 << 20
_MOST_FILES = 5_000


def description_patch(folder: Path, before: str, after: str) -> str | None:
    """Return a patch for the only place below a folder that has the present description, or None.

    A text that could end a string, or continue it on another line, is not put into source code.
    """
    if not before.strip() or any(char in after for char in "\"'`\\$\n{}"):
        return None
    places = [(file, text) for file, text in _sources(folder) if before in text]
    if len(places) != 1 or places[0][1].count(before) != 1:
        return None
    [(file, text)] = places
    name = file.relative_to(folder).as_posix()
    old, new = (each.splitlines(keepends=True) for each in (text, text.replace(before, after)))
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))


def _sources(folder: Path) -> Iterator[tuple[Path, str]]:
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if not name.endswith(_SOURCES):
                continue
            seen += 1
            if seen > _MOST_FILES:
                return
            file = Path(place, name)
            try:
                if file.is_file() and file.stat().st_size <= _LARGEST:
                    yield file, file.read_text("utf-8")
            except (OSError, ValueError):
                continue
