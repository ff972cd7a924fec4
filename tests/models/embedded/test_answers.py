"""Test what the embedded model can do through the OpenAI API: answer alike, keep to a schema, and call tools."""

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from bakeoff.models.embedded import EmbeddedEndpoint, EmbeddedServer
from bakeoff.models.embedded.relay import CALL_BEGINS, with_forced_call

pytestmark = pytest.mark.full

pytest.importorskip("xllamacpp", reason="llama.cpp is not here: pip install 'bakeoff[local]'")

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "embedded-model.md"
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "population": {"type": "integer", "maximum": 9999999}},
    "required": ["city", "population"],
    "additionalProperties": False,
}
WEATHER: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ADD: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer", "maximum": 99}, "b": {"type": "integer", "maximum": 99}},
    "required": ["a", "b"],
}


def tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [tool("get_weather", "The weather of a city.", WEATHER), tool("add", "The sum of two numbers.", ADD)]
Ask = Callable[..., Any]


async def test_with_one_slot_temperature_and_seed_decide_what_is_said(use_cache: None) -> None:
    """One slot, and nobody else on it: what is computed together changes the last digits."""
    async with (
        EmbeddedServer("smollm2", slots=1, context=512).open() as endpoint,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {endpoint.api_key}"}, timeout=60) as client,
    ):

        async def say(temperature: float, seed: int) -> str:
            messages = [{"role": "user", "content": "Write a sentence about the sea."}]
            body = {"messages": messages, "temperature": temperature, "seed": seed, "max_tokens": 24}
            response = await client.post(f"{endpoint.base_url}/chat/completions", json=body)
            return str(response.json()["choices"][0]["message"]["content"])

        assert await say(0.0, 1) == await say(0.0, 1)
        assert await say(0.7, 1) == await say(0.7, 1)
        assert len({await say(0.7, seed) for seed in (1, 2, 3)}) > 1


def test_the_example_of_the_documentation_runs(use_cache: None, tmp_path: Path) -> None:
    """It needs the weights, so the test of the other pages' examples leaves it out."""
    [example] = re.findall(r"^```python\n(import asyncio\n.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


async def test_a_json_schema_is_kept_to(ask: Ask) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
    choice = await ask("Tell me about Paris as JSON.", response_format=form)
    assert choice["finish_reason"] == "stop"
    assert set(json.loads(choice["message"]["content"])) == {"city", "population"}


async def test_a_required_tool_is_called(ask: Ask) -> None:
    choice = await ask("What is the weather in Paris?", tools=TOOLS, tool_choice="required")
    assert choice["finish_reason"] == "tool_calls"
    [made] = choice["message"]["tool_calls"]
    assert made["function"]["name"] in ("get_weather", "add")
    assert isinstance(json.loads(made["function"]["arguments"]), dict)


async def test_the_tool_that_is_named_is_called(ask: Ask) -> None:
    wanted = {"type": "function", "function": {"name": "add"}}
    choice = await ask("Add 3 and 4.", tools=TOOLS, tool_choice=wanted)
    [made] = choice["message"]["tool_calls"]
    assert made["function"]["name"] == "add"
    assert set(json.loads(made["function"]["arguments"])) == {"a", "b"}


@pytest.mark.parametrize("choice", ["auto", "none"])
async def test_a_tool_that_is_only_offered_leaves_text_possible(choice: str, ask: Ask) -> None:
    answer = await ask("Hello!", tools=TOOLS, tool_choice=choice, max_tokens=8)
    assert answer["message"]["content"]


async def test_the_result_of_a_call_can_be_told(ask: Ask) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    messages = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "18 degrees, rain"},
    ]
    answer = await ask("", messages=messages, tools=TOOLS, max_tokens=40)
    assert "18 degrees" in answer["message"]["content"]


async def test_a_call_can_be_streamed(endpoint: EmbeddedEndpoint) -> None:
    body = {"messages": [{"role": "user", "content": "Add 3 and 4."}], "tools": TOOLS[1:], "tool_choice": "required"}
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    asked = {**body, "temperature": 0, "max_tokens": 60, "stream": True}
    pieces = []
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as client,
        client.stream("POST", f"{endpoint.base_url}/chat/completions", json=asked) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                [choice] = json.loads(line.removeprefix("data: "))["choices"]
                pieces += [made["function"].get("arguments", "") for made in choice["delta"].get("tool_calls", [])]
    assert len(pieces) > 1
    assert set(json.loads("".join(pieces))) == {"a", "b"}


async def test_who_hangs_up_does_not_keep_the_slots_busy(endpoint: EmbeddedEndpoint, ask: Ask) -> None:
    body = {"messages": [{"role": "user", "content": "Count to a million."}], "ignore_eos": True, "temperature": 0}
    headers = {"Authorization": f"Bearer {endpoint.api_key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=0.5) as client:
        for _ in range(4):
            with pytest.raises(httpx2.ReadTimeout):
                await client.post(f"{endpoint.base_url}/chat/completions", json={**body, "max_tokens": 10**6})
    assert await ask("Say hi.", max_tokens=2)


@pytest.fixture
async def model(endpoint: EmbeddedEndpoint) -> AsyncIterator[OpenAIChatModel]:
    async with httpx2.AsyncClient(timeout=60) as client:
        provider = OpenAIProvider(base_url=endpoint.base_url, api_key=endpoint.api_key, http_client=client)
        yield OpenAIChatModel(endpoint.model_name, provider=provider)


GREEDY = ModelSettings(temperature=0, max_tokens=60)


async def test_pydantic_ai_gets_a_call(model: OpenAIChatModel) -> None:
    offered = ToolDefinition(name="add", description="The sum of two numbers.", parameters_json_schema=ADD)
    asked = ModelRequestParameters(function_tools=[offered], allow_text_output=False)
    response = await model_request(
        model, [ModelRequest.user_text_prompt("Add 3 and 4.")], model_settings=GREEDY, model_request_parameters=asked
    )
    [part] = response.parts
    assert isinstance(part, ToolCallPart)
    assert set(part.args_as_dict()) == {"a", "b"}
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens > 0


async def test_pydantic_ai_gets_json_after_a_schema(model: OpenAIChatModel) -> None:
    form = OutputObjectDefinition(json_schema=CITY, name="city", strict=True)
    asked = ModelRequestParameters(output_mode="native", output_object=form)
    response = await model_request(
        model, [ModelRequest.user_text_prompt("About Paris.")], model_settings=GREEDY, model_request_parameters=asked
    )
    assert set(json.loads(response.text or "")) == {"city", "population"}


def test_only_a_required_call_is_begun_for_the_model() -> None:
    user = {"role": "user", "content": "hi"}
    begun = {"role": "assistant", "content": CALL_BEGINS}

    def sent(**fields: Any) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(with_forced_call(json.dumps({"messages": [user], **fields}).encode()))
        return made

    assert sent() == {"messages": [user]}
    assert sent(tools=TOOLS)["messages"] == [user]
    assert sent(tools=TOOLS)["parallel_tool_calls"] is False
    assert sent(tools=TOOLS, parallel_tool_calls=True)["parallel_tool_calls"] is True
    assert sent(tools=TOOLS, tool_choice="required")["messages"] == [user, begun]
    named = sent(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "add"}})
    assert (named["tools"], named["tool_choice"], named["messages"]) == (TOOLS[1:], "required", [user, begun])
    assert with_forced_call(b"no json") == b"no json"
    assert with_forced_call(b"[]") == b"[]"
