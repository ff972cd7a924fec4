"""Find a program on this machine, and the paths that a sandbox must show so that it can run.

Only what the program was installed with is shown. Never shown are the user's HOME, the current folder, and folders
around them, wherever a program lies.
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from bakeoff.sandbox.installations import CELLAR, MODULES, homebrew, installation, is_managed, is_private, packages

_SECONDS = 30.0
_VOLTA = "volta-shim"


def program_path(program: str) -> str | None:
    """Return the program's path on this machine; for a version manager's shim, the path of the program behind it.

    npm's links are followed: a sandbox shows a link as a file, beside which a script would look for its modules.
    """
    found = which(program)
    if found and is_shim(found):
        found = _behind(found)
    if found is None:
        return None
    target = Path(found).resolve()
    return str(target) if MODULES in target.parts else found


def which(program: str) -> str | None:
    """Return an absolute path: a relative one would be searched in the folder that the program is started in."""
    found = shutil.which(program)
    # Not resolved: a program may look for its files beside the link.
    return str(Path(found).absolute()) if found else None


def is_shim(path: str) -> bool:
    """Return whether the path is a script that looks for a version each time, in folders that no sandbox shows."""
    return Path(path).parent.name == "shims" or Path(path).resolve().name == _VOLTA


@lru_cache(maxsize=256)
def _behind(shim: str) -> str | None:
    """Ask the version manager for the program. All managers with a folder of shims can be asked in the same way."""
    root, name = Path(shim).parent.parent, Path(shim).name
    manager = root.name.lstrip(".")
    asked = shutil.which(str(root / "bin" / manager)) or shutil.which(manager)
    if asked is None:
        return None
    said = (said_by(asked, "which", name) or "").strip()
    return shutil.which(said) if "/" in said and not is_shim(said) else None


def program_roots(program: str) -> tuple[Path, ...]:
    """Return the host paths that a sandbox must show so that the program can run."""
    if "/" not in program:
        return ()
    path = Path(program)
    return without_homes(root for end in (path, path.resolve()) for root in _roots(end))


def without_homes(roots: Iterable[Path]) -> tuple[Path, ...]:
    """Return the roots; of a root that is HOME or the current folder, or lies around them, only its packages."""
    return tuple(dict.fromkeys(shown for root in roots for shown in (packages(root) if is_private(root) else [root])))


def _roots(path: Path) -> Iterator[Path]:
    yield path
    parts = path.parts
    for parent in path.parents:
        if (parent / "pyvenv.cfg").is_file():
            yield from installation(parent)
            yield from _base_python(parent)
            return
    if MODULES in parts:
        yield Path(*parts[: parts.index(MODULES) + 1])
    elif CELLAR in parts:
        yield from homebrew(path)
    elif path.parent.name == "bin" and is_managed(path.parent.parent):
        yield from installation(path.parent.parent)


def interpreter_roots(program: str) -> tuple[Path, ...]:
    """Return the paths that an interpreter needs: beyond those of another program, the packages beside it."""
    prefixes = dict.fromkeys(path.parent.parent for path in (Path(program), Path(program).resolve()))
    beside = [path for prefix in prefixes for path in installation(prefix)]
    return tuple(dict.fromkeys([Path(program), *program_roots(program), *beside]))


def _base_python(venv: Path) -> Iterator[Path]:
    """Yield the Python installation that a virtual environment was made with, and the links that lead to it."""
    link = venv / "bin" / "python"
    found = link.resolve()
    if found.exists() and not found.is_relative_to("/usr"):
        yield link
        yield found
        yield from homebrew(found)
        yield from installation(found.parent.parent)


def said_by(*argv: str, **where: Any) -> str | None:
    """Return what a program on this machine prints; None where it fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False, **where
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).decode(errors="replace") if done.returncode == 0 else None
