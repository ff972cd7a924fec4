"""An agent's program: where it and what it needs lie, and which version it says it is."""

import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.sandbox.environment import inherited, search_path
from bakeoff.subjects.agent_definition import AgentDefinition

_SECONDS = 15.0
_LONGEST = 100


def program_roots(program: str) -> tuple[Path, ...]:
    """Host paths that a sandbox has to show so that the program can run: its own, and its environment's."""
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
    return [path]


def _base_python(venv: Path) -> list[Path]:
    """A virtual environment leads to the Python that it was made with."""
    found = (venv / "bin" / "python").resolve()
    return [found.parent.parent] if found.exists() and not found.is_relative_to("/usr") else []


def is_installed(program: str, image: DockerSandbox | None = None) -> bool:
    """Whether a trial would find it: on this machine, or in the image that trials run in."""
    if image is None:
        return shutil.which(program) is not None
    return _found_in(image, program)


@lru_cache(maxsize=256)
def _found_in(image: DockerSandbox, program: str) -> bool:
    return image.ask("/bin/sh", "-c", 'command -v -- "$1"', "sh", program) is not None


def version_of(definition: AgentDefinition, image: DockerSandbox | None = None) -> str | None:
    """What the program says of itself; None where it says nothing, or is not there."""
    if definition.version is None:
        return None
    command = definition.version.command
    return _asked(command) if image is None else _asked_in(image, command)


@lru_cache(maxsize=256)
def _asked_in(image: DockerSandbox, command: tuple[str, ...]) -> str | None:
    return _first_line(image.ask(*command) or "")


@lru_cache(maxsize=256)
def _asked(command: tuple[str, ...]) -> str | None:
    program = shutil.which(command[0])
    if program is None:
        return None
    # A HOME of its own: asking for a version must not leave anything in the user's.
    with tempfile.TemporaryDirectory(prefix="bakeoff-version-", ignore_cleanup_errors=True) as home:
        env = {**inherited(os.environ), "PATH": search_path(os.environ), "HOME": home, "NO_COLOR": "1", "CI": "1"}
        try:
            done = subprocess.run(
                [program, *command[1:]],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS,
                check=False,
                cwd=home,
                env=env,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return _first_line((done.stdout or done.stderr).decode(errors="replace")) if done.returncode == 0 else None


def _first_line(said: str) -> str | None:
    lines = said.strip().splitlines()
    return ("".join(char for char in lines[0] if char.isprintable())[:_LONGEST] or None) if lines else None
