"""Run commands with bubblewrap, without network and with a read-only view of the system."""

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
# For a missing program, the shell exits with 127, but bwrap alone with 1.
AS_A_SHELL_WOULD = ("/bin/sh", "-c", 'exec "$@"', "sh")


@dataclass(frozen=True, slots=True)
class BubblewrapSandbox:
    """Runs commands in new namespaces, with the same paths on every machine."""

    program: str
    hidden: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return "bwrap"

    async def run(self, command: Command) -> CommandResult:
        """Run a command and return its result. Raise `InfraError` if bubblewrap fails."""
        with one_command_at_a_time(command.place):
            return judged(await supervise(self.order(command), command))

    def order(self, command: Command) -> Order:
        """Return the order for the supervisor: the command, wrapped by bubblewrap."""
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
                mounts = None  # not needed, and a container may not permit mounts
        argv = (self.program, *self.options(command, shown, links), "--", *AS_A_SHELL_WOULD, *command.argv)
        return make_order(command, argv=argv, env=environment(INSIDE, command), cwd="/", mounts=mounts)

    def options(self, command: Command, shown: list[Path], links: Mapping[Path, str]) -> Iterator[str]:
        """Yield the options of bubblewrap. Later mounts cover earlier ones."""
        place = command.place
        yield from ("--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
        if not kernel_means().own_ipc:  # else the supervisor makes one, to count its contents
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
        # Both are in memory. If they were writable, commands could fill the memory.
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")
        if can_filter():
            yield from ("--seccomp", FILTER_WORD)
        yield from ("--chdir", str(command.cwd or INSIDE.work), "--json-status-fd", STATUS_WORD)


def shown_options(place: Place, shown: list[Path], links: Mapping[Path, str]) -> Iterator[str]:
    """Yield the options that show host paths read-only, at their original paths.

    Args:
        place: The place of the command. Its /tmp may have links left by an earlier command.
        shown: Real paths, none of which is inside another.
        links: Links to these paths, with their targets, which are made again.
    """
    # Parent folders in /tmp, such as that of a virtual environment, are made in memory, so that no
    # links stay in the place, where the next command could not make them again.
    below = [path for path in (*shown, *links) if INSIDE.tmp in path.parents]
    in_scratch = sorted({INSIDE.tmp / path.relative_to(INSIDE.tmp).parts[0] for path in below}.difference(below))
    for path in in_scratch:
        yield from ("--tmpfs", str(path))
    for path in shown:
        yield from ("--ro-bind", str(path), str(path))
    for path, target in links.items():
        left = place.tmp / path.name  # a link left by an earlier command cannot be made again
        if path.parent != INSIDE.tmp or not left.is_symlink() or str(left.readlink()) != target:
            yield from ("--symlink", target, str(path))
    for path in in_scratch:
        yield from ("--remount-ro", str(path))


def system_options() -> Iterator[str]:
    """Yield the options that show the system read-only: programs, libraries, some of /etc."""
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
    """Yield the options that hide paths below the roots, and all copies of this package."""
    for path in outermost((*our_packages(roots), *hidden)):  # a hidden path cannot be covered twice
        if not _is_below(path, roots):
            continue
        if path.is_dir():
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        elif path.is_file():
            yield from ("--ro-bind", os.devnull, str(path))


def visible_roots(paths: Iterable[Path]) -> tuple[list[Path], dict[Path, str]]:
    """Return the real paths to show in addition to the system, and the links to them.

    Links are made again, not mounted, because a link in HOME may lead to private folders.
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
    """Return the paths that are not inside another one, shallow paths first."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not _is_below(path, kept):
            kept.append(path)
    return kept


def _is_below(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def judged(finished: CommandEnd) -> CommandResult:
    """Return the result. Raise InfraError if the command never started."""
    completed = finished.completed
    if completed.stop == "exited" and '"exit-code"' not in finished.status:
        told = completed.stderr.decode(errors="replace").strip() or f"it ended with exit code {completed.exit_code}"
        raise InfraError(f"bubblewrap did not start the command: {told}")
    return signals_as_negative(completed)


def signals_as_negative(completed: CommandResult) -> CommandResult:
    """Return the result with a negative exit code for signals, instead of a shell's 128 + n."""
    if not 128 < completed.exit_code <= 128 + 64:
        return completed
    return replace(completed, exit_code=128 - completed.exit_code)


def find_bubblewrap() -> tuple[BubblewrapSandbox | None, str]:
    """Return the sandbox (None if it does not work here) and a sentence about it."""
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


# Graded commands do not see live figures in /proc, by which two runs could communicate.
# Files that programs need are replaced by fixed ones.
PROC = Path("/proc")
# Files that never change, or that belong to a single command.
KEPT = {
    *("acpi", "asound", "bus", "cmdline", "config.gz", "consoles", "crypto", "devices", "dma", "driver"),
    *("execdomains", "filesystems", "iomem", "ioports", "kallsyms", "misc", "modules", "mounts", "mtrr", "net"),
    *("partitions", "scsi", "self", "sys", "sysvipc", "thread-self", "tty", "version"),
}
_DEEPER = ("sys/fs", "sys/kernel/pty")
_EMPTY = "empty"


@cache
def fixed_figures() -> dict[str, str]:
    """Return fixed texts to replace live figures in /proc, as on a freshly started machine."""
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
    """Return the world-readable files of /proc that show other processes."""
    top = [path for path in PROC.iterdir() if path.name not in KEPT and not path.name.isdigit()]
    deeper = [PROC / name for name in _DEEPER]
    return [path for path in (*top, *deeper) if path.exists() and path.stat().st_mode & stat.S_IROTH]


def hidden_figures(place: Place) -> Iterator[tuple[Path, Path]]:
    """Write replacements for files in /proc, and yield each with the path that it covers."""
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
