"""The model calls of an application, through its own SDK: recorded once, replayed when nobody is there to answer."""

import asyncio
import base64
import gzip
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai
from google.genai.types import HttpOptions

from bakeoff.doors.pytest_plugin.replaying import asking, replaying
from bakeoff.errors import InfraError, UsageError
from bakeoff.replay.store import MOST_BYTES
from bakeoff.storage.redaction import Redactor

from .loopback import KEY, Act, Loopback, failure

Tape = Callable[[str], AbstractContextManager[None]]
FOLDER = Path("recordings")


@pytest.fixture
def tape(provider: Loopback) -> Tape:
    """`with tape("record"):` puts the recordings of this test on."""
    return lambda mode: replaying(mode, FOLDER, Redactor({"LOOPBACK_API_KEY": KEY}))


def recordings() -> list[Path]:
    return sorted(FOLDER.rglob("*.json"))


QUESTION: Any = [{"role": "user", "content": "Capital of France?"}]


def ask_openai(url: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        return client.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content or ""


def ask_openai_responses(url: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        return client.responses.create(model="m", input="Capital of France?").output_text


def stream_openai(url: str) -> str:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        chunks = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        return "|".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ask_anthropic(url: str) -> str:
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=QUESTION)
        return message.content[0].text if message.content[0].type == "text" else ""


def stream_anthropic(url: str) -> str:
    with (
        anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as stream,
    ):
        return "|".join(stream.text_stream)


def ask_google(url: str) -> str:
    with genai.Client(api_key=KEY, http_options=HttpOptions(base_url=url)) as client:
        return client.models.generate_content(model="m", contents="Capital of France?").text or ""


def stream_google(url: str) -> str:
    with genai.Client(api_key=KEY, http_options=HttpOptions(base_url=url)) as client:
        return "|".join(c.text or "" for c in client.models.generate_content_stream(model="m", contents="Capital?"))


def ask_openai_async(url: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            answer = await client.chat.completions.create(model="m", messages=QUESTION)
        return answer.choices[0].message.content or ""

    return asyncio.run(ask())


def stream_openai_async(url: str) -> str:
    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
            chunks = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            return "|".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])

    return asyncio.run(ask())


def stream_anthropic_async(url: str) -> str:
    async def ask() -> str:
        async with (
            anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client,
            client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as stream,
        ):
            return "|".join([text async for text in stream.text_stream])

    return asyncio.run(ask())


def ask_google_async(url: str) -> str:
    async def ask() -> str:
        async with httpx.AsyncClient() as wire:
            client = genai.Client(api_key=KEY, http_options=HttpOptions(base_url=url, httpx_async_client=wire))
            answer = await client.aio.models.generate_content(model="m", contents="Capital of France?")
            client.close()
        return answer.text or ""

    return asyncio.run(ask())


WAYS = [
    ask_openai,
    ask_openai_responses,
    stream_openai,
    ask_anthropic,
    stream_anthropic,
    ask_google,
    stream_google,
    ask_openai_async,
    stream_openai_async,
    stream_anthropic_async,
    ask_google_async,
]


@pytest.mark.parametrize("ask", WAYS, ids=lambda way: way.__name__)
def test_what_an_sdk_asked_once_is_answered_when_the_provider_is_gone(
    ask: Callable[[str], str], provider: Loopback, tape: Tape
) -> None:
    provider.plan = lambda _: Act(say="It is Paris, in France.")
    with tape("auto"):
        first = ask(provider.url)
    assert first.replace("|", " ").split() == ["It", "is", "Paris,", "in", "France."]
    assert len(recordings()) == 1
    provider.stop()
    with tape("strict"):
        assert ask(provider.url) == first
    with tape("auto"):
        assert ask(provider.url) == first


def test_an_unhooked_sdk_finds_nobody_there(provider: Loopback, tape: Tape) -> None:
    with tape("record"):
        ask_openai(provider.url)
    provider.stop()
    with pytest.raises(openai.APIConnectionError):
        ask_openai(provider.url)


def test_no_recording_is_made_or_used_when_replay_is_off(provider: Loopback, tape: Tape) -> None:
    with tape("off"):
        ask_openai(provider.url)
        ask_openai(provider.url)
    assert (len(provider.received), recordings()) == (2, [])


def test_record_asks_anew_and_the_new_answer_counts(provider: Loopback, tape: Tape) -> None:
    provider.then(Act(say="Rome"), Act(say="Paris"))
    with tape("record"):
        assert [ask_openai(provider.url), ask_openai(provider.url)] == ["Rome", "Paris"]
    with tape("strict"):
        assert ask_openai(provider.url) == "Paris"


@pytest.mark.parametrize("library", [httpx, httpx2], ids=lambda library: library.__name__)
@pytest.mark.parametrize("streams", [True, False])
def test_the_bytes_are_the_same_in_both_libraries(library: Any, streams: bool, provider: Loopback, tape: Tape) -> None:
    body = {"model": "m", "stream": streams, "messages": QUESTION}

    def fetch() -> tuple[int, str, bytes]:
        with library.Client() as client:
            got = client.post(f"{provider.url}/v1/chat/completions", json=body, headers={"authorization": KEY})
            return got.status_code, got.headers["content-type"], got.content

    with tape("record"):
        first = fetch()
    provider.stop()
    with tape("strict"):
        assert fetch() == first


def test_an_answer_that_came_compressed_is_recorded_in_plain_words(provider: Loopback, tape: Tape) -> None:
    answer = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Zip"}}]}
    body = gzip.compress(json.dumps({"id": "c", "object": "chat.completion", "model": "m", **answer}).encode())
    provider.then(Act(body=body, headers={"content-encoding": "gzip"}))
    with tape("record"):
        assert ask_openai(provider.url) == "Zip"
    with tape("strict"):
        assert ask_openai(provider.url) == "Zip"
    assert "Zip" in recordings()[0].read_text()


def test_a_compressed_stream_that_ends_with_its_last_event_is_recorded(provider: Loopback, tape: Tape) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1}
    said = {**chunk, "choices": [{"index": 0, "delta": {"content": "Zip"}, "finish_reason": None}]}
    body = gzip.compress(f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode())
    provider.then(Act(body=body, headers={"content-encoding": "gzip", "content-type": "text/event-stream"}))
    for mode in ("record", "strict"):
        with tape(mode):
            assert stream_openai(provider.url) == "Zip"


def test_an_answer_whose_compression_is_broken_is_not_recorded(provider: Loopback, tape: Tape) -> None:
    provider.then(Act(body=b"no gzip at all", headers={"content-encoding": "gzip"}))
    with tape("record"), pytest.raises(openai.APIConnectionError):
        ask_openai(provider.url)
    assert recordings() == []


def test_an_answer_that_is_too_long_is_handed_on_and_the_case_is_told(provider: Loopback, tape: Tape) -> None:
    long = b"\xff" * (MOST_BYTES + 1)
    provider.then(Act(body=long, headers={"content-type": "audio/mpeg"}))
    with (
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=0) as client,
        tape("record"),
        pytest.raises(InfraError, match=f"{MOST_BYTES + 1} bytes is not recorded: {MOST_BYTES} is the most"),
        asking(0),
    ):
        assert client.audio.speech.create(model="m", voice="v", input="hi").content == long
    assert recordings() == []


def test_an_answer_that_is_no_text_comes_back_as_it_was(provider: Loopback, tape: Tape) -> None:
    provider.then(Act(body=b"\xff\x00\xfe", headers={"content-type": "audio/mpeg"}))
    with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=0) as client:
        for mode in ("record", "strict"):
            with tape(mode):
                assert client.audio.speech.create(model="m", voice="v", input="hi").content == b"\xff\x00\xfe"


def test_a_strict_miss_names_the_key_and_what_changed_against_the_nearest_recording(
    provider: Loopback, tape: Tape
) -> None:
    with tape("record"):
        ask_openai(provider.url)
        ask_openai_responses(provider.url)
    known = len(provider.received)
    with (
        tape("strict"),
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client,
        pytest.raises(openai.APIStatusError) as raised,
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Capital of Italy?"}])
    message = raised.value.body["message"]  # type: ignore[index]
    assert "nothing is recorded under " in message
    assert '-    "content": "Capital of France?",' in message
    assert '+    "content": "Capital of Italy?",' in message
    nearest = message.partition("nearest recording, ")[2].partition(",")[0]
    assert nearest in {path.stem for path in recordings()}
    assert len(provider.received) == known  # no try, and none again


@pytest.mark.parametrize("ask", [ask_anthropic, ask_google, ask_openai_async])
def test_a_strict_miss_reaches_the_user_of_every_sdk(ask: Callable[[str], str], provider: Loopback, tape: Tape) -> None:
    expected = (anthropic.APIStatusError, genai.errors.ClientError, openai.APIStatusError)
    with tape("strict"), pytest.raises(expected, match="nothing is recorded under"):
        ask(provider.url)
    assert provider.received == []


def test_a_miss_is_the_cases_error_whatever_the_application_made_of_it(provider: Loopback, tape: Tape) -> None:
    def careless() -> str:
        try:
            return ask_openai(provider.url)
        except openai.APIError:
            return "Sorry, something went wrong."

    with tape("strict"), pytest.raises(InfraError, match="nothing is recorded under") as raised, asking(0):
        assert careless() == "Sorry, something went wrong."
    assert raised.value.permanent


def test_each_round_and_each_turn_of_a_round_has_an_answer_of_its_own(provider: Loopback, tape: Tape) -> None:
    def rounds() -> list[list[str]]:
        answers = []
        for number in range(2):
            with asking(number):
                answers.append([ask_openai(provider.url) for _ in range(2)])
        return answers

    provider.then(*(Act(say=word) for word in "abcd"))
    with tape("auto"):
        first = rounds()
    assert first == [["a", "b"], ["c", "d"]]
    provider.stop()
    with tape("strict"):
        assert rounds() == first


def test_an_sdk_that_tried_again_after_an_error_is_replayed_with_the_answer(provider: Loopback, tape: Tape) -> None:
    provider.then(failure(429, retry_after="0"), failure(500, retry_after="0"), Act(say="at last"))

    def ask() -> str:
        with asking(0), openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=2) as client:
            return client.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content or ""

    with tape("auto"):
        assert ask() == "at last"
    assert len(recordings()) == 1
    provider.stop()
    with tape("strict"):
        assert ask() == "at last"


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
def test_what_went_wrong_is_no_answer_and_is_not_recorded(act: Act, provider: Loopback, tape: Tape) -> None:
    provider.then(act)
    with tape("record"), httpx2.Client() as client:
        try:
            client.post(f"{provider.url}/v1/chat/completions", json={"model": "m", "messages": QUESTION})
        except httpx2.RemoteProtocolError:
            assert act.cut
    assert recordings() == []


def test_a_stream_that_was_left_before_its_end_is_not_recorded(provider: Loopback, tape: Tape) -> None:
    provider.then(Act(say="one two three", pause=0.01))
    with (
        tape("record"),
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client,
        client.chat.completions.create(model="m", messages=QUESTION, stream=True) as stream,
    ):
        next(iter(stream))
    assert recordings() == []


def test_only_model_calls_are_recorded(provider: Loopback, tape: Tape) -> None:
    with tape("record"), httpx2.Client() as client:
        client.get(f"{provider.url}/models")
        client.post(f"{provider.url}/orders/messages", json={"model": "m"})
        client.put(f"{provider.url}/v1/chat/completions", json={"model": "m"})
    assert recordings() == []
    with tape("strict"), httpx2.Client() as client:
        assert client.get(f"{provider.url}/models").status_code == 200


async def test_calls_of_our_own_models_have_recordings_of_their_own(provider: Loopback, tape: Tape, ask: Any) -> None:
    with tape("record"):
        record = await ask()
    assert record.verdict == "pass"
    assert recordings() == []


CANARY = "canary-5f1d9c27e8b3"


async def test_a_model_call_that_passes_httpx_by_is_refused_rather_than_made_unseen(
    provider: Loopback, tape: Tape
) -> None:
    async def ask(mark: dict[str, str], path: str) -> int:
        async with aiohttp.ClientSession() as session, session.post(f"{provider.url}{path}", headers=mark) as got:
            return got.status

    with tape("auto"):
        for mark, path in (({"x-goog-api-client": "genai"}, "/x"), ({}, "/v1beta/models/m:generateContent")):
            with pytest.raises(InfraError, match="httpx_async_client"):
                await ask(mark, path)
        assert provider.received == []
        assert await ask({}, "/x") == 200


@pytest.fixture
def leaky(provider: Loopback) -> Callable[[], None]:
    """A call with a key in each place where one may stand, to a provider that repeats it in all it says."""
    hidden = base64.b64encode(f"x{CANARY}y".encode()).decode()
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": f"{CANARY} {hidden}"}}]}
    echoed = {"set-cookie": f"k={CANARY}", "x-request-id": CANARY}
    provider.plan = lambda _: Act(body={"model": "m", "id": CANARY, **answer}, headers=echoed)

    def ask(key: str = CANARY) -> None:
        with httpx2.Client() as client:
            client.post(
                f"{provider.url.replace('//', f'//user:{key}@')}/v1/chat/completions?key={key}&page=2",
                json={"model": "m", "user": key, "nested": json.dumps({"key": key, "b64": hidden})},
                headers={"authorization": f"Bearer {key}", "x-api-key": key, "cookie": key, "x-goog-api-key": key},
            )

    return ask


def test_a_recording_holds_no_key_wherever_it_stood(leaky: Callable[[], None], provider: Loopback) -> None:
    with replaying("record", FOLDER, Redactor({})):  # nobody told us of this key: it came with the request
        leaky()
    [path] = recordings()
    written = path.read_text()
    forms = [
        CANARY,
        CANARY.encode().hex(),
        *(base64.b64encode(f"{'x' * n}{CANARY}".encode()).decode()[4:-4] for n in range(3)),
    ]
    assert [form for form in forms if form in written] == []
    assert "[redacted" in written
    assert "page=2" in written
    assert "set-cookie" not in written


def test_a_recording_is_found_with_another_key(provider: Loopback, tape: Tape) -> None:
    def ask(key: str) -> str:
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key=key, max_retries=0) as client:
            return (
                client.chat.completions.create(model="m", messages=QUESTION, user=key).choices[0].message.content or ""
            )

    with tape("record"):
        ask(KEY)
    provider.stop()
    with tape("strict"):
        assert ask("sk-another-key-of-a-colleague") == "yes"


def ask_with_a_server_of_tools(url: str, key: str) -> str:
    server: Any = {
        "type": "mcp",
        "server_label": "crm",
        "server_url": "https://crm.example/mcp",
        "authorization": f"Bearer {key}",
        "headers": {"X-Api-Key": f"other-{key}"},
    }
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        return client.responses.create(model="m", input="Who is Ann?", tools=[server]).output_text


def test_a_key_that_the_application_hands_on_is_in_no_recording_and_another_finds_it(
    provider: Loopback, tape: Tape
) -> None:
    provider.plan = lambda request: Act(say=f"told {'crm-secret-5b1e77' in str(request.body)}")
    with tape("record"):
        said = ask_with_a_server_of_tools(provider.url, "crm-secret-5b1e77")
    assert said == "told True"
    [kept] = recordings()
    assert "crm-secret" not in kept.read_text()
    provider.stop()
    with tape("strict"):
        assert ask_with_a_server_of_tools(provider.url, "crm-secret-5b1e77") == said
        assert ask_with_a_server_of_tools(provider.url, "crm-of-a-colleague") == said


def test_a_damaged_recording_is_named_and_not_taken_for_a_miss(provider: Loopback, tape: Tape) -> None:
    with tape("record"):
        ask_openai(provider.url)
    [path] = recordings()
    for damage in ("{", '{"kind": "http", "asked": {}, "answer": {}}'):
        path.write_text(damage)
        with tape("auto"), pytest.raises(openai.APIStatusError, match=f"{path.stem}.* cannot be read, delete it"):
            ask_openai(provider.url)


def test_a_folder_that_cannot_be_written_is_said_to_the_case_and_the_answer_is_not_lost(
    provider: Loopback, tape: Tape
) -> None:
    FOLDER.write_text("a file")
    with tape("record"), pytest.raises(InfraError, match="cannot be written"), asking(0):
        assert ask_openai(provider.url) == "yes"


def test_calls_at_the_same_time_are_recorded_and_replayed(provider: Loopback, tape: Tape) -> None:
    provider.plan = lambda request: Act(say=request.body["messages"][0]["content"][::-1])

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client:
            questions: Any = [[{"role": "user", "content": f"question {number % 20}"}] for number in range(40)]
            asked = (client.chat.completions.create(model="m", messages=each) for each in questions)
            return [answer.choices[0].message.content or "" for answer in await asyncio.gather(*asked)]

    with tape("auto"):
        first = asyncio.run(ask_all())
    assert len(recordings()) == 20
    provider.stop()
    with tape("strict"):
        assert asyncio.run(ask_all()) == first


def test_processes_at_the_same_time_share_a_folder(provider: Loopback, tape: Tape) -> None:
    program = textwrap.dedent(
        f"""
        import openai
        from bakeoff.doors.pytest_plugin.replaying import replaying_as_handed_on
        with replaying_as_handed_on(), openai.OpenAI(base_url="{provider.url}/v1", api_key="{KEY}") as client:
            for number in range(5):
                message = [{{"role": "user", "content": f"question {{number}}"}}]
                print(client.chat.completions.create(model="m", messages=message).choices[0].message.content)
        """
    )

    def run_both() -> list[str]:
        started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in "ab"]
        return [process.communicate(timeout=120)[0] for process in started]

    with tape("auto"):
        first = run_both()
    assert first == ["yes\n" * 5] * 2
    assert len(recordings()) == 5
    provider.stop()
    with tape("strict"):
        assert run_both() == first


def test_afterwards_the_libraries_are_as_they_were(tape: Tape) -> None:
    def methods() -> list[Any]:
        sync = [library.HTTPTransport.handle_request for library in (httpx, httpx2)]
        return [*sync, *(library.AsyncHTTPTransport.handle_async_request for library in (httpx, httpx2))]

    def broken_off() -> None:
        with tape("auto"):
            hooked.extend(methods())
            raise ZeroDivisionError

    hooked: list[Any] = []
    before = methods()
    with pytest.raises(ZeroDivisionError):
        broken_off()
    assert methods() == before
    assert not set(hooked) & set(before)


def test_a_mode_that_is_none_is_a_usage_error(tape: Tape) -> None:
    with pytest.raises(UsageError, match="'always' is not one of auto, record, strict, off"), tape("always"):
        pass
