"""Servers that others wrote, over every transport."""

from collections.abc import Callable

import pytest

from bakeoff.mcp import OpenHub, ServerSpec

from .conftest import Opening

pytestmark = pytest.mark.full

SOME_TOOLS = {"echo", "get-sum", "get-structured-content", "get-tiny-image", "get-resource-reference"}


@pytest.fixture
def everything_over(everything: tuple[str, str], everything_at: Callable[[str], str]) -> Callable[[str], ServerSpec]:
    def spec(transport: str) -> ServerSpec:
        if transport == "stdio":
            return ServerSpec(name="everything", command=everything[0], args=(everything[1], "stdio"))
        return ServerSpec(name="everything", url=everything_at(transport))

    return spec


async def check_everything(hub: OpenHub) -> None:
    assert {tool.name for tool in await hub.tools()} >= SOME_TOOLS
    assert (await hub.call("everything", "echo", {"message": "hi"})).text == "Echo: hi"
    assert "5" in (await hub.call("everything", "get-sum", {"a": 2, "b": 3})).text
    weather = await hub.call("everything", "get-structured-content", {"location": "Chicago"})
    assert isinstance(weather.value, dict)
    assert {"temperature", "humidity"} <= weather.value.keys()
    picture = await hub.call("everything", "get-tiny-image", {})
    assert isinstance(picture.value, list)
    assert any(isinstance(part, dict) and part["type"] == "image" for part in picture.value)
    wrong = await hub.call("everything", "get-sum", {"a": 2, "b": "three"})
    assert wrong.is_error


@pytest.mark.parametrize("transport", ["stdio", "sse", "streamableHttp"])
async def test_server_everything_is_listed_hashed_and_called(
    everything_over: Callable[[str], ServerSpec], opened: Opening, transport: str
) -> None:
    async with opened(everything_over(transport), startup_seconds=60) as hub:
        await check_everything(hub)
        assert len(hub.fingerprint("everything")) == 32


async def test_server_everything_has_one_fingerprint_whatever_the_transport(
    everything_over: Callable[[str], ServerSpec], opened: Opening
) -> None:
    ways = ("stdio", "sse", "streamableHttp")
    specs = [everything_over(way).model_copy(update={"name": way}) for way in ways]
    async with opened(*specs, startup_seconds=60) as hub:
        assert len({hub.fingerprint(way) for way in ways}) == 1


async def test_mcp_server_time_is_listed_hashed_and_called(time_server: ServerSpec, opened: Opening) -> None:
    async with opened(time_server, startup_seconds=60) as hub:
        assert {tool.name for tool in await hub.tools()} == {"get_current_time", "convert_time"}
        first = hub.fingerprint("time")
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        assert "21:00" in (await hub.call("time", "convert_time", arguments)).text
        assert (await hub.call("time", "get_current_time", {"timezone": "Nowhere"})).is_error
    async with opened(time_server, startup_seconds=60) as hub:
        assert hub.fingerprint("time") == first


async def test_two_real_servers_hand_their_tools_to_one_agent_loop(
    everything_over: Callable[[str], ServerSpec], time_server: ServerSpec, opened: Opening
) -> None:
    async with opened(everything_over("stdio"), time_server, startup_seconds=60) as hub:
        tools = {tool.name: tool for tool in hub.as_tools({"test", "submit"})}
        assert await tools["echo"].call({"message": "both"}) == "Echo: both"
        assert isinstance(await tools["get_current_time"].call({"timezone": "UTC"}), dict | str)
