"""Model calls of an application through its own SDK: recorded once, replayed without the provider."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import httpx2
import openai
import pytest

from bakeoff.errors import InfraError, UsageError
from bakeoff.replay.application import ReplayRound
from bakeoff.replay.store import MAX_RECORDED_BYTES

from ..models.loopback import KEY, Act, Loopback, failure
from .conftest import Replay
from .sdk_calls import (
    QUESTION,
    WAYS,
    ask_openai,
    recordings,
    stream_openai,
)


@pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
def test_what_an_sdk_asked_once_is_answered_when_the_provider_is_gone(
    ask: Callable[[str], str], provider: Loopback, replay: Replay
) -> None:
    provider.plan = lambda _: Act(say="It is Paris, in France.")
    with replay("auto"):
        first = ask(provider.url)
    assert first.replace("|", " ").split() == ["It", "is", "Paris,", "in", "France."]
    assert len(recordings()) == 1
    provider.stop()
    with replay("strict"):
        assert ask(provider.url) == first
    with replay("auto"):
        assert ask(provider.url) == first


def test_an_unhooked_sdk_finds_nobody_there(provider: Loopback, replay: Replay) -> None:
    with replay("record"):
        ask_openai(provider.url)
    provider.stop()
    with pytest.raises(openai.APIConnectionError):
        ask_openai(provider.url)


def test_no_recording_is_made_or_used_when_replay_is_off(provider: Loopback, replay: Replay) -> None:
    with replay("off"):
        ask_openai(provider.url)
        ask_openai(provider.url)
    assert (len(provider.received), recordings()) == (2, [])


def test_record_asks_anew_and_the_new_answer_counts(provider: Loopback, replay: Replay) -> None:
    provider.then(Act(say="Rome"), Act(say="Paris"))
    with replay("record"):
        assert [ask_openai(provider.url), ask_openai(provider.url)] == ["Rome", "Paris"]
    with replay("strict"):
        assert ask_openai(provider.url) == "Paris"


@pytest.mark.parametrize("library", [httpx, httpx2], ids=lambda library: library.__name__)
@pytest.mark.parametrize("streams", [True, False])
def test_the_bytes_are_the_same_in_both_libraries(
    library: Any, streams: bool, provider: Loopback, replay: Replay
) -> None:
    body = {"model": "m", "stream": streams, "messages": QUESTION}

    def fetch() -> tuple[int, str, bytes]:
        with library.Client() as client:
            got = client.post(f"{provider.url}/v1/chat/completions", json=body, headers={"authorization": KEY})
            return got.status_code, got.headers["content-type"], got.content

    with replay("record"):
        first = fetch()
    provider.stop()
    with replay("strict"):
        assert fetch() == first


def test_an_answer_that_came_compressed_is_recorded_in_plain_words(provider: Loopback, replay: Replay) -> None:
    answer = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Zip"}}]}
    body = gzip.compress(json.dumps({"id": "c", "object": "chat.completion", "model": "m", **answer}).encode())
    provider.then(Act(body=body, headers={"content-encoding": "gzip"}))
    with replay("record"):
        assert ask_openai(provider.url) == "Zip"
    with replay("strict"):
        assert ask_openai(provider.url) == "Zip"
    assert "Zip" in recordings()[0].read_text()


def test_a_compressed_stream_that_ends_with_its_last_event_is_recorded(provider: Loopback, replay: Replay) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1}
    said = {**chunk, "choices": [{"index": 0, "delta": {"content": "Zip"}, "finish_reason": None}]}
    body = gzip.compress(f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode())
    provider.then(Act(body=body, headers={"content-encoding": "gzip", "content-type": "text/event-stream"}))
    for mode in ("record", "strict"):
        with replay(mode):
            assert stream_openai(provider.url) == "Zip"


def test_an_answer_whose_compression_is_broken_is_not_recorded(provider: Loopback, replay: Replay) -> None:
    provider.then(Act(body=b"no gzip at all", headers={"content-encoding": "gzip"}))
    with replay("record"), pytest.raises(openai.APIConnectionError):
        ask_openai(provider.url)
    assert recordings() == []


def test_an_answer_that_is_too_long_is_handed_on_and_the_case_is_told(provider: Loopback, replay: Replay) -> None:
    long = b"\xff" * (MAX_RECORDED_BYTES + 1)
    provider.then(Act(body=long, headers={"content-type": "audio/mpeg"}))
    with (
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=0) as client,
        replay("record"),
        pytest.raises(InfraError, match=f"{len(long)} bytes is not recorded: the limit is {MAX_RECORDED_BYTES}"),
        ReplayRound(0),
    ):
        assert client.audio.speech.create(model="m", voice="v", input="hi").content == long
    assert recordings() == []


def test_an_answer_that_is_no_text_comes_back_as_it_was(provider: Loopback, replay: Replay) -> None:
    provider.then(Act(body=b"\xff\x00\xfe", headers={"content-type": "audio/mpeg"}))
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=0) as client:
        for mode in ("record", "strict"):
            with replay(mode):
                assert client.audio.speech.create(model="m", voice="v", input="hi").content == b"\xff\x00\xfe"


@pytest.mark.parametrize(
    "act",
    [
        failure(429),
        failure(500),
        Act(body={"error": {"message": "overloaded"}}),
        Act(body=b'event: error\ndata: {"type": "error"}\n\n', headers={"content-type": "text/event-stream"}),
        Act(cut=1),
    ],
    ids=["429", "500", "200 with an error", "an error in the stream", "cut off"],
)
def test_what_went_wrong_is_no_answer_and_is_not_recorded(act: Act, provider: Loopback, replay: Replay) -> None:
    provider.then(act)
    with replay("record"), httpx2.Client() as client:
        try:
            client.post(f"{provider.url}/v1/chat/completions", json={"model": "m", "messages": QUESTION})
        except httpx2.RemoteProtocolError:
            assert act.cut
    assert recordings() == []


def test_a_stream_that_was_left_before_its_end_is_not_recorded(provider: Loopback, replay: Replay) -> None:
    provider.then(Act(say="one two three", pause=0.01))
    with (
        replay("record"),
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client,
        client.chat.completions.create(model="m", messages=QUESTION, stream=True) as stream,
    ):
        next(iter(stream))
    assert recordings() == []


def test_only_model_calls_are_recorded(provider: Loopback, replay: Replay) -> None:
    with replay("record"), httpx2.Client() as client:
        client.get(f"{provider.url}/models")
        client.post(f"{provider.url}/orders/messages", json={"model": "m"})
        client.put(f"{provider.url}/v1/chat/completions", json={"model": "m"})
    assert recordings() == []
    with replay("strict"), httpx2.Client() as client:
        assert client.get(f"{provider.url}/models").status_code == 200


async def test_calls_of_our_own_models_have_recordings_of_their_own(
    provider: Loopback, replay: Replay, ask: Any
) -> None:
    with replay("record"):
        record = await ask()
    assert record.verdict == "pass"
    assert recordings() == []


async def test_a_model_call_that_passes_httpx_by_is_refused_rather_than_made_unseen(
    provider: Loopback, replay: Replay
) -> None:
    async def ask(mark: dict[str, str], path: str) -> int:
        async with aiohttp.ClientSession() as session, session.post(f"{provider.url}{path}", headers=mark) as got:
            return got.status

    with replay("auto"):
        for mark, path in (({"x-goog-api-client": "genai"}, "/x"), ({}, "/v1beta/models/m:generateContent")):
            with pytest.raises(InfraError, match="httpx_async_client"):
                await ask(mark, path)
        assert provider.received == []
        assert await ask({}, "/x") == 200


def test_afterwards_the_libraries_are_as_they_were(replay: Replay) -> None:
    def methods() -> list[Any]:
        sync = [library.HTTPTransport.handle_request for library in (httpx, httpx2)]
        return [*sync, *(library.AsyncHTTPTransport.handle_async_request for library in (httpx, httpx2))]

    def broken_off() -> None:
        with replay("auto"):
            hooked.extend(methods())
            raise ZeroDivisionError

    hooked: list[Any] = []
    before = methods()
    with pytest.raises(ZeroDivisionError):
        broken_off()
    assert methods() == before
    assert not set(hooked) & set(before)


def test_a_mode_that_is_none_is_a_usage_error(replay: Replay) -> None:
    with pytest.raises(UsageError, match="'always' is not one of off, auto, record, strict"), replay("always"):  # type: ignore[arg-type]
        pass
