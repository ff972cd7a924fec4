"""Read variables from the environment, then `.env.local` (which `vercel env pull` writes), then `.env`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bakeoff.errors import UsageError

FILES = (".env", ".env.local")
_LARGEST = 1 << 20  # bytes of a file above that is read for its secrets


def read_environment(folder: Path | None = None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return all variables. The environment takes precedence over `.env.local`, and that over `.env`."""
    folder = folder or Path()  # not `cwd()`, which fails when the current folder was deleted
    found: dict[str, str] = {}
    for path in [folder / name for name in FILES]:
        if path.is_file():
            found.update(_read(path))
    return {**found, **(os.environ if base is None else base)}


def environments_above(folder: Path | None = None) -> Iterator[dict[str, str]]:
    """Yield the variables of each `.env` file in the folders above, up to the top of the repository or to the home.

    No setting is read from them: they are for redaction alone. Files that cannot be read are left out.
    """
    try:
        start = (folder or Path()).resolve()
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # the current folder was deleted, or nobody knows the home
        return
    for below, above in zip([start, *start.parents], start.parents, strict=False):
        if below == home or (below / ".git").exists():
            return
        for path in [above / name for name in FILES]:
            with suppress(UsageError, OSError):
                if path.is_file() and path.stat().st_size <= _LARGEST:
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
