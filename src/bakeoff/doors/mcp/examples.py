"""Write the bundled examples, with the JSON Schema of a configuration beside them."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.text import near_names
from bakeoff.doors.mcp.config import CONFIG_NAME
from bakeoff.errors import UsageError

SCHEMA_NAME = "mcp-testing-framework.schema.json"
_FOR_EVERYONE = 0o644
_PYTHON = "command: python\n"  # in bundled configurations; replaced by the running interpreter, which has the packages
_REMARK = re.compile(r"  # (noqa|type: ignore)[^\n]*")
_KITCHEN = {"kitchen.py": "servers/kitchen.py"}


def published_schema() -> str:
    """Return the schema file of the package, which `scripts/mcp_schema.py` writes."""
    return resources.files("bakeoff.bundled").joinpath("mcp", SCHEMA_NAME).read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Example:
    """The files of an example besides the schema, and the commands to try."""

    about: str
    files: Mapping[str, str]
    then: tuple[str, ...] = ("bakeoff mcp evaluate", "bakeoff mcp lint")

    @property
    def contents(self) -> dict[str, str]:
        bundled = resources.files("bakeoff.bundled").joinpath("mcp")
        texts = {name: bundled.joinpath(source).read_text("utf-8") for name, source in self.files.items()}
        texts[SCHEMA_NAME] = bundled.joinpath(SCHEMA_NAME).read_text("utf-8")
        return {name: _as_written(name, text) for name, text in texts.items()}


def _own(folder: str, *names: str) -> dict[str, str]:
    # Not README.md, which most projects have already.
    return {**{name: f"{folder}/{name}" for name in names}, "EXAMPLE.md": f"{folder}/README.md"}


EXAMPLES: dict[str, Example] = {
    "getting-started": Example(
        "one server, five cases, the embedded model",
        {**_own("getting_started", CONFIG_NAME), **_KITCHEN},
        ("bakeoff mcp evaluate", "bakeoff mcp lint", "bakeoff mcp generate"),
    ),
    "several-servers": Example(
        "two servers whose tools overlap",
        {**_own("several_servers", CONFIG_NAME), **_KITCHEN, "calendar_server.py": "servers/calendar.py"},
    ),
    "custom-provider": Example(
        "three ways to add your own models",
        {**_own("custom_provider", CONFIG_NAME, "keyword_provider.py", "with_register.py"), **_KITCHEN},
        ("bakeoff mcp evaluate", "python with_register.py"),
    ),
    "directory-suite": Example(
        "a folder of suites with executed tools",
        {**_own("directory_suite", "timers.yaml", "shopping.yaml"), **_KITCHEN},
        ("bakeoff mcp evaluate .",),
    ),
}


def write_example(name: str, folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files of an example, or none. Existing files are overwritten only with `force`."""
    return write_example_files(find_example(name).contents, folder, force=force)


def write_example_files(contents: Mapping[str, str], folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files, by their paths in a folder, or none. Other files there are overwritten only with `force`."""
    paths = {folder / relative: text for relative, text in contents.items()}
    taken = [path for path, text in paths.items() if path.exists() and not _is(path, text)]
    if taken and not force:
        names = ", ".join(str(path) for path in taken)
        raise UsageError(f"{names} would be overwritten: name another folder, or add --force")
    try:
        for path, text in paths.items():
            write_atomically(path, text.encode(), _FOR_EVERYONE)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return list(paths)


def find_example(name: str) -> Example:
    if name not in EXAMPLES:
        raise UsageError(f"there is no example {name!r}{near_names(name, EXAMPLES)}")
    return EXAMPLES[name]


def _as_written(name: str, text: str) -> str:
    """Return a file with the running Python interpreter, and without comments for our own linters.

    A `python` on the path may lack the packages that the server needs.
    """
    if name.endswith(".py"):
        return _REMARK.sub("", text)
    named = json.dumps(sys.executable, ensure_ascii=False)  # JSON texts are YAML texts
    return text.replace(_PYTHON, f"command: {named} # any Python that has the package `mcp`\n")


def _is(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False
