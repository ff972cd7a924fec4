"""Try every attack on the sandbox, on every rung of this machine."""

import asyncio
import contextlib
import ctypes
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.hostile.attacks import ATTACKS, Attack, filled_in
from scripts.hostile.options import Options
from scripts.hostile.rows import Findings, Outcome, Row

from bakeoff.errors import BakeoffError
from bakeoff.plan import Limits
from bakeoff.protocols import Command, CommandResult, Place, Sandbox
from bakeoff.sandbox import available, choose_sandbox, open_place

RUNGS = ("process", "bwrap", "docker")
LIMITS = Limits(memory_mb=128, processes=64, disk_mb=50, output_kb=256)
GOAL_MB = 512  # four times what is allowed, so that what a watcher notices late is not counted
FORGED_FROM = 7  # the exit code that `forge-exit-code` ends with
# These use up what all processes of a user share, so nothing else runs beside them.
ALONE = {"fork-bomb", "memory-pipes", "kill-supervisor"}
_HANGS_SECONDS = 90.0
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Hold what there is to attack: a key, files, servers and a process."""

    key: str
    secret: str
    folder_name: str
    hidden: Path
    home_file: Path
    other: Place
    port: int
    abstract: str
    sentinel: subprocess.Popen[bytes]

    def values(self, attack: Attack, marker: str, sysv_key: int) -> Mapping[str, object]:
        """Return the values for the words in a script."""
        paths = {
            "read-home": [str(self.home_file), str(self.home_file.parent)],
            "read-project": [str(_PROJECT / "scripts" / "hostile" / "escapes.py"), str(_PROJECT / "src" / "bakeoff")],
            "read-hidden": [str(self.hidden / self.folder_name)],
            "read-other-trial": [str(self.other.work / self.folder_name), str(self.other.work)],
        }
        to_abstract = attack.id == "abstract-socket"
        return {
            "KEY": f"({self.key[:8]!r} + {self.key[8:]!r})",
            "PATHS": paths.get(attack.id, []),
            "SECRET_TEXT": "def read_promises" if attack.id == "read-project" else self.secret,
            "SECRET_NAME": "__init__" if attack.id == "read-project" else self.folder_name,
            "FOLDERS": _folders_outside(),
            "MARKER": marker,
            "GOAL_MB": GOAL_MB,
            "SYSV_KEY": sysv_key,
            "FAMILY": "socket.AF_UNIX" if to_abstract else "socket.AF_INET",
            "ADDRESS": f"'\\0' + {self.abstract!r}" if to_abstract else f"('127.0.0.1', {self.port})",
            "SENTINEL_WORD": self.folder_name,
            "SENTINEL": self.sentinel.pid,
        }


def run(options: Options) -> Findings:
    """Try the attacks and return a row for each on each rung."""
    return asyncio.run(_run(options))


async def _run(options: Options) -> Findings:
    usable = {status.name: status for status in available()}
    chosen = [attack for attack in ATTACKS if not options.attacks or attack.id in options.attacks]
    rows: list[Row] = []
    failures: list[str] = []
    for rung in options.rungs or _rungs(options):
        if usable[rung].ok:
            found = await _on_rung(rung, chosen, options)
            rows += [row for row, _ in found]
            failures += [sentence for _, left in found for sentence in left]
        else:
            rows += [Row("escapes", attack.id, rung, options.user, "n/a", usable[rung].detail) for attack in chosen]
    return Findings(rows, {"escapes-tried": float(sum(row.outcome != "n/a" for row in rows))}, failures)


def _rungs(options: Options) -> tuple[str, ...]:
    """Return the rungs to try. In a sample, docker is tried by one half: its engine does the same for both."""
    return tuple(rung for rung in RUNGS if not (rung == "docker" and options.sample and options.user == "user"))


async def _on_rung(rung: str, chosen: Sequence[Attack], options: Options) -> list[tuple[Row, list[str]]]:
    """Try the attacks on one rung, several at a time if they do not disturb each other."""
    free = asyncio.Semaphore(2 * options.jobs)  # half of the time, attacks wait
    async with _surroundings() as around:
        sandbox = choose_sandbox(rung, hidden=[around.hidden])

        async def one(attack: Attack) -> tuple[Row, list[str]]:
            async with free:
                started = time.monotonic()
                row, left = await _try(attack, sandbox, around, options)
                spent = time.monotonic() - started
            told = f"  {rung:8} {options.user:5} {attack.id:20} {row.outcome:10} {spent:5.1f} s  {row.detail[:90]}"
            options.say(told)
            return row, left

        together = await asyncio.gather(*(one(attack) for attack in chosen if attack.id not in ALONE))
        return [*together, *[await one(attack) for attack in chosen if attack.id in ALONE]]


async def _try(attack: Attack, sandbox: Sandbox, around: Surroundings, options: Options) -> tuple[Row, list[str]]:
    marker, sysv_key = uuid.uuid4().hex, secrets.randbelow(1 << 30) + 1
    script = filled_in(attack.script, around.values(attack, marker, sysv_key))
    async with open_place() as place:
        try:
            async with asyncio.timeout(_HANGS_SECONDS):
                completed = await sandbox.run(
                    Command(("python3", "-c", script, marker), place, attack.seconds, limits=LIMITS)
                )
            outcome, detail = _judge(attack, completed, around)
        except BakeoffError as problem:  # the trial would be excused
            outcome, detail = "possible", f"{type(problem).__name__}: {problem}"
        except TimeoutError:
            outcome, detail = "possible", f"hangs for more than {_HANGS_SECONDS:g} s"
        alive = _alive(marker, place.uid)
    if alive:
        outcome, detail = "possible", f"left {alive}"
    left = _left_outside(marker, sysv_key)
    if left and attack.id in ("write-outside", "leave-sysv"):
        outcome, detail = "possible", f"left {left}"
    failures = [f"{attack.id} on {sandbox.name} as {options.user} proves nothing: {detail}"] if outcome == "n/a" else []
    if left and attack.id not in ("write-outside", "leave-sysv", "memory-sysv"):
        failures.append(f"{attack.id} on {sandbox.name} as {options.user} left {left}")
    return Row("escapes", attack.id, sandbox.name, options.user, outcome, detail), failures


def _judge(attack: Attack, completed: CommandResult, around: Surroundings) -> tuple[Outcome, str]:
    """Return the outcome by what the command printed and by what ended it. `n/a`: the script itself is broken."""
    said = completed.stdout.decode(errors="replace").strip().splitlines()
    words = said[-1] if said else ""
    if completed.stop != "exited":
        return ("limited" if completed.stop in attack.limits else "possible"), f"ended by the limit: {completed.stop}"
    if words.startswith(("GOT", "saw the key")):
        return "possible", words
    if attack.id == "forge-exit-code":
        forged = completed.exit_code != FORGED_FROM
        return ("possible" if forged else "prevented"), f"exit code {completed.exit_code}"
    if attack.id == "signal-others" and around.sentinel.poll() is not None:
        return "possible", "the signal ended a process"
    if words.startswith("stopped at"):
        return ("limited" if int(words.split()[2]) > 8 else "prevented"), words
    if words.startswith(("refused", "tried", "no key", "left a daemon")):
        return "prevented", words
    if completed.exit_code < 0 and "memory" in attack.limits:
        return "limited", f"killed by signal {-completed.exit_code}"
    return "n/a", f"{completed.exit_code} {words} {completed.stderr.decode(errors='replace')[-300:]}"


def _folders_outside() -> list[str]:
    """Return folders that a command has no reason to write to."""
    return ["/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/usr/local", "/", str(Path.home()), str(_PROJECT)]


def _alive(marker: str, uid: int | None) -> list[str]:
    """Return the processes that carry the marker in their command line, or belong to the user of the place."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            owner = int(re.findall(r"Uid:\s+(\d+)", (process / "status").read_text())[0])
        except (OSError, IndexError):
            continue
        if marker.encode() in words or owner == uid:
            found.append(f"{process.name}: {words[:80]!r}")
    return found


def _left_outside(marker: str, sysv_key: int) -> list[str]:
    """Return the files and System V objects that an attack left on the machine, and remove them."""
    left = []
    for folder in _folders_outside():
        for path in Path(folder).glob(f"{marker}*"):
            path.unlink()
            left.append(str(path))
    libc = ctypes.CDLL(None)
    removers: Mapping[str, Callable[[int], int]] = {
        "shm": lambda number: libc.shmctl(number, 0, None),
        "msg": lambda number: libc.msgctl(number, 0, None),
        "sem": lambda number: libc.semctl(number, 0, 0),
    }
    for kind, remove in removers.items():
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            key, number = (int(word) for word in line.split()[:2])
            if sysv_key <= key < sysv_key + 100:
                remove(number)
                left.append(f"{kind} {number}")
    return left


@contextlib.asynccontextmanager
async def _surroundings() -> AsyncIterator[Surroundings]:
    """Set up what there is to attack."""
    key, secret, name = f"sk-never-{secrets.token_hex(12)}", secrets.token_hex(16), f"secret-{secrets.token_hex(6)}"
    before = os.environ.get("OPENAI_API_KEY")
    os.environ["OPENAI_API_KEY"] = key
    try:
        async with open_place() as other:
            with (
                _files(secret, name) as (hidden, home_file),
                _servers() as (port, abstract),
                _sentinel(name) as sentinel,
            ):
                (other.work / name).write_text(secret)
                (other.work / name).chmod(0o644)
                yield Surroundings(key, secret, name, hidden, home_file, other, port, abstract, sentinel)
    finally:
        os.environ.pop("OPENAI_API_KEY")
        if before is not None:
            os.environ["OPENAI_API_KEY"] = before


@contextlib.contextmanager
def _files(secret: str, name: str) -> Iterator[tuple[Path, Path]]:
    """Make a hidden folder where a sandbox shows files otherwise, if we may, and a file in our home."""
    shared = Path("/usr/local/share")
    hidden = Path(tempfile.mkdtemp(prefix="hidden-", dir=shared if os.access(shared, os.W_OK) else Path.home()))
    home_file = Path.home() / name
    try:
        hidden.chmod(0o755)
        for file in (hidden / name, home_file):
            file.write_text(secret)
            file.chmod(0o644)
        yield hidden, home_file
    finally:
        home_file.unlink(missing_ok=True)
        shutil.rmtree(hidden)


@contextlib.contextmanager
def _servers() -> Iterator[tuple[int, str]]:
    abstract = f"bakeoff-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0{abstract}")
        local.listen()
        yield server.getsockname()[1], abstract


@contextlib.contextmanager
def _sentinel(word: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", word])
    try:
        yield process
    finally:
        process.kill()
        process.wait()
