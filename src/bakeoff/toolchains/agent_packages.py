"""Give agents what they need to run an exercise's tests themselves: installed packages, linked into the workspace."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bakeoff.plan import Grading
from bakeoff.protocols import Place, Sandbox
from bakeoff.sandbox import put_files
from bakeoff.toolchains.commands import BroughtFiles, CommandRunner, split_command
from bakeoff.toolchains.install import JEST_SOURCES, install_jest, quiet
from bakeoff.toolchains.tracks import TRACKS, Track

_MODULES = "node_modules"
_SETTINGS = "tsconfig.json"


class OpenPackages(Protocol):
    """Puts packages into a workspace in which nothing has run yet."""

    async def bring(self, place: Place, files: Mapping[str, str]) -> BroughtFiles: ...


@dataclass(frozen=True, slots=True)
class AgentPackages:
    """The resource that puts the packages of a track's tests into workspaces, without a copy and read-only.

    Args:
        sandbox: Makes the sandbox that a command installs in.
        track: The language of the exercises.
        command: The command that tests them, if it is not our own runner; its first part installs.
    """

    sandbox: Callable[[], Sandbox]
    track: Track
    command: str | None = None

    @property
    def key(self) -> str:
        return f"packages {self.track.slug}{f' by {self.command}' if self.command else ''}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[OpenPackages]:
        if self.command is not None:
            yield CommandRunner(self.sandbox(), self.track, self.command, quiet)
        else:
            yield JestPackages(await install_jest(quiet) / _MODULES)


@dataclass(frozen=True, slots=True)
class JestPackages:
    """Jest, Babel and TypeScript in the versions that grade. An exercise without TypeScript settings gets the usual."""

    modules: Path

    async def bring(self, place: Place, files: Mapping[str, str]) -> BroughtFiles:
        await asyncio.to_thread(self._put, place, files)
        return BroughtFiles((self.modules,))

    def _put(self, place: Place, files: Mapping[str, str]) -> None:
        if _SETTINGS not in files:
            put_files(place, {_SETTINGS: (JEST_SOURCES / _SETTINGS).read_bytes()})
        link = place.work / _MODULES
        if not link.exists():
            link.symlink_to(self.modules)


def packages_of(grading: Grading | None, sandbox: Callable[[], Sandbox]) -> AgentPackages | None:
    """Return the resource that lets agents run the tests of a case; None if they need no packages, or none is known."""
    if grading is None or grading.track not in TRACKS:
        return None
    track = TRACKS[grading.track]
    if grading.command:
        needed = track.programs or split_command(grading.command[0])[0] is not None
        return AgentPackages(sandbox, track, grading.command[0]) if needed else None
    return AgentPackages(sandbox, track) if track.runner == "jest" else None
