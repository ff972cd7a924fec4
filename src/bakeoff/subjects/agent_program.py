"""Find an agent's program, the files that it needs, and its version."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.sandbox.environment import inherited, search_path
from bakeoff.subjects.agent_definition import AgentDefinition

_SECONDS = 15.0
_LONGEST = 100
_LOOK = """\
found=$(command -v -- "$1") && [ -x "$found" ] || exit 1
first=$(head -c 300 "$found" | tr -d '\\000' | head -n 1)
case $first in "#!"*) ;; *) exit 0 ;; esac
set -f
set -- ${first#??}
command -v -- "$1" || exit 1
[ "${1##*/}" = env ] || exit 0
shift
[ "$1" != -S ] || shift
command -v -- "$1"
"""
_MANAGED = {"versions", "installs"}  # folders in which version managers keep installed versions


def program_roots(program: str) -> tuple[Path, ...]:
    """Return the host paths that a sandbox must show so that the program can run."""
    if "/" not in program:
        return ()
    path = Path(program)
    ends = [path, path.resolve()]
    return tuple(dict.fromkeys(root for end in ends for root in _roots(end)))


def _roots(path: Path) -> list[Path]:
    for parent in path.parents:
        if (parent / "pyvenv.cfg").is_file():
            return [path, parent, *_base_python(parent)]
    parts = path.parts
    if "node_modules" in parts:
        return [path, Path(*parts[: parts.index("node_modules") + 1])]
    prefix = path.parent.parent
    managed = path.parent.name == "bin" and _MANAGED & {prefix.parent.name, prefix.parent.parent.name}
    return [path, prefix] if managed else [path]


def program_path(program: str) -> str | None:
    """Return the program's path on this machine; for a version manager's shim, the path of the program behind it."""
    found = _which(program)
    return _behind(found) if found and is_shim(found) else found


def _which(program: str) -> str | None:
    """Return an absolute path: a relative one would be searched in the folder that the program is started in."""
    found = shutil.which(program)
    # Not resolved: a program may look for its files beside the link.
    return str(Path(found).absolute()) if found else None


def is_shim(path: str) -> bool:
    """Return whether the path is a script that looks for a version each time, in folders that no sandbox shows."""
    return Path(path).parent.name == "shims"


@lru_cache(maxsize=256)
def _behind(shim: str) -> str | None:
    """Ask the version manager for the program. All managers with a folder of shims can be asked in the same way."""
    root, name = Path(shim).parent.parent, Path(shim).name
    manager = root.name.lstrip(".")
    asked = shutil.which(str(root / "bin" / manager)) or shutil.which(manager)
    if asked is None:
        return None
    said = (_said_by(asked, "which", name) or "").strip()
    return shutil.which(said) if "/" in said and not is_shim(said) else None


def _base_python(venv: Path) -> list[Path]:
    """Return the Python installation that a virtual environment was made with."""
    found = (venv / "bin" / "python").resolve()
    return [found.parent.parent] if found.exists() and not found.is_relative_to("/usr") else []


def is_installed(program: str, image: DockerSandbox | None = None) -> bool:
    """Return whether a trial would find the program on this machine, or in the image that trials run in."""
    if image is None:
        return program_path(program) is not None
    return _asked_in(image, ("/bin/sh", "-c", 'command -v -- "$1"', "sh", program)) is not None


async def is_found_in(sandbox: Sandbox, program: str, env: Mapping[str, str], readable: tuple[Path, ...]) -> bool:
    """Return whether the sandbox has the program and its interpreter. None of its code is run."""
    async with open_place() as place:  # a new place, in which nothing has run before
        argv = ("/bin/sh", "-c", _LOOK, "sh", program)
        return (await sandbox.run(Command(argv, place, _SECONDS, env=env, readable=readable))).ok


def version_of(definition: AgentDefinition, image: DockerSandbox | None = None) -> str | None:
    """Return the version that the program prints; None where it prints none or is missing."""
    if definition.version is None:
        return None
    command = definition.version.command
    return _asked(command) if image is None else _first_line(_asked_in(image, command) or "")


@lru_cache(maxsize=256)
def _asked_in(image: DockerSandbox, command: tuple[str, ...]) -> str | None:
    return image.ask(*command)


@lru_cache(maxsize=256)
def _asked(command: tuple[str, ...]) -> str | None:
    program = _which(command[0])
    if program is None:
        return None
    # With a HOME of its own, so that the program leaves nothing in the user's.
    with tempfile.TemporaryDirectory(prefix="bakeoff-version-", ignore_cleanup_errors=True) as home:
        env = {**inherited(os.environ), "PATH": search_path(os.environ), "HOME": home, "NO_COLOR": "1", "CI": "1"}
        return _first_line(_said_by(program, *command[1:], cwd=home, env=env) or "")


def _said_by(*argv: str, **where: Any) -> str | None:
    """Return what a program on this machine prints; None where it fails."""
    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False, **where
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).decode(errors="replace") if done.returncode == 0 else None


def _first_line(said: str) -> str | None:
    lines = said.strip().splitlines()
    return ("".join(char for char in lines[0] if char.isprintable())[:_LONGEST] or None) if lines else None
