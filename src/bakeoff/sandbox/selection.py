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
from bakeoff.sandbox.supervisor_client import kernel_means

Finder: TypeAlias = Callable[[], tuple[Sandbox | None, str]]

# Strongest first.
FINDERS: dict[str, Finder] = {"docker": find_docker, "bwrap": find_bubblewrap, "process": find_process}
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
    way_out: str = ""  # how to make it work


def available() -> list[SandboxStatus]:
    """Try every sandbox, and return the results, strongest first."""
    statuses = []
    for name, find in FINDERS.items():
        sandbox, detail = find()
        held = f"{detail}; {guarantees(sandbox)}" if sandbox and guarantees(sandbox) else detail
        statuses.append(SandboxStatus(name, sandbox is not None, held, "" if sandbox else WAYS_OUT[name]()))
    return statuses


def guarantees(sandbox: Sandbox) -> str:
    """Describe how a sandbox limits commands; empty for `docker`, which sets its own limits."""
    if isinstance(sandbox, ProcessSandbox):
        return f"{kernel_means().sentence()}; the network is this machine's"
    return kernel_means().sentence() if isinstance(sandbox, BubblewrapSandbox) else ""


def choose_sandbox(name: str = "auto", *, hidden: Iterable[Path] = ()) -> Sandbox:
    """Return the sandbox with this name, or the strongest one that works.

    Args:
        name: `docker`, `bwrap`, `process`, or `auto`.
        hidden: Folders that no command may see, such as results and suites.

    Raises:
        SandboxMissing: The sandbox does not work here. The message explains how to fix that.
    """
    if name not in ("auto", *FINDERS):
        raise SandboxMissing(f"sandbox {name!r} is not one of auto, {', '.join(FINDERS)}")
    reasons = []
    for kind in FINDERS if name == "auto" else (name,):
        sandbox, detail = FINDERS[kind]()
        if isinstance(sandbox, ProcessSandbox | BubblewrapSandbox):
            return replace(sandbox, hidden=tuple(hidden))
        if sandbox is not None:
            return sandbox
        reasons.append(f"{detail}; {WAYS_OUT[kind]()}")
    if name != "auto":
        raise SandboxMissing(f"sandbox {name!r} is not usable: {reasons[0]}")
    told = (f"{kind}: {reason}" for kind, reason in zip(FINDERS, reasons, strict=True))
    raise SandboxMissing(f"no sandbox is usable here: {' | '.join(told)}")


def inside(sandbox: Sandbox, place: Place) -> Place:
    """Return the place as a command sees it, at fixed paths unless in the `process` sandbox."""
    if isinstance(sandbox, BubblewrapSandbox | DockerSandbox):
        return replace(INSIDE, uid=place.uid)
    return place
