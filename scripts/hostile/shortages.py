"""Take away what a run needs: disk space, working writes, descriptors, a steady clock, a living provider.

Each run must end with an exit code as designed and a message, without a traceback; what was finished stays, and a
resume with everything in place ends with all trials.
"""

import contextlib
import ctypes
import errno
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.hostile.options import Options
from scripts.hostile.rows import Findings
from scripts.hostile.workloads import (
    EVALS,
    MCP,
    Workload,
    ended,
    finished,
    output,
    planned,
    prepare,
    resume,
    run_folders,
    set_variables,
)

from bakeoff.storage.journal import read_journal
from bakeoff.storage.journal_lines import Damage

_SHIM = Path(__file__).with_name("shim.c")
_HANGS_SECONDS = 180.0
_DESIGNED = (0, 1, 2, 3)
_REPLY = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"id": "x", "choices": [{"mess'
)


@dataclass(frozen=True, slots=True)
class Shortage:
    """Name what is missing. `keeps_folder`: the run's folder is there afterwards, and can be resumed."""

    name: str
    workload: Workload = MCP
    env: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None  # in the process, before it becomes the program
    needs: str = ""  # "shim" or "root"
    keeps_folder: bool = True
    harmless: bool = False  # the run ends with all trials


def _failing(after: int, number: int, part: str) -> dict[str, str]:
    return {"FAULT_PATH": part, "FAULT_AFTER": str(after), "FAULT_ERRNO": str(number)}


def _shortages(sample: bool) -> Iterator[Shortage]:
    yield Shortage("nothing missing", harmless=True)  # a workload that does not work would hide everything
    offsets = (2_000,) if sample else (0, 1, 500, 2_000, 5_000, 9_000, 20_000)
    for name, number in (("EIO", errno.EIO), ("ENOSPC", errno.ENOSPC)):
        for after in offsets:
            env = _failing(after, number, "journal.jsonl")
            yield Shortage(f"{name} in the journal after {after} bytes", env=env, needs="shim")
        if not sample:
            yield Shortage(f"{name} in all files of the run", env=_failing(0, number, "results/runs"), needs="shim")
            yield Shortage(f"{name} in reports", env=_failing(0, number, "mcp-report"), needs="shim")
            yield Shortage(f"{name} in pytest's run", EVALS, _failing(500, number, "results/"), needs="shim")
    yield Shortage("a clock that jumps a day back and forth", env={"CLOCK_JUMP": "86400"}, needs="shim", harmless=True)
    small = (1,) if sample else (1, 2, 5, 12)
    for pages in small:
        yield Shortage(
            f"a disk of {4 * pages} KB", before=_mounting(f"size={4 * pages}k"), needs="root", keeps_folder=False
        )
    yield Shortage("a read-only results folder", before=_mounting("ro"), needs="root", keeps_folder=False)
    for most in (24,) if sample else (8, 12, 16, 20, 24, 32, 40, 64):
        yield Shortage(f"{most} descriptors", before=_descriptors(most))


def _mounting(options: str) -> Callable[[], None]:
    """Return a function that mounts a tmpfs on the results folder, in a mount namespace of the process."""

    def mount() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        where = str(Path.cwd() / "results").encode()
        flags = 1 if options == "ro" else 0
        data = None if options == "ro" else options.encode()
        steps = (
            libc.unshare(0x20000),
            libc.mount(b"none", b"/", None, ctypes.c_ulong(0x44000), None),
            libc.mount(b"tmpfs", where, b"tmpfs", ctypes.c_ulong(flags), data),
        )
        if any(steps):
            raise OSError(ctypes.get_errno(), "no private tmpfs can be mounted")

    return mount


def _descriptors(most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run_shortages(options: Options) -> Findings:
    """Try every shortage, and return what went wrong."""
    failures: list[str] = []
    tried = 0
    with tempfile.TemporaryDirectory(prefix="bakeoff-short-") as base:
        shim = _compiled(Path(base))
        for number, shortage in enumerate(_chosen(options)):
            if (shortage.needs == "shim" and shim is None) or (shortage.needs == "root" and os.geteuid() != 0):
                options.say(f"  {shortage.name}: not tried, it needs {'gcc' if shortage.needs == 'shim' else 'root'}")
                continue
            found = _try(shortage, Path(base) / str(number), shim)
            tried += 1
            failures += [f"{shortage.name}: {problem}" for problem in found]
            options.say(f"  {shortage.name}: {'; '.join(found) or 'as designed'}")
        for how in ("cuts",) if options.sample else ("closes", "cuts", "refuses", "stalls"):
            found = _try_provider(how, Path(base) / how)
            tried += 1
            failures += [f"a provider that {how}: {problem}" for problem in found]
            options.say(f"  a provider that {how}: {'; '.join(found) or 'as designed'}")
    return Findings(
        figures={"shortages": float(tried), "shortages-not-as-designed": float(len(failures))}, failures=failures
    )


def _chosen(options: Options) -> list[Shortage]:
    """Return the shortages to try. In a sample, the halves of root and of a user share them."""
    every = list(_shortages(options.sample))
    return every[options.user == "user" :: 2] if options.sample else every


def _compiled(base: Path) -> Path | None:
    if not shutil.which("gcc"):
        return None
    library = base / "shim.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, _SHIM, "-ldl"], check=True)
    base.chmod(0o755)
    return library


def _try(shortage: Shortage, folder: Path, shim: Path | None) -> list[str]:
    preload = {"LD_PRELOAD": str(shim)} if shortage.needs == "shim" else {}
    prepare(shortage.workload, folder, {**shortage.env, **preload})
    problems = _ended(shortage.workload, folder, shortage.before)
    runs = run_folders(folder)
    if shortage.harmless and not (runs and len(finished(runs[-1])) == planned(runs[-1])):
        problems.append(f"not all trials: {output(folder)[-300:]}")
    if problems or not shortage.keeps_folder or not shortage.workload.resumes or not runs:
        return problems
    set_variables(folder, {})
    return _resumed(runs[-1], folder)


def _ended(workload: Workload, folder: Path, before: Callable[[], None] | None = None) -> list[str]:
    """Run a workload to its end and return what is wrong with how it ended."""
    code = ended(workload.argv, folder, _HANGS_SECONDS, before)
    return _problems(code, output(folder))


def _problems(code: int | None, said: str) -> list[str]:
    problems = [f"a traceback: …{said[-700:]}"] if "Traceback (most" in said else []
    if code is None:
        problems.append(f"hangs for {_HANGS_SECONDS:g} s")
    elif code not in _DESIGNED:
        problems.append(f"exit code {code}: …{said[-300:]}")
    if not said.strip():
        problems.append("no message")
    return problems


def _resumed(run: Path, folder: Path) -> list[str]:
    before = set(finished(run))
    if not (run / "plan.json").is_file():
        return []
    problems = _problems(resume(run, folder, _HANGS_SECONDS), output(folder))
    after = finished(run)
    damaged = [entry for entry in read_journal(run / "journal.jsonl") if isinstance(entry, Damage)]
    problems += [f"{len(damaged)} damaged lines after a resume"] if damaged else []
    problems += ["a finished trial was lost"] if not before <= set(after) else []
    if len(after) != planned(run) and not problems:
        problems.append(f"{len(after)} of {planned(run)} trials after a resume: {output(folder)[-300:]}")
    return problems


def _try_provider(how: str, folder: Path) -> list[str]:
    prepare(MCP, folder)
    with _provider(how) as port:
        file = folder / "mcp-testing-framework.yaml"
        text = file.read_text().replace(
            '{slow: "slow_provider:Slow"}', f'{{slow: {{baseUrl: "http://127.0.0.1:{port}/v1"}}}}'
        )
        file.write_text(text.replace("testRound: 8", "testRound: 1\nmodelSettings: {timeout: 2}"))
        return _ended(replace(MCP, argv=tuple(word for word in MCP.argv if word != "--exit-zero")), folder)


@contextlib.contextmanager
def _provider(how: str) -> Iterator[int]:
    """Serve connections on loopback that end badly."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        if how == "refuses":
            server.close()
            yield port
            return
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                if how == "stalls":
                    held.append(connection)
                    continue
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(_REPLY if how == "cuts" else b"")

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield port
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for connection in held:
                connection.close()
