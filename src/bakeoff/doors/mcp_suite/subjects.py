"""The models under test: asked for JSON, asked through their own function calling, or let loose with the tools."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.clock import Clock
from bakeoff.doors.mcp_suite.calls import offered_names
from bakeoff.doors.mcp_suite.config import SuiteConfig
from bakeoff.doors.mcp_suite.plan import AGENT_STEPS, Evaluation
from bakeoff.doors.mcp_suite.prompt import reply_schema, system_prompt
from bakeoff.doors.mcp_suite.servers import hub_of
from bakeoff.errors import InfraError, ToolError
from bakeoff.mcp import McpHub, OpenHub, ServerTool
from bakeoff.models.rate_limit import RetryPolicy
from bakeoff.plan import SubjectSpec, read_options
from bakeoff.protocols import Needs, Task, Tool
from bakeoff.record import Transcript
from bakeoff.subjects.model import ModelOptions, ModelSubject

Mode = Literal["json", "native", "agent"]
_AGENT_PROMPT = "Use the tools to do what the user asks for. When it is done, say so in a sentence."


class SuiteModelOptions(ModelOptions):
    """What a suite may say of a model besides."""

    constrained: bool = Field(default=False, description="the reply is held to the JSON Schema of a call")
    max_steps: PositiveInt = AGENT_STEPS


_OURS = ("constrained", "max_steps")


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """One model in one mode. What it called is in its transcript; what came of it is the scorer's to find out."""

    model: ModelSubject
    mode: Mode
    tools: tuple[ServerTool, ...]
    own_hub: bool = False  # each trial has servers to itself
    hub: McpHub | None = None
    constrained: bool = False
    offered: Mapping[str, ServerTool] = field(default_factory=dict)  # in function calling, by the names it has there

    @classmethod
    def from_spec(
        cls, spec: SubjectSpec, mode: Mode, evaluation: Evaluation, environment: Mapping[str, str]
    ) -> "SuiteModel":
        options = read_options(spec, SuiteModelOptions)
        servers = evaluation.config.mcpServers
        # In every mode: what servers are told in confidence may come back in their tools' words and results.
        model = replace(model_of(spec, evaluation.config, environment), servers=servers)
        tools, sequences = evaluation.tools, evaluation.sequences
        if mode == "json":
            told: dict[str, object] = {"system": system_prompt(tools, sequences=sequences)}
            if options.constrained and tools:
                told["output_schema"] = reply_schema(tools, sequences=sequences)
            return cls(_with(model, told), mode, tools, constrained=options.constrained)
        if mode == "native":
            return cls(replace(model, uses_tools=True), mode, tools, offered=offered_names(tools))
        hub = hub_of(servers, environment)
        agent = replace(_with(model, {"system": _AGENT_PROMPT}), uses_tools=True, most_steps=options.max_steps)
        own_hub = evaluation.config.serverScope == "trial"
        return cls(agent, mode, tools, own_hub, hub, offered=offered_names(tools))

    def lacks(self) -> list[str]:
        return self.model.lacks()

    def secrets(self) -> Mapping[str, str]:
        return self.model.secrets()

    def offline(self) -> Self:
        return replace(self, model=self.model.offline())

    @property
    def needs(self) -> Needs:
        needs = self.model.needs
        shared = (self.hub,) if self.hub is not None and not self.own_hub else ()
        return replace(needs, resources=(*needs.resources, *shared))

    async def attempt(self, task: Task) -> Transcript:
        if self.mode == "json":
            return self._noted(await self.model.attempt(task))
        if self.hub is None:
            offered = tuple(map(_pretended, self.offered.items()))
            return self._noted(await self.model.attempt(replace(task, tools=offered)))
        async with self._opened(self.hub, task) as hub:
            await _refuse_others(hub, self.tools)
            real = tuple(_real(name, tool, hub, task.clock) for name, tool in self.offered.items())
            return self._noted(await self.model.attempt(replace(task, tools=real)))

    @asynccontextmanager
    async def _opened(self, hub: McpHub, task: Task) -> AsyncIterator[OpenHub]:
        if not self.own_hub:
            yield task.resources[hub.key]
            return
        async with AsyncExitStack() as stack:
            with task.clock.paused():  # starting servers is not the model's doing
                opened = await stack.enter_async_context(hub.open())
            yield opened

    def _noted(self, transcript: Transcript) -> Transcript:
        if not self.constrained and self.mode != "native":
            return transcript
        about: dict[str, JsonValue] = {**transcript.metadata, **({"constrained": True} if self.constrained else {})}
        if self.mode == "native":
            about.pop("out_of_steps", None)  # one answer is all that was asked for
        return transcript.model_copy(update={"metadata": about})


def model_of(spec: SubjectSpec, config: SuiteConfig, environment: Mapping[str, str]) -> ModelSubject:
    """A model that is asked as a suite says, with keys that may lie beside the suite."""
    plain = {name: value for name, value in spec.options.items() if name not in _OURS}
    model = ModelSubject.from_spec(spec.model_copy(update={"kind": "model", "options": plain}))
    retry = config.retryConfig
    policy = RetryPolicy(retry.baseDelay / 1000, retry.maxDelay / 1000, max_retries=retry.maxRetries)
    access = replace(model.access, environment=environment, retry_policy=policy, most_in_flight=config.concurrencyLimit)
    return replace(model, access=access)


def _with(model: ModelSubject, changes: Mapping[str, object]) -> ModelSubject:
    return replace(model, options=model.options.model_copy(update=dict(changes)))


def _pretended(offer: tuple[str, ServerTool]) -> Tool:
    """A tool that can be called, and does nothing: what the model asks for is all that is wanted."""
    name, tool = offer

    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001 - the shape of a tool
        return None

    return Tool(name, tool.description, tool.input_schema, call)


def _real(name: str, tool: ServerTool, hub: OpenHub, clock: Clock) -> Tool:
    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:
        with clock.paused():  # a slow server is not the model's doing, and has a limit of its own
            result = await hub.call(tool.server, tool.name, arguments)
        if result.is_error:
            raise ToolError(result.text or f"the tool {tool.name!r} failed and did not say why")
        return result.value

    return Tool(name, tool.description, tool.input_schema, call)


async def _refuse_others(hub: OpenHub, planned: Sequence[ServerTool]) -> None:
    """A server that has changed since the plan was made would be judged by its former tools.

    One that lists the same tools in another order has not: the model is offered them in the plan's.
    """
    if _in_order(await hub.tools()) != _in_order(planned):
        raise InfraError("the servers offer other tools than when the run began: start a new run", permanent=True)


def _in_order(tools: Sequence[ServerTool]) -> list[ServerTool]:
    return sorted(tools, key=lambda tool: (tool.server, tool.name))
