"""The bundled examples: which there are, and how one is written into a folder."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from bakeoff._kernel.files import write_atomically
from bakeoff.doors.mcp_suite.config import CONFIG_NAME
from bakeoff.doors.mcp_suite.schema import SCHEMA_NAME
from bakeoff.errors import UsageError

_FOR_EVERYONE = 0o644
_PYTHON = "command: python\n"  # in bundled configurations; becomes the interpreter that has bakeoff and its packages
_REMARK = re.compile(r"  # (noqa|type: ignore)[^\n]*")
_KITCHEN = {"kitchen.py": "servers/kitchen.py"}


@dataclass(frozen=True, slots=True)
class Example:
    """Which bundled file goes where, besides the schema, and what to try then."""

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
    # Not as README.md, which a project is likely to have.
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
        "models of your own, in three ways",
        {**_own("custom_provider", CONFIG_NAME, "keyword_provider.py", "with_register.py"), **_KITCHEN},
        ("bakeoff mcp evaluate", "python with_register.py"),
    ),
    "directory-suite": Example(
        "a folder of suites, and tools that are really called",
        {**_own("directory_suite", "timers.yaml", "shopping.yaml"), **_KITCHEN},
        ("bakeoff mcp evaluate .",),
    ),
}


def write_example(name: str, folder: Path, *, force: bool = False) -> list[Path]:
    """Write all files of an example, or none; what is there already is left alone unless `force` says otherwise."""
    contents = find_example(name).contents
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
        near = get_close_matches(name, EXAMPLES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(EXAMPLES)}"
        raise UsageError(f"there is no example {name!r}: {hint}")
    return EXAMPLES[name]


def _as_written(name: str, text: str) -> str:
    """With the Python that runs this: one on the path may be another, without the packages that the server needs.

    Without remarks to our own tools.
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
