"""One attempt's way to a model: every call passes the gate, is priced, told to the run, and recorded or replayed."""

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Self, cast

from pydantic import TypeAdapter, model_validator
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    INVALID_JSON_KEY,
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from bakeoff._kernel.json import clean
from bakeoff._kernel.tracing import OFF, TRACING, Attributes, Tracing
from bakeoff.errors import BudgetError, InfraError, UsageError
from bakeoff.models.access import OpenProvider
from bakeoff.models.faults import fault, refusal
from bakeoff.models.gate import Busy
from bakeoff.models.names import ModelName
from bakeoff.models.prices import Price, cost_of
from bakeoff.models.text import well_formed_json
from bakeoff.protocols import Task
from bakeoff.record import Usage
from bakeoff.replay.model_calls import model_call_key
from bakeoff.replay.store import Key, Recording, Store

_CONVENTIONAL = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "openai-responses": "openai",
}
"""What OpenTelemetry calls providers that we call otherwise."""

_NOT_PASSED_ON = {"not_passed_on": True}  # marks what the provider said in the model's place
_FREE = Usage(requests=1, cost=0.0)

_MOST_TOKENS = 100_000_000
"""No model reads or writes so much in one request: a provider that says so has miscounted."""


_RESPONSE: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to one call, and how long it took to say it once it was asked."""

    response: ModelResponse
    usage: Usage
    seconds: float
    measured: bool  # the provider said what was used, and it can be believed
    replayed: bool
    price: Price | None = None


class RecordedCall(Recording):
    """A model call and its answer, as pydantic-ai writes it to JSON."""

    case: str
    answer: dict[str, Any]
    usage: Usage
    measured: bool = True
    price: Price | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, key: Key, answer: Answer) -> "RecordedCall":
        """Return the recording of an answer."""
        return cls(
            asked=dict(key.asked),
            case=key.asked["case"],
            answer=_RESPONSE.dump_python(answer.response, mode="json"),
            usage=answer.usage,
            measured=answer.measured,
            price=answer.price,
            seconds=answer.seconds,
        )

    @cached_property
    def response(self) -> ModelResponse:
        """Return the recorded message of the model."""
        return _RESPONSE.validate_python(self.answer)

    @model_validator(mode="after")
    def _check_response(self) -> Self:
        _ = self.response
        return self


@dataclass(slots=True)
class Caller:
    """Asks one model on behalf of one trial."""

    name: ModelName
    provider: OpenProvider | None  # None where only recordings may answer
    task: Task
    settings: ModelSettings
    price: Price | None = None  # given; otherwise the provider's is looked up
    priced: bool = True  # False: nobody asks what calls cost
    stream: bool = False
    remote: bool = True  # answers come over a wire, which may break
    endpoint: str = ""  # tells recordings of one model at two addresses apart
    recordings: Store = field(default_factory=Store)
    _out_of_budget: BudgetError | None = None

    async def ask(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> Answer:
        """The model's next message. What it cost is told to the run before this returns.

        An answer that used up the budget is paid for, so it is given; only the next question is refused.
        """
        if self._out_of_budget is not None:
            raise self._out_of_budget
        if self.recordings.mode == "off":
            answer = await self._ask(messages, parameters)
            self._spend(answer.usage)
            return answer
        key = self._key(messages, parameters)
        if (recorded := self.recordings.find(key, RecordedCall)) is not None:
            self.task.count(recorded.usage)
            return Answer(recorded.response, recorded.usage, recorded.seconds, recorded.measured, True, recorded.price)
        answer = await self._ask(messages, parameters)
        self._spend(answer.usage)  # before anything that can fail: it is paid for
        if self.recordings.writes:
            self.recordings.keep(key, RecordedCall.of(key, answer))
        return answer

    def _key(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> Key:
        return model_call_key(
            self.task,
            model=str(self.name),
            endpoint=self.endpoint,
            settings=self.settings,
            messages=to_jsonable_python(messages),
            tools=[
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
                for tool in parameters.function_tools
            ],
            output=parameters.output_object.json_schema if parameters.output_object else None,
        )

    def _spend(self, usage: Usage) -> None:
        try:
            self.task.spend(usage)
        except BudgetError as error:
            self._out_of_budget = error

    async def _ask(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> Answer:
        if self.provider is None:
            raise InfraError(f"{self.name}: replay is strict, so nothing but recordings may answer", permanent=True)
        provider = self.provider
        price = await self._price(provider)

        async def call() -> tuple[ModelResponse, float]:
            model = self._model(provider)  # for each try: a server that died may be back at another address
            with self.tracing.span(f"chat {self.name.model}", self._about_request(), "CLIENT") as span:
                started = perf_counter()
                response = await self._call(model, messages, parameters)
                if self.tracing is not OFF:
                    span.note(_about_response(response))
                return response, perf_counter() - started

        response, seconds = await provider.gate.pass_through(call, self.task.clock)
        usage = _FREE if response.metadata == _NOT_PASSED_ON else usage_of(response.usage, price)
        return Answer(response, usage or Usage(requests=1), seconds, usage is not None, False, price)

    async def _price(self, provider: OpenProvider) -> Price | None:
        if not self.priced or self.price is not None or provider.knows_price(self.name.model):
            return (self.price or await provider.price(self.name.model)) if self.priced else None
        with self.task.clock.paused():  # the list of prices may have to be fetched
            return await provider.price(self.name.model)

    @property
    def tracing(self) -> Tracing:
        tracing: Tracing = self.task.resources.get(TRACING, OFF)
        return tracing

    def _about_request(self) -> Attributes:
        asked = {name: self.settings.get(name) for name in ("temperature", "max_tokens", "seed")}
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _CONVENTIONAL.get(self.name.provider, self.name.provider),
            "gen_ai.request.model": self.name.model,
            **{f"gen_ai.request.{name}": value for name, value in asked.items() if isinstance(value, int | float)},
        }

    def _model(self, provider: OpenProvider) -> Model:
        try:
            return provider.model(self.name.model)
        except UsageError as error:  # of a provider of the user's own, which is only made when it is needed
            raise InfraError(str(error), permanent=True) from error

    async def _call(
        self, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse:
        name = str(self.name)
        try:
            response = await self._request(model, messages, parameters)
        except (ai.AgentRunError, ai.UserError) as error:
            refused = refusal(error)
            if refused is None:
                raise fault(error, name) from error
            return ModelResponse(parts=[TextPart(refused)], finish_reason="content_filter", metadata=_NOT_PASSED_ON)
        if self.remote and not _is_whole(response):
            raise Busy(f"{name}: the stream ended before the answer did")
        return _with_json(_sendable(response))

    async def _request(
        self, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse:
        settings = self.settings
        if not self.stream:
            return await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)
        async with model_request_stream(
            model, messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            async for _ in stream:  # the client's idle limit runs between events
                pass
            return stream.get()


def _about_response(response: ModelResponse) -> Attributes:
    usage = usage_of(response.usage, None)
    return {
        "gen_ai.response.model": response.model_name,
        "gen_ai.response.id": response.provider_response_id,
        "gen_ai.response.finish_reasons": [response.finish_reason] if response.finish_reason else None,
        "gen_ai.usage.input_tokens": usage.input if usage else None,
        "gen_ai.usage.output_tokens": usage.output if usage else None,
    }


def _sendable(response: ModelResponse) -> ModelResponse:
    """A model's text may hold half of a surrogate pair, which JSON can spell and no request can carry back."""
    changes = [_mended(part) for part in response.parts]
    details = clean(response.provider_details)
    if not any(changes) and details == response.provider_details:
        return response  # as nearly every one: copying each would be the most that a quick answer costs
    parts = [replace(part, **changed) for part, changed in zip(response.parts, changes, strict=True)]
    return replace(response, parts=parts, provider_details=details)


def _mended(part: ModelResponsePart) -> dict[str, Any]:
    """What has to be put differently; mostly nothing."""
    said = {name: getattr(part, name, None) for name in ("content", "args", "tool_name", "tool_call_id")}
    mended = {name: clean(value) for name, value in said.items() if isinstance(value, str | dict)}
    if isinstance(said["args"], str):
        mended["args"] = clean(well_formed_json(said["args"]))
    return {name: value for name, value in mended.items() if value != said[name]}


def _with_json(response: ModelResponse) -> ModelResponse:
    """Arguments with NaN or infinity go on as a text: they can neither be kept nor be sent back as what they are."""
    if all(map(_is_json, response.parts)):
        return response
    return replace(response, parts=[part if _is_json(part) else _as_text(part) for part in response.parts])


def _is_json(part: ModelResponsePart) -> bool:
    if not isinstance(part, ToolCallPart):
        return True
    try:
        json.dumps(part.args_as_dict(), allow_nan=False)
    except ValueError:
        return False
    return True


def _as_text(part: ModelResponsePart) -> ModelResponsePart:
    called = cast("ToolCallPart[Any]", part)  # nothing else has arguments
    text = called.args if isinstance(called.args, str) else json.dumps(called.args)
    return replace(called, args={INVALID_JSON_KEY: text})


def _is_whole(response: ModelResponse) -> bool:
    """Whether the model came to an end. SDKs may stream unasked, and take what came for all there was."""
    return response.finish_reason is not None or bool((response.provider_details or {}).get("finish_reason"))


def usage_of(usage: RequestUsage, price: Price | None) -> Usage | None:
    """The provider's count as ours, with what it costs; None where it gave none, or one that cannot be true."""
    counts = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "reasoning": usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0),
    }
    if usage.unmeasured_requests or not all(_believable(count) for count in counts.values()):
        return None
    counted = Usage(requests=1, **counts)
    if counted.tokens == 0 or counted.cache_read + counted.cache_write > counted.input:
        return None
    reported = None if usage.cost is None else float(usage.cost)
    return counted.model_copy(update={"cost": cost_of(counted, price) if price else reported})


def _believable(count: object) -> bool:
    return isinstance(count, int) and 0 <= count <= _MOST_TOKENS
