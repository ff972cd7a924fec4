"""Servers that want a token, with real authorization servers on loopback."""

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from bakeoff.errors import InfraError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.servers import is_safe_endpoint

from ..warm_bakeoff import Bakeoff
from .conftest import SERVERS, Opening

pytestmark = pytest.mark.full

Guarded = Callable[..., ServerSpec]


@contextmanager
def guarded_server(*settings: str) -> Iterator[int]:
    argv = [sys.executable, str(SERVERS / "guarded.py"), *settings]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    """`guarded()` is such a server."""
    with ExitStack() as stack:

        def make(*settings: str, **fields: object) -> ServerSpec:
            port = stack.enter_context(guarded_server(*settings))
            spec = {"name": "guarded", "url": f"http://127.0.0.1:{port}/mcp", **fields}
            return ServerSpec.model_validate(spec)

        yield make


def granted(spec: ServerSpec) -> str:
    """Return a token, as another program would get one."""
    login = base64.b64encode(b"robot:robots-secret").decode()
    address = f"{(spec.url or '').removesuffix('/mcp')}/token"
    asked = Request(address, b"grant_type=client_credentials", {"Authorization": f"Basic {login}"})
    with urlopen(asked) as answer:
        return str(json.load(answer)["access_token"])


async def test_a_server_that_wants_a_token_says_how_to_give_one(guarded: Guarded, opened: Opening) -> None:
    with pytest.raises(InfraError, match="give a token with --header or `headers`, or let `oauth` get one"):
        async with opened(guarded()):
            pass


async def test_client_credentials_get_a_token_without_a_person(guarded: Guarded, opened: Opening) -> None:
    spec = guarded()
    oauth = {"clientId": "robot", "clientSecret": "robots-secret", "issuer": (spec.url or "").removesuffix("/mcp")}
    robot = ServerSpec.model_validate({**spec.model_dump(), "oauth": oauth})
    assert "robots-secret" not in repr(robot)
    async with opened(robot) as hub:
        assert (await hub.call("guarded", "grants", {})).structured == {"result": ["client_credentials"]}
        assert "[redacted" in (await hub.call("guarded", "whoami", {})).text
    elsewhere = ServerSpec.model_validate({**spec.model_dump(), "oauth": {**oauth, "issuer": "https://example.com"}})
    with pytest.raises(InfraError) as caught:
        async with opened(elsewhere):
            pass
    assert "https://example.com" in str(caught.value)
    assert "robots-secret" not in str(caught.value)


async def test_the_token_of_a_file_is_read_for_each_request(guarded: Guarded, opened: Opening, tmp_path: Path) -> None:
    spec = guarded()
    token = granted(spec)
    file = tmp_path / "token"
    with_file = ServerSpec.model_validate({**spec.model_dump(), "oauth": {"tokenFile": str(file)}})
    for text in (token + "\n", f'{{"access_token": "{token}"}}'):
        file.write_text(text)
        async with opened(with_file) as hub:
            assert (await hub.call("guarded", "whoami", {})).text == "you are [redacted token]"
    for text, message in (("two words", "does not hold one token"), ("{}", "has no `access_token`")):
        file.write_text(text)
        with pytest.raises(InfraError, match=message):
            async with opened(with_file):
                pass
    file.unlink()
    with pytest.raises(InfraError, match="cannot be read: No such file"):
        async with opened(with_file):
            pass


def test_no_file_of_an_evaluation_has_the_token(
    guarded: Guarded, bakeoff: Bakeoff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = guarded()
    Path("token").write_text(token := granted(spec))
    expected = {"serverName": "guarded", "toolName": "whoami", "parameters": {}}
    config = {
        "testRound": 1,
        "modelsToTest": [f"scripted:{json.dumps(expected)}"],
        "testCases": [{"prompt": "Who am I?", "expectedOutput": expected, "expectedResults": "you are"}],
        "mcpServers": [{"name": "guarded", "url": spec.url, "oauth": {"tokenFile": "token"}}],
    }
    Path("suite.yaml").write_text(json.dumps(config))
    evaluated = bakeoff("mcp", "evaluate", "suite.yaml")
    assert evaluated.returncode == 0, evaluated.stdout + evaluated.stderr
    written = [file for folder in ("results", "mcp-report") for file in Path(folder).rglob("*") if file.is_file()]
    assert written
    assert not [file for file in written if token.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://host/authorize", True),
        ("http://127.0.0.1:5/x", True),
        ("http://localhost/x", True),
        ("http://[::1]/x", True),
        ("http://host/x", False),
        ("http://localhost.evil.com/", False),
        ("http://127.0.0.1@evil.com/", False),
        ("file:///etc/passwd", False),
        ("javascript:alert(1)", False),
        ("https://", False),
        ("http://[", False),
    ],
)
def test_codes_and_tokens_are_sent_only_over_https_or_on_this_machine(url: str, safe: bool) -> None:
    assert is_safe_endpoint(url) is safe


@pytest.mark.parametrize(
    ("oauth", "message"),
    [
        ({}, "write `tokenFile`, or"),
        ({"tokenFile": "x", "clientId": "a"}, "write `tokenFile`, or"),
        ({"clientId": "a"}, "client credentials need"),
        ({"clientId": "a", "clientSecret": "b", "issuer": "file:///x"}, "is not an address"),
        ({"clientId": "a", "clientSecret": "b", "issuer": "http://host"}, "would get the secret in the clear"),
    ],
)
def test_settings_that_cannot_work_are_refused(oauth: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ServerSpec.model_validate({"name": "a", "url": "https://host/mcp", "oauth": oauth})


def test_a_program_has_no_login() -> None:
    with pytest.raises(ValueError, match="`oauth` has no meaning"):
        ServerSpec.model_validate({"name": "a", "command": "x", "oauth": {"tokenFile": "t"}})
