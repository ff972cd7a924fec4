"""Logins at servers that want a token: real authorization servers on loopback, and a browser that is a function."""

import json
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.login import LoginRefused, LoginRequest, log_in
from bakeoff.mcp.oauth import TokenStore
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
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    """`guarded("lifetime=1")` is such a server; the tokens are kept in the folder of the test."""
    monkeypatch.setenv("BAKEOFF_MCP_TOKENS", str(tmp_path / "tokens.json"))
    with ExitStack() as stack:

        def make(*settings: str, **fields: object) -> ServerSpec:
            port = stack.enter_context(guarded_server(*settings))
            spec = {"name": "guarded", "url": f"http://127.0.0.1:{port}/mcp", **fields}
            return ServerSpec.model_validate(spec)

        yield make


def browser(url: str) -> None:
    """Open an address as a person does who says yes: follow where it leads."""
    with urlopen(url) as answer:
        answer.read()


def quiet(opens: Callable[[str], object] | None = browser, **more: object) -> LoginRequest:
    return LoginRequest(show=lambda _: None, opens=opens, **more)  # type: ignore[arg-type]


async def test_a_login_is_kept_for_later_and_no_result_gives_its_token_away(guarded: Guarded, opened: Opening) -> None:
    spec = guarded()
    with pytest.raises(InfraError, match="if it uses OAuth, log in with `bakeoff mcp login`"):
        async with opened(spec):
            pass
    await log_in(spec, quiet())
    store = TokenStore()
    kept = store.get(spec.url or "")
    assert kept is not None
    assert stat.S_IMODE(store.file.stat().st_mode) == 0o600
    async with opened(spec) as hub:
        said = await hub.call("guarded", "whoami", {})
        assert "[redacted access_token]" in said.text
        assert kept.tokens.access_token not in said.model_dump_json()
        [described] = [tool.description for tool in await hub.tools() if tool.name == "whoami"]
        assert described == "Tell the token that was used, such as [redacted access_token]."
        assert (await hub.call("guarded", "grants", {})).structured == {"result": ["authorization_code"]}
    assert store.remove(spec.url or "")
    assert not store.remove(spec.url or "")


async def test_an_expired_token_is_refreshed_in_a_later_process_and_in_a_long_run(
    guarded: Guarded, opened: Opening
) -> None:
    spec = guarded("lifetime=11")  # one that expires in 10 s is refreshed at once
    await log_in(spec, quiet())
    store = TokenStore()
    first = store.get(spec.url or "")
    assert first is not None
    assert first.expires_at is not None
    store.put(spec.url or "", first.model_copy(update={"expires_at": time.time() - 1}))
    async with opened(spec) as hub:
        await hub.call("guarded", "revoke", {})  # from now on, refused although it has not expired
        answer = await hub.call("guarded", "grants", {})
    assert answer.structured == {"result": ["authorization_code", "refresh_token", "refresh_token"]}
    later = store.get(spec.url or "")
    assert later is not None
    assert later.tokens.refresh_token != first.tokens.refresh_token


async def test_a_login_that_is_no_longer_accepted_is_said_and_no_browser_opens(
    guarded: Guarded, opened: Opening
) -> None:
    spec = guarded("refresh=0")
    await log_in(spec, quiet())
    store = TokenStore()
    kept = store.get(spec.url or "")
    assert kept is not None
    store.put(
        spec.url or "",
        kept.model_copy(update={"expires_at": 0, "tokens": kept.tokens.model_copy(update={"access_token": "x"})}),
    )
    with pytest.raises(InfraError) as caught:
        async with opened(spec):
            pass
    assert "bakeoff mcp login" in str(caught.value)
    assert str(kept.tokens.refresh_token) not in str(caught.value)


async def test_a_refusal_is_told_without_control_characters(guarded: Guarded) -> None:
    with pytest.raises(LoginRefused) as caught:
        await log_in(guarded("deny=1"), quiet())
    assert str(caught.value) == "the authorization server refused: access_denied: they said \\x1b[31mno"


@pytest.mark.parametrize("endpoint", ["file:///etc/passwd", "javascript:alert(1)"])
async def test_metadata_with_an_endpoint_that_is_no_address_is_not_used_at_all(guarded: Guarded, endpoint: str) -> None:
    seen: list[str] = []

    def note(url: str) -> None:
        seen.append(url)
        browser(url)

    spec = guarded(f"authorize={endpoint}")
    await log_in(spec, LoginRequest(show=seen.append, opens=note))
    assert len(seen) == 2
    usual = (spec.url or "").replace("/mcp", "/authorize?")
    assert all(url.startswith(usual) for url in seen), "what the protocol says for servers without metadata"


async def test_an_authorization_endpoint_in_the_clear_is_neither_shown_nor_opened(guarded: Guarded) -> None:
    seen: list[str] = []
    with pytest.raises(InfraError, match=r"'http://example\.com/authorize', which is not https"):
        await log_in(
            guarded("authorize=http://example.com/authorize"), LoginRequest(show=seen.append, opens=seen.append)
        )
    assert seen == []


async def test_a_token_endpoint_elsewhere_in_the_clear_gets_no_code(guarded: Guarded) -> None:
    opened: list[str] = []
    with pytest.raises(InfraError, match="is not https"):
        await log_in(guarded("token=http://example.com/token"), quiet(opened.append))
    assert opened == []


async def test_an_answer_with_another_state_is_ignored_and_the_right_one_still_counts(guarded: Guarded) -> None:
    codes: list[int] = []

    def meddled(url: str) -> None:
        callback = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        for wrong in ("?code=stolen&state=guessed", "?code=stolen", "/other?code=x", "?error=access_denied&state=x"):
            try:
                with urlopen(callback + wrong) as answer:
                    codes.append(answer.status)
            except HTTPError as error:
                codes.append(error.code)
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(callback + "?code=x", headers={"Host": "rebound.example"}))
        browser(url)

    await log_in(guarded(), quiet(meddled))
    assert codes == [400, 400, 404, 400]


async def test_nobody_who_answers_is_waited_for_only_so_long(guarded: Guarded) -> None:
    with pytest.raises(InfraError, match=r"nobody logged in at .* within 0.5 s"):
        await log_in(guarded(), quiet(None, seconds=0.5))


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
    assert not TokenStore().file.exists(), "such tokens are not kept"


async def test_the_token_of_a_file_is_read_for_each_request(guarded: Guarded, opened: Opening, tmp_path: Path) -> None:
    spec = guarded()
    await log_in(spec, quiet())
    store = TokenStore()
    kept = store.get(spec.url or "")
    assert kept is not None
    store.remove(spec.url or "")
    file = tmp_path / "token"
    with_file = ServerSpec.model_validate({**spec.model_dump(), "oauth": {"tokenFile": str(file)}})
    for text in (kept.tokens.access_token + "\n", f'{{"access_token": "{kept.tokens.access_token}"}}'):
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


def test_who_logs_in_by_command_can_call_and_evaluate_and_no_file_of_the_run_has_the_token(
    guarded: Guarded, bakeoff: Bakeoff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = guarded()
    address = ("--url", spec.url or "")
    Path("browser.py").write_text("import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n")
    done = bakeoff("mcp", "login", *address, BROWSER=f"{sys.executable} browser.py %s")
    assert done.returncode == 0, done.stderr
    assert "Open this address to log in:" in done.stdout
    called = bakeoff("mcp", "call", "whoami", *address)
    assert (called.returncode, called.stdout) == (0, "you are [redacted access_token]\n"), called.stderr
    expected = {"serverName": "guarded", "toolName": "whoami", "parameters": {}}
    config = {
        "testRound": 1,
        "modelsToTest": [f"scripted:{json.dumps(expected)}"],
        "testCases": [{"prompt": "Who am I?", "expectedOutput": expected, "expectedResults": "you are"}],
        "mcpServers": [{"name": "guarded", "url": spec.url}],
    }
    Path("suite.yaml").write_text(json.dumps(config))
    evaluated = bakeoff("mcp", "evaluate", "suite.yaml")
    assert evaluated.returncode == 0, evaluated.stdout + evaluated.stderr
    login = TokenStore(tmp_path / "tokens.json").get(spec.url or "")
    assert login is not None
    secrets = [login.tokens.access_token.encode(), str(login.tokens.refresh_token).encode()]
    written = [file for folder in ("results", "mcp-report") for file in Path(folder).rglob("*") if file.is_file()]
    assert written
    assert not [file for file in written if any(secret in file.read_bytes() for secret in secrets)]
    assert "forgot the login" in bakeoff("mcp", "logout", *address).stderr
    assert "there is no login" in bakeoff("mcp", "logout", *address).stderr


def test_a_file_of_tokens_that_others_can_read_or_that_is_damaged_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text("{}")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        TokenStore(file).get("https://host")
    file.chmod(0o600)
    assert TokenStore(file).get("https://host") is None
    file.write_text("{")
    with pytest.raises(UsageError, match="is damaged: delete it"):
        TokenStore(file).get("https://host")


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
