"""The models under test: in JSON mode, in native function calling, or as agents that call the tools."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Self

from pydantic import Field, JsonValue, PositiveInt

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.environment import filled
from bakeoff.doors.mcp.calls import ExpectedMcpCall, offered_names, offered_tools, tool_label
from bakeoff.doors.mcp.config import Mode
from bakeoff.doors.mcp.execution import NOT_EXECUTED, NOT_SHOWN
from bakeoff.doors.mcp.expectations import is_destructive
from bakeoff.doors.mcp.plan import AGENT_STEPS, KIND, McpPlanSettings, scorer_options
from bakeoff.doors.mcp.prompt import reply_schema, system_prompt
from bakeoff.doors.mcp.providers import importable
from bakeoff.doors.mcp.servers import hub_of
from bakeoff.doors.mcp.turns import TurnRules
from bakeoff.errors import InfraError, ToolError, ToolTimeout
from bakeoff.mcp import McpHub, OpenHub, ServerTool
from bakeoff.models.rate_limit import RetryPolicy
from bakeoff.plan import Plan, SubjectSpec, read_options
from bakeoff.protocols import Needs, Task, Tool
from bakeoff.record import Transcript
from bakeoff.subjects.model import ModelOptions, ModelSubject

_AGENT_PROMPT = "Use the tools to do what the user asks for. When it is done, say so in a sentence."


class SuiteModelOptions(ModelOptions):
    """The options of a model that only suites have."""

    constrained: bool = Field(default=False, description="the reply must follow the JSON Schema of a call")
    max_steps: PositiveInt = AGENT_STEPS
    descriptions: dict[str, str] = Field(default={}, description="of tools that this subject is told otherwise")


_OURS = ("constrained", "max_steps", "descriptions")


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """One model in one mode. Its transcript contains the calls; the scorer judges them."""

    model: ModelSubject
    mode: Mode
    tools: tuple[ServerTool, ...]
    own_hub: bool = False  # each trial starts its own servers
    hub: McpHub | None = None
    constrained: bool = False
    offered: Mapping[str, ServerTool] = field(default_factory=dict)  # by their names in function calling
    limited: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the only tools of some cases
    sequences: bool = False
    may_destroy: bool = False  # tools that their server marks as destructive are executed, too
    unexecuted: frozenset[str] = frozenset()  # cases whose tools must not be executed
    turns: Mapping[str, ExpectedMcpCall] = field(
        default_factory=dict
    )  # cases with several turns, by id; no model sees them
    turn_rules: TurnRules | None = None

    @classmethod
    def from_spec(
        cls, spec: SubjectSpec, plan: Plan, settings: McpPlanSettings, environment: Mapping[str, str]
    ) -> "SuiteModel":
        model = cls._without_turns(spec, settings, environment)
        read = {case.id: ExpectedMcpCall.model_validate(case.expected) for case in plan.cases}
        model = replace(model, unexecuted=frozenset(id for id, expected in read.items() if expected.execute is False))
        turns = {id: expected for id, expected in read.items() if expected.turns}
        if not turns:
            return model
        executes = any(expected.execute for expected in turns.values())
        hub = hub_of(settings.servers, environment, settings.toolTimeout) if executes else None
        rules = TurnRules.of(scorer_options(plan), settings, environment)
        own_hub = settings.serverScope == "trial"
        return replace(model, hub=model.hub or hub, own_hub=own_hub, turns=turns, turn_rules=rules)

    @classmethod
    def _without_turns(
        cls, spec: SubjectSpec, settings: McpPlanSettings, environment: Mapping[str, str]
    ) -> "SuiteModel":
        options = read_options(spec, SuiteModelOptions)
        mode, servers = spec.kind.removeprefix(KIND), settings.servers
        # In every mode: secrets that servers receive may come back in their descriptions and results.
        model = replace(model_of(spec, settings, environment), servers=servers)
        tools, limited = described(settings.tools, options.descriptions), settings.offered
        if mode == "json":
            json_mode = cls(model, "json", tools, constrained=options.constrained, sequences=settings.sequences)
            return replace(json_mode, model=json_mode._told(tools), limited=limited)
        if mode == "native":
            native = replace(model, uses_tools=True)
            return cls(native, "native", tools, offered=offered_names(tools), limited=limited)
        hub = hub_of(servers, environment, settings.toolTimeout)
        agent = replace(_with(model, {"system": _AGENT_PROMPT}), uses_tools=True, most_steps=options.max_steps)
        own_hub = settings.serverScope == "trial"
        offered = offered_names(tools)
        may_destroy = settings.allowDestructive
        tools = settings.tools  # as the servers list them
        return cls(agent, "agent", tools, own_hub, hub, offered=offered, limited=limited, may_destroy=may_destroy)

    def _told(self, tools: Sequence[ServerTool]) -> ModelSubject:
        """Return the model of JSON mode with a prompt that describes these tools."""
        changes: dict[str, object] = {"system": system_prompt(tools, sequences=self.sequences)}
        if self.constrained and tools:
            changes["output_schema"] = reply_schema(tools, sequences=self.sequences)
        return _with(self.model, changes)

    def for_case(self, case: str) -> Self:
        """Return the model with the tools of a case, where it does not offer all."""
        if case not in self.limited:
            return self
        only = self.limited[case]
        if self.mode == "json":
            return replace(self, model=self._told(offered_tools(self.tools, only)), limited={})
        # Names in function calling depend on all tools: the scorer reads them back without knowing the case.
        offered = {name: tool for name, tool in self.offered.items() if offered_tools([tool], only)}
        return replace(self, offered=offered, limited={})

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
        return await self.for_case(task.case_id)._attempt(task)

    async def _attempt(self, task: Task) -> Transcript:
        expected = self.turns.get(task.case_id)
        if self.mode == "agent":
            executes = task.case_id not in self.unexecuted
        else:
            executes = bool(expected is not None and expected.execute)
        async with self._opened(self.hub if executes else None, task) as hub:
            if hub is not None and self.mode == "agent":
                await _check_unchanged(hub, self.tools)
            task = replace(task, tools=tuple(self._offered_tools(hub, task)))
            if expected is None:
                return self._annotated(await self.model.attempt(task))
            assert self.turn_rules is not None, "a suite with turns has rules for them"
            ask, system = self.model.asking(task), self.model.options.system
            return self._annotated(await self.turn_rules.carry_on(expected, ask, system, hub, task.clock))

    def _offered_tools(self, hub: OpenHub | None, task: Task) -> Iterator[Tool]:
        """Yield the tools of function calling. Only agents call real ones."""
        for name, tool in self.offered.items():
            if hub is None or self.mode != "agent":
                yield _inert_tool(name, tool, NOT_SHOWN if self.mode == "agent" else None)
            elif self._may_run(tool):
                yield _real_tool(name, tool, hub, task.clock)
            else:
                yield _refused_tool(name, tool)

    def _may_run(self, tool: ServerTool) -> bool:
        return self.may_destroy or not is_destructive(tool)

    @asynccontextmanager
    async def _opened(self, hub: McpHub | None, task: Task) -> AsyncIterator[OpenHub | None]:
        if hub is None:
            yield None
            return
        if not self.own_hub:
            yield task.resources[hub.key]
            return
        async with AsyncExitStack() as stack:
            with task.clock.paused():  # the model is not responsible for the time that servers take to start
                opened = await stack.enter_async_context(hub.open())
            yield opened

    def _annotated(self, transcript: Transcript) -> Transcript:
        if not self.constrained and self.mode != "native":
            return transcript
        metadata: dict[str, JsonValue] = {**transcript.metadata, **({"constrained": True} if self.constrained else {})}
        if self.mode == "native":
            metadata.pop("out_of_steps", None)  # only one answer is wanted
        return transcript.model_copy(update={"metadata": metadata})


def described(tools: Sequence[ServerTool], descriptions: Mapping[str, str]) -> tuple[ServerTool, ...]:
    """Return the tools with other descriptions, given by `tool_label`."""
    return tuple(
        tool.model_copy(update={"description": descriptions.get(tool_label(tool.server, tool.name), tool.description)})
        for tool in tools
    )


def model_of(spec: SubjectSpec, settings: McpPlanSettings, environment: Mapping[str, str]) -> ModelSubject:
    """Return a model with the retries and limits of a suite, and keys from the suite's environment.

    The plan does not contain the secrets of its provider. Their variables are replaced here.
    """
    options = {name: value for name, value in spec.options.items() if name not in _OURS}
    if "providers" in options:
        options["providers"] = filled(options["providers"], environment)
    with importable(settings.folder):
        model = ModelSubject.from_spec(spec.model_copy(update={"kind": "model", "options": options}), environment)
    retry = settings.retryConfig
    policy = RetryPolicy(retry.baseDelay / 1000, retry.maxDelay / 1000, max_retries=retry.maxRetries)
    in_flight = settings.concurrencyLimit
    access = replace(model.access, retry_policy=policy, most_in_flight=in_flight, first_alone=True)
    return replace(model, access=access)


def _with(model: ModelSubject, changes: Mapping[str, object]) -> ModelSubject:
    return replace(model, options=model.options.model_copy(update=dict(changes)))


def _inert_tool(name: str, tool: ServerTool, answer: str | None) -> Tool:
    """Return a tool that does nothing when it is called: only the model's request is wanted."""

    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001 - the signature of a tool
        return answer

    return Tool(name, tool.description, tool.input_schema, call)


def _refused_tool(name: str, tool: ServerTool) -> Tool:
    """Return a tool that is not executed, because it may destroy something and nobody allowed that."""

    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001 - the signature of a tool
        raise ToolError(NOT_EXECUTED)

    return Tool(name, tool.description, tool.input_schema, call)


def _real_tool(name: str, tool: ServerTool, hub: OpenHub, clock: Clock) -> Tool:
    real = hub.as_tool(tool)

    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:
        with clock.paused():  # the model is not responsible for a slow server, which has a limit of its own
            try:
                return await real.call(arguments)
            except ToolTimeout as late:  # the server has failed; another try would only wait as long
                raise ToolError(str(late)) from late

    return replace(real, name=name, call=call)


async def _check_unchanged(hub: OpenHub, planned: Sequence[ServerTool]) -> None:
    """Refuse servers whose tools have changed since the plan was made. Their order does not matter."""

    def ordered(tools: Sequence[ServerTool]) -> list[ServerTool]:
        return sorted(tools, key=lambda tool: (tool.server, tool.name))

    if ordered(await hub.tools()) != ordered(planned):
        raise InfraError("the servers offer other tools than when the run began: start a new run", permanent=True)
