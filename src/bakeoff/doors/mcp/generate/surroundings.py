"""Suggest values for drafts: files, tables and branches of a server, examples in descriptions, usual values."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import JsonValue

from bakeoff.doors.mcp.generate.values import Suggest
from bakeoff.doors.mcp.generate.wording import entry_for, group, name_words, wording
from bakeoff.mcp import ServerSpec, ServerTool

_MAX_LOOKED_AT = 2_000
_MAX_BYTES = 100_000
_REPOSITORY = frozenset(("repo path", "repo", "repository", "repository path", "repo dir", "cwd"))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files that a server is known to reach. Paths are absolute: servers resolve others in different ways."""

    folder: str | None = None
    files: tuple[str, ...] = ()
    picture: str | None = None
    word: str | None = None  # of the last file
    repository: str | None = None
    branch: str = "main"
    tracked: tuple[str, ...] = ()  # files, relative to the repository
    table: str = "orders"
    column: str = "item"

    @classmethod
    def of(cls, spec: ServerSpec, here: Path) -> "Surroundings":
        """Look at the folders and files that the server is started with. Nothing is started or changed."""
        if spec.command is None:
            return cls()
        cwd = here / (spec.cwd or "")
        given = [argument.rpartition("=")[2] for argument in spec.args]
        paths = [text for text in given if text and (cwd / text).exists()]
        folders = [text for text in paths if (cwd / text).is_dir()]
        roots = folders or [""]
        folder = str((cwd / folders[0]).resolve()) if folders else None
        root = (cwd / roots[0]).resolve()
        texts = [str(path) for path in islice(_files(root, group("texts")), 3)]
        repository = next((root for root in (*roots, *_children(cwd)) if (cwd / root / ".git").exists()), None)
        home = cwd / (repository or "")
        found_files = islice(_files(home, group("texts")), 2) if repository is not None else ()
        tracked = tuple(str(path.relative_to(home)) for path in found_files)
        table, column = next((found for text in paths if (found := _table(cwd / text))), ("orders", "item"))
        return cls(
            folder=folder,
            files=tuple(texts),
            picture=next(map(str, _files(root, group("pictures"))), None),
            word=_word(Path(texts[-1])) if texts else None,
            repository=None if repository is None else repository or ".",
            branch=_branch(cwd / repository) if repository is not None else "main",
            tracked=tracked,
            table=table,
            column=column,
        )

    def values(self, name: str, tool: ServerTool) -> Iterator[JsonValue]:
        """Yield what a parameter of a tool may be, the most likely first."""
        words, about = name_words(name), set(name_words(tool.name))
        joined = " ".join(words)
        if "repo path" in (" ".join(name_words(each)) for each in tool.parameters) or "git" in about:
            yield from self._of_repository(joined)
        ends = bool(words) and words[-1] in ("source", "destination") and not about & group("on-disk")
        if joined in ("branch", "branch name"):
            yield "faster-search" if about & group("makes") else self.branch
        elif joined == "base branch":
            yield self.branch
        elif words and words[-1] in group("paths") and not ends:
            yield from self._paths(words, about)
        elif joined in ("pattern", "glob") and self.files:
            yield f"*{Path(self.files[0]).suffix}"
        elif joined == "old text" and self.word:
            yield self.word
        elif joined in ("table", "table name"):
            yield self.table
        elif joined in ("query", "sql", "statement"):
            part = tool.parameters.get(name)
            said = part.get("description", "") if isinstance(part, dict) else ""
            if "sql" in name_words(f"{tool.description} {said}"):
                yield self._statement(about)

    def _of_repository(self, name: str) -> Iterator[JsonValue]:
        """Yield values of parameters of Git tools."""
        if name in _REPOSITORY and self.repository is not None:
            yield self.repository
        elif name in ("files", "paths") and self.tracked:
            yield [self.tracked[0]]
        elif name == "target":
            yield "HEAD"
        elif name == "branch type":
            yield "all"

    def _paths(self, words: Sequence[str], about: set[str]) -> Iterator[JsonValue]:
        """Yield paths: new ones for tools that make files, existing ones for the others."""
        place = f"{self.folder.rstrip('/')}/" if self.folder else ""
        makes, last = bool(about & group("makes")) or words[0] in ("destination", "output", "target"), words[-1]
        if last in ("directory", "folder", "dir", "cwd") or (last == "path" and about & group("in-folders")):
            yield f"{place}ideas" if makes else self.folder or "notes"
        elif makes:
            yield f"{place}{'archive' if words[0] == 'destination' else 'ideas'}.md"
        elif last in ("paths", "files"):
            yield [*self.files[:2]] or ["notes/todo.txt", "notes/done.txt"]
        elif about & {"media", "image", "picture", "photo"}:
            yield self.picture or "photos/boat.png"
        else:
            changes = about & {"edit", "move", "update", "delete", "rename"}
            yield (self.files[-1] if changes else self.files[0]) if self.files else "notes/todo.txt"

    def _statement(self, about: set[str]) -> str:
        """Return an SQL statement for what a tool does, by the words of its name."""
        if "create" in about:
            return "CREATE TABLE guests (id INTEGER PRIMARY KEY, name TEXT)"
        if about & {"write", "insert", "update", "execute"}:
            return f"INSERT INTO {self.table} ({self.column}) VALUES ('milk')"  # noqa: S608 - a text for a draft, which is not executed here
        return f"SELECT count(*) FROM {self.table}"  # noqa: S608 - as above


def _files(root: Path, suffixes: frozenset[str]) -> Iterator[Path]:
    """Yield files with these endings, the highest ones first. Hidden ones are left out."""
    with suppress(OSError):
        found = islice(root.rglob("*"), _MAX_LOOKED_AT)
        plain = [
            path
            for path in found
            if path.suffix.lower() in suffixes
            and not any(part.startswith(".") or part == "node_modules" for part in path.relative_to(root).parts)
            and path.is_file()
        ]
        yield from sorted(plain, key=lambda path: (len(path.parts), path.name))


def _children(folder: Path) -> list[str]:
    with suppress(OSError):
        return sorted(path.name for path in islice(folder.iterdir(), _MAX_LOOKED_AT) if path.is_dir())
    return []


def _word(file: Path) -> str | None:
    """Return a word that a file contains once."""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_bytes()[:_MAX_BYTES].decode()
        words = re.findall(r"\b[A-Za-z]{4,20}\b", text)
        return next((word for word in words if text.count(word) == 1), None)
    return None


def _branch(repository: Path) -> str:
    """Return the branch that a repository is on, or `main`."""
    with suppress(OSError, UnicodeDecodeError):
        head = (repository / ".git" / "HEAD").read_text().strip()
        if head.startswith("ref: refs/heads/"):
            return head.removeprefix("ref: refs/heads/")
    return "main"


def _table(file: Path) -> tuple[str, str] | None:
    """Return a table of an SQLite file, and a column of texts."""
    if file.suffix not in (".db", ".sqlite", ".sqlite3") or not file.is_file():
        return None
    address = f"{file.resolve().as_uri()}?mode=ro"
    with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(address, uri=True)) as base:
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not re.fullmatch(r"[A-Za-z_]\w*", table):
                continue
            for _, column, kind, *_ in base.execute(f"PRAGMA table_info({table})"):
                if "TEXT" in str(kind).upper() or "CHAR" in str(kind).upper():
                    return table, column
    return None


_EXAMPLES = re.compile(
    r"(?:\be\.g\.|\bfor example|\bsuch as|\blike\b)[:,]?\s*((?:[\"'`][^\"'`\n]{1,60}[\"'`][,\s]*(?:or |and )?)+)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\(e\.g\.,? ([a-z][\w/-]{2,30})(?:, [\w/-]+)*(?:,? etc\.?|,? \.\.\.)?\)")
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,60})[\"'`]")


def suggestions(tool: ServerTool, around: Surroundings) -> Suggest:
    """Return what suggests values for the parameters of a tool."""

    def suggest(name: str, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
        yield from around.values(name, tool)
        yield from _examples(str(schema.get("description", "")), schema)
        late = bool(group("late") & set(name_words(name)[:-1]))
        form = str(schema.get("format", "date" if "YYYY-MM-DD" in str(schema.get("description")) else ""))
        kind: list[JsonValue] = wording()["formats"].get(form, []) if form in ("date", "date-time", "time") else []
        usual: list[JsonValue] = entry_for(name, wording()["values"]) or []
        known = kind or ([] if "format" in schema else usual)
        yield from reversed(known) if late and len(known) > 1 else known

    return suggest


def _examples(description: str, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yield the quoted examples of a description."""
    if schema.get("type") != "string":
        return
    for found in _LISTED.finditer(description):
        yield found[1]
    pairs = (("(", ")"), ("{", "}"), ("[", "]"))  # an open one is a part of an example that contains quotes itself
    for found in _EXAMPLES.finditer(description):
        yield from (
            text
            for text in _QUOTED.findall(found[1])
            if text.isprintable() and "${" not in text and all(text.count(a) == text.count(b) for a, b in pairs)
        )
