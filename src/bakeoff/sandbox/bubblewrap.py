"""Run commands with bubblewrap: without a network, and with only a read-only view of the system."""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from bakeoff.errors import InfraError
from bakeoff.protocols import Command, CommandResult, Place
from bakeoff.sandbox.mounts import follow, plan_mounts
from bakeoff.sandbox.places import INSIDE_HOME, INSIDE_USER, OWN_ETC, one_command_at_a_time, probe_place
from bakeoff.sandbox.process import changeable
from bakeoff.sandbox.programs import SYSTEM, check_shown, environment, our_packages, toolchain
from bakeoff.sandbox.supervisor.confinement import SHARED_MEMORY_BYTES
from bakeoff.sandbox.supervisor_client import (
    FILTER_WORD,
    STATUS_WORD,
    CommandEnd,
    Order,
    kernel_means,
    make_order,
    supervise,
    supervise_now,
)
from bakeoff.sandbox.system_calls import can_filter

INSIDE = Place(work=Path("/workspace"), home=Path(INSIDE_HOME), tmp=Path("/tmp"))  # noqa: S108 - a private one
ETC = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "hosts", "ld.so.cache"),
    *("ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "pki", "protocols", "resolv.conf"),
    *("services", "ssl", "timezone"),
)
# The shell exits with 127 for a missing program, bwrap alone with 1.
AS_A_SHELL_WOULD = ("/bin/sh", "-c", 'exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class BubblewrapSandbox:
    """Runs commands in namespaces of their own, at fixed paths, so that trials are the same on every machine."""

    program: str
    hidden: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return "bwrap"

    async def run(self, command: Command) -> CommandResult:
        """Run a command, and return how it ended. Raise `InfraError` if bubblewrap did not start it."""
        with one_command_at_a_time(command.place):
            return judged(await supervise(self.order(command), command))

    def order(self, command: Command) -> Order:
        """Return the order for the supervisor: bubblewrap with its options, around the command."""
        place = command.place
        check_shown(command)
        shown, links = visible_roots([*toolchain(), *command.readable, *command.shared])
        mounts = None
        if place.uid is not None:
            mounts = plan_mounts(
                readable=[*shown, OWN_ETC, Path(self.program), place.home.parent],
                writable=[place.work, place.home, place.tmp, *changeable(command)],
                private_scratch=False,
            )
            if not any(step["kind"] == "cover" for step in mounts):
                mounts = None  # everything can be reached already, and a container may not permit mounts
        argv = (self.program, *self.options(command, shown, links), "--", *AS_A_SHELL_WOULD, *command.argv)
        return make_order(command, argv=argv, env=environment(INSIDE, command), cwd="/", mounts=mounts)

    def options(self, command: Command, shown: list[Path], links: Mapping[Path, str]) -> Iterator[str]:
        """Yield the options of bubblewrap. Later mounts cover what earlier ones show."""
        place = command.place
        yield from ("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
        if not kernel_means().own_ipc:  # else the supervisor makes one, whose contents it can count
            yield "--unshare-ipc"
        if not command.network:
            yield "--unshare-net"
        yield from ("--disable-userns", "--die-with-parent", "--new-session", "--hostname", "trial")
        yield from ("--uid", INSIDE_USER, "--gid", INSIDE_USER, "--cap-drop", "ALL")
        yield from system_options()
        yield from ("--proc", "/proc")
        for instead, path in hidden_figures(place) if command.graded else ():
            yield from ("--ro-bind", str(instead), str(path))
        yield from ("--dev", "/dev", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")  # noqa: S108
        for outside, inside in ((place.work, INSIDE.work), (place.home, INSIDE.home), (place.tmp, INSIDE.tmp)):
            yield from ("--bind", str(outside), str(inside))
        yield from shown_options(place, shown, links)
        for path in changeable(command):
            yield from ("--bind", str(path.resolve()), str(path.resolve()))
        yield from hidden_options([*shown, *map(Path, SYSTEM), Path("/etc")], self.hidden)
        # Both are in memory: if they were writable, a command could fill it beyond any limit.
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")
        if can_filter():
            yield from ("--seccomp", FILTER_WORD)
        yield from ("--chdir", str(command.cwd or INSIDE.work), "--json-status-fd", STATUS_WORD)


def shown_options(place: Place, shown: list[Path], links: Mapping[Path, str]) -> Iterator[str]:
    """Yield the options that show host paths read-only, at the paths that they have on the host.

    Args:
        place: The place of the command, whose /tmp may have links of an earlier command.
        shown: Real paths, none of them below another one.
        links: Links that lead to them, with their targets; they are made again.
    """
    # Folders of /tmp that hold paths, such as an environment that was made there, are made in memory: so they leave no
    # links in the place, where the next command could not make them again.
    below = [path for path in (*shown, *links) if INSIDE.tmp in path.parents]
    in_scratch = sorted({INSIDE.tmp / path.relative_to(INSIDE.tmp).parts[0] for path in below}.difference(below))
    for path in in_scratch:
        yield from ("--tmpfs", str(path))
    for path in shown:
        yield from ("--ro-bind", str(path), str(path))
    for path, target in links.items():
        left = place.tmp / path.name  # by an earlier command of the place: then it cannot be made again
        if path.parent != INSIDE.tmp or not left.is_symlink() or str(left.readlink()) != target:
            yield from ("--symlink", target, str(path))
    for path in in_scratch:
        yield from ("--remount-ro", str(path))


def system_options() -> Iterator[str]:
    """Yield the options that show the system read-only: its programs and libraries, and a few files of /etc."""
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)
    for name in ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in ("passwd", "group"):
        yield from ("--ro-bind", str(OWN_ETC / name), f"/etc/{name}")


def hidden_options(roots: list[Path], hidden: Iterable[Path]) -> Iterator[str]:
    """Yield the options that cover hidden paths below the roots, and every installed copy of this package."""
    for path in outermost((*our_packages(roots), *hidden)):  # a hidden path cannot be covered again
        if not _is_below(path, roots):
            continue
        if path.is_dir():
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        elif path.is_file():
            yield from ("--ro-bind", os.devnull, str(path))


def visible_roots(paths: Iterable[Path]) -> tuple[list[Path], dict[Path, str]]:
    """Return the real paths to show in addition to the system, and the links that lead to them.

    Links are created anew, not bound: a link in HOME may lead to a folder full of other things.
    """
    links: dict[Path, str] = {}
    found = [path for given in paths if (path := follow(given, links)).exists()]
    system = [Path(name) for name in (*SYSTEM, *(f"/etc/{name}" for name in ETC))]
    shown = outermost(path for path in found if not _is_below(path, system))
    return shown, {path: target for path, target in links.items() if not _is_below(path, [*system, *shown])}


def shows(path: Path, readable: Iterable[Path]) -> bool:
    """Return True if a command with these readable paths sees this path of the host."""
    shown, links = visible_roots([*toolchain(), *readable])
    system = [Path(name) for name in (*SYSTEM, *(f"/etc/{name}" for name in ETC))]
    return _is_below(path, [*shown, *links, *system])


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lie below none of the others, shallow ones first."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not _is_below(path, kept):
            kept.append(path)
    return kept


def _is_below(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def judged(finished: CommandEnd) -> CommandResult:
    """Return the result. Raise InfraError if bubblewrap reported no exit code: then the command was not started."""
    completed = finished.completed
    if completed.stop == "exited" and '"exit-code"' not in finished.status:
        told = completed.stderr.decode(errors="replace").strip() or f"it ended with exit code {completed.exit_code}"
        raise InfraError(f"bubblewrap did not start the command: {told}")
    return signals_as_negative(completed)


def signals_as_negative(completed: CommandResult) -> CommandResult:
    """Return the result with a negative exit code for a signal, as `subprocess` does. Shells report 128 plus it."""
    if not 128 < completed.exit_code <= 128 + 64:
        return completed
    return replace(completed, exit_code=128 - completed.exit_code)


def find_bubblewrap() -> tuple[BubblewrapSandbox | None, str]:
    """Return the sandbox, None if it does not work here, and a sentence about it."""
    program = shutil.which("bwrap")
    if program is None:
        return None, "bubblewrap is not installed"
    sandbox = BubblewrapSandbox(program)
    with probe_place() as place:
        report = supervise_now(sandbox.order(Command(("true",), place, seconds=10.0)))
    if report.get("exit_code") == 0:
        return sandbox, "read-only system, only the trial's own folders, no network unless asked for"
    why = report.get(
        "problem", "it cannot make user namespaces; is `kernel.unprivileged_userns_clone` or AppArmor set?"
    )
    return None, f"{program} is there but does not work: {why}"


# The figures of the machine in /proc are hidden from graded commands, so that two runs cannot communicate by them. The
# files that programs need to know its size are replaced by others that say the same in every run.
PROC = Path("/proc")
# What does not change while the machine runs, or is a command's own.
KEPT = {
    *("acpi", "asound", "bus", "cmdline", "config.gz", "consoles", "crypto", "devices", "dma", "driver"),
    *("execdomains", "filesystems", "iomem", "ioports", "kallsyms", "misc", "modules", "mounts", "mtrr", "net"),
    *("partitions", "scsi", "self", "sys", "sysvipc", "thread-self", "tty", "version"),
}
_DEEPER = ("sys/fs", "sys/kernel/pty")
_EMPTY = "empty"


@cache
def fixed_figures() -> dict[str, str]:
    """Return the texts that replace live figures in /proc: those of a machine of this size that has just begun."""
    total = re.search(r"^MemTotal:.*$", (PROC / "meminfo").read_text(), re.MULTILINE)
    size = total[0].partition(":")[2] if total else " 0 kB"
    memory = [f"{name}:{size}" for name in ("MemTotal", "MemFree", "MemAvailable")]
    memory += [f"{name}: 0 kB" for name in ("Buffers", "Cached", "SwapTotal", "SwapFree")]
    idle = " 0" * 10
    processors = [f"cpu {idle}", *(f"cpu{number}{idle}" for number in range(os.cpu_count() or 1))]
    return {
        "cpuinfo": re.sub(r"^cpu MHz.*\n", "", (PROC / "cpuinfo").read_text(), flags=re.MULTILINE),
        "loadavg": "0.00 0.00 0.00 1/1 1\n",
        "meminfo": "\n".join([*memory, ""]),
        "stat": "\n".join([*processors, "ctxt 0", "btime 0", "processes 1", "procs_running 1", "procs_blocked 0", ""]),
        "uptime": "1.00 1.00\n",
    }


@cache
def live_figures() -> list[Path]:
    """Return the files and folders of /proc that everybody may read and that describe several processes."""
    top = [path for path in PROC.iterdir() if path.name not in KEPT and not path.name.isdigit()]
    deeper = [PROC / name for name in _DEEPER]
    return [path for path in (*top, *deeper) if path.exists() and path.stat().st_mode & stat.S_IROTH]


def hidden_figures(place: Place) -> Iterator[tuple[Path, Path]]:
    """Yield each replacement and the path in /proc that it covers. Write them beside the folders of the place."""
    shown = place.home.parent
    (shown / _EMPTY).mkdir(mode=0o755, exist_ok=True)
    for name, text in fixed_figures().items():
        file = shown / name
        if not file.exists():
            file.write_text(text, encoding="utf-8")
            file.chmod(0o644)
    for path in live_figures():
        instead = shown / path.name if path.name in fixed_figures() else Path(os.devnull)
        yield shown / _EMPTY if path.is_dir() else instead, path
