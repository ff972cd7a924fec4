"""Run commands as supervised processes, without other software. As root, use separate users."""

import ctypes
import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bakeoff.protocols import Command, CommandResult, Place
from bakeoff.sandbox.mounts import SCRATCH, Step, blocking_folder, follow, plan_mounts
from bakeoff.sandbox.places import PREFIX, name_user, named_files, one_command_at_a_time, probe_place, we_are_root
from bakeoff.sandbox.programs import SYSTEM, check_shown, environment, our_packages, toolchain
from bakeoff.sandbox.supervisor.kernel import LANDLOCK_CREATE, LANDLOCK_VERSION
from bakeoff.sandbox.supervisor_client import Order, Report, SupervisorLost, make_order, supervise, supervise_now

ANY = f"{PREFIX}any-{secrets.token_hex(8)}"  # placeholder for the name of a place
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"))


@dataclass(frozen=True, slots=True)
class ProcessSandbox:
    """Runs commands on the host's file system. As root, it uses private mounts if possible."""

    private_mounts: bool
    hidden: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return "process"

    async def run(self, command: Command) -> CommandResult:
        """Run a command and return its result, even if it killed its own supervisor."""
        try:
            with one_command_at_a_time(command.place):
                return (await supervise(self.order(command), command)).completed
        except SupervisorLost as problem:
            if command.place.uid is not None:
                raise
            # A command of our own user can kill its supervisor, which must not excuse it.
            return problem.so_far

    def order(self, command: Command) -> Order:
        """Return the order for the supervisor."""
        check_shown(command)
        place, readable = command.place, (*command.readable, *command.shared)
        hidden = hidden_paths(readable, self.hidden)
        mounts = private_view(place, readable, hidden, changeable(command)) if self.private_mounts else None
        return make_order(
            command,
            argv=command.argv,
            env=environment(place, command),
            cwd=str(command.cwd or place.work),
            mounts=mounts,
            system_read_only=True,
            access=allowed_access(command, hidden, SCRATCH if self.private_mounts else ()),
        )


def changeable(command: Command) -> tuple[Path, ...]:
    """Return the shared paths that a command may write to."""
    return tuple(path for path, may_change in command.shared.items() if may_change)


@lru_cache(maxsize=64)
def hidden_paths(readable: tuple[Path, ...], hidden: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths hidden from all commands: our package, and what the run hides."""
    return (*our_packages([*map(Path, SYSTEM), *toolchain(), *readable]), *hidden)


def private_view(
    place: Place, readable: tuple[Path, ...], hidden: tuple[Path, ...] = (), shared: tuple[Path, ...] = ()
) -> list[Step]:
    """Return the mounts of a command, with its own and shared folders, and a name for its user."""
    name_user(place, place.home)
    steps: list[Step] = json.loads(
        _view_of_any_place(place.work.parent.parent, readable, hidden, shared).replace(ANY, place.work.parent.name)
    )
    return steps


@lru_cache(maxsize=64)
def _view_of_any_place(
    parent: Path, readable: tuple[Path, ...], hidden: tuple[Path, ...], shared: tuple[Path, ...]
) -> str:
    """Return the mounts for a place named `ANY` as JSON, cached because planning is slow."""
    root = parent / ANY
    emptied = {str(path.resolve()): Path(os.devnull) for path in hidden if path.is_file()}
    return json.dumps(
        plan_mounts(
            readable=[*toolchain(), *readable],
            writable=[*(root / folder for folder in ("work", "home", "tmp")), *shared],
            hidden=hidden,
            replaced={**named_files(root), **emptied},
        )
    )


def allowed_access(command: Command, hidden: Sequence[Path], scratch: Sequence[Path] = ()) -> dict[str, Sequence[str]]:
    """Return the paths that a command may read, list and write; see `supervisor/confinement.py`.

    These are the paths that bubblewrap would show, and the private scratch folders. A folder with
    hidden content can be listed.
    """
    readable, listed = _readable_paths((*command.readable, *command.shared), tuple(hidden))
    place = command.place
    writable = [*map(str, (place.work, place.home, place.tmp, *changeable(command), *scratch)), *DEVICES]
    return {"readable": readable, "listed": listed, "writable": writable}


@lru_cache(maxsize=64)
def _readable_paths(readable: tuple[Path, ...], hidden: tuple[Path, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths that can be read, and those that can only be listed."""
    system = [Path(name) for name in (*SYSTEM, "/etc", "/proc", "/sys", "/dev")]
    roots = dict.fromkeys(path.resolve() for path in (*system, *toolchain(), *readable))
    closed = [path.resolve() for path in hidden]
    listed: list[Path] = []
    found = [str(path) for root in roots for path in _without(root, closed, listed)]
    return tuple(found), tuple(map(str, listed))


def _without(root: Path, hidden: Sequence[Path], listed: list[Path]) -> Iterator[Path]:
    """Yield the paths in a folder except the hidden ones. Add folders around these to `listed`.

    Rules apply to the targets of links: a link to a folder with hidden parts counts as the folder.
    """
    real = root.resolve()
    if not any(path.is_relative_to(real) for path in hidden):
        yield root
        return
    if root.is_symlink() or real in hidden:
        return
    listed.append(root)
    for child in root.iterdir():
        yield from _without(child, hidden, listed)


def has_landlock() -> bool:
    """Return True if the kernel has Landlock, which protects files from our own user's commands."""
    return sys.platform == "linux" and bool(ctypes.CDLL(None).syscall(LANDLOCK_CREATE, None, 0, LANDLOCK_VERSION) > 0)


def find_process() -> tuple[ProcessSandbox | None, str]:
    """Return the sandbox (None if it does not work here) and a sentence about it."""
    if not we_are_root():
        shares = "network" if has_landlock() else "files and network"
        return ProcessSandbox(private_mounts=False), f"the subject runs as you, and shares your {shares}"
    with probe_place() as place:
        report = probe(place, private_view(place, ()))
        if report.get("exit_code") == 0:
            return ProcessSandbox(private_mounts=True), "the subject runs as a user of its own, the system is read-only"
        why = report.get("problem", f"a trial run of Python ended as {report}")
        for path in toolchain():
            blocking = blocking_folder(follow(path, {}))
            if blocking is not None:
                return None, f"{path} leads through {blocking}, which is closed to other users, and {why}"
        report = probe(place, None)
    if report.get("exit_code") != 0:
        return None, f"a process of another user cannot be started: {report.get('problem', report)}"
    shares = "network" if has_landlock() else "files and network"
    return ProcessSandbox(private_mounts=False), f"the subject runs as a user of its own, and shares your {shares}"


def probe(place: Place, mounts: list[Step] | None) -> Report:
    """Run our own Python in the same way as a trial."""
    argv = (sys.executable, "-I", "-S", "-c", "")
    command = Command(argv, place, seconds=10.0)
    return supervise_now(
        make_order(command, argv=argv, env={}, cwd=str(place.work), mounts=mounts, system_read_only=True)
    )
