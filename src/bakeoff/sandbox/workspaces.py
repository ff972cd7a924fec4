"""Open workspaces: private folders with a sandbox."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bakeoff.plan import Case, Limits
from bakeoff.protocols import Command, Completed, Place, Sandbox
from bakeoff.sandbox import open_place, put_files, take

_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MAX_FILES = 1000  # taken out of one workspace
_MAX_BYTES = 32 * 1024 * 1024  # of them together: they are held in memory for each running trial


@dataclass(frozen=True, slots=True)
class SandboxedWorkspace:
    """The workspace of one trial, or of one grading."""

    place: Place
    sandbox: Sandbox
    limits: Limits

    @property
    def folder(self) -> Path:
        return self.place.work

    def write(self, files: Mapping[str, str], *, runnable_scripts: bool = False) -> None:
        """Write texts into the workspace. With `runnable_scripts`, those that begin with `#!` can be executed."""
        put_files(self.place, {name: text.encode() for name, text in files.items()}, runnable_scripts=runnable_scripts)

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        stdin: bytes = b"",
    ) -> Completed:
        """Run a command in the workspace. `env` is added to the few variables that every command has."""
        command = Command(argv, self.place, seconds, self.limits, env or {}, stdin=stdin, network=network)
        return await self.sandbox.run(command)

    async def collect(self, patterns: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        most_bytes = min(self.limits.disk_mb * 1024 * 1024, _MAX_BYTES)
        taken = await asyncio.to_thread(take, self.folder, patterns, max_bytes=most_bytes, max_files=_MAX_FILES)
        return taken.texts()


@asynccontextmanager
async def open_workspace(
    sandbox: Sandbox, files: Mapping[str, str], limits: Limits, *, keep: bool = False
) -> AsyncIterator[SandboxedWorkspace]:
    """Open a new workspace with these files, and remove it at the end unless it is to be kept."""
    async with open_place(keep=keep) as place:
        workspace = SandboxedWorkspace(place, sandbox, limits)
        await asyncio.to_thread(workspace.write, files)
        yield workspace


def graded_files(case: Case, artefacts: Mapping[str, str]) -> dict[str, str]:
    """Return the files that a grader runs on: the case's own, the subject's artefacts, and the hidden files over both.

    A file that is in the way of a stronger one, by its name or as a folder, is left out.
    """
    allowed = _beside(artefacts, case.hidden)
    return {**_beside(case.files, allowed.keys() | case.hidden), **allowed, **case.hidden}


def _beside(files: Mapping[str, str], stronger: Iterable[str]) -> dict[str, str]:
    """Return the files that can lie in one folder with the stronger ones."""
    taken = {PurePosixPath(name) for name in stronger}
    folders = {parent for path in taken for parent in path.parents}
    return {
        name: text
        for name, text in files.items()
        if (path := PurePosixPath(name)) not in taken | folders and not taken & set(path.parents)
    }


def first_code_block(answer: str) -> str:
    """Return the code in a text answer: its first fenced block, or all of it if nothing is fenced."""
    fenced = _FENCED.search(answer)
    return fenced.group(1) if fenced else answer
