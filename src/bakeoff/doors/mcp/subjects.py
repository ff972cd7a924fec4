"""Ask the models under test: in JSON mode, in native function calling, or as agents; in one turn or several."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import Field, JsonValue, PositiveInt
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from bakeoff._kernel.clock import Clock
from bakeoff._kernel.environment import filled
from bakeoff._kernel.imports import importable
from bakeoff.doors.mcp.plan import AGENT_STEPS, McpPlanSettings, mode_of
from bakeoff.doors.mcp.servers import expanded_servers, hub_of
from bakeoff.errors import InfraError, ToolError, ToolTimeout
from bakeoff.mcp import McpHub, OpenHub, ServerTool
from bakeoff.mcp.prompt import reply_schema, system_prompt
from bakeoff.mcp.tools import MAX_TOOL_NAME_LENGTH, is_destructive, offered_names, offered_tools, plain_name
from bakeoff.models.conversation import Conversation, begin
from bakeoff.models.rate_limit import RetryPolicy
from bakeoff.plan import Plan, SubjectSpec, read_options
from bakeoff.protocols import Needs, Task, Tool
from bakeoff.record import Part, Step, ToolCall, Transcript
from bakeoff.scorers.mcp.calls import (
    SCORER,
    TURNS,
    Call,
    CaseExpectation,
    ExecutedCall,
    Mode,
    ReplyReader,
    text_of,
)
from bakeoff.scorers.mcp.execution import (
    END_STATE,
    NOT_EXECUTED,
    NOT_SHOWN,
    EndStateRunner,
    TurnRules,
    TurnTrace,
    dumped,
    execute_calls,
    executed_by_agent,
    result_differences,
)
from bakeoff.scorers.mcp.scorer import CallGrader, McpCalls, SuiteParts
from bakeoff.scorers.model_judge import PROMPTS
from bakeoff.subjects.model import ModelOptions, ModelSubject

_AGENT_PROMPT = "Use the tools to do what the user asks for. When it is done, say so in a sentence."


class SuiteModelOptions(ModelOptions):
    """The options that only the models of suites have."""

    constrained: bool = Field(default=False, description="the reply must follow the JSON Schema of a call")
    max_steps: PositiveInt = AGENT_STEPS
    descriptions: dict[str, str] = Field(default={}, description="of tools that this subject is told otherwise")


_OURS = ("constrained", "max_steps", "descriptions")


@dataclass(frozen=True, slots=True)
class SuiteModel:
    """One model in one mode. Its transcript contains the calls, which the scorer judges."""

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
    turns: Mapping[str, CaseExpectation] = field(
        default_factory=dict
    )  # cases with several turns, by id; no model sees them
    turn_rules: TurnRules | None = None

    @classmethod
    def from_spec(
        cls,
        spec: SubjectSpec,
        plan: Plan,
        settings: McpPlanSettings,
        environment: Mapping[str, str],
        running: McpHub | None = None,
    ) -> "SuiteModel":
        """Return the model that a plan names, in the mode of its kind, with the tools of the suite.

        `running` are the servers if they run already.
        """
        options, mode = read_options(spec, SuiteModelOptions), mode_of(plan, spec)
        # In every mode: secrets that servers receive may come back in their descriptions and results.
        model = replace(model_of(spec, settings, environment), servers=settings.servers, uses_tools=mode != "json")
        if mode == "agent":
            model = replace(_with(model, {"system": _AGENT_PROMPT}), most_steps=options.max_steps)
        tools = described(settings.tools, options.descriptions)
        read = {case.id: CaseExpectation.model_validate(case.expected) for case in plan.cases}
        turns = {id: expected for id, expected in read.items() if expected.turns}
        executes = mode == "agent" or any(expected.execute for expected in turns.values())
        made = cls(
            model,
            mode,
            settings.tools if mode == "agent" else tools,  # agents compare them with what the servers list
            own_hub=settings.serverScope == "trial",
            hub=(running or hub_of(settings.servers, environment, settings.toolTimeout)) if executes else None,
            constrained=options.constrained,
            offered={} if mode == "json" else offered_names(tools),
            limited=settings.offered,
            sequences=settings.sequences,
            may_destroy=settings.allowDestructive,
            unexecuted=frozenset(id for id, expected in read.items() if expected.execute is False),
            turns=turns,
            turn_rules=turn_rules(calls_scorer(plan), settings, environment) if turns else None,
        )
        return replace(made, model=made._told(tools)) if mode == "json" else made

    def _told(self, tools: Sequence[ServerTool]) -> ModelSubject:
        """Return the model of JSON mode with a prompt that describes these tools."""
        changes: dict[str, object] = {"system": system_prompt(tools, sequences=self.sequences)}
        if self.constrained and tools:
            changes["output_schema"] = reply_schema(tools, sequences=self.sequences)
        return _with(self.model, changes)

    def for_case(self, case: str) -> Self:
        """Return the model with only the tools that a case offers, if it does not offer all."""
        if case not in self.limited:
            return self
        only = self.limited[case]
        if self.mode == "json":
            return replace(self, model=self._told(offered_tools(self.tools, only)), limited={})
        # Names in function calling depend on all tools: the scorer reads them back without knowing the case.
        offered = {name: tool for name, tool in self.offered.items() if offered_tools([tool], only)}
        return replace(self, offered=offered, limited={})

    def lacks(self) -> list[str]:
        """Return why the model cannot be asked, such as a missing key; empty if it can."""
        return self.model.lacks()

    def secrets(self) -> Mapping[str, str]:
        return self.model.secrets()

    def offline(self) -> Self:
        """Return the same model, which answers from recordings only."""
        return replace(self, model=self.model.offline())

    @property
    def needs(self) -> Needs:
        """Return the resources of the model, and the servers of the run unless each trial starts its own."""
        needs = self.model.needs
        shared = (self.hub,) if self.hub is not None and not self.own_hub else ()
        return replace(needs, resources=(*needs.resources, *shared))

    async def attempt(self, task: Task) -> Transcript:
        """Ask the model about one case, with real tools only if it is an agent that may execute them."""
        expected = self.turns.get(task.case_id)
        if self.mode == "agent":
            executes = task.case_id not in self.unexecuted
        else:
            executes = bool(expected is not None and expected.execute)
        own = self.for_case(task.case_id)
        async with self._opened(self.hub if executes else None, task) as hub:
            if hub is not None and self.mode == "agent":
                await _check_unchanged(hub, self.tools)
            task = replace(task, tools=tuple(own._offered_tools(hub, task)))
            if expected is None:
                return self._annotated(await own.model.attempt(task))
            assert self.turn_rules is not None, "a suite with turns has rules for them"
            ask, system = own.model.asking(task), own.model.options.system
            talk = TurnConversation(self.turn_rules, hub, task.clock)
            return self._annotated(await talk.run(expected, ask, system))

    def _offered_tools(self, hub: OpenHub | None, task: Task) -> Iterator[Tool]:
        """Yield the tools of function calling. Only agents call real ones."""
        for name, tool in self.offered.items():
            if hub is None or self.mode != "agent":
                yield _stand_in(name, tool, NOT_SHOWN if self.mode == "agent" else None)
            elif self.may_destroy or not is_destructive(tool):
                yield _real_tool(name, tool, hub, task.clock)
            else:
                yield _stand_in(name, tool, refused=True)

    @asynccontextmanager
    async def _opened(self, hub: McpHub | None, task: Task) -> AsyncIterator[OpenHub | None]:
        """Yield the servers of the run, or start some for this trial alone."""
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
        """Note constrained replies in a transcript, and that a single answer was wanted."""
        if not self.constrained and self.mode != "native":
            return transcript
        metadata: dict[str, JsonValue] = {**transcript.metadata, **({"constrained": True} if self.constrained else {})}
        if self.mode == "native":
            metadata.pop("out_of_steps", None)  # only one answer is wanted
        return transcript.model_copy(update={"metadata": metadata})


def calls_scorer(plan: Plan) -> McpCalls:
    """Return the scorer of calls with the options of the plan, without servers."""
    return next((McpCalls.from_spec(spec) for spec in plan.every_scorer if spec.kind == SCORER), McpCalls())


def turn_rules(options: McpCalls, settings: McpPlanSettings, environment: Mapping[str, str]) -> TurnRules:
    """Return the rules by which the turns of a suite are read and compared."""
    tools = () if settings.allowDestructive else settings.tools
    return TurnRules(
        ReplyReader(options.mode, settings.tools, options.strict_json),
        EndStateRunner(settings.folder, expanded_servers(settings.servers, environment), settings.toolTimeout),
        options.extra_parameters == "allow",
        frozenset(tool.label for tool in tools if is_destructive(tool)),
    )


def suite_parts(
    scorer: McpCalls,
    plan: Plan,
    settings: McpPlanSettings,
    environment: Mapping[str, str],
    running: McpHub | None = None,
) -> SuiteParts:
    """Return the servers and judges of a suite for its scorer of calls; reuse `running` servers."""
    expected = [case.expected for case in plan.cases if isinstance(case.expected, dict)]
    graded = any(each.get("grading") is not None for each in expected)
    wanted = graded or any(each.get("results") is not None or each.get("execute") for each in expected)
    executes = (wanted or scorer.execute) and scorer.mode != "agent"  # agents call the tools themselves
    hub = (running or hub_of(settings.servers, environment, settings.toolTimeout)) if executes else None
    # Without a judge, each model grades what its own calls gave, as in the tool whose files we read.
    models = {spec.name: model_of(spec, settings, environment) for spec in plan.subjects} if graded else {}
    judge = model_of(settings.judge, settings, environment) if settings.judge is not None else None
    writes = scorer.mode != "agent" and any(each.get("graded", "result") != "result" for each in expected)
    author = {"system": PROMPTS["mcp"]["author"]}
    graders = {
        name: CallGrader((judge or model).access, author=_with(model, author) if writes else None)
        for name, model in models.items()
    }
    return SuiteParts(turn_rules(scorer, settings, environment), hub, graders)


def described(tools: Sequence[ServerTool], descriptions: Mapping[str, str]) -> tuple[ServerTool, ...]:
    """Return the tools with descriptions replaced by those given for their labels."""
    return tuple(
        tool.model_copy(update={"description": descriptions.get(tool.label, tool.description)}) for tool in tools
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


def _stand_in(name: str, tool: ServerTool, answer: str | None = None, *, refused: bool = False) -> Tool:
    """Return a tool that executes nothing: it returns this answer, or refuses destructive calls."""

    async def call(arguments: Mapping[str, JsonValue]) -> JsonValue:  # noqa: ARG001 - the signature of a tool
        if refused:
            raise ToolError(NOT_EXECUTED)
        return answer

    return Tool(name, tool.description, tool.input_schema, call)


def _real_tool(name: str, tool: ServerTool, hub: OpenHub, clock: Clock) -> Tool:
    """Return a tool that calls the server. Its time does not count for the model; a late answer is an error."""
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
    now, before = ({(tool.server, tool.name): tool for tool in tools} for tools in (await hub.tools(), planned))
    if now != before:
        raise InfraError("the servers offer other tools than when the run began: start a new run", permanent=True)


_NOT_MADE = "not made, because the call before it failed"
_MAX_LENGTH = 20_000  # characters of a result that a model reads

Ask = Callable[[Conversation], Awaitable[Conversation]]


@dataclass(frozen=True, slots=True)
class TurnConversation:
    """One conversation of several turns. Without a hub, calls are not executed.

    A turn that fails ends the conversation: later turns would build on missing results, and an unexpected call never
    reaches a server (in `agent` mode, the model has executed it by then).
    """

    rules: TurnRules
    hub: OpenHub | None
    clock: Clock

    async def run(self, expected: CaseExpectation, ask: Ask, system: str | None) -> Transcript:
        """Ask one turn after the other until one fails, and return the whole conversation.

        Agents call the tools themselves while they are asked. The end state is checked if the tools were executed.
        """
        turns, rules = expected.turns, self.rules
        problems: list[str] = []
        talk = begin(system, turns[0].prompt)
        traces: list[TurnTrace] = []
        for turn, following in zip(turns, (*turns[1:], None), strict=True):
            before = len(talk.steps)
            await ask(talk)
            own = talk.steps[before:]
            reply = rules.reader.read(own)
            problems = await rules.call_problems(turn, reply)
            executed = [] if problems else await self._execute(turn, reply.calls, own)
            problems += await result_differences(turn, executed)
            traces.append(TurnTrace(steps=len(own), executed=tuple(executed)))
            if self.rules.reader.mode == "native" and own:
                talk.steps[-1] = _with_results(own[-1], executed)
            if problems or following is None:
                break
            self._add_prompt(talk, following.prompt, reply.calls, executed)
        transcript = talk.transcript()
        told: dict[str, JsonValue] = {TURNS: [trace.model_dump(mode="json") for trace in traces]}
        done = self.hub is not None and (rules.reader.mode == "agent" or not problems)
        if expected.end_state and done and self.hub is not None and rules.checks is not None:
            with self.clock.paused():
                told[END_STATE] = dumped(await rules.checks.observe(expected.end_state, self.hub))
        return transcript.model_copy(update={"metadata": {**transcript.metadata, **told}})

    async def _execute(self, turn: CaseExpectation, calls: Sequence[Call], steps: Sequence[Step]) -> list[ExecutedCall]:
        """Return the results of the calls of a turn. Execute them first, unless an agent has made them already."""
        if self.hub is None or not calls:
            return []
        if self.rules.reader.mode == "agent":
            return executed_by_agent(Transcript(steps=tuple(steps)).tool_calls, calls)
        with self.clock.paused():  # the model is not responsible for a slow server, which has a limit of its own
            return await execute_calls(self.hub, calls, self.rules.refused(turn))

    def _add_prompt(
        self, talk: Conversation, prompt: str, calls: Sequence[Call], executed: Sequence[ExecutedCall]
    ) -> None:
        """Add the results of a turn and the next message of the user."""
        if self.rules.reader.mode == "json":
            prompt = with_results(prompt, calls, executed)
        last = talk.messages[-1]
        if not isinstance(last, ModelRequest):
            talk.messages.append(ModelRequest(parts=[UserPromptPart(prompt)]))
            return
        parts = list(last.parts)  # what the tools gave back; models in function calling have not seen it yet
        if self.rules.reader.mode == "native":
            given: list[JsonValue] = [{"error": each.text} if each.is_error else each.value for each in executed]
            given += [{"error": _NOT_MADE} if executed else NOT_SHOWN] * (len(parts) - len(given))
            parts = [
                ToolReturnPart(part.tool_name, content, part.tool_call_id)
                for part, content in zip(last.parts, given, strict=True)
                if isinstance(part, ToolReturnPart)
            ]
        talk.messages[-1] = replace(last, parts=[*parts, UserPromptPart(prompt)])


def with_results(prompt: str, calls: Sequence[Call], executed: Sequence[ExecutedCall]) -> str:
    """Return the user's next message with the results of the calls before it, for models that reply with JSON."""
    if not calls:
        return prompt
    results = [*(text_of(each.value)[:_MAX_LENGTH] for each in executed)]
    results += [_NOT_MADE if executed else NOT_SHOWN] * (len(calls) - len(results))
    lines = [
        f"{call.tool} {json.dumps(call.parameters, ensure_ascii=False)}: {result}"
        for call, result in zip(calls, results, strict=True)
    ]
    return "\n".join(["These calls were made, and gave back:", *lines, "", f"The user's next message: {prompt}"])


def _with_results(step: Step, executed: Sequence[ExecutedCall]) -> Step:
    """Return a step of function calling, with the results that its calls got afterwards."""
    given = iter(executed)
    parts: list[Part] = []
    for part in step.parts:
        result = next(given, None) if isinstance(part, ToolCall) else None
        changes: dict[str, Any] = {}
        if result is not None:
            changes = {"error": result.text} if result.is_error else {"result": result.value}
        parts.append(part.model_copy(update=changes) if changes else part)
    return step.model_copy(update={"parts": tuple(parts)})


def changed_names(tools: Sequence[ServerTool]) -> Iterator[str]:
    """Yield a sentence for each tool that models see under another name."""
    for name, tool in offered_names(tools).items():
        if name == tool.name:
            continue
        why = "another server has a tool of that name"
        if plain_name(tool.name) != tool.name:
            why = f"providers accept letters, digits, _ and - in names, at most {MAX_TOOL_NAME_LENGTH} characters"
        yield f"{tool.label!r} is offered as {name!r}, because {why}"
