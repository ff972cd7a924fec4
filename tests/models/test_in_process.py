"""Models that live in this process: scripts, and providers of the user's own."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from bakeoff.engine.registry import Registry, default_registry
from bakeoff.errors import PlanError
from bakeoff.models.providers import Factory, register_provider
from bakeoff.plan import Limits, SubjectSpec
from bakeoff.protocols import Tool
from bakeoff.record import Reasoning, Record, Usage
from bakeoff.verdict import Verdict

from .loopback import PRICE, plan_of

CarryOut = Callable[..., Awaitable[list[Record]]]
Converse = Callable[..., Awaitable[Record]]


@pytest.fixture
def converse(nobody: None, carry_out: CarryOut) -> Converse:
    async def one(
        model: str,
        kind: str = "model",
        limits: Limits | None = None,
        registry: Registry | None = None,
        **options: Any,
    ) -> Record:
        spec = SubjectSpec(kind=kind, name="m", options={"model": model, **options})
        [record] = await carry_out(plan_of(spec, limits=limits), registry=registry, retries=0)
        return record

    return one


def script(*replies: Mapping[str, Any]) -> str:
    Path("script.json").write_text(json.dumps({"replies": replies}))
    return "scripted:script.json"


async def test_a_text_is_said_to_everything(converse: Converse) -> None:
    record = await converse("scripted:yes")
    assert record.verdict is Verdict.PASS
    assert record.spent == Usage(requests=1)
    assert record.spent.cost is None


async def test_a_script_says_what_fits_the_prompt_and_the_step(converse: Converse) -> None:
    model = script(
        {"to": "something else", "say": "no"},
        {"to": "question", "step": 0, "think": "hm", "call": [{"name": "look", "arguments": {"n": 1}}]},
        {"step": 1, "say": "yes", "usage": {"input": 30, "output": 3, "cache_read": 20, "reasoning": 2}},
    )

    async def look(given: Mapping[str, JsonValue]) -> JsonValue:
        return dict(given)

    tool = Tool("look", "Looks", {"type": "object"}, look)
    registry = default_registry().with_tools(lambda *_: (tool,))
    record = await converse(model, kind="agent", registry=registry, price={**PRICE, "cache_read": 10})
    assert record.verdict is Verdict.PASS
    assert record.transcript is not None
    assert isinstance(record.transcript.steps[0].parts[0], Reasoning)
    assert record.transcript.tool_calls[0].result == {"n": 1}
    assert record.transcript.steps[0].usage == Usage(requests=1)
    assert record.transcript.steps[1].usage == Usage(
        requests=1, input=30, output=3, cache_read=20, reasoning=2, cost=0.0018
    )
    assert record.transcript.metadata["unmeasured"] == 1


async def test_a_script_may_say_what_it_cost(converse: Converse) -> None:
    record = await converse(script({"say": "yes", "usage": {"input": 1, "output": 1, "cost": 0.25}}))
    assert record.spent.cost == 0.25


async def test_a_script_may_be_slow(converse: Converse) -> None:
    started = time.perf_counter()
    record = await converse(script({"say": "yes", "seconds": 0.2}))
    assert time.perf_counter() - started >= 0.2
    assert record.verdict is Verdict.PASS
    record = await converse(script({"say": "yes", "seconds": 5}), limits=Limits(attempt_seconds=0.2))
    assert record.verdict is Verdict.TIMEOUT
    record = await converse(script({"say": "yes", "seconds": 5}), timeout=0.2)
    assert record.verdict is Verdict.TIMEOUT


async def test_a_script_without_a_reply_is_not_the_models_failure(converse: Converse) -> None:
    record = await converse(script({"to": "something else", "say": "no"}))
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert "no reply at step 0 to 'question 0'" in record.failure.message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is invalid"),
        ('{"replies": [{"sya": "yes"}]}', r"replies\.0\.sya"),
        ('{"replies": [{"say": 5}]}', r"replies\.0\.say"),
    ],
)
async def test_a_script_of_no_use_is_said_before_anything_runs(
    converse: Converse, tmp_path: Path, content: str | None, says: str
) -> None:
    if content is not None:
        Path("script.json").write_text(content)
    with pytest.raises(PlanError, match=says):
        await converse("scripted:script.json")
    assert not (tmp_path / "results").exists()


async def test_what_others_stream_or_structure_a_script_just_says(converse: Converse) -> None:
    record = await converse(
        "scripted:yes", stream=True, output_schema={"type": "object"}, temperature=0.1, max_tokens=5
    )
    assert record.verdict is Verdict.PASS


class Custom:
    """A provider whose `create_message` is given."""

    def __init__(self, create_message: Callable[[str, str], Any]) -> None:
        self.create_message = create_message


@pytest.fixture
def asking(converse: Converse) -> Callable[..., Awaitable[Record]]:
    """Ask a provider that is registered only for this."""

    async def ask(factory: Factory, **options: Any) -> Record:
        take_back = register_provider("mine", factory)
        try:
            return await converse("mine:x", **options)
        finally:
            take_back()

    return ask


async def test_a_sync_and_an_async_create_message_are_both_enough(asking: Callable[..., Awaitable[Record]]) -> None:
    def sync(system: str, message: str) -> str:
        time.sleep(0.05)
        return f"{system}/{message}"

    async def later(system: str, message: str) -> str:
        return f"{system}/{message}"

    for create in (sync, later):
        record = await asking(lambda _, create=create: Custom(create), system="s")
        assert record.transcript is not None
        assert record.transcript.output == "s/question 0"
        assert record.spent == Usage(requests=1)


async def test_a_price_does_not_make_a_cost_of_what_was_not_counted(asking: Callable[..., Awaitable[Record]]) -> None:
    record = await asking(lambda _: Custom(lambda system, message: "yes"), price=PRICE)
    assert record.verdict is Verdict.PASS
    assert record.spent.cost is None


@pytest.mark.parametrize("reply", [None, 5, b"yes", ["yes"], {"text": "yes"}], ids=repr)
async def test_a_reply_that_is_no_text_is_not_the_models_failure(
    asking: Callable[..., Awaitable[Record]], reply: object
) -> None:
    record = await asking(lambda _: Custom(lambda system, message: reply))
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert f"create_message returned {type(reply).__name__}, not a string" in record.failure.message


async def test_an_error_of_a_provider_of_ones_own_is_infra(asking: Callable[..., Awaitable[Record]]) -> None:
    def raises(system: str, message: str) -> str:
        raise OSError("no network")

    record = await asking(lambda _: Custom(raises))
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert "no network" in record.failure.message


async def test_a_provider_without_create_message_is_told_what_it_needs(
    asking: Callable[..., Awaitable[Record]],
) -> None:
    record = await asking(lambda _: object())
    assert record.verdict is Verdict.INFRA
    assert record.failure is not None
    assert record.failure.message == "provider 'mine' made a object: it needs `create_message(system, message)`"
    assert record.failure.permanent


async def test_a_model_of_pydantic_ai_brings_its_own_usage_and_no_warnings(
    asking: Callable[..., Awaitable[Record]],
) -> None:
    async def answer(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart("yes")], usage=RequestUsage(input_tokens=3, output_tokens=2))

    record = await asking(lambda _: FunctionModel(answer), price=PRICE, stream=True)
    assert record.verdict is Verdict.PASS
    assert record.spent == Usage(requests=1, input=3, output=2, cost=0.0007)
