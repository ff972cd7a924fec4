"""Test what an application, its case and parallel callers see when a recording is missing, damaged or shared."""

import asyncio
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from bakeoff._kernel.choices import ReplayMode
from bakeoff.errors import InfraError
from bakeoff.replay.application import ReplayRound

from ..models.loopback import KEY, Act, Loopback, failure
from .conftest import Replay
from .sdk_calls import (
    FOLDER,
    QUESTION,
    ask_anthropic,
    ask_google,
    ask_openai,
    ask_openai_async,
    ask_openai_responses,
    recordings,
)

pytestmark = pytest.mark.full


def test_a_strict_miss_names_the_key_and_what_changed_against_the_nearest_recording(
    provider: Loopback, replay: Replay
) -> None:
    with replay("record"):
        ask_openai(provider.url)
        ask_openai_responses(provider.url)
    known = len(provider.received)
    with (
        replay("strict"),
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client,
        pytest.raises(openai.APIStatusError) as raised,
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Capital of Italy?"}])
    message = raised.value.body["message"]  # type: ignore[index]
    assert "nothing is recorded under " in message
    assert '-    "content": "Capital of France?",' in message
    assert '+    "content": "Capital of Italy?",' in message
    nearest = message.partition("nearest recording, ")[2].partition(" ")[0]
    assert nearest in {path.stem for path in recordings()}
    assert len(provider.received) == known  # no try, and none again


@pytest.mark.parametrize("ask", [ask_anthropic, ask_google, ask_openai_async])
def test_a_strict_miss_reaches_the_user_of_every_sdk(
    ask: Callable[[str], str], provider: Loopback, replay: Replay
) -> None:
    expected = (anthropic.APIStatusError, genai.errors.ClientError, openai.APIStatusError)
    with replay("strict"), pytest.raises(expected, match="nothing is recorded under"):
        ask(provider.url)
    assert provider.received == []


def test_a_miss_is_the_cases_error_whatever_the_application_made_of_it(provider: Loopback, replay: Replay) -> None:
    def careless() -> str:
        try:
            return ask_openai(provider.url)
        except openai.APIError:
            return "Sorry, something went wrong."

    with replay("strict"), pytest.raises(InfraError, match="nothing is recorded under") as raised, ReplayRound(0):
        assert careless() == "Sorry, something went wrong."
    assert raised.value.permanent


def test_each_round_and_each_turn_of_a_round_has_an_answer_of_its_own(provider: Loopback, replay: Replay) -> None:
    def rounds() -> list[list[str]]:
        answers = []
        for number in range(2):
            with ReplayRound(number):
                answers.append([ask_openai(provider.url) for _ in range(2)])
        return answers

    provider.then(*(Act(say=word) for word in "abcd"))
    with replay("auto"):
        first = rounds()
    assert first == [["a", "b"], ["c", "d"]]
    provider.stop()
    with replay("strict"):
        assert rounds() == first


def test_an_sdk_that_tried_again_after_an_error_is_replayed_with_the_answer(provider: Loopback, replay: Replay) -> None:
    provider.then(failure(429, retry_after="0"), failure(500, retry_after="0"), Act(say="at last"))

    def ask() -> str:
        with ReplayRound(0), openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY, max_retries=2) as client:
            return client.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content or ""

    with replay("auto"):
        assert ask() == "at last"
    assert len(recordings()) == 1
    provider.stop()
    with replay("strict"):
        assert ask() == "at last"


def test_a_damaged_recording_is_named_and_not_taken_for_a_miss(provider: Loopback, replay: Replay) -> None:
    with replay("record"):
        ask_openai(provider.url)
    [path] = recordings()
    for damage in ("{", '{"kind": "http", "asked": {}, "answer": {}}'):
        path.write_text(damage)
        with replay("auto"), pytest.raises(openai.APIStatusError, match=f"{path.stem}.* cannot be read, delete it"):
            ask_openai(provider.url)


def test_a_folder_that_cannot_be_written_is_said_to_the_case_and_the_answer_is_not_lost(
    provider: Loopback, replay: Replay
) -> None:
    FOLDER.write_text("a file")
    with replay("record"), pytest.raises(InfraError, match="cannot be written"), ReplayRound(0):
        assert ask_openai(provider.url) == "yes"


def test_calls_at_the_same_time_are_recorded_and_replayed(provider: Loopback, replay: Replay) -> None:
    provider.plan = lambda request: Act(say=request.body["messages"][0]["content"][::-1])

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client:
            questions: Any = [[{"role": "user", "content": f"question {number % 20}"}] for number in range(40)]
            asked = (client.chat.completions.create(model="m", messages=each) for each in questions)
            return [answer.choices[0].message.content or "" for answer in await asyncio.gather(*asked)]

    with replay("auto"):
        first = asyncio.run(ask_all())
    assert len(recordings()) == 20
    provider.stop()
    with replay("strict"):
        assert asyncio.run(ask_all()) == first


def test_processes_at_the_same_time_share_a_folder(provider: Loopback) -> None:
    program = textwrap.dedent(
        f"""
        import pathlib, sys
        import openai
        from bakeoff.replay.process import replaying
        from bakeoff.storage.redaction import Redactor
        mode, folder = sys.argv[1:]
        client = openai.OpenAI(base_url="{provider.url}/v1", api_key="{KEY}")
        with client, replaying(mode, pathlib.Path(folder), Redactor({{"LOOPBACK_API_KEY": "{KEY}"}})):
            for number in range(5):
                message = [{{"role": "user", "content": f"question {{number}}"}}]
                print(client.chat.completions.create(model="m", messages=message).choices[0].message.content)
        """
    )

    def run_both(mode: ReplayMode) -> list[str]:
        command = [sys.executable, "-c", program, mode, str(FOLDER)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in "ab"]
        return [process.communicate(timeout=120)[0] for process in started]

    first = run_both("auto")
    assert first == ["yes\n" * 5] * 2
    assert len(recordings()) == 5
    provider.stop()
    assert run_both("strict") == first
