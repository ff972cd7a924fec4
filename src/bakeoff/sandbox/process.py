"""The rung that needs nothing: a supervised process tree, and a user of its own when we are root."""

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path

import bakeoff
from bakeoff.errors import InfraError
from bakeoff.protocols import Command, Completed, Place
from bakeoff.sandbox.environment import environment, toolchain
from bakeoff.sandbox.mounts import blocking_folder, follow, plan_mounts
from bakeoff.sandbox.places import one_command_at_a_time, reserved_users, we_are_root
from bakeoff.sandbox.supervised import make_order, supervise, supervise_now

PR_SET_DUMPABLE = 4
PACKAGE = Path(bakeoff.__file__).parent  # it carries bundled references, which no subject may read


@dataclass(frozen=True, slots=True)
class ProcessSandbox:
    """Runs commands on the host's own files; as root, with private mounts where the kernel permits them."""

    private_mounts: bool
    hidden: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return "process"

    async def run(self, command: Command) -> Completed:
        check_user(command.place)
        if not we_are_root():
            hide_our_memory()
        place = command.place
        mounts = None
        if self.private_mounts:
            mounts = plan_mounts(
                readable=[*toolchain(), *command.readable],
                writable=[place.work, place.home, place.tmp],
                hidden=[PACKAGE, *self.hidden],
            )
        order = make_order(
            command,
            argv=command.argv,
            env=environment(place, command.env),
            cwd=str(place.work),
            mounts=mounts,
            system_read_only=True,
        )
        with one_command_at_a_time(place):
            finished = await supervise(order, stdin=command.stdin, output_kb=command.limits.output_kb)
        return finished.completed


def check_user(place: Place) -> None:
    if we_are_root() and place.uid is None:
        raise InfraError(f"{place.work} has no user of its own, and root must not run a subject; use open_place()")


def hide_our_memory() -> None:
    """Without root the subject is the same user as we are: keep our environment and memory out of /proc for it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def find_process() -> tuple[ProcessSandbox | None, str]:
    """The rung as this machine permits it, or None; and a sentence about it."""
    if not we_are_root():
        return ProcessSandbox(private_mounts=False), "the subject runs as you, and shares your files and network"
    here = Path(__file__).parent  # some folder to watch; the probe writes nothing
    probe = Command(("true",), Place(here, here, here, reserved_users()[-1]), seconds=10.0)
    steps = plan_mounts(readable=toolchain(), writable=[])
    argv = (sys.executable, "-I", "-S", "-c", "")
    order = make_order(probe, argv=argv, env={}, cwd="/", mounts=steps, system_read_only=True)
    report = supervise_now(order)
    if report.get("exit_code") == 0:
        return ProcessSandbox(private_mounts=True), "the subject runs as a user of its own, with the system read-only"
    blocked = [path for path in toolchain() if blocking_folder(follow(path, {}))]
    if blocked:
        return None, f"{blocked[0]} lies in a folder closed to other users, and {report.get('problem', 'it failed')}"
    order["mounts"] = None
    report = supervise_now(order)
    if report.get("exit_code") == 0:
        return ProcessSandbox(private_mounts=False), "the subject runs as a user of its own"
    return None, f"a process of another user cannot be started: {report.get('problem', report)}"
