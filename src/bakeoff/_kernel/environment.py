"""Describe the process: its variables, cores and cache folder. Hide its memory from others.

Variables come from the environment, then `.env.local` (which `vercel env pull` writes), then `.env`. `filled` replaces
`${VARIABLE}` in settings, so that a plan holds no secrets.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.errors import UsageError

if TYPE_CHECKING:  # not at run time: every command loads this module first
    from pydantic import JsonValue

FILES = (".env", ".env.local")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MAX_SIZE = 1 << 20  # largest `.env` file in bytes that is read for its secrets


def read_environment(folder: Path | None = None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return all variables. The environment takes precedence over `.env.local`, and that over `.env`."""
    folder = folder or Path()  # not `cwd()`, which fails when the current folder was deleted
    found: dict[str, str] = {}
    for path in [folder / name for name in FILES]:
        if path.is_file():
            found.update(_read(path))
    return {**found, **(os.environ if base is None else base)}


def environments_above() -> Iterator[dict[str, str]]:
    """Yield the variables of each `.env` file in the parent folders, up to the repository or home.

    They are used only for redaction, never as settings. Unreadable files are left out.
    """
    try:
        start = Path().resolve()
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # the current folder was deleted, or the home is unknown
        return
    for below, above in zip([start, *start.parents], start.parents, strict=False):
        if below == home or (below / ".git").exists():
            return
        for path in [above / name for name in FILES]:
            with suppress(UsageError, OSError):
                if path.is_file() and path.stat().st_size <= _MAX_SIZE:
                    yield _read(path)


def _read(path: Path) -> dict[str, str]:
    from dotenv import dotenv_values  # most folders have no such file

    try:
        # Values are not interpolated: a key may contain a `$`.
        return {key: value for key, value in dotenv_values(path, interpolate=False).items() if value}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; make it readable, or move it away") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text; save it as such, or move it away") from error


def filled(value: "JsonValue", environment: Mapping[str, str]) -> "JsonValue":
    """Replace the variables in every text. A variable that is not set stays as written."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[0]), value)
    if isinstance(value, dict):
        return {name: filled(inner, environment) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [filled(inner, environment) for inner in value]
    return value


def variables_in(texts: Iterable[str]) -> list[str]:
    """Return the names of all variables in texts."""
    return [name for text in texts for name in _VARIABLE.findall(text)]


JOBS_RULE = "two for each core, at most 8"
"""The default of `--jobs`, in words. Trials wait for models and tests in turn, so one for each core would idle."""

_MAX_JOBS = 8


def usable_cores() -> int:
    """Return how many cores this process may use. `taskset` or a container can restrict them."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs() -> int:
    """Return the default number of trials that run at the same time."""
    return min(2 * usable_cores(), _MAX_JOBS)


DUMPABLE = "BAKEOFF_DUMPABLE"
_PR_SET_DUMPABLE = 4


def hide_our_memory() -> None:
    """Hide our environment, memory and open files from other processes, since they hold API keys.

    This cannot be undone. Afterwards, only root can attach a debugger or profiler, unless
    `BAKEOFF_DUMPABLE=1` was set. Programs that we start are not hidden.
    """
    if sys.platform == "linux" and os.environ.get(DUMPABLE) != "1":
        import ctypes  # takes longer than `bakeoff --help` may

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def cache_folder() -> Path:
    """Return BAKEOFF_CACHE, or `bakeoff` in the user's cache folder. The folder may not exist yet."""
    chosen = os.environ.get("BAKEOFF_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that relative paths are ignored.
    return (base if base.is_absolute() else Path.home() / ".cache") / "bakeoff"
