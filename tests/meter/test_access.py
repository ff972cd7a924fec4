"""From inside each sandbox: the meter can be reached, and with the network off nothing else can."""

import asyncio
import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bakeoff.meter import trial
from bakeoff.meter.trial import PREFIX, SOCKET, make_folder, runtime_folder, sweep, unix_socket
from bakeoff.protocols import Command, CommandResult, Place, Sandbox

from ..models.loopback import Act, Loopback
from ..sandbox.conftest import docker_engine, place, sandbox_on
from ..sandbox.docker_engine import docker
from .conftest import CANARY, Opening, Visit

pytestmark = pytest.mark.journey

__all__ = ["docker_engine", "place", "sandbox_on"]  # fixtures, found by their names

AGENT = """
import json, os, socket, sys, urllib.request

url, token, elsewhere = os.environ["BASE_URL"], os.environ["API_KEY"], int(os.environ["ELSEWHERE"])
body = json.dumps({"model": "tiny", "messages": []}).encode()
headers = {"authorization": "Bearer " + token, "content-type": "application/json"}
with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body, headers)) as answer:
    said = json.load(answer)["choices"][0]["message"]["content"]
try:
    socket.create_connection(("127.0.0.1", elsewhere), 2).close()
    others = "reached"
except OSError:
    others = "out of reach"
print(json.dumps({"said": said, "others": others, "argv": sys.argv[1:], "in": sys.stdin.read()}))
sys.exit(7)
"""


@pytest.fixture
def other_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


async def run_agent(at: Visit, sandbox: Sandbox, place: Place, elsewhere: int, *argv: str) -> CommandResult:
    access = at.trial.access(sandbox.name)
    env = {
        "BASE_URL": at.trial.base_url(access, "openai"),
        "API_KEY": at.trial.token,
        "ELSEWHERE": str(elsewhere),
    }
    words = argv or ("python3", "-I", "-c", AGENT, "one", "two words")
    command = Command(
        access.wrap(words), place, 30.0, env=env, stdin=b"typed", network=access.network, readable=access.readable
    )
    return await sandbox.run(command)


@pytest.mark.parametrize(
    ("sandbox_kind", "others"), [("process", "reached"), ("bwrap", "out of reach"), ("docker", "out of reach")]
)
async def test_an_agent_in_a_sandbox_reaches_the_meter(
    sandbox_kind: str,
    others: str,
    provider: Loopback,
    visit: Opening,
    place: Place,
    other_server: int,
    sandbox_on: Callable[[str], Sandbox],
) -> None:
    async with visit(place=place) as at:
        done = await run_agent(at, sandbox_on(sandbox_kind), place, other_server)
    assert done.exit_code == 7, done.stderr
    assert json.loads(done.stdout) == {"said": "yes", "others": others, "argv": ["one", "two words"], "in": "typed"}
    assert at.books.spent.tokens == 15
    assert provider.received[0].headers["authorization"] == f"Bearer {CANARY}"


async def test_a_command_behind_the_forwarder_ends_as_it_would_alone(
    provider: Loopback, visit: Opening, place: Place, sandbox_on: Callable[[str], Sandbox]
) -> None:
    async with visit(place=place) as at:
        missing = await run_agent(at, sandbox_on("bwrap"), place, 1, "no-such-program")
        killed = await run_agent(at, sandbox_on("bwrap"), place, 1, "sh", "-c", "kill -9 $$")
    assert missing.exit_code == 127
    assert killed.exit_code == -9


@pytest.mark.parametrize("sandbox_kind", ["bwrap", "docker"])
async def test_an_agent_that_is_killed_in_mid_stream_has_its_tokens_booked_and_leaves_nothing(
    sandbox_kind: str,
    provider: Loopback,
    visit: Opening,
    place: Place,
    sandbox_on: Callable[[str], Sandbox],
    request: pytest.FixtureRequest,
) -> None:
    provider.plan = lambda _: Act(say=" ".join(["word"] * 1000), pause=0.05)
    streams = AGENT.replace('"messages": []', '"messages": [], "stream": True')
    async with visit(place=place) as at:
        access = at.trial.access(sandbox_kind)
        env = {"BASE_URL": at.trial.base_url(access, "openai"), "API_KEY": at.trial.token, "ELSEWHERE": "1"}
        argv = access.wrap(("python3", "-I", "-c", streams))
        time_up = asyncio.Event()
        command = Command(argv, place, 120.0, env=env, readable=access.readable, time_up=time_up)
        running = asyncio.ensure_future(sandbox_on(sandbox_kind).run(command))
        while not provider.received and not running.done():
            await asyncio.sleep(0.05)
        await asyncio.sleep(2)  # for some of its 1,000 words
        time_up.set()
        done = await running
    assert done.stop == "timeout"
    assert at.books.spent.requests == 1
    assert 0 < at.books.spent.output < 1000
    assert at.books.spent.input > 0
    assert at.trial.transcript().metadata["meter"]["cut"] == 1  # type: ignore[index,call-overload]
    assert not at.trial.folder.exists()
    assert provider.most_in_flight == 1
    if sandbox_kind == "docker":
        left = docker(request.getfixturevalue("docker_engine"), "ps", "--all", "--quiet", "--filter", "label=bakeoff")
        assert (left.returncode, left.stdout) == (0, b"")


async def test_an_image_brings_the_python_of_its_forwarder(provider: Loopback, visit: Opening) -> None:
    async with visit() as at:
        access = at.trial.access("docker")
        assert access.argv_prefix[:3] == ("python3", "-I", "-S")
        assert not access.network


async def test_the_socket_is_for_the_user_of_the_place_alone(provider: Loopback, visit: Opening, place: Place) -> None:
    async with visit(place=place) as at:
        found = (at.trial.folder / SOCKET).stat()
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert found.st_uid == (os.getuid() if place.uid is None else place.uid)
        assert stat.S_IMODE(at.trial.folder.stat().st_mode) == 0o711


def test_what_a_killed_process_left_is_swept_and_what_lives_is_not() -> None:
    dead, fresh, alive = make_folder(), make_folder(), make_folder()
    for folder in (dead, fresh):
        unix_socket(folder / SOCKET, None).close()
    with unix_socket(alive / SOCKET, None) as listening:
        listening.listen()
        for folder in (dead, alive):
            os.utime(folder, (0, 0))
        sweep()
        assert [folder.exists() for folder in (dead, fresh, alive)] == [False, True, True]
    for folder in (fresh, alive):
        shutil.rmtree(folder)


def test_a_long_or_closed_temporary_folder_is_not_where_sockets_are_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr(trial, "_RUN", tmp_path / "not there" / "either")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert runtime_folder() == Path("/tmp")


def test_sockets_are_kept_where_their_paths_are_short_enough() -> None:
    assert len(str(Path(runtime_folder()) / f"{PREFIX}xxxxxxxx" / SOCKET)) < 100
