"""The seams: what is judged, what judges, and what runs commands. One method each; the data around them is frozen."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from bakeoff.limits import Limits

if TYPE_CHECKING:
    from bakeoff.plan import Case
    from bakeoff.record import Score, Transcript, Usage

Stop: TypeAlias = Literal["exited", "timeout", "output", "memory", "disk", "cancelled"]
"""Why a command ended; anything but `exited` means that a limit of ours ended it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A trial's private folders. Only `work` is the subject's to leave things in; all three are deleted with the trial."""

    work: Path
    home: Path
    tmp: Path
    uid: int | None = None  # the unprivileged user that owns them, when we are root


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run in a place, and what it may have."""

    argv: tuple[str, ...]
    place: Place
    seconds: float
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)  # added to the allow-listed environment
    stdin: bytes = b""
    network: bool = False  # honoured from `bwrap` up; the `process` rung cannot take it away
    readable: tuple[Path, ...] = ()  # further host paths to be seen read-only, such as a toolchain


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command did. `exit_code` is negative for a signal, as in `subprocess`."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    stop: Stop = "exited"

    @property
    def ok(self) -> bool:
        return self.stop == "exited" and self.exit_code == 0


class Sandbox(Protocol):
    """A rung of the isolation ladder."""

    @property
    def name(self) -> str: ...

    async def run(self, command: Command) -> Completed: ...
