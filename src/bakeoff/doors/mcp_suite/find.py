"""Finding configurations: the nearest above, one that is named, or all of a folder."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bakeoff._kernel.environment import read_environment
from bakeoff.doors.mcp_suite.config import CONFIG_NAME
from bakeoff.errors import UsageError

_ENDINGS = (".yaml", ".yml")
_SKIPPED = ("node_modules", "venv", "__pycache__")  # dot-folders besides
_LOOKED_AT = 1 << 20  # bytes of a file in which `testCases` has to turn up
_CASES = re.compile(rb"""(?:^|[{,]\s*)["']?testCases["']?\s*:""", re.MULTILINE)


def find_configs(path: Path | None, start: Path | None = None) -> tuple[Path, ...]:
    """The files to evaluate, by name."""
    if path is None:
        return (_nearest(start or Path()),)
    if path.is_dir():
        found = tuple(sorted(file for file in _yaml_files(path) if _has_cases(file)))
        if not found:
            raise UsageError(f"{path} has no YAML file with `testCases` below it: name another folder or a file")
        return found
    if not path.is_file():
        raise UsageError(f"{path} is not there: name a YAML file, or a folder of them")
    return (path,)


def suite_environment(folder: Path) -> dict[str, str]:
    """What `${NAME}` stands for: the environment, then the `.env` files beside the configuration, then those here."""
    return {**read_environment(base={}), **read_environment(folder, base={}), **os.environ}


def _nearest(start: Path) -> Path:
    here = start.resolve()
    for folder in (here, *here.parents):
        file = folder / CONFIG_NAME
        if file.is_file():
            return file.relative_to(here) if folder == here else file
    raise UsageError(
        f"there is no {CONFIG_NAME} here or in a folder above: name a file, or make one with `bakeoff mcp init`"
    )


def _yaml_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        yield from (Path(place, name) for name in files if name.endswith(_ENDINGS))


def _has_cases(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _CASES.search(opened.read(_LOOKED_AT)) is not None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
