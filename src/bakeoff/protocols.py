"""The seams: what is judged, what judges, and what runs commands. One method each; the data around them is frozen."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import JsonValue

from bakeoff._kernel.clock import Clock
from bakeoff.plan import Case, Limits
from bakeoff.record import NO_USAGE, Score, Step, ToolCall, Transcript, Usage

BUDGET = "budget"
"""The key of the run's budget among the resources of a trial."""

Stop: TypeAlias = Literal["exited", "timeout", "output", "memory", "disk", "cancelled", "killed"]
"""Why a command ended: `exited` by itself, `killed` with the supervisor that a command of our own user can end, and
otherwise by a limit of ours."""


@dataclass(frozen=True, slots=True)
class Place:
    """A trial's private folders, deleted with it. What a subject wants to hand in it leaves in `work`."""

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
    time_up: asyncio.Event | None = None  # ends it as `seconds` do, where not every second counts


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


class Workspace(Protocol):
    """A trial's private folder and the sandbox that runs commands in it."""

    @property
    def folder(self) -> Path: ...

    def write(self, files: Mapping[str, str]) -> None:
        """Put files in, before anything untrusted has run there."""

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        stdin: bytes = b"",
    ) -> Completed:
        """Run a command; when this returns, nothing it started is alive."""

    async def collect(self, patterns: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """The texts of the files that match, and what was refused and why: the folder is not to be trusted."""


class Resource(Protocol):
    """Something that a run opens once and shares; `key` says which ones are the same."""

    @property
    def key(self) -> str: ...

    def open(self) -> AbstractAsyncContextManager[Any]: ...


@dataclass(frozen=True, slots=True)
class Needs:
    """What a subject or scorer asks the run for, in an attribute `needs`. Scorers get workspaces without asking."""

    workspace: bool = False
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a subject may call. It runs on the host, so it may know what the subject must not."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]  # JSON Schema
    call: Callable[
        [Mapping[str, JsonValue]], Awaitable[JsonValue]
    ]  # raises ToolError to tell the subject what was wrong
    ends: bool = False  # calling it ends the attempt


@dataclass(frozen=True, slots=True)
class Task:
    """What a subject is given. Never the case: hidden files and expected answers are out of its reach."""

    prompt: str
    case_id: str
    subject: str  # its name in the plan
    trial_id: str
    round: int
    seed: int
    limits: Limits
    spend: Callable[[Usage], None]  # tell the run of usage as it arrives; raises BudgetError when it is too much
    count: Callable[[Usage], None]  # tell it of usage that was paid for before, by a recording: no budget is charged
    tools: tuple[Tool, ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    own_workspace: Workspace | None = None
    clock: Clock = field(default_factory=lambda: Clock(Limits().attempt_seconds))  # pause it for what others cause

    @property
    def workspace(self) -> Workspace:
        if self.own_workspace is None:
            raise LookupError("this subject did not ask for a workspace: give it `needs = Needs(workspace=True)`")
        return self.own_workspace


class Subject(Protocol):
    """What is being judged."""

    async def attempt(self, task: Task) -> Transcript: ...


@runtime_checkable
class BoundSubject(Protocol):
    """A subject that is given the case's hidden parts on purpose; its records say so."""

    def bind(self, case: Case) -> Subject: ...


@runtime_checkable
class Checking(Protocol):
    """A subject or scorer that can tell before anything runs what it could not do with a case."""

    def check(self, case: Case) -> str | None:
        """What is wrong with the case and what to do about it, in a sentence; None where nothing is."""


@runtime_checkable
class SelectiveScorer(Protocol):
    """A scorer that stays silent about some cases."""

    def can_score(self, case: Case) -> bool: ...


@runtime_checkable
class NeedsNetwork(Protocol):
    """A subject or scorer that asks others over the network."""

    def lacks(self) -> list[str]:
        """What is missing for that, a sentence each: said before anything runs."""

    def secrets(self) -> Mapping[str, str]:
        """The keys it uses, by the names of their variables: no file may hold one."""

    def offline(self) -> Self:
        """The same, but with recordings for all it asks: used when nothing but recordings may answer."""


def _nobody_counts(usage: Usage) -> None:
    """For who scores outside a run."""


def _no_workspace() -> AbstractAsyncContextManager[Workspace]:
    raise LookupError("only a run gives scorers a workspace")


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """What a scorer is given."""

    case: Case
    transcript: Transcript
    artefacts: Mapping[str, str]
    pristine: Callable[[], AbstractAsyncContextManager[Workspace]]
    """A fresh workspace with the case's visible files, the artefacts, and the hidden files over them."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    """The case as its author wrote it, where that was in Python: its values need not be JSON."""
    seconds: float | None = None  # that the attempt took, waiting for others left out
    spend: Callable[[Usage], None] = _nobody_counts  # as a task's: what a judge uses is paid for too
    asking: Task | None = None  # in a run, for a scorer that asks a model: whose budget, time and recordings it is

    @classmethod
    def of(
        cls,
        output: JsonValue = None,
        *,
        tool_calls: Sequence[ToolCall] = (),
        usage: Usage = NO_USAGE,
        seconds: float | None = None,
        **row: Any,
    ) -> Self:
        """For calling a scorer oneself: an output, and the row it answers."""
        steps = (Step(parts=tuple(tool_calls)),) if tool_calls else ()
        case = Case(id=str(row.get("name", "case")), prompt=str(row.get("input", "")))
        return cls(
            case, Transcript(output=output, steps=steps, usage=usage), {}, _no_workspace, row=row, seconds=seconds
        )

    @property
    def input(self) -> Any:
        return self.row.get("input", self.case.prompt)

    @property
    def output(self) -> JsonValue:
        return self.transcript.output

    @property
    def expected(self) -> Any:
        return self.row.get("expected", self.case.expected)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.transcript.tool_calls

    def __getattr__(self, name: str) -> Any:
        """Whatever else the row holds, by its name."""
        if not name.startswith("_") and name in self.row:
            return self.row[name]
        raise AttributeError(
            f"a scorer is given no {name!r}: the row has {', '.join(map(repr, self.row)) or 'nothing'}"
        )


@runtime_checkable
class Impartial(Protocol):
    """A scorer that asks a model, which should not be the one whose answers it judges."""

    def prejudice(self, model: str) -> str | None:
        """Why it should not judge answers of that model, in a sentence; None where nothing is against it."""


Scored: TypeAlias = Score | float | bool | None


class Scorer(Protocol):
    """What judges: a callable, sync or async. Sync ones run off the event loop."""

    @property
    def name(self) -> str: ...

    def __call__(self, given: ScoreInput, /) -> Scored | Awaitable[Scored]: ...
