"""Call a model for a trial: limit, price, report to the run, and record or replay."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Self

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
from bakeoff.errors import (
    BudgetError,
    ContextOverflow,
    InfraError,
    SubjectError,
    SubjectTimeout,
    TrialError,
    UsageError,
)
from bakeoff.models.access import OpenProvider
from bakeoff.models.prices import Price, cost_of
from bakeoff.models.providers import OPENTELEMETRY_NAMES, ModelName
from bakeoff.models.rate_limit import ProviderBusy
from bakeoff.models.replies import UNREACHED, causes_of, connection_problem, is_refused_for_size
from bakeoff.protocols import Task
from bakeoff.record import Usage
from bakeoff.replay.store import Key, Recording, Store, model_call_key

_REFUSED_BY_PROVIDER = {"not_passed_on": True}  # metadata of a refusal by the provider, not the model
_FREE = Usage(requests=1, cost=0.0)
_MAX_TOKENS = 100_000_000  # per request; higher counts are wrong
_RESPONSE: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)

_MAY_PASS = (ai.ModelRateLimitError, ai.ModelUnavailableError, ai.ModelServerError, ai.ModelConnectionError)
_OVERLOADED = (ai.ModelRateLimitError, ai.ModelOverloadedError)
_REFUSED = (401, 403)  # the key is wrong, or may not use the model
_MAX_UNREADABLE = 3  # unreadable answers per request, since each may cost money
_UNDECODED = (json.JSONDecodeError, UnicodeDecodeError)
_MAY_PASS_STATUS = (408, 409, 425)  # timed out waiting for us, conflict, too early
_REFUSAL_CODES = {"content_filter", "content_policy_violation", "invalid_prompt", "data_inspection_failed"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one call. `seconds` is the time from request to complete answer."""

    response: ModelResponse
    usage: Usage
    seconds: float
    measured: bool  # whether the provider reported plausible usage
    replayed: bool
    price: Price | None = None
    recorded: bool = False  # asked live and recorded


class RecordedCall(Recording):
    """A model call and its answer, serialised to JSON by pydantic-ai."""

    case: str
    answer: dict[str, Any]
    usage: Usage
    measured: bool = True
    price: Price | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, key: Key, answer: Answer) -> "RecordedCall":
        """Make a recording from an answer."""
        same = {name: getattr(answer, name) for name in ("usage", "measured", "price", "seconds")}
        response = _RESPONSE.dump_python(answer.response, mode="json")
        return cls(asked=dict(key.asked), case=key.asked["case"], answer=response, **same)

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
    """Calls one model for one trial."""

    name: ModelName
    provider: OpenProvider | None  # None: only recordings may answer
    task: Task
    settings: ModelSettings
    price: Price | None = None  # None: look it up
    priced: bool = True  # False: costs are not needed
    stream: bool = False
    remote: bool = True  # answers come over a network and may break off
    endpoint: str = ""  # distinguishes recordings of one model at two addresses
    recordings: Store = field(default_factory=Store)
    _out_of_budget: BudgetError | None = None

    async def ask(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> Answer:
        """Return the model's next message, after reporting its cost to the run.

        An answer that uses up the budget is still returned, but the next call raises BudgetError.
        """
        if self._out_of_budget is not None:
            raise self._out_of_budget
        if self.recordings.mode == "off":
            return await self._ask(messages, parameters)
        key = self._key(messages, parameters)
        if (recorded := self.recordings.find(key, RecordedCall)) is not None:
            self.task.count(recorded.usage)
            return Answer(recorded.response, recorded.usage, recorded.seconds, recorded.measured, True, recorded.price)
        answer = await self._ask(messages, parameters)
        if self.recordings.writes:
            self.recordings.keep(key, RecordedCall.of(key, answer))
            return replace(answer, recorded=True)
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

    async def _ask(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> Answer:
        provider = self.provider
        if provider is None:
            raise InfraError(f"{self.name}: replay is strict, so nothing but recordings may answer", permanent=True)
        price = None
        if self.priced:
            price = self.price or await provider.price(self.name.model, self.task.clock)
        asked = {name: self.settings.get(name) for name in ("temperature", "max_tokens", "seed")}
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": OPENTELEMETRY_NAMES.get(self.name.provider, self.name.provider),
            "gen_ai.request.model": self.name.model,
            **{f"gen_ai.request.{name}": value for name, value in asked.items() if isinstance(value, int | float)},
        }

        async def call() -> tuple[ModelResponse, float]:
            try:
                model = provider.model(self.name.model)  # for each try: a restarted server may have another address
            except UsageError as error:  # from a user's provider, made on first use
                raise InfraError(str(error), permanent=True) from error
            with self.tracing.span(f"chat {self.name.model}", attributes, "CLIENT") as span:
                async with provider.in_order(self.name.model, self.task.clock):
                    started = perf_counter()
                    response = await self._call(model, messages, parameters)
                if self.tracing is not OFF:
                    span.note(_response_attributes(response))
                return response, perf_counter() - started

        response, seconds = await provider.limiter.run(call, self.task.clock, size=characters_of(messages))
        usage = _FREE if response.metadata == _REFUSED_BY_PROVIDER else usage_of(response.usage, price)
        answer = Answer(response, usage or Usage(requests=1), seconds, usage is not None, False, price)
        try:
            self.task.spend(answer.usage)  # first of all, because it is paid for
        except BudgetError as error:
            self._out_of_budget = error
        return answer

    @property
    def tracing(self) -> Tracing:
        """Return the run's tracing."""
        tracing: Tracing = self.task.resources.get(TRACING, OFF)
        return tracing

    async def _call(
        self, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse:
        name, provider = str(self.name), self.provider
        try:
            if self.stream:
                async with model_request_stream(
                    model, messages, model_settings=self.settings, model_request_parameters=parameters
                ) as stream:
                    async for _ in stream:  # the client's idle limit applies between events
                        pass
                    response = stream.get()
            else:
                response = await model_request(
                    model, messages, model_settings=self.settings, model_request_parameters=parameters
                )
        except (ai.AgentRunError, ai.UserError) as error:
            refused = refusal(error)
            if refused is None:
                problem = trial_error(error, name, provider.keys if provider is not None else (), messages)
                if self.name.provider == "local" and isinstance(problem, SubjectTimeout):
                    way_out = "raise the time limit, or run fewer at a time"
                    problem = InfraError(f"{name}: this machine took too long for an answer: {way_out}", permanent=True)
                raise problem from error
            parts = [TextPart(refused)]
            return ModelResponse(parts=parts, finish_reason="content_filter", metadata=_REFUSED_BY_PROVIDER)
        # SDKs may stream unasked, and may take a broken stream for a complete answer.
        complete = response.finish_reason is not None or (response.provider_details or {}).get("finish_reason")
        if self.remote and not complete:
            raise ProviderBusy(f"{name}: the stream ended before the answer did")
        return sendable(response)


def _response_attributes(response: ModelResponse) -> Attributes:
    usage = usage_of(response.usage, None)
    return {
        "gen_ai.response.model": response.model_name,
        "gen_ai.response.id": response.provider_response_id,
        "gen_ai.response.finish_reasons": [response.finish_reason] if response.finish_reason else None,
        "gen_ai.usage.input_tokens": usage.input if usage else None,
        "gen_ai.usage.output_tokens": usage.output if usage else None,
    }


def sendable(response: ModelResponse) -> ModelResponse:
    """Return the response in a form that can be stored, and sent back to the provider.

    Lone surrogates are escaped. Arguments with NaN or infinity become text at `INVALID_JSON_KEY`.
    """
    changes = [_changes(part) for part in response.parts]
    details = clean(response.provider_details)
    if not any(changes) and details == response.provider_details:
        return response  # the usual case, without a costly copy
    parts = [replace(part, **changed) for part, changed in zip(response.parts, changes, strict=True)]
    return replace(response, parts=parts, provider_details=details)


def _changes(part: ModelResponsePart) -> dict[str, Any]:
    """Return new values for the fields of a part that must change."""
    given = {name: getattr(part, name, None) for name in ("content", "tool_name", "tool_call_id")}
    wanted = {name: clean(value) for name, value in given.items() if isinstance(value, str | dict)}
    if isinstance(part, ToolCallPart):
        given["args"], wanted["args"] = part.args, _sendable_arguments(part)
    return {name: value for name, value in wanted.items() if value != given[name]}


def _sendable_arguments(part: "ToolCallPart[Any]") -> str | dict[str, Any] | None:
    arguments: Any = part.args
    if isinstance(arguments, str) and "\\ud" in arguments.lower():
        with suppress(ValueError, RecursionError):
            arguments = json.dumps(clean(json.loads(arguments)))
    arguments = clean(arguments)
    try:
        json.dumps(replace(part, args=arguments).args_as_dict(), allow_nan=False)
    except ValueError:
        return {INVALID_JSON_KEY: arguments if isinstance(arguments, str) else json.dumps(arguments)}
    return arguments  # type: ignore[no-any-return]


def trial_error(
    error: ai.AgentRunError | ai.UserError, model: str, keys: Sequence[str] = (), messages: Sequence[ModelMessage] = ()
) -> TrialError | ProviderBusy:
    """Convert a provider's error to the error of a trial. `keys` names the variables for its key.

    `ProviderBusy` is for errors that may pass. The subject fails if a request is too large, if the
    provider refuses what the model itself has written, or if an answer takes too long. All else is
    the provider's or our failure: a quota, a wrong key, an unknown model, an unreadable answer.
    """
    told = connection_problem(error) if isinstance(error, ai.ModelConnectionError) else error
    message = f"{model}: {told}"
    if any(isinstance(cause, UNREACHED) for cause in causes_of(error)):
        return ProviderBusy(message, unreached=True)
    if isinstance(error, ai.ModelRequestTimeout):
        return SubjectTimeout(message)
    if isinstance(error, ai.ModelContextWindowExceededError) or _is_too_large(error, messages):
        return ContextOverflow(message)
    if isinstance(error, ai.ModelHTTPError) and error.status_code in _REFUSED:
        return InfraError(f"{model}: {_refused_key(error, model, keys)}", stops_subject=True)
    answered = any(isinstance(one, ModelResponse) for one in messages)
    if answered and isinstance(error, ai.ModelRequestRejectedError) and not isinstance(error, ai.ModelNotFoundError):
        # The provider accepted earlier requests with the same settings and tools.
        return SubjectError(f"{message} (refused for what the model wrote: its earlier requests were accepted)")
    if isinstance(error, ai.ModelQuotaExceededError | ai.ModelRequestRejectedError | ai.UserError):
        return InfraError(message, permanent=True)
    if isinstance(error, _MAY_PASS):
        seconds = getattr(error, "retry_after", None)
        return ProviderBusy(
            message,
            retry_after=None if seconds is None else float(seconds),
            overloaded=isinstance(error, _OVERLOADED),
            refused=isinstance(error, ai.ModelHTTPError),
        )
    if isinstance(error, ai.ModelHTTPError) and error.status_code < 500 and error.status_code not in _MAY_PASS_STATUS:
        return InfraError(message, permanent=True)
    # An SDK that cannot decode a body, such as an empty one, raises this from a JSON error.
    if isinstance(error, ai.UnexpectedModelBehavior) or isinstance(error.__cause__, _UNDECODED):
        return ProviderBusy(message, most_tries=_MAX_UNREADABLE)
    return ProviderBusy(message)


def _is_too_large(error: ai.AgentRunError | ai.UserError, messages: Sequence[ModelMessage]) -> bool:
    if not isinstance(error, ai.ModelRateLimitError | ai.ModelRequestRejectedError | ai.ModelHTTPError):
        return False
    status, headers = getattr(error, "status_code", None), getattr(error, "headers", None)
    return is_refused_for_size(status, _words(error.body) or str(error), headers or {}, characters_of(messages))


def _words(body: object) -> str:
    """Return the provider's message, without fields that may quote the request."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(inner, dict):
        return inner if isinstance(inner, str) else ""
    return " ".join(str(inner[name]) for name in ("message", "code", "type") if inner.get(name))


def characters_of(messages: Sequence[ModelMessage]) -> int:
    """Return the approximate length of a conversation in characters."""
    return sum(
        len(str(getattr(part, "content", None) or getattr(part, "args", ""))) for one in messages for part in one.parts
    )


def _refused_key(error: ai.ModelHTTPError, model: str, keys: Sequence[str]) -> str:
    """Return advice for a refused key, with the provider's message."""
    provider, _, name = model.partition(":")
    key = " or ".join(keys) or "its key"
    check = f"check {key}" if error.status_code == 401 else f"{key} may not use {name or model}"
    body = error.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    said = inner.get("message") if isinstance(inner, dict) else inner
    return f"{error.status_code} from {provider}: {check}" + (f" ({said})" if said else "")


def refusal(error: ai.AgentRunError | ai.UserError) -> str | None:
    """Return the message of a provider that refused a prompt, which counts as an answer."""
    if not isinstance(error, ai.ModelRequestRejectedError) or error.provider_error_code not in _REFUSAL_CODES:
        return None
    said = error.body.get("message") if isinstance(error.body, dict) else None
    return str(said or error)


def usage_of(usage: RequestUsage, price: Price | None) -> Usage | None:
    """Return the reported usage with its cost; None if there are no plausible counts."""
    counts: dict[str, Any] = {  # providers may send any type
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "reasoning": usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0),
    }
    plausible = all(isinstance(count, int) and 0 <= count <= _MAX_TOKENS for count in counts.values())
    if usage.unmeasured_requests or not plausible:
        return None
    counted = Usage(requests=1, **counts)
    if counted.tokens == 0 or counted.cache_read + counted.cache_write > counted.input:
        return None
    reported = None if usage.cost is None else float(usage.cost)
    return counted.model_copy(update={"cost": cost_of(counted, price) if price else reported})
