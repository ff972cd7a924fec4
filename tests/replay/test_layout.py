"""Recordings made by earlier versions stay readable: their names, places and content are fixed."""

import json
from pathlib import Path
from typing import Any

import pytest

from bakeoff.errors import InfraError
from bakeoff.models.caller import RecordedCall
from bakeoff.plan import Limits
from bakeoff.protocols import Task
from bakeoff.replay.application import ApplicationCall, ReplayRound
from bakeoff.replay.http import HttpRecording
from bakeoff.replay.metered import RecordedExchange, exchange_key
from bakeoff.replay.store import Store, model_call_key
from bakeoff.replay.tools import ToolRecording
from bakeoff.storage.redaction import Redactor

NO_SECRETS = Redactor({})
USAGE = {"requests": 1, "input": 10, "output": 5, "cost": 0.002}


def write(folder: Path, place: str, content: dict[str, Any]) -> None:
    path = folder / place
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))


def test_a_model_call_is_found(tmp_path: Path) -> None:
    answer = {"parts": [{"content": "yes", "part_kind": "text"}], "kind": "response"}
    recorded = {"case": "c", "asked": {}, "answer": answer, "usage": USAGE, "measured": False, "price": None}
    write(tmp_path, "3e/3e400c60834c8aef08db6ba84455047f.json", {**recorded, "seconds": 1.5})
    parts = [
        {"content": "be kind", "scope": "conversation", "part_kind": "system-prompt", "timestamp": "now"},
        {"content": "hi", "part_kind": "user-prompt"},
    ]
    key = model_call_key(
        Task("", "c", "s", "", round=1, seed=0, limits=Limits(), spend=lambda _: None, count=lambda _: None),
        model="openai:m",
        endpoint="abcd1234",
        settings={"temperature": 0.5, "timeout": 9},
        messages=[{"parts": parts, "kind": "request", "state": "complete", "run_id": "r"}],
        tools=[{"name": "t", "description": "d", "parameters": {"type": "object"}}],
        output=None,
    )
    found = Store("strict", tmp_path).find(key, RecordedCall)
    assert found is not None
    assert (found.response.text, found.usage.tokens, found.measured, found.seconds) == ("yes", 15, False, 1.5)


def test_a_metered_exchange_is_found(tmp_path: Path) -> None:
    recorded = {
        "case": "c",
        "asked": {},
        "status": 200,
        "headers": {"content-type": "x"},
        "body": "aGk=",
        "usage": USAGE,
    }
    write(tmp_path, "meter/04/040f54443ac2e9aa46eeafc5300cfff9.json", {**recorded, "encoded": True, "estimated": True})
    trial = {"subject": "s", "case": "c", "round": 0, "provider": "openai", "endpoint": "abcd1234"}
    body = {"model": "m", "messages": [{"role": "user", "content": "on 2026-11-15"}], "user": "u"}
    found = Store("strict", tmp_path).find(exchange_key(trial, "v1/chat/completions", body, 1), RecordedExchange)
    assert found is not None
    assert (found.content, found.status, found.estimated) == (b"hi", 200, True)


def test_a_request_of_an_application_is_found(tmp_path: Path) -> None:
    answer = {"status": 200, "headers": {}, "body": "yes"}
    write(tmp_path, "http/7f/7fba23573d515322f79e908b3201e8f3.json", {"kind": "http", "asked": {}, "answer": answer})
    asked = {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "body": {"model": "m"}}
    found = ApplicationCall(Store("strict", tmp_path), "http", asked, NO_SECRETS).find(HttpRecording)
    assert found is not None
    assert found.answer.content == b"yes"


def test_results_of_a_tool_are_found_by_round_and_turn(tmp_path: Path) -> None:
    for turn, digest in enumerate(("9ccf74752e4ee57274f5b7ed8de23d84", "4f8429891ba83a341d7778665529dcd6")):
        content = {"kind": "tools", "asked": {}, "answer": {"result": turn}}
        write(tmp_path, f"tools/{digest[:2]}/{digest}.json", content)
    asked = {"function": "m.add", "arguments": {"a": 1}}
    store = Store("strict", tmp_path)
    with ReplayRound(1):
        calls = [ApplicationCall(store, "tools", asked, NO_SECRETS).find(ToolRecording) for _ in range(2)]
    assert [call and call.answer["result"] for call in calls] == [0, 1]


def test_a_miss_without_any_recording_says_how_to_record(tmp_path: Path) -> None:
    key = exchange_key({"case": "c", "round": 0}, "p", {}, 0)
    with pytest.raises(InfraError, match=r"nothing is recorded under \w+ \(case 'c', round 1\); record it first with"):
        Store("strict", tmp_path).find(key, RecordedExchange)
