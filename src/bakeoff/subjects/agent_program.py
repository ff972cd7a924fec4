"""Check in a sandbox that an agent's program starts, and read the user's login."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.protocols import Command, Sandbox
from bakeoff.sandbox import open_place, take
from bakeoff.sandbox.docker import DockerSandbox
from bakeoff.sandbox.programs import program_path, program_roots
from bakeoff.storage.redaction import SHORTEST, secrets_in
from bakeoff.subjects.agent_definition import AgentDefinition

_SECONDS = 15.0
_TRIAL_SECONDS = 60.0  # to print a version, since some programs unpack themselves first
_MAX_VERSION_LENGTH, _MAX_WORDS_LENGTH = 100, 300
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

_MAX_BYTES = 4 * 1024 * 1024
_MAX_FILES = 200
_MAX_SECRETS = 64  # since all output is searched for each, in many encodings
_MAX_SECRET_LENGTH = 16_384
_ASSIGNED = re.compile(r"""([\w.-]+)["']?\s*[:=]\s*["']?([^\s"',;]+)""")
_WORD = re.compile(r"""[^\s"',;]+""")
_RUN = re.compile(r"[A-Za-z0-9_]{16,}")  # longer than words; model names and dates have separators
_ADDRESS = re.compile(r"(https?://[^?@]*|[/~][^?@=]*)")


def is_installed(program: str, image: DockerSandbox | None = None) -> bool:
    """Return True if trials would find the program, on this machine or in their image."""
    if image is None:
        return program_path(program) is not None
    return _is_in(image, program)


@lru_cache(maxsize=256)
def _is_in(image: DockerSandbox, program: str) -> bool:
    return image.ask("/bin/sh", "-c", 'command -v -- "$1"', "sh", program) is not None


async def is_found_in(sandbox: Sandbox, program: str, env: Mapping[str, str], readable: tuple[Path, ...]) -> bool:
    """Return True if the sandbox has the program and its interpreter, without running it."""
    async with open_place() as place:  # a new place, where nothing has run yet
        argv = ("/bin/sh", "-c", _LOOK, "sh", program)
        return (await sandbox.run(Command(argv, place, _SECONDS, env=env, readable=readable))).ok


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """The version that an agent printed, or the problem that prevented it."""

    version: str | None = None
    problem: str | None = None


async def try_to_start(definition: AgentDefinition, sandbox: Sandbox) -> StartedProgram:
    """Start an agent in the sandbox as in a trial, but without key, login and network."""
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


def first_line(said: str) -> str | None:
    """Return the first line of a program's output, which is its version."""
    lines = said.strip().splitlines()
    return (_printable(lines[0])[:_MAX_VERSION_LENGTH] or None) if lines else None


def last_words(said: str) -> str:
    """Return the line that explains why a program ended: the last, or that above a stack trace."""
    lines = [stripped for line in said.splitlines() if (stripped := _printable(line).strip())]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1][:_MAX_WORDS_LENGTH]


def _printable(line: str) -> str:
    return "".join(char for char in line if char.isprintable())


def login_files(paths: tuple[str, ...]) -> dict[str, bytes]:
    """Return the files of the user's login that the agent may have."""
    patterns = [pattern for path in paths for pattern in (path, f"{path}/**")]
    return take(Path.home(), patterns, max_bytes=_MAX_BYTES, max_files=_MAX_FILES).files if patterns else {}


def login_secrets(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts in login files that look secret by name or form, by file."""
    found: dict[str, tuple[bool, str]] = {}
    for path, content in files.items():
        for name, text in _texts(content):
            called = bool(secrets_in({name: text}))
            if SHORTEST <= len(text) <= _MAX_SECRET_LENGTH and (called or looks_secret(text)):
                found.setdefault(text, (not called, path))
    first = sorted(found, key=lambda text: found[text][0])[:_MAX_SECRETS]
    return {f"{found[text][1]}.{number}": text for number, text in enumerate(first, start=1)}


def looks_secret(text: str) -> bool:
    """Return True for a single word with a long run of letters and digits."""
    if any(character.isspace() for character in text) or is_address(text):
        return False
    runs = _RUN.findall(text)
    return any(re.search("[A-Za-z]", run) and re.search("[0-9]", run) for run in runs)


def is_address(text: str) -> bool:
    """Return True for a path, or a URL without password and query."""
    return _ADDRESS.fullmatch(text) is not None


def _texts(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield all texts with their names, from JSON or from lines of other formats."""
    text = content.decode(errors="replace")
    try:
        yield from _members(json.loads(text))
    except (ValueError, RecursionError):
        words = _WORD.findall(text)
        yield from _ASSIGNED.findall(text)
        yield from (("token" if len(words) == 1 else "", word) for word in words)  # some files contain only a token


def _members(data: object) -> Iterator[tuple[str, str]]:
    queue = [("", data)]
    while queue:
        name, item = queue.pop()
        if isinstance(item, str):
            yield name, item
        elif isinstance(item, dict):
            queue.extend((str(key), value) for key, value in item.items())
        elif isinstance(item, list):
            queue.extend((name, value) for value in item)
