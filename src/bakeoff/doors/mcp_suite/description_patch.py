"""Make a patch that gives a tool another description in the source of its server."""

import os
import re
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
_LINE = re.compile(r".*\n|.+")  # as git counts lines, to which a form feed is no end of one
_NO_NEWLINE = "\\ No newline at end of file"


def description_patch(folder: Path, before: str, after: str) -> str | None:
    """Return a patch for the only place below a folder that has the present description, or None.

    A text that could end a string, or continue it on another line, is not put into source code.
    """
    if not before.strip() or not after.isprintable() or any(char in after for char in "\"'`\\${}"):
        return None
    places = [(file, text) for file, text in _sources(folder) if before in text]
    if len(places) != 1 or places[0][1].count(before) != 1:
        return None
    [(file, text)] = places
    name = file.relative_to(folder).as_posix()
    if not name.isprintable():
        return None
    ending = "\t" if " " in name else ""  # where the name ends, as git writes it
    old, new = (_LINE.findall(each) for each in (text, text.replace(before, after)))
    lines = unified_diff(old, new, f"a/{name}{ending}", f"b/{name}{ending}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in lines)


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
                    yield file, file.read_bytes().decode()  # line endings stay as they are
            except (OSError, ValueError):
                continue
