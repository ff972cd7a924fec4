"""The interfaces of subjects, scorers and sandboxes: one method each, with frozen data around them.

A trial uses them in this order. The engine makes a `Workspace` if the subject `Needs` one, and calls
`Subject.attempt(task)`. It then gives the `Transcript` and the collected files to each `Scorer` as a `ScoreInput`.
Both run programs only through a `Sandbox`. A `Resource` is opened once and shared by all trials of a run.

The `runtime_checkable` protocols are optional: subjects and scorers may have their methods.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import JsonValue

from bakeoff._kernel.clock import Clock
from bakeoff.plan import Case, Limits
from bakeoff.record import NO_USAGE, Score, Step, ToolCall, Transcript, Usage

BUDGET = "budget"
"""The key of the run's budget among the resources of a trial."""

ON_DEMAND = "on_demand"
"""The key, among the resources of a trial, of the object that opens further resources during the run."""

Stop: TypeAlias = Literal["exited", "timeout", "output", "memory", "disk", "cancelled", "killed"]
"""The reason why a command ended: `exited` by itself, `killed` together with its supervisor (a command that runs as our
own user can do that), or one of our limits.
"""


@dataclass(frozen=True, slots=True)
class Place:
    """The private folders of a trial, deleted with it.

    A subject leaves its answer in `work`. `home` and `tmp` become HOME and TMPDIR of its commands.
    """

    work: Path
    home: Path
    tmp: Path
    uid: int | None = None  # the unprivileged user that owns them, when we are root


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run in a place, with its limits.

    `seconds` is wall-clock time. No shell is involved: `argv` is passed on as it is.
    """

    argv: tuple[str, ...]
    place: Place
    seconds: float
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)  # added to the allowed variables
    stdin: bytes = b""
    network: bool = False  # enforced from `bwrap` up; the `process` sandbox cannot take the network away
    readable: tuple[Path, ...] = ()  # more host paths that it can read, such as a toolchain
    shared: Mapping[Path, bool] = field(default_factory=dict)  # the user's paths; True: writable
    cwd: Path | None = None  # a shared folder to start in, instead of the place's own
    graded: bool = False  # block access to other processes; same variables on every machine
    children: bool = True  # may start processes, and not only threads; in `docker`, all may
    time_up: asyncio.Event | None = None  # ends the command when set; for clocks that can be paused


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command.

    `exit_code` is negative for a signal, as in `subprocess`. If output was cut, `stop` says so.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    stop: Stop = "exited"

    @property
    def ok(self) -> bool:
        """Return True if the command ended by itself, with exit code 0."""
        return self.stop == "exited" and self.exit_code == 0


class Sandbox(Protocol):
    """Runs commands in isolation. `bakeoff.sandbox` has `process`, `bwrap` and `docker`."""

    @property
    def name(self) -> str:
        """Return the name of the sandbox, as `--sandbox` takes it."""

    async def run(self, command: Command) -> CommandResult:
        """Run a command until it ends or reaches a limit.

        A command that fails or exceeds a limit gives a result, not an exception.
        """


class Workspace(Protocol):
    """A trial's private folder and the sandbox that runs commands in it."""

    @property
    def folder(self) -> Path:
        """Return the folder on the host. A command inside the sandbox may see it under another path."""

    def write(self, files: Mapping[str, str]) -> None:
        """Write text files by relative path, before any untrusted code has run in the folder."""

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run a command. When this returns, every process that it started has ended.

        `env` is added to the allow-listed environment. A command has no network unless `network` is True.
        """

    async def collect(self, patterns: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """Return matching files with their texts, and refused files with the reasons.

        The folder is untrusted: links, special files and files that are too large are refused.
        """


class Resource(Protocol):
    """Something that a run opens once and shares. Resources with the same `key` are the same."""

    @property
    def key(self) -> str:
        """Return the key that finds the resource in `Task.resources` and `ScoreInput.resources`."""

    def open(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that starts the resource, and stops it at the end of the run."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a subject or scorer, in its attribute `needs`. Scorers always get workspaces."""

    workspace: bool = False
    resources: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the subject may call. It runs on the host, so it may use hidden files."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]  # JSON Schema
    call: Callable[
        [Mapping[str, JsonValue]], Awaitable[JsonValue]
    ]  # raises ToolError to tell the subject about a wrong call
    ends: bool = False  # calling it ends the attempt


@dataclass(frozen=True, slots=True)
class Task:
    """The input of a subject. It never holds the case: hidden files and expected answers are out of its reach."""

    prompt: str
    case_id: str
    subject: str  # its name in the plan
    trial_id: str
    round: int
    seed: int
    limits: Limits
    spend: Callable[[Usage], None]  # report usage as it arrives; raises BudgetError above the limit
    count: Callable[[Usage], None]  # report usage of a recorded answer, which costs nothing now
    tools: tuple[Tool, ...] = ()
    resources: Mapping[str, Any] = field(default_factory=dict)
    own_workspace: Workspace | None = None
    clock: Clock = field(default_factory=lambda: Clock(Limits().attempt_seconds))  # pause it while others cause a wait

    @classmethod
    def alone(cls, seconds: float, **given: Any) -> Self:
        """Return a task for use outside a run, without a budget. Other fields are empty."""
        empty = dict.fromkeys(("prompt", "case_id", "subject", "trial_id"), "") | {"round": 0, "seed": 0}
        spends = {"spend": lambda _: None, "count": lambda _: None}
        limits = Limits(attempt_seconds=seconds)
        return cls(**{**empty, **spends, "limits": limits, "clock": Clock(seconds), **given})

    @property
    def workspace(self) -> Workspace:
        """Return the workspace of the trial. Raise `LookupError` if the subject needs none."""
        if self.own_workspace is None:
            raise LookupError("this subject did not ask for a workspace: give it `needs = Needs(workspace=True)`")
        return self.own_workspace


class Subject(Protocol):
    """What is judged: a model, an agent or a function."""

    async def attempt(self, task: Task) -> Transcript:
        """Attempt the task once, and return the conversation and its result.

        Report usage with `task.spend` as it arrives, so that it counts even if the attempt is
        killed. The type of a `TrialError` tells who caused the failure. Any other exception counts
        as `infra`, unless the subject has the attribute `raises_its_own_errors = True`.
        """


@runtime_checkable
class BoundSubject(Protocol):
    """A subject that is given the hidden parts of a case on purpose. Its records say so."""

    def bind(self, case: Case) -> Subject:
        """Return a subject that attempts this one case."""


@runtime_checkable
class Checking(Protocol):
    """A subject or scorer that can check a case before anything runs."""

    def check(self, case: Case) -> str | None:
        """Return a sentence on what is wrong with the case and how to fix it, or None."""


@runtime_checkable
class SelectiveScorer(Protocol):
    """A scorer that does not score every case."""

    def can_score(self, case: Case) -> bool:
        """Return True if the case has what the scorer needs, such as an expected answer."""


@runtime_checkable
class AcceptsReference(Protocol):
    """A scorer that knows for which cases the reference itself must get the full score."""

    def accepts_reference(self, case: Case) -> bool:
        """Return True if the reference of the case is right as it is: its expected answer, or its reference files."""


@runtime_checkable
class NeedsNetwork(Protocol):
    """A subject or scorer that uses the network."""

    def lacks(self) -> list[str]:
        """Return a sentence for each thing that is missing to use the network."""

    def secrets(self) -> Mapping[str, str]:
        """Return the API keys by the names of their variables, to keep them out of all files."""

    def offline(self) -> Self:
        """Return a copy that uses only recordings."""


def _nobody_counts(usage: Usage) -> None:
    """Ignore usage. This is the default outside of a run, where nothing counts it."""


def _no_workspace() -> AbstractAsyncContextManager[Workspace]:
    raise LookupError("only a run gives scorers a workspace")


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """The input of a scorer.

    Most scorers use `input`, `output`, `expected` and `tool_calls`. A case written in Python can
    have more values. Each is an attribute: `{"input": …, "topic": …}` gives `given.topic`.
    """

    case: Case
    transcript: Transcript
    artefacts: Mapping[str, str]
    pristine: Callable[[], AbstractAsyncContextManager[Workspace]]
    """A fresh workspace with the case's visible files and the artefacts, and the hidden files written over them."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    """The case as its author wrote it in Python; its values need not be JSON."""
    seconds: float | None = None  # duration of the attempt, without waiting for others
    spend: Callable[[Usage], None] = _nobody_counts  # as in `Task`, because judges cost money too
    asking: Task | None = None  # in a run, for a scorer that asks a model: its budget, clock and recordings

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
        """Make an input from an output and its row, for calling a scorer directly in a test.

        Such an input has no workspace: `pristine` raises `LookupError`.
        """
        steps = (Step(parts=tuple(tool_calls)),) if tool_calls else ()
        case = Case(id=str(row.get("name", "case")), prompt=str(row.get("input", "")))
        return cls(
            case, Transcript(output=output, steps=steps, usage=usage), {}, _no_workspace, row=row, seconds=seconds
        )

    @property
    def input(self) -> Any:
        """Return `input` of the row, or else the prompt of the case."""
        return self.row.get("input", self.case.prompt)

    @property
    def output(self) -> JsonValue:
        """Return the final answer of the subject; None if it gave none."""
        return self.transcript.output

    @property
    def expected(self) -> Any:
        """Return `expected` of the row, or else the expected answer of the case, or None."""
        return self.row.get("expected", self.case.expected)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return all tool calls of the attempt, in order."""
        return self.transcript.tool_calls

    def __getattr__(self, name: str) -> Any:
        """Return any other value of the row by its name."""
        if not name.startswith("_") and name in self.row:
            return self.row[name]
        raise AttributeError(
            f"the input of a scorer has no {name!r}: the row has {', '.join(map(repr, self.row)) or 'nothing'}"
        )


SCORING: ContextVar[tuple[ScoreInput, asyncio.AbstractEventLoop] | None] = ContextVar("scoring", default=None)
"""The input that is being scored and the loop of its run, for functions that scorers call without passing them on."""


@runtime_checkable
class ModelJudge(Protocol):
    """A scorer that asks a model. A model must not judge its own answers."""

    def self_judging_problem(self, model: str) -> str | None:
        """Return why this scorer must not judge answers of the given model; None if it may."""


Scored: TypeAlias = Score | float | bool | None


class Scorer(Protocol):
    """Scores one trial. A scorer is a callable, sync or async; sync scorers run in a thread."""

    @property
    def name(self) -> str:
        """Return the default name of its scores. Names must differ within a case."""

    def __call__(self, given: ScoreInput, /) -> Scored | Awaitable[Scored]:
        """Return a score, a number from 0 to 1, True or False, or None for "unscored".

        Any exception except a `TrialError` is the scorer's failure and has the kind `grader`.
        """
