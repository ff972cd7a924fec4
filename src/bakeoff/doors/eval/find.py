"""Find the configuration that a user means, and read it by its format."""

import sys
from difflib import get_close_matches
from pathlib import Path

from bakeoff._kernel.yaml import read_yaml
from bakeoff.doors.eval.config import CONFIG_NAME
from bakeoff.doors.eval.promptfoo import is_promptfoo, suite_of_promptfoo
from bakeoff.doors.eval.pyproject import PYPROJECT, has_table, read_pyproject
from bakeoff.doors.eval.read import suite_of
from bakeoff.doors.eval.suite import PromptSuite
from bakeoff.errors import UsageError

NAMES = (CONFIG_NAME, "bakeoff.yml", PYPROJECT, "promptfooconfig.yaml", "promptfooconfig.yml")
"""The files that are looked for in a folder; the first that is there counts."""


def read_suite(path: Path | None) -> PromptSuite:
    """Read the configuration at a path: a file, or a folder that has one."""
    file = find_config(path)
    if (folder := str(file.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # functions that it names may lie beside it, like files of cases
    if file.suffix == ".toml":
        return suite_of(read_pyproject(file))
    placed = read_yaml(file)
    return suite_of_promptfoo(placed) if is_promptfoo(placed) else suite_of(placed)


def find_config(path: Path | None) -> Path:
    """Return the configuration at a path: a file, or the first in a folder, by default the current one."""
    folder = path or Path()
    if path is not None and not path.is_dir():
        if not path.exists():
            beside = path.parent.iterdir() if path.parent.is_dir() else ()
            near = get_close_matches(path.name, [each.name for each in beside], n=1)
            if near:
                raise UsageError(f"{path} does not exist: did you mean {str(path.with_name(near[0]))!r}?")
            raise UsageError(
                f"{path} does not exist: name a file such as {CONFIG_NAME}, or write one with `bakeoff init eval`"
            )
        return path
    found = next((folder / name for name in NAMES if _is_one(folder / name)), None)
    if found is None:
        raise UsageError(
            f"there is no {CONFIG_NAME} in {folder.resolve()}: name a file, or write one with `bakeoff init eval`"
        )
    return found


def _is_one(file: Path) -> bool:
    return file.is_file() and (file.name != PYPROJECT or has_table(file))
