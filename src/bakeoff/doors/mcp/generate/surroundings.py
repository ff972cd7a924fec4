"""Suggest paths for drafts: those that the server is started with, so that the calls of drafts can be executed."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import JsonValue

from bakeoff.doors.mcp.generate.wording import group, name_words
from bakeoff.mcp import ServerSpec, ServerTool

_MAX_LOOKED_AT = 2_000
_FOLDERS = frozenset(("directory", "folder", "dir", "cwd"))
_REPOSITORY = frozenset(("repo path", "repository path", "repo dir"))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files that a server is known to reach. Paths are absolute: servers resolve others in different ways."""

    folder: Path | None = None
    files: tuple[str, ...] = ()
    repository: Path | None = None

    @classmethod
    def of(cls, spec: ServerSpec, here: Path) -> "Surroundings":
        """Look at the folders that the server is started with. Nothing is started or changed."""
        if spec.command is None:
            return cls()
        cwd = (here / (spec.cwd or "")).resolve()
        given = [cwd / text for argument in spec.args if (text := argument.rpartition("=")[2])]
        folder = next((path.resolve() for path in given if path.is_dir()), None)
        places = [folder or cwd, *given]
        repository = next((path for path in places if (path / ".git").exists()), None)
        return cls(folder, tuple(islice(_files(folder), 2)) if folder else (), repository)

    def values(self, name: str, tool: ServerTool) -> Iterator[JsonValue]:
        """Yield what a parameter of a tool may be: a new path for tools that make files, else one that exists."""
        words, about = name_words(name), set(name_words(tool.name))
        if " ".join(words) in _REPOSITORY and self.repository is not None:
            yield str(self.repository)
        if self.folder is None or not words or words[-1] not in group("paths"):
            return
        if words[-1] in _FOLDERS or (words[-1] == "path" and about & group("in-folders")):
            yield str(self.folder / "ideas" if about & group("makes") else self.folder)
        elif about & group("makes") or words[0] in ("destination", "output", "target"):
            yield str(self.folder / "ideas.md")
        elif self.files:
            yield [*self.files] if words[-1] in ("paths", "files") else self.files[0]


def _files(root: Path) -> list[str]:
    """Return the text files below a folder, the highest first. Hidden ones are left out."""
    with suppress(OSError):
        found = [path for path in islice(root.rglob("*"), _MAX_LOOKED_AT) if path.suffix.lower() in group("texts")]
        shown = [path for path in found if not any(part.startswith(".") for part in path.relative_to(root).parts)]
        return [str(path) for path in sorted(shown, key=lambda path: (len(path.parts), path.name)) if path.is_file()]
    return []
