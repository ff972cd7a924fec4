"""Servers behind an address: SSE and streamable HTTP."""

from collections.abc import Callable

import pytest

from bakeoff.errors import InfraError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.transports import name_first_event

from .conftest import Opening, free_port, loopback_server

Loopback = Callable[[str], str]


@pytest.mark.parametrize("behaviour", ["named", "nameless-messages", "nameless"])
async def test_an_sse_stream_works_with_and_without_event_lines(
    loopback: Loopback, opened: Opening, behaviour: str
) -> None:
    async with opened(ServerSpec(name="sse", url=loopback(behaviour) + "/sse")) as hub:
        assert [tool.name for tool in await hub.tools()] == ["echo"]
        assert (await hub.call("sse", "echo", {"text": "grüß dich"})).text == "grüß dich"


@pytest.mark.parametrize(
    ("stream", "passed_on"),
    [
        (b"data: /m?s=1\n\n", b"event: endpoint\ndata: /m?s=1\n\n"),
        (b": ping\r\ndata: /m\r\n\r\n", b": ping\r\nevent: endpoint\ndata: /m\r\n\r\n"),
        (b"data:\n\ndata: /m\n", b"data:\n\nevent: endpoint\ndata: /m\n"),
        (b"event: endpoint\ndata: /m\n\n", b"event: endpoint\ndata: /m\n\n"),
        (b'data: {"jsonrpc": "2.0"}\n\n', b'data: {"jsonrpc": "2.0"}\n\n'),
    ],
)
def test_only_a_nameless_address_is_given_a_name(stream: bytes, passed_on: bytes) -> None:
    assert name_first_event(stream) == (True, passed_on)
    assert name_first_event(stream[:5]) == (False, stream[:5])


def test_a_first_event_without_end_is_not_waited_for() -> None:
    assert name_first_event(b"data: " + b"x" * 70_000)[0] is True


async def test_streamable_http_without_sessions(loopback: Loopback, opened: Opening) -> None:
    async with opened(ServerSpec(name="web", url=loopback("plain") + "/mcp")) as hub:
        assert (await hub.call("web", "echo", {"text": "hello"})).text == "hello"


async def test_headers_are_sent(loopback: Loopback, opened: Opening) -> None:
    url = loopback("secretive") + "/mcp"
    async with opened(ServerSpec(name="web", url=url, headers={"Authorization": "Bearer open-sesame"})) as hub:
        assert (await hub.call("web", "echo", {"text": "in"})).text == "in"


async def test_a_refusal_names_the_status_and_no_secret(loopback: Loopback, opened: Opening) -> None:
    url = loopback("secretive") + "/mcp?key=hidden-in-the-url"
    with pytest.raises(InfraError) as caught:
        async with opened(ServerSpec(name="web", url=url, headers={"Authorization": "Bearer wrong-sesame"})):
            pass
    assert "was answered with 401 Unauthorized\n    WWW-Authenticate: Bearer realm=tools\n" in str(caught.value)
    assert '{"error": "the token has expired"}' in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert "hidden-in-the-url" not in str(caught.value)


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_an_address_where_nobody_listens_is_named(opened: Opening, path: str) -> None:
    with pytest.raises(InfraError, match=r"MCP server 'web' \(http://127.0.0.1:\d+/\w+\): ConnectError"):
        async with opened(ServerSpec(name="web", url=f"http://127.0.0.1:{free_port()}{path}")):
            pass


async def test_an_sse_address_that_is_no_event_stream_is_named(loopback: Loopback, opened: Opening) -> None:
    with pytest.raises(InfraError, match="answered with 405"):
        async with opened(ServerSpec(name="web", url=loopback("plain") + "/sse")):
            pass


async def test_an_answer_without_bounds_is_infra_and_the_server_stays_usable(
    loopback: Loopback, opened: Opening
) -> None:
    async with opened(ServerSpec(name="web", url=loopback("oversized") + "/mcp")) as hub:
        for _ in range(2):
            with pytest.raises(InfraError, match="more than 8,000,000 bytes"):
                await hub.call("web", "echo", {})


async def test_packed_answers_are_refused_for_they_could_be_bombs(loopback: Loopback, opened: Opening) -> None:
    with pytest.raises(InfraError, match="compressed"):
        async with opened(ServerSpec(name="web", url=loopback("packed") + "/mcp")):
            pass


async def test_a_broken_stream_is_a_death_and_the_next_call_finds_a_new_one(
    loopback: Loopback, opened: Opening
) -> None:
    async with opened(ServerSpec(name="sse", url=loopback("dies") + "/sse"), deaths_in_a_row=3) as hub:
        for _ in range(3):
            with pytest.raises(InfraError, match="died while 'echo' was being called"):
                await hub.call("sse", "echo", {})
        with pytest.raises(InfraError, match="3 times in a row"):
            await hub.call("sse", "echo", {})


async def test_a_session_that_the_server_forgot_is_infra_once_and_then_a_new_one(
    loopback: Loopback, opened: Opening
) -> None:
    async with opened(ServerSpec(name="web", url=loopback("forgets") + "/mcp")) as hub:
        with pytest.raises(InfraError, match=r"died while 'echo'.*404 Not Found"):
            await hub.call("web", "echo", {"text": "x"})
        assert (await hub.call("web", "echo", {"text": "x"})).text == "x"


async def test_an_http_error_in_the_middle_is_infra_with_its_status(loopback: Loopback, opened: Opening) -> None:
    with pytest.raises(InfraError, match="500 Internal Server Error"):
        async with opened(ServerSpec(name="web", url=loopback("broken") + "/mcp")):
            pass


async def test_a_web_server_that_goes_away_is_infra(opened: Opening) -> None:
    with loopback_server("plain") as port:
        context = opened(ServerSpec(name="web", url=f"http://127.0.0.1:{port}/mcp"))
        hub = await context.__aenter__()
        assert (await hub.call("web", "echo", {"text": "x"})).text == "x"
    for _ in range(3):
        with pytest.raises(InfraError, match="'web'"):
            await hub.call("web", "echo", {})
    await context.__aexit__(None, None, None)
