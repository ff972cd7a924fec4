"""How an agent in a sandbox gets to its meter, whatever the rung."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bakeoff.meter.listener import FORWARDER, HOST, SOCKET
from bakeoff.meter.trial import TrialMeter

INSIDE_PORT = 4141
"""Fixed, for a sandbox without a network has all ports to itself, and a trial should look alike every time."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What to put before the agent's command, what the sandbox has to show, and the address that then works."""

    argv_prefix: tuple[str, ...]
    origin: str
    readable: tuple[Path, ...]
    network: bool  # what the command needs: without, only the meter is in reach

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.argv_prefix, *argv)


def reach(trial: TrialMeter, rung: str, *, network: bool = False, python: str | None = None) -> Reach:
    """The way for one rung, by its name.

    `network` is whether the agent may use the network besides. `python` is the interpreter that the sandbox has: by
    default ours below `bwrap`, and the image's `python3` below `docker`; an empty one says that the image has none, and
    then there is no way but the host's network.
    """
    found = python if python is not None else "python3" if rung == "docker" else sys.executable
    if rung == "process" or network or not found:
        return Reach((), f"http://{HOST}:{trial.port}", (), network=network or not found)
    folder = trial.folder
    prefix = (found, "-I", "-S", str(folder / FORWARDER), str(folder / SOCKET), str(INSIDE_PORT))
    return Reach(prefix, f"http://{HOST}:{INSIDE_PORT}", (folder,), network=False)


def base_url(trial: TrialMeter, way: Reach, upstream: str) -> str:
    """What to give the agent as the provider's base URL."""
    return way.origin + trial.upstreams[upstream].base_path
