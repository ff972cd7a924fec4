"""Exchanges are recorded once and replayed as often as asked, though agents never ask twice in the same words."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from bakeoff._kernel.choices import ReplayMode
from bakeoff.errors import InfraError
from bakeoff.record import Text
from bakeoff.replay.metered import lasting
from bakeoff.replay.store import Store

from ..models.loopback import Act, Loopback, Received
from .conftest import CANARY, Opening

Making = Callable[[ReplayMode], Store]


def asked(session: str, day: str, place: str) -> dict[str, Any]:
    """Return what an agent sends: the same question, with a new session, a new day and a new folder each time."""
    system = f"Today is {day}. You work in /tmp/bakeoff-place-{place}/work.\nSession {session}, tests took 1.25s"
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "solve it"}]
    return {"messages": messages, "prompt_cache_key": session, "metadata": {"user_id": session}}


FIRST = asked("0b6f2c1e-7a41-4d0b-9c55-2f1f5f1f0001", "2026-11-15", "abc123xy")
AGAIN = asked("5d2e8f60-1c2d-4e3f-8a9b-0c1d2e3f4a5b", "2027-01-02", "qrs_t9_z")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_recorded_exchange_is_replayed_without_the_provider(
    stream: bool, provider: Loopback, visit: Opening, recordings: Making
) -> None:
    provider.then(Act(say="one two"))
    async with visit(recordings=recordings("auto")) as first:
        recorded = await first.chat(stream=stream, **FIRST)
    async with visit(recordings=recordings("strict")) as second:
        replayed = await second.chat(stream=stream, **AGAIN)
    assert replayed.content == recorded.content
    assert replayed.headers["content-type"] == recorded.headers["content-type"]
    assert len(provider.received) == 1
    assert (first.books.spent.tokens, first.books.counted.tokens) == (15, 0)
    assert (second.books.spent.tokens, second.books.counted.tokens) == (0, 15), "nobody pays twice"
    assert second.trial.transcript().steps[0].parts == first.trial.transcript().steps[0].parts
    assert second.trial.transcript().metadata["meter"]["replayed"] == 1  # type: ignore[index,call-overload]
    assert second.trial.transcript().metadata["replayed"] is True, "reports mark what they find so"
    assert "replayed" not in first.trial.transcript().metadata
    assert first.trial.transcript().metadata["recorded"] is True


async def test_a_replayed_stream_is_one_that_an_sdk_reads(
    provider: Loopback, visit: Opening, recordings: Making
) -> None:
    provider.then(Act(say="one two"))
    for mode in ("record", "strict"):
        async with visit(recordings=recordings(mode)) as at:
            async with AsyncOpenAI(base_url=f"{at.origin}/openai/v1", api_key=at.trial.token) as sdk:
                stream = await sdk.chat.completions.create(
                    model="tiny", messages=[{"role": "user", "content": "hello"}], stream=True
                )
                texts = [chunk.choices[0].delta.content async for chunk in stream]
            assert texts == ["", "one", "two", None]
            assert at.trial.transcript().steps[0].parts == (Text(text="onetwo"),)
    assert len(provider.received) == 1


async def test_a_question_that_is_not_recorded_is_an_infra_failure_that_names_it(
    provider: Loopback, visit: Opening, recordings: Making
) -> None:
    async with visit(recordings=recordings("strict")) as at:
        answer = await at.chat(**FIRST)
        error = await at.trial.stopped()
    assert answer.status_code == 400
    assert "nothing is recorded under" in answer.json()["error"]["message"]
    assert isinstance(error, InfraError)
    assert error.permanent
    assert str(error) == answer.json()["error"]["message"]
    assert provider.received == []


async def test_the_same_question_twice_has_two_answers_in_their_order(
    provider: Loopback, visit: Opening, recordings: Making
) -> None:
    provider.then(Act(say="first"), Act(say="second"))
    said = []
    for mode in ("record", "strict"):
        async with visit(recordings=recordings(mode)) as at:
            answers = [await at.chat(), await at.chat()]
            said.append([answer.json()["choices"][0]["message"]["content"] for answer in answers])
    assert said == [["first", "second"], ["first", "second"]]
    assert len(provider.received) == 2


async def test_another_round_or_another_question_is_not_answered_by_a_recording(
    provider: Loopback, visit: Opening, recordings: Making
) -> None:
    async with visit(recordings=recordings("auto")) as first:
        await first.chat()
    async with visit(recordings=recordings("auto"), round=1) as second:
        await second.chat()
        await second.chat(temperature=0.5)
    assert len(provider.received) == 3


async def test_a_recording_holds_no_key(provider: Loopback, visit: Opening, recordings: Making, tmp_path: Path) -> None:
    def echo(request: Received) -> Act:
        return Act(say=f"you sent {request.headers['authorization']}")

    provider.plan = echo
    async with visit(recordings=recordings("record")) as at:
        await at.chat(messages=[{"role": "user", "content": f"my key is {CANARY}"}])
    [kept] = (tmp_path / "recordings" / "meter").glob("*/*.json")
    assert CANARY not in kept.read_text()
    assert "redacted" in kept.read_text()


async def test_what_was_cut_or_refused_is_not_recorded(
    provider: Loopback, visit: Opening, recordings: Making, tmp_path: Path
) -> None:
    provider.then(Act(status=400, body={"error": {"message": "no"}}), Act(say="one two", stop=2))
    async with visit(recordings=recordings("record")) as at:
        await at.chat()
        await at.chat(stream=True)
    assert not (tmp_path / "recordings").exists()


async def test_a_recording_that_cannot_be_read_is_named(
    provider: Loopback, visit: Opening, recordings: Making, tmp_path: Path
) -> None:
    async with visit(recordings=recordings("record")) as at:
        await at.chat()
    [kept] = (tmp_path / "recordings" / "meter").glob("*/*.json")
    await asyncio.to_thread(kept.write_text, "{")
    async with visit(recordings=recordings("auto")) as at:
        answer = await at.chat()
    assert kept.name in json.loads(answer.content)["error"]["message"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("on 2026-11-15T12:00:01.5Z", "on 2025-01-01T00:00:00Z"),
        ("Sun Nov 15 2026", "Mon Jan 5 2026"),
        ("Sunday, November 15, 2026", "Friday, May 1, 2026"),
        ("12:15:02", "9:01:59 PM"),
        ("msg_01a1df45-1597-7220-8b4c-8c62ee9103fb", "msg_58c8100d-eb36-52c1-93af-36c736f520ff"),
        ("log_2026-11-15", "log_2027-02-03"),
        ("3 passed in 0.05s", "3 passed in 1.7s"),
        ("http://127.0.0.1:4000/x", "http://127.0.0.1:51234/x"),
        ("see /tmp/tmpabc/file", "see /tmp/xyz99/file"),
    ],
)
def test_what_changes_from_run_to_run_does_not_change_the_question(one: str, other: str) -> None:
    assert lasting({"input": [one]}) == lasting({"input": [other]})
    assert lasting({"input": [one]}) != lasting({"input": ["another question"]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Chunk ID: aa2329\nWall time: 0.0512 seconds\nProcess exited with code 0\nOutput:\n",
            "Chunk ID: f53d61\nWall time: 1.25 seconds\nProcess exited with code 0\nOutput:\n",
        ),
        (
            '{"chunk_id":"5f7646","wall_time_seconds":0.000008673,"exit_code":0,"output":""}',
            '{"chunk_id":"2c9bef","wall_time_seconds":8.382e-06,"exit_code":0,"output":""}',
        ),
        ("run_shell_command_1794825351309_0", "run_shell_command_1794825419318_0"),
        ("run_shell_command-1794825351309-9f", "run_shell_command-1794825419318-9f"),
    ],
    ids=["codex's text", "codex's JSON", "gemini", "gemini, older"],
)
def test_ids_and_times_in_the_results_of_an_agents_tools_do_not_change_the_question(one: str, other: str) -> None:
    assert lasting({"input": [one]}) == lasting({"input": [other]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"chunk_id":"5f7646","exit_code":0}', '{"chunk_id":"5f7646","exit_code":1}'),
        ("Chunk ID: aa2329\nOutput:\n1 failed", "Chunk ID: aa2329\nOutput:\n2 failed"),
        ("add 1794825351309", "add 1794825351310"),  # a number of an exercise, and not the id of a call
    ],
)
def test_what_a_tool_found_changes_the_question(one: str, other: str) -> None:
    assert lasting({"input": [one]}) != lasting({"input": [other]})
