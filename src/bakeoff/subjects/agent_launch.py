"""Start a command in a trial's workspace with a private HOME, and collect the results."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bakeoff._kernel.clock import Clock
from bakeoff.errors import InfraError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, Place, Stop, Task
from bakeoff.sandbox.places import SandboxedWorkspace
from bakeoff.sandbox.untrusted_files import open_folder, write_below
from bakeoff.subjects.agent_program import last_words
from bakeoff.subjects.agent_run import MAX_OUTPUT_LENGTH, AgentRun
from bakeoff.subjects.folder_changes import Tree, changes_between, files_read, mark_unread, read_tree
from bakeoff.toolchains.commands import BroughtFiles

GRACE_SECONDS = 60.0
"""The time, in seconds, that a trial has in addition to the agent's own, for collecting the results."""

_MAX_TOUCHED = 200  # file names that are kept
_MAX_WAITING = 3600.0  # longest wait for a busy provider, as in the meter
_OWN_TESTS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Variables for agents, because an agent may find our own pytest, with a plugin that no sandbox shows."""

Watch = Callable[[str, Path, Tree], Awaitable[None]]
"""Shows the changes of a folder until it is cancelled. Arguments: the trial's name, the folder, its first contents."""


@dataclass(frozen=True, slots=True)
class AgentLaunch:
    """A command, and the workspace in which to run it."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, bytes] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    network: bool = False
    watched: tuple[str, ...] = ()  # files of the workspace whose opening is recorded
    watched_home: tuple[str, ...] = ()  # the same for HOME

    def with_packages(self, brought: BroughtFiles) -> "AgentLaunch":
        """Return the launch with access to packages in the workspace."""
        return replace(self, env={**brought.env, **self.env}, readable=(*self.readable, *brought.readable))


async def carry_out(
    task: Task, launch: AgentLaunch, watch: Watch | None = None, *, before: Tree | None = None, tries: int = 1
) -> AgentRun:
    """Run a command in the trial's workspace within the agent's time limit.

    When this returns, all its processes have ended.

    Args:
        task: The trial, with its workspace, time and clock.
        launch: The command with its environment and the files of its HOME.
        watch: Shows changes in the workspace. Files that the command opens are then unknown.
        before: The original state of the workspace; by default, the present state.
        tries: How many tries share the trial's time.
    """
    workspace = sandboxed(task)
    limit = max(1.0, (task.limits.attempt_seconds - GRACE_SECONDS) / tries)
    await asyncio.to_thread(put_home, workspace.place, launch.home)
    began = before if before is not None else await asyncio.to_thread(read_tree, workspace.folder)
    # Showing changes reads every file, so the agent's own reading cannot be seen.
    watched = {} if watch else {workspace.folder: launch.watched, workspace.place.home: launch.watched_home}
    noticed = [await asyncio.to_thread(mark_unread, folder, names) for folder, names in watched.items()]
    waited = task.clock.waited_so_far
    time_up = asyncio.Event()
    command = Command(
        launch.argv,
        workspace.place,
        limit + _MAX_WAITING,
        workspace.limits,
        env={**_OWN_TESTS, **launch.env},
        network=launch.network,
        readable=launch.readable,
        time_up=time_up,
    )
    watching = watch(f"{task.subject}, {task.case_id}", workspace.folder, began) if watch else None
    async with _beside(_count_down(task.clock, limit, time_up)), _beside(watching):
        done = await workspace.sandbox.run(command)
    own_seconds = max(0.0, done.seconds - (task.clock.waited_so_far - waited))
    for folder in (workspace.place.home, workspace.place.tmp, workspace.folder):
        await asyncio.to_thread(_make_readable, folder)
    opened = await asyncio.to_thread(_opened, workspace.place, watched) if any(noticed) else None
    after = await asyncio.to_thread(read_tree, workspace.folder, began.files)
    changes = changes_between(began, after)
    stdout, stderr = _tail(done.stdout), _tail(done.stderr)
    return AgentRun(
        exit_code=done.exit_code,
        stop=done.stop,
        exceeded=_exceeded(done.stop, workspace.limits),
        seconds=round(own_seconds, 3),
        limit=limit,
        stdout=stdout,
        stderr=stderr,
        last_words="" if done.ok else last_words(stderr) or last_words(stdout),
        touched=changes.weightiest(_MAX_TOUCHED),
        opened=opened,
        refused={name: after.refused[name] for name in changes.refused[:50]},
        patch=changes.patch,
    )


def _opened(place: Place, watched: Mapping[Path, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the watched files that were opened, as relative paths; in HOME, with `~/`."""
    read = {folder: files_read(folder, names) for folder, names in watched.items()}
    return (*read.get(place.work, ()), *(f"~/{name}" for name in read.get(place.home, ())))


def _exceeded(stop: Stop, limits: Limits) -> str:
    """Return a sentence about the limit that ended a command."""
    words: dict[Stop, str] = {
        "disk": f"it wrote more than {limits.disk_mb:,} MB to disk (the limit on workspace, HOME and TMPDIR together)",
        "output": f"it printed more than {limits.output_kb:,} kB (the limit on stdout and on stderr)",
        "memory": f"it used more than {limits.memory_mb:,} MB of memory (the limit)",
    }
    return words.get(stop, "")


@asynccontextmanager
async def _beside(work: Awaitable[None] | None) -> AsyncIterator[None]:
    """Run an optional awaitable during the block, and cancel it at the end."""
    working = None if work is None else asyncio.ensure_future(work)
    try:
        yield
    finally:
        if working is not None:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, InfraError):
                await working


async def _count_down(clock: Clock, limit: float, time_up: asyncio.Event) -> None:
    """Set the event when the agent's time is up. Waits for a busy provider do not count."""
    loop = asyncio.get_running_loop()
    end, left = loop.time() + limit - clock.waited_so_far, limit
    while left > 0:
        await asyncio.sleep(left)
        left = end + clock.waited_so_far - loop.time()
    time_up.set()


def _make_readable(folder: Path) -> None:
    """Restore a folder that the agent has locked, replaced or removed."""
    place = folder.parent
    if os.geteuid() != 0 and place.is_dir() and not place.is_symlink():
        place.chmod(0o700)  # only root runs agents as another user
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif os.geteuid() != 0:
        folder.chmod(0o700)


def put_home(place: Place, files: Mapping[str, bytes]) -> None:
    """Write files into the agent's HOME, readable only by its user."""
    if not files:
        return
    with open_folder(place.home) as home:
        for name, content in files.items():
            mode = 0o700 if content.startswith(b"#!") else 0o600
            if problem := write_below(home, name, content, mode, place.uid):
                raise InfraError(f"{name!r} cannot be put into the agent's HOME: it {problem}")


def _tail(output: bytes) -> str:
    text = output.decode(errors="replace")
    return text if len(text) <= MAX_OUTPUT_LENGTH else f"…{text[-MAX_OUTPUT_LENGTH:]}"


def sandboxed(task: Task) -> SandboxedWorkspace:
    """Return the sandboxed workspace of a task. Raise `InfraError` if it has none."""
    workspace = task.workspace
    if not isinstance(workspace, SandboxedWorkspace):
        raise InfraError("an agent needs a sandboxed workspace", permanent=True)
    return workspace
