"""The embedded model as a subject of a plan."""

import json
import os
import select
import shutil
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import JsonValue
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from bakeoff._kernel.clock import Clock
from bakeoff.engine.registry import default_registry
from bakeoff.models.access import ProviderAccess
from bakeoff.models.embedded.launch import runtime_folder
from bakeoff.models.providers import BUILT_IN, ModelName
from bakeoff.models.rate_limit import ProviderBusy, RetryPolicy
from bakeoff.plan import Case, Limits, Plan, ScorerSpec, SubjectSpec
from bakeoff.protocols import Tool
from bakeoff.record import Record, Transcript

pytestmark = pytest.mark.full

pytest.importorskip("xllamacpp", reason="llama.cpp is not here: pip install 'bakeoff[local]'")

CarryOut = Callable[..., Awaitable[list[Record]]]
NUMBER: dict[str, JsonValue] = {"type": "integer"}
ADD: dict[str, JsonValue] = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}


async def _add(given: Mapping[str, JsonValue]) -> JsonValue:
    return int(str(given["a"])) + int(str(given["b"]))


WITH_ADD = default_registry().with_tools(lambda *_: (Tool("add", "Adds two numbers.", ADD, _add),))


async def say(carry_out: CarryOut, kind: str, prompt: str, **options: Any) -> Transcript:
    usual = {"model": "local:smollm2", "temperature": 0.0, "max_tokens": 60}
    plan = Plan(
        name="embedded",
        cases=(Case(id="c", prompt=prompt, expected="7", limits=Limits(attempt_seconds=120)),),
        subjects=(SubjectSpec(kind=kind, name="tiny", options={**usual, **options}),),
        scorers=(ScorerSpec(kind="contains"),),
    )
    [record] = await carry_out(plan, registry=WITH_ADD, retries=0)
    assert record.transcript is not None, record.failure
    return record.transcript


async def test_an_agent_of_whom_a_tool_is_required_calls_it_and_no_proxy_is_in_the_way(
    use_cache: None, carry_out: CarryOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    said = await say(carry_out, "agent", "Add 3 and 4.", tool_choice="required", max_steps=1)
    assert [call.name for call in said.tool_calls] == ["add"]


async def test_a_model_that_is_given_a_schema_answers_in_json(use_cache: None, carry_out: CarryOut) -> None:
    schema = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"], "additionalProperties": False}
    said = await say(carry_out, "model", "What is 3 + 4?", output_schema=schema)
    assert set(json.loads(str(said.output))) == {"sum"}


async def test_a_server_that_came_back_at_another_port_is_asked_there(weights: Path, tmp_path: Path) -> None:
    own = str(shutil.copy(weights, tmp_path / "own.gguf"))  # and so with a server of its own, which others do not miss
    name = ModelName("local", own)
    access = ProviderAccess(name, BUILT_IN["local"], {}, retry_policy=RetryPolicy(0.01, 0.01, 120.0))
    asked: list[httpx2.URL] = []
    async with access.open() as provider:

        async def call() -> str | None:
            model = provider.model(own)
            asked.append(httpx2.URL(model.base_url or ""))
            if len(asked) == 1:
                raise ProviderBusy("the connection broke")
            short = ModelSettings(max_tokens=3)
            response = await model_request(model, [ModelRequest.user_text_prompt("Hello")], model_settings=short)
            return response.finish_reason

        here = httpx2.URL(provider.model(own).base_url or "")
        kill_server(here)
        with socket.create_server(("127.0.0.1", here.port or 0)):
            assert await provider.limiter.run(call, Clock(120.0)) == "length"
    assert asked[0] == here
    assert asked[1].port != here.port


def kill_server(url: httpx2.URL) -> None:
    """Returns when it is gone, and its port free."""
    words = [json.loads(file.read_bytes()) for file in runtime_folder().glob("*.json")]
    [pid] = [word["pid"] for word in words if httpx2.URL(word["base_url"]).port == url.port]
    handle = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        assert select.select([handle], [], [], 20)[0]
    finally:
        os.close(handle)
