"""One attempt's way to a model: every call passes the gate, is priced, told to the run, and recorded or replayed."""

from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from bakeoff.errors import BudgetError
from bakeoff.models.access import OpenProvider
from bakeoff.models.faults import fault
from bakeoff.models.names import ModelName
from bakeoff.models.prices import Price, cost_of
from bakeoff.models.replay import Recordings, question
from bakeoff.protocols import Task
from bakeoff.record import Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to one call."""

    response: ModelResponse
    usage: Usage
    replayed: bool


@dataclass(slots=True)
class Caller:
    """Asks one model on behalf of one trial."""

    name: ModelName
    provider: OpenProvider
    task: Task
    settings: ModelSettings
    price: Price | None = None
    stream: bool = False
    recordings: Recordings = field(default_factory=Recordings)
    _out_of_budget: BudgetError | None = None

    async def ask(self, messages: list[ModelMessage], parameters: ModelRequestParameters) -> Answer:
        """The model's next message. What it cost is told to the run before this returns.

        An answer that used up the budget is paid for, so it is given; only the next question is refused.
        """
        if self._out_of_budget is not None:
            raise self._out_of_budget
        asked = question(
            case=self.task.case_id,
            round_=self.task.round,
            model=str(self.name),
            settings=self.settings,
            messages=messages,
            parameters=parameters,
        )
        recorded = self.recordings.find(asked)
        if recorded is not None:
            self._spend(recorded.usage)
            return Answer(recorded.response, recorded.usage, replayed=True)
        model = self.provider.model(self.name.model)

        async def call() -> ModelResponse:
            return await self._call(model, messages, parameters)

        response = await self.provider.gate.pass_through(call, self.task.clock.paused)
        usage = usage_of(response.usage, self.price)
        self.recordings.keep(asked, response, usage, self.price_date)
        self._spend(usage)
        return Answer(response, usage, replayed=False)

    def _spend(self, usage: Usage) -> None:
        try:
            self.task.spend(usage)
        except BudgetError as error:
            self._out_of_budget = error

    @property
    def price_date(self) -> str | None:
        return str(self.price.date) if self.price and self.price.date else None

    def about_price(self) -> dict[str, JsonValue]:
        """Which price was used, for the record."""
        return {"price": self.price.model_dump(mode="json")} if self.price else {}

    async def _call(
        self, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse:
        settings, name = self.settings, str(self.name)
        try:
            if not self.stream:
                return await model_request(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                )
            async with model_request_stream(
                model, messages, model_settings=settings, model_request_parameters=parameters
            ) as stream:
                async for _ in stream:  # the client's idle limit runs between events
                    pass
                return stream.get()
        except ai.AgentRunError as error:
            raise fault(error, name) from error


def usage_of(usage: RequestUsage, price: Price | None) -> Usage:
    """The provider's count as ours, with what it costs."""
    counted = Usage(
        requests=1,
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        reasoning=usage.output_reasoning_tokens or usage.details.get("reasoning_tokens", 0),
    )
    return counted.model_copy(update={"cost": cost_of(counted, price)})
