"""Stdio servers on the sandbox ladder: what a hostile one gets, what an honest one can do, and what an error says."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import InfraError
from bakeoff.mcp import HubLimits, McpHub, ServerSpec
from bakeoff.sandbox.process import has_landlock

from .conftest import SERVERS, Opening, Raw

pytestmark = pytest.mark.full

CANARY = f"canary-{os.getpid()}-9c2e41"  # of this worker: others run processes with keys at the same time
RUNGS = ("bwrap", "process")
CHANGES = ("new", "project/new", "project/suite/new", "project/suite/data.txt", ".bashrc", ".ssh/id_ed25519")
USES_A_SERVER = """
import asyncio, sys
from bakeoff.mcp import HubLimits, McpHub, ServerSpec

async def main():
    spec = ServerSpec.model_validate_json(sys.argv[1])
    async with McpHub([spec], HubLimits(startup_seconds=120, call_seconds=120)).open() as hub:
        print((await hub.call(spec.name, "env", {})).text)

asyncio.run(main())
"""


@pytest.fixture(params=RUNGS)
def rung(request: pytest.FixtureRequest) -> str:
    if request.param == "bwrap" and not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap: apt-get install bubblewrap")
    if request.param == "process" and os.geteuid() != 0 and not has_landlock():
        pytest.skip("needs a kernel with Landlock: without it, `process` shares your files")
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A HOME with a project, and keys in the places that people keep them in."""
    folder = tmp_path / "me"
    for name in (
        *(
            ".ssh/id_ed25519",
            ".aws/credentials",
            ".env",
            ".npmrc",
            ".config/x/token",
            "project/.env",
            "project/.env.local",
        ),
        *("project/app/.env", "project/app/prod.env", "project/.ssh/key", "project/suite/.env", "other/.env"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CANARY)
    (folder / "project/suite/data.txt").write_text("data")
    for path in (tmp_path, *tmp_path.parents[:2]) if os.geteuid() == 0 else ():
        path.chmod(0o755)  # where we are root, servers are not
    return folder


def loot(spec: ServerSpec, home: Path, folder: Path) -> dict[str, Any]:
    """Return what a server finds that a Bakeoff process with keys starts."""
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENAI_API_KEY": CANARY, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", USES_A_SERVER, spec.model_dump_json()],
        env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    real = [path for name in CHANGES if (path := home / name).exists()]  # a private folder may have the same path
    return {**found, "changed": [str(path) for path in real if path.read_text() == "changed"]}


def hostile(home: Path, **fields: Any) -> ServerSpec:
    read = [str(path) for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    change = [str(home / name) for name in CHANGES]
    plan = json.dumps({"yranac": CANARY[::-1], "read": read, "change": change})  # arguments are no secret
    args = (str(SERVERS / "hostile.py"), plan)
    return ServerSpec.model_validate({"name": "hostile", "command": sys.executable, "args": args, **fields})


def test_a_hostile_server_gets_no_key_and_changes_nothing(rung: str, home: Path) -> None:
    project = home / "project"
    for folder in (project, project / "suite"):
        found = loot(hostile(home, sandbox=rung, cwd=folder), home, project)
        assert (found["taken"], found["changed"]) == ([], [])
        assert found["home"] != str(home)
    assert (project / "suite/data.txt").read_text() == "data"


def test_a_server_that_starts_in_home_sees_nothing_of_it(rung: str, home: Path) -> None:
    found = loot(hostile(home, sandbox=rung), home, home)
    assert (found["taken"], found["changed"]) == ([], [])


def test_without_a_sandbox_the_memory_of_bakeoff_stays_closed(home: Path) -> None:
    if os.geteuid() == 0:
        pytest.xfail("root may look into every process")
    found = loot(hostile(home, sandbox="none"), home, home / "project")
    assert not [name for name in found["taken"] if name.startswith(("environ", "memory", "descriptor"))]


def test_it_changes_what_is_writable_and_nothing_else(rung: str, home: Path) -> None:
    suite = home / "project/suite"
    if rung == "process":
        for path in (suite, suite / "data.txt"):
            path.chmod(0o777)  # where we are root, servers are not
    found = loot(hostile(home, sandbox=rung, cwd=suite, writable=["."]), home, suite)
    assert found["changed"] == [str(suite / "new"), str(suite / "data.txt")]
    if rung == "bwrap" or os.geteuid() == 0:
        assert found["taken"] == []
    else:  # Landlock cannot take a file out of a folder that may be changed
        assert found["taken"] == [str(suite / ".env")]


def test_a_file_with_keys_that_is_named_is_shown(rung: str, home: Path) -> None:
    project = home / "project"
    found = loot(hostile(home, sandbox=rung, cwd=project, readable=["app/.env"]), home, project)
    assert found["taken"] == [str(project / "app/.env")]


@pytest.mark.parametrize("named", ["..", "../..", "/"])
async def test_a_home_cannot_be_given_to_a_server(
    named: str, rung: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(InfraError, match=r"a sandbox cannot show .*a home"):
        async with McpHub([hostile(home, sandbox=rung, cwd=home / "project", readable=[named])]).open():
            pass


async def test_a_folder_that_root_cannot_share_is_an_error_with_the_ways_out(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs servers as another user")
    spec = hostile(home, sandbox="process", cwd=home / "project", writable=["suite"])
    with pytest.raises(InfraError, match=r"project/suite cannot be `writable`.*`sandbox: none`"):
        async with McpHub([spec]).open():
            pass


def test_a_folder_that_is_closed_to_others_is_read_all_the_same(home: Path) -> None:
    if not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap: apt-get install bubblewrap")
    suite = home / "project/suite"
    suite.chmod(0o700)
    found = loot(hostile(home, sandbox="bwrap", cwd=suite), home, suite)
    assert (found["taken"], found["changed"]) == ([], [])


async def test_a_server_that_fails_for_want_of_a_file_hears_of_the_sandbox(rung: str, tmp_path: Path) -> None:
    script = tmp_path / "inner" / "server.py"
    script.parent.mkdir()
    (tmp_path / "settings.toml").write_text("x = 1")
    script.write_text("open('../settings.toml')")
    spec = ServerSpec(name="s", command=sys.executable, args=(str(script),), cwd=script.parent, sandbox=rung)
    with pytest.raises(InfraError) as failed:
        async with McpHub([spec], HubLimits(startup_seconds=60)).open():
            pass
    said = str(failed.value)
    assert "settings.toml" in said
    assert f"it runs in the {rung} sandbox" in said
    assert "`readable` or `writable`" in said
    assert "`sandbox: none`" in said


async def test_no_process_of_a_confined_server_is_left(rung: str, raw: Raw, opened: Opening, tmp_path: Path) -> None:
    (tmp_path / "note").mkdir(mode=0o777)
    (tmp_path / "note").chmod(0o777)
    word = f"left-{os.getpid()}-{rung}"
    async with opened(raw("child", tmp_path / "note" / word, sandbox=rung), startup_seconds=60) as hub:
        assert await hub.tools()
        assert processes_with(word)
    assert not processes_with(word)


def processes_with(word: str) -> list[str]:
    lines = {
        path.parent.name: path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.parent.exists()
    }
    return [pid for pid, line in lines.items() if word.encode() in line]


@pytest.mark.parametrize("wrong", [{"sandbox": "docker"}, {"sandbox": "none", "writable": ["."]}])
def test_settings_that_have_no_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"sandbox"):
        ServerSpec.model_validate({"name": "s", "command": "x", **wrong})
    with pytest.raises(ValueError, match="has no meaning"):
        ServerSpec.model_validate({"name": "s", "url": "https://host/mcp", "readable": ["."]})
