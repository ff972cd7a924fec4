"""An agent that attacks its meter: nothing hangs, nothing crashes, and no other trial is seen."""

import asyncio
import gzip
import json
import resource
import socket
import threading

import httpx2
import pytest

from bakeoff.meter import MeterLimits
from bakeoff.meter.wire_formats import arguments_of

from ..models.loopback import Act, Loopback
from .conftest import Opening, Visit

CHAT = "/openai/v1/chat/completions"


async def still_serves(at: Visit) -> bool:
    return (await at.chat()).status_code == 200


async def raw(at: Visit, sent: bytes) -> bytes:
    """Return what comes back for bytes as they are, until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", at.trial.port)
    writer.write(sent)
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer sk-guess"},
        {"authorization": "Basic {token}"},
        {"x-api-key": ""},
        {"cookie": "key={token}"},
        {"x-goog-api-key": "ä"},
    ],
)
async def test_whoever_has_no_token_of_the_trial_stays_outside(
    headers: dict[str, str], provider: Loopback, visit: Opening
) -> None:
    async with visit() as at, httpx2.AsyncClient(trust_env=False) as client:
        given = {name.encode(): value.format(token=at.trial.token).encode() for name, value in headers.items()}
        answer = await client.post(at.origin + CHAT, json={}, headers=given)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
    assert provider.received == []


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "x-goog-api-key", "key"])
async def test_the_token_is_accepted_wherever_sdks_put_a_key(name: str, provider: Loopback, visit: Opening) -> None:
    async with visit() as at, httpx2.AsyncClient(trust_env=False) as client:
        token = f"Bearer {at.trial.token}" if name == "authorization" else at.trial.token
        query, headers = ({"key": token}, {}) if name == "key" else ({}, {name: token})
        answer = await client.post(at.origin + CHAT, json={"model": "m"}, headers=headers, params=query)
        assert answer.status_code == 200
    [asked] = provider.received
    assert at.trial.token not in asked.target + str(asked.headers)


async def test_a_token_opens_no_other_trial_and_dies_with_its_own(provider: Loopback, visit: Opening) -> None:
    async with visit() as one:
        async with visit() as other:
            stolen = await one.client.post(other.origin + CHAT, json={})
            assert stolen.status_code == 401
        with pytest.raises(httpx2.ConnectError):
            await one.client.post(other.origin + CHAT, json={}, headers={"x-api-key": other.trial.token})
        assert await still_serves(one)
    assert other.books.told == []


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/openai",
        "/openai/v1/files",
        "/openai/v1/embeddings",
        "/openai/v1/chat/completions/../../files",
        "/openai/v1/models/../../../admin",
        "/openai/v1/models/..%2f..%2fadmin",
        "/openai/v1/models/%2e%2e/admin",
        "/openai//evil.example/v1/chat/completions",
        "/anthropic/v1/organizations",
        "/google/v1beta/files",
        "/http://evil.example/",
        "/OPENAI/v1/chat/completions",
        f"/openai/v1/models/{'a' * 70_000}",
    ],
    ids=lambda path: path[:60],
)
async def test_only_what_is_metered_can_be_asked(path: str, provider: Loopback, visit: Opening) -> None:
    async with visit() as at:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {at.trial.token}\r\nConnection: close\r\n\r\n"
        answer = await raw(at, head.encode())
        assert answer.startswith(b"HTTP/1.1 404")
    assert at.trial.failure is None, "or an agent that is about to fail could excuse itself"
    assert provider.received == []


async def test_an_address_of_another_host_in_the_request_line_leads_nowhere_else(
    provider: Loopback, visit: Opening
) -> None:
    async with visit() as at:
        key = f"x-api-key: {at.trial.token}\r\nConnection: close\r\n\r\n"
        other = await raw(
            at, f"GET http://evil.example/openai/v1/models HTTP/1.1\r\nHost: evil.example\r\n{key}".encode()
        )
        tunnel = await raw(at, f"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n{key}".encode())
        rebound = await raw(at, f"GET /openai/v1/models HTTP/1.1\r\nHost: evil.example\r\n{key}".encode())
        browser = await at.post(CHAT, {}, origin="http://evil.example")
        assert await still_serves(at)
    assert [answer.split()[1] for answer in (other, tunnel, rebound)] == [b"403"] * 3
    assert browser.status_code == 403
    assert len(provider.received) == 1


async def test_headers_that_an_agent_invents_do_not_reach_the_provider(provider: Loopback, visit: Opening) -> None:
    invented = {
        "x-forwarded-for": "10.0.0.1",
        "cookie": "a=b",
        "openai-organization": "someone",
        "proxy-authorization": "Basic x",
        "x-goog-user-project": "someone",
        "anthropic-beta": "tools-2024",
        "x-api-key": "other",
    }
    async with visit() as at:
        await at.post(CHAT, {"model": "m"}, **invented)
    headers = provider.received[0].headers
    assert headers["anthropic-beta"] == "tools-2024"
    assert not headers.keys() & (invented.keys() - {"anthropic-beta"})


async def test_two_lengths_in_one_request_are_refused(provider: Loopback, visit: Opening) -> None:
    async with visit() as at:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {at.trial.token}\r\n"
        twice = await raw(at, f"{head}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{{}}".encode())
        folded = await raw(at, f"{head}Bad Header: x\r\n\r\n".encode())
        garbage = await raw(at, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)
        assert await still_serves(at)
    assert [answer[:12] for answer in (twice, folded, garbage)] == [b"HTTP/1.1 400"] * 3
    assert len(provider.received) == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b'{"a":' * 500 + b"1" + b"}" * 500, b"[" * 200_000, b"\xff\xfe", b'{"n": 1' + b"0" * 5000],
)
async def test_what_is_no_request_is_refused_and_not_passed_on(body: bytes, provider: Loopback, visit: Opening) -> None:
    async with visit() as at:
        answer = await at.client.post(at.origin + CHAT, content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert await still_serves(at)
    assert len(provider.received) == 1


async def test_a_request_that_is_too_large_is_cut_short(provider: Loopback, visit: Opening) -> None:
    bomb = gzip.compress(b'{"a": "' + b"x" * (8 << 20) + b'"}')
    async with visit(limits=MeterLimits(body_bytes=1 << 20)) as at:
        answer = await at.client.post(at.origin + CHAT, content=b"x" * (2 << 20))
        packed = await at.client.post(at.origin + CHAT, content=bomb, headers={"content-encoding": "gzip"})
        unknown = await at.client.post(at.origin + CHAT, content=b"x", headers={"content-encoding": "zstd"})
        assert await still_serves(at)
        assert at.trial.held_bytes == 0
    assert answer.status_code == 413
    assert packed.status_code == 415
    assert unknown.status_code == 415
    assert len(provider.received) == 1


async def test_requests_that_are_too_large_together_are_refused(provider: Loopback, visit: Opening) -> None:
    release = threading.Event()
    provider.then(Act(hold=release))
    large = {"model": "m", "messages": [{"role": "user", "content": "x" * 700_000}]}
    async with visit(limits=MeterLimits(held_bytes=1 << 20)) as at:
        first = asyncio.create_task(at.post(CHAT, large))
        while not provider.received:
            await asyncio.sleep(0.01)
        assert (await at.post(CHAT, large)).status_code == 413
        release.set()
        assert (await first).status_code == 200
        assert (await at.post(CHAT, large)).status_code == 200


async def test_a_request_that_never_arrives_is_given_up(provider: Loopback, visit: Opening) -> None:
    async with visit(limits=MeterLimits(body_seconds=0.2)) as at:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {at.trial.token}\r\n"
        answer = await raw(at, f"{head}Connection: close\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert answer.startswith(b"HTTP/1.1 408")
        assert await still_serves(at)


async def test_a_connection_that_says_nothing_is_closed(provider: Loopback, visit: Opening) -> None:
    async with visit(limits=MeterLimits(head_seconds=0.2)) as at:
        assert await raw(at, b"") == b""
        assert await raw(at, b"POST /openai") == b""
        assert await still_serves(at)


async def test_thousands_of_connections_leave_room_for_other_trials(provider: Loopback, visit: Opening) -> None:
    async with visit() as hostile, visit() as other:
        flood = []
        for _ in range(min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", hostile.trial.port))
            flood.append(one)
            if len(flood) % 100 == 0:
                await asyncio.sleep(0)
        assert await still_serves(other)
        for one in flood:
            one.close()
        while True:  # as soon as the meter has seen that they are gone
            try:
                assert await still_serves(hostile)
                break
            except httpx2.TransportError:
                await asyncio.sleep(0.05)


async def test_too_many_requests_at_a_time_are_refused(provider: Loopback, visit: Opening) -> None:
    provider.plan = lambda _: Act(first_byte=0.2)
    async with visit(limits=MeterLimits(exchanges=2)) as at:
        answers = await asyncio.gather(*(at.chat() for _ in range(6)))
        assert await still_serves(at)
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200, 200, 429, 429, 429, 429]


async def test_an_agent_that_does_not_take_its_answer_loses_it(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(say=" ".join(["x" * 10_000] * 2000)))
    body = json.dumps({"model": "m", "stream": True}).encode()
    async with visit(limits=MeterLimits(taking_seconds=0.3)) as at:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {at.trial.token}\r\n"
        with socket.create_connection(("127.0.0.1", at.trial.port)) as silent:
            silent.sendall(
                f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            )
            while not at.books.told:
                await asyncio.sleep(0.02)
        assert at.books.spent.output > 0
        assert await still_serves(at)


async def test_an_event_without_an_end_is_not_waited_for(provider: Loopback, visit: Opening) -> None:
    provider.then(Act(body=b"data: " + b"x" * (1 << 18), headers={"content-type": "text/event-stream"}))
    async with visit(limits=MeterLimits(event_bytes=1 << 16)) as at:
        answer = await at.chat(stream=True)
        assert answer.status_code == 502
        assert await still_serves(at)


async def test_tools_without_measure_are_listed_up_to_a_bound(provider: Loopback, visit: Opening) -> None:
    tools = [{"type": "function", "function": {"name": f"t{number}" * 99}} for number in range(3000)]
    async with visit() as at:
        await at.chat(tools=[*tools, "no tool", {"type": 5}, {"function": 7}])
    listed = at.trial.transcript().metadata["meter"]["tools"]  # type: ignore[index,call-overload]
    assert len(listed) == 1000  # type: ignore[arg-type]


def test_arguments_that_cannot_be_kept_as_data_stay_text() -> None:
    deep = "[" * 100 + "]" * 100
    assert arguments_of(deep) == deep
    assert arguments_of('{"x": NaN}') == '{"x": NaN}'
    assert arguments_of("[" * 100_000) == "[" * 100_000
    assert arguments_of("") == {}


async def test_half_a_surrogate_pair_in_a_tool_result_is_kept_in_a_form_that_can_be_stored(
    provider: Loopback, visit: Opening
) -> None:
    provider.then(Act(calls=(("look", {}),)))
    async with visit() as at:
        await at.chat()
        [call] = at.trial.transcript().tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": "half a pair: \ud83d"}
        await at.client.post(at.origin + CHAT, content=json.dumps({"model": "m", "messages": [result]}))
        transcript = at.trial.transcript()
    assert [call.result for call in transcript.tool_calls] == ["half a pair: \\ud83d"]
    assert json.loads(transcript.model_dump_json())
