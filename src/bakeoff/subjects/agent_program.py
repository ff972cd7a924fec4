"""Ask an agent's program for its version, and try whether a sandbox can start it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bakeoff._kernel.temporary import temporary_folder
from bakeoff.errors import InfraError
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.sandbox.environment import inherited, search_path
from bakeoff.sandbox.programs import program_path, program_roots, said_by
from bakeoff.subjects.agent_definition import AgentDefinition

_SECONDS = 15.0
_TRIAL_SECONDS = 60.0  # to print a version in a sandbox: some programs unpack themselves first
_LONGEST, _MAX_WORDS_LENGTH = 100, 300
_ERROR = re.compile(r"(?:\w*(?:Error|Exception)\b[^:]*|error|fatal)(?:\s*\[[\w-]+\])?: \S", re.IGNORECASE)
_QUIET = {"NO_COLOR": "1", "CI": "1"}
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


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """The version that an agent printed in a sandbox, or the problem that kept it from that."""

    version: str | None = None
    problem: str | None = None


async def try_to_start(definition: AgentDefinition, sandbox: Sandbox) -> StartedProgram:
    """Ask an agent for its version in the sandbox, as a trial would start it. Without a key, a login and a network."""
    if definition.version is None:
        return StartedProgram()
    program, *rest = definition.version.command
    found = program if isinstance(sandbox, DockerSandbox) else program_path(program)
    if found is None:
        return StartedProgram(problem=f"`{program}` is not installed")
    try:
        async with open_place() as place:
            readable = program_roots(found)
            command = Command((found, *rest), place, _TRIAL_SECONDS, env=_QUIET, readable=readable)
            done = await sandbox.run(command)
    except InfraError as error:
        return StartedProgram(problem=str(error))
    if done.ok:
        return StartedProgram(first_line((done.stdout or done.stderr).decode(errors="replace")))
    words = last_words(done.stderr.decode(errors="replace")) or last_words(done.stdout.decode(errors="replace"))
    how = f"exit code {done.exit_code}" if done.stop == "exited" else done.stop
    return StartedProgram(
        problem=f"it does not start in the {sandbox.name} sandbox ({how}){f': {words}' if words else ''}"
    )


def version_of(definition: AgentDefinition, image: DockerSandbox | None = None) -> str | None:
    """Return the version that the program prints; None where it prints none or is missing."""
    if definition.version is None:
        return None
    command = definition.version.command
    return _asked(command) if image is None else first_line(_asked_in(image, command) or "")


@lru_cache(maxsize=256)
def _asked_in(image: DockerSandbox, command: tuple[str, ...]) -> str | None:
    return image.ask(*command)


@lru_cache(maxsize=256)
def _asked(command: tuple[str, ...]) -> str | None:
    program = program_path(command[0])
    if program is None:
        return None
    # With a HOME of its own, so that the program leaves nothing in the user's.
    with temporary_folder("bakeoff-version-") as home:
        env = {**inherited(os.environ), "PATH": search_path(os.environ), "HOME": str(home), **_QUIET}
        return first_line(said_by(program, *command[1:], cwd=home, env=env) or "")


def first_line(said: str) -> str | None:
    """Return the first line that a program prints, as its version."""
    lines = said.strip().splitlines()
    return (_printable(lines[0])[:_LONGEST] or None) if lines else None


def last_words(said: str) -> str:
    """Return the line that says why a program ended: the last one, or the error above a stack trace."""
    lines = [stripped for line in said.splitlines() if (stripped := _printable(line).strip())]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1][:_MAX_WORDS_LENGTH]


def _printable(line: str) -> str:
    return "".join(char for char in line if char.isprintable())
