"""Find the sandboxes that work on this machine, and choose one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from bakeoff.errors import SandboxMissing
from bakeoff.protocols import Place, Sandbox
from bakeoff.sandbox.bubblewrap import INSIDE, BubblewrapSandbox, find_bubblewrap
from bakeoff.sandbox.docker import DockerSandbox, find_docker
from bakeoff.sandbox.docker import way_out as docker_way_out
from bakeoff.sandbox.process import ProcessSandbox, find_process

Finder: TypeAlias = Callable[[], tuple[Sandbox | None, str]]

FINDERS: dict[str, Finder] = {
    "docker": find_docker,
    "bwrap": find_bubblewrap,
    "process": find_process,
}  # strongest first
WAYS_OUT: dict[str, Callable[[], str]] = {
    "docker": docker_way_out,
    "bwrap": lambda: (
        "`apt-get install bubblewrap`, and permit user namespaces (`sysctl kernel.unprivileged_userns_clone=1`)"
    ),
    "process": lambda: "run Bakeoff as an ordinary user, or with a Python that other users may execute",
}


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """One line of `bakeoff doctor`."""

    name: str
    ok: bool
    detail: str
    way_out: str = ""  # what to do when it does not work


def available() -> list[SandboxStatus]:
    """Try every sandbox and return the results, strongest first."""
    statuses = []
    for name, find in FINDERS.items():
        sandbox, detail = find()
        statuses.append(SandboxStatus(name, sandbox is not None, detail, "" if sandbox else WAYS_OUT[name]()))
    return statuses


def choose_sandbox(name: str = "auto", *, hidden: Iterable[Path] = ()) -> Sandbox:
    """Return the strongest sandbox that works, or the one that is asked for by name.

    `hidden` are folders, such as results and suites, that no command may see, even where a sandbox shows the host's
    files.
    """
    if name == "auto":
        return strongest(tuple(hidden))
    if name not in FINDERS:
        raise SandboxMissing(f"sandbox {name!r} is not one of auto, {', '.join(FINDERS)}")
    sandbox, detail = FINDERS[name]()
    if sandbox is None:
        raise SandboxMissing(f"sandbox {name!r} is not usable: {detail}; {WAYS_OUT[name]()}")
    return with_hidden(sandbox, tuple(hidden))


def strongest(hidden: tuple[Path, ...]) -> Sandbox:
    reasons = []
    for name, find in FINDERS.items():
        sandbox, detail = find()
        if sandbox is not None:
            return with_hidden(sandbox, hidden)
        reasons.append(f"{name}: {detail}; {WAYS_OUT[name]()}")
    raise SandboxMissing("no sandbox is usable here: " + " | ".join(reasons))


def with_hidden(sandbox: Sandbox, hidden: tuple[Path, ...]) -> Sandbox:
    if isinstance(sandbox, ProcessSandbox | BubblewrapSandbox):
        return replace(sandbox, hidden=hidden)
    return sandbox


def inside(sandbox: Sandbox, place: Place) -> Place:
    """Return the place as the command sees it: at fixed paths, or as it is in the `process` sandbox."""
    if isinstance(sandbox, BubblewrapSandbox | DockerSandbox):
        return replace(INSIDE, uid=place.uid)
    return place
