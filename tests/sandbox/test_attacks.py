"""Every attack on every sandbox. A test keeps the table in docs/explanation/sandbox.md equal to the one here."""

import asyncio
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from scripts.hostile.attacks import (
    BIG_FILE,
    DAEMON,
    DEAF,
    DELETED_FILE,
    ENVIRONMENT,
    FORK_BOMB,
    LOOP,
    MANY_FILES,
    MEMORY,
    NETWORK,
    PRINTER,
    READER,
)

from bakeoff.plan import Limits
from bakeoff.protocols import Command, Completed, Place, Sandbox
from bakeoff.sandbox.mounts import blocking_folder
from bakeoff.sandbox.process import has_landlock

SANDBOXES = ("process", "bwrap", "docker")
DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "sandbox.md"
HOME_OF_ROOT = Path("~root").expanduser()
KEY = "sk-never-to-be-seen"
LIMITS = Limits(memory_mb=128, processes=64, disk_mb=50, output_kb=256)
HANGS_SECONDS = 60.0  # no attack ends by itself in that time, and a loaded machine may take a while to clear up


@dataclass(frozen=True)
class Attack:
    name: str
    script: str
    everywhere: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)
    seconds: float = 20.0

    def verdict_on(self, sandbox_kind: str) -> str:
        return self.verdicts.get(sandbox_kind, self.everywhere)


ATTACKS = (
    Attack("fork bomb", FORK_BOMB, "timeout", seconds=1.0),
    Attack("10 GB into one file", BIG_FILE, "disk"),
    Attack("10 GB into many files", MANY_FILES, "disk"),
    Attack("endless files, deleted while open", DELETED_FILE, "disk"),
    Attack("endless printer", PRINTER, "output"),
    Attack("daemon that forks twice, leaves its session and ignores SIGTERM", DAEMON, "exited: left a daemon"),
    Attack("memory filler", MEMORY, "memory"),
    Attack("infinite loop", LOOP, "timeout", seconds=0.7),
    Attack("ignores every signal it can", DEAF, "timeout", seconds=0.7),
    Attack("prints every environment it can read", ENVIRONMENT, "exited: no key"),
    Attack("reads the home of root", READER.replace("PATH", repr(str(HOME_OF_ROOT / ".profile"))), "exited: refused"),
    Attack("reads the project", READER.replace("PATH", repr(__file__)), "exited: refused"),
    Attack("calls a server on loopback", NETWORK, "exited: refused", {"process": "exited: connected"}),
)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def alive(marker: str, uid: int | None) -> list[str]:
    """Processes that carry the marker in their command line, or belong to the place's user."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            owner = int(re.findall(r"Uid:\s+(\d+)", (process / "status").read_text())[0])
        except (OSError, IndexError):
            continue
        if marker.encode() in words or owner == uid:
            found.append(f"{process.name}: {words!r}")
    return found


def verdict(completed: Completed) -> str:
    if completed.stop != "exited":
        return completed.stop
    said = completed.stdout.decode().strip() or f"{completed.exit_code}, {completed.stderr.decode()}"
    return f"exited: {said}"


@pytest.mark.parametrize("sandbox_kind", SANDBOXES)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
async def test_an_attack_ends_as_the_table_says_inside_its_limit_and_leaves_no_process(
    attack: Attack,
    sandbox_kind: str,
    sandbox_on: Callable[[str], Sandbox],
    place: Place,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if attack.script == FORK_BOMB and os.geteuid() != 0:
        pytest.skip("needs root: a fork bomb is only tried as a user with no other processes")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    sandbox = sandbox_on(sandbox_kind)
    marker = uuid.uuid4().hex
    script = attack.script.replace("PORT", str(port)).replace("KEY", f"({KEY[:8]!r} + {KEY[8:]!r})")
    command = Command(("python3", "-c", script, marker), place, attack.seconds, limits=LIMITS)

    async with asyncio.timeout(HANGS_SECONDS):
        completed = await sandbox.run(command)

    assert verdict(completed) == expected(attack, sandbox_kind)
    assert alive(marker, place.uid) == []
    assert len(completed.stdout) <= LIMITS.output_kb * 1024


def expected(attack: Attack, sandbox_kind: str) -> str:
    here = Path(__file__)
    hidden = os.geteuid() == 0 and (blocking_folder(here) is not None or here.is_relative_to("/tmp"))
    if attack.name == "reads the project" and sandbox_kind == "process" and not (hidden or has_landlock()):
        return "exited: read it"  # an older kernel
    return attack.verdict_on(sandbox_kind)


def test_the_documented_table_is_the_tested_one() -> None:
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$", DOCUMENT.read_text(), flags=re.MULTILINE)
    tested: list[tuple[str, ...]] = [("attack", *SANDBOXES)]
    tested += [(attack.name, *(attack.verdict_on(sandbox_kind) for sandbox_kind in SANDBOXES)) for attack in ATTACKS]
    assert rows == tested, f"edit {DOCUMENT.name} or ATTACKS so that they say the same"
