"""Read variables from the environment, then `.env.local` (which `vercel env pull` writes), then `.env`.

Replace `${VARIABLE}` in settings, so that a plan holds no secrets.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue

from bakeoff.errors import UsageError

FILES = (".env", ".env.local")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
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


def filled(value: JsonValue, environment: Mapping[str, str]) -> JsonValue:
    """Replace the variables in every text. A variable that is not set stays as it is."""
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
