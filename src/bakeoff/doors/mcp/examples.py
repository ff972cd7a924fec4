"""Write the bundled examples, with the JSON Schema of a configuration beside them."""

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from bakeoff._kernel.files import PUBLIC, write_atomically
from bakeoff._kernel.text import near_names
from bakeoff.errors import UsageError

SCHEMA_NAME = "mcp-testing-framework.schema.json"
_PYTHON = "command: python\n"  # in bundled configurations; replaced by the running interpreter, which has the packages
_REMARK = re.compile(r"  # (noqa|type: ignore)[^\n]*")


def published_schema() -> str:
    """Return the schema file of the package, which `scripts/mcp_schema.py` writes."""
    return _bundled(SCHEMA_NAME)


def _bundled(file: str) -> str:
    return resources.files("bakeoff.bundled").joinpath("mcp", file).read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Example:
    """The files of an example besides the schema, and the commands to try."""

    about: str
    files: Mapping[str, str]  # in `bundled/mcp`, by the names that they are written with
    then: Sequence[str]

    @property
    def contents(self) -> dict[str, str]:
        """Return the text of each file to write, by file name."""
        files = {**self.files, SCHEMA_NAME: SCHEMA_NAME}
        return {name: _as_written(name, _bundled(source)) for name, source in files.items()}


@cache
def examples() -> Mapping[str, Example]:
    """Return the bundled examples by name."""
    listed = tomllib.loads(_bundled("examples.toml"))
    return {name: Example(**each) for name, each in listed.items()}


def write_example(name: str, folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files of an example, or none. Existing files are overwritten only with `force`."""
    return write_example_files(find_example(name).contents, folder, force=force)


def write_example_files(contents: Mapping[str, str], folder: Path, *, force: bool = False) -> list[Path]:
    """Write files by their paths in a folder, and return the paths.

    Raises `UsageError` if a file cannot be written. Without `force`, also raises it, and writes
    nothing, if a file exists with other content.
    """
    paths = {folder / relative: text for relative, text in contents.items()}
    taken = [path for path, text in paths.items() if path.exists() and not _is(path, text)]
    if taken and not force:
        names = ", ".join(str(path) for path in taken)
        raise UsageError(f"{names} would be overwritten: name another folder, or add --force")
    try:
        for path, text in paths.items():
            write_atomically(path, text.encode(), PUBLIC)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return list(paths)


def find_example(name: str) -> Example:
    """Return the example with this name; otherwise raise `UsageError` with similar names."""
    if name not in examples():
        raise UsageError(f"there is no example {name!r}{near_names(name, examples())}")
    return examples()[name]


def _as_written(name: str, text: str) -> str:
    """Return the text of an example's file with the path of this Python, without linter comments.

    A `python` on the path may lack the packages that the server needs.
    """
    if name.endswith(".py"):
        return _REMARK.sub("", text)
    named = json.dumps(sys.executable, ensure_ascii=False)  # JSON texts are YAML texts
    return text.replace(_PYTHON, f"command: {named} # any Python that has the package `mcp`\n")


def _is(path: Path, text: str) -> bool:
    """Return True if a file has exactly this text."""
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
