"""Use a model as a subject. `model` asks once; `agent` lets it call tools step by step."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, cast

from pydantic import Field, JsonValue, PositiveFloat, PositiveInt
from pydantic_ai.settings import ModelSettings

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.imports import import_object
from bakeoff._kernel.model import FrozenModel
from bakeoff.errors import InfraError, UsageError
from bakeoff.mcp import McpHub, OpenHub, ServerSpec, parse_mcp_option
from bakeoff.mcp.servers import secrets_of, with_variables
from bakeoff.models.access import OpenProvider, ProviderAccess
from bakeoff.models.caller import Caller
from bakeoff.models.conversation import Conversation, begin, converse
from bakeoff.models.prices import PriceOptions
from bakeoff.models.providers import (
    BUILT_IN,
    ModelName,
    Provider,
    check_factory,
    compatible,
    known_model_name,
    known_providers,
    provider_name,
)
from bakeoff.models.rate_limit import DEFAULT_MAX_IN_FLIGHT, RetryPolicy
from bakeoff.plan import SubjectSpec, describe, read_options
from bakeoff.protocols import Needs, Resource, Task, Tool
from bakeoff.record import Transcript
from bakeoff.replay.store import recordings_of

_CHOICE = "with `required`, every step must call a tool; a tool that ends the attempt, or max_steps, ends it"
_IDLE = "longest silence with `stream`; a longer one is infra. Without `stream`, only the attempt's time is limited"
_MCP = "servers, or `http:URL` and `stdio:COMMAND`; `${NAME}` in env and headers is that variable's value"


class ProviderOptions(FrozenModel):
    """A provider from a configuration: an address with the OpenAI API, or a user's class."""

    base_url: str | None = None
    key_variable: str | None = None
    target: str | None = Field(default=None, description="`module:name` of a provider, or of a function that makes one")
    options: dict[str, JsonValue] = Field(default={}, description="options for the function that makes the provider")


class ModelOptions(FrozenModel):
    """The options of a model, as in a plan."""

    model: str
    system: str | None = None
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = Field(default=None, description="default: the trial's seed")
    send_seed: bool = Field(default=True, description="false: the provider gets no seed")
    max_tokens: PositiveInt | None = None
    timeout: PositiveFloat | None = Field(default=None, description="seconds for one answer; a later one is a timeout")
    idle_seconds: PositiveFloat = Field(default=120.0, description=_IDLE)
    patience_seconds: PositiveFloat = Field(default=300.0, description="longest total wait for a busy provider")
    first_wait_seconds: PositiveFloat = Field(default=0.5, description="before the first retry; doubles each time")
    longest_wait_seconds: PositiveFloat = Field(default=30.0, description="the longest wait between two retries")
    most_in_flight: PositiveInt = Field(
        default=DEFAULT_MAX_IN_FLIGHT, description="calls at one time; fewer if the provider is overloaded"
    )
    stream: bool = False
    output_schema: dict[str, JsonValue] | None = Field(default=None, description="JSON Schema that the answer must fit")
    price: PriceOptions | None = None
    priced: bool = Field(default=True, description="false: tokens are counted without a price")
    providers: dict[str, ProviderOptions] = {}
    chat: bool = Field(default=False, description="a prompt that is a JSON list of messages stands for these messages")
    settings: dict[str, JsonValue] = Field(default={}, description="further settings of pydantic-ai, such as `top_p`")


class AgentOptions(ModelOptions):
    max_steps: PositiveInt = 10
    tool_choice: Literal["auto", "required"] = Field(default="auto", description=_CHOICE)
    mcp: tuple[ServerSpec | str, ...] = Field(default=(), description=_MCP)


@dataclass(frozen=True, slots=True)
class ModelSubject:
    """A model that runs at a provider, on this machine or from a script."""

    name: ModelName
    options: ModelOptions
    access: ProviderAccess
    most_steps: int = 1
    uses_tools: bool = False
    servers: tuple[ServerSpec, ...] = ()  # as in the plan, with variables not replaced
    hub: McpHub | None = None
    only_recordings: bool = False

    @classmethod
    def from_spec(cls, spec: SubjectSpec, environment: Mapping[str, str] | None = None) -> Self:
        """Build a model, or an agent if the spec's kind is `agent`.

        `environment` has the API keys; None means the process and `.env` files.
        """
        options = read_options(spec, AgentOptions if spec.kind == "agent" else ModelOptions)
        environment = read_environment() if environment is None else environment
        added = {provider_name(name): _added(name, given, describe(spec)) for name, given in options.providers.items()}
        providers = known_providers(added)
        name = known_model_name(options.model, providers)
        policy = RetryPolicy(options.first_wait_seconds, options.longest_wait_seconds, options.patience_seconds)
        idle = options.idle_seconds if options.stream else None
        access = ProviderAccess(name, providers[name.provider], environment, idle, options.most_in_flight, policy)
        if not isinstance(options, AgentOptions):
            return cls(name, options, access)
        servers = [parse_mcp_option(item) if isinstance(item, str) else item for item in options.mcp]
        named = tuple(server for server in servers if server is not None)
        hub = McpHub([with_variables(server, environment) for server in named]) if named else None
        return cls(name, options, access, options.max_steps, uses_tools=True, servers=named, hub=hub)

    def lacks(self) -> list[str]:
        """Return why the model cannot be asked yet; empty if it can."""
        return self.access.lacks()

    def secrets(self) -> dict[str, str]:
        told = [secrets_of(server, self.access.environment) for server in self.servers]
        return {name: value for each in (*told, self.access.secrets()) for name, value in each.items()}

    def offline(self) -> Self:
        """Return a subject that uses recordings, without key, weights and connection."""
        return replace(self, only_recordings=True)

    @property
    def needs(self) -> Needs:
        shared: tuple[Resource, ...] = (self.hub,) if self.hub else ()
        return Needs(resources=shared if self.only_recordings else (self.access, *shared))

    async def attempt(self, task: Task) -> Transcript:
        talk = await self.asking(task)(begin(self.options.system, task.prompt, chat=self.options.chat))
        # Add a hash of each server's tools to the metadata.
        transcript = talk.transcript()
        if self.hub is None:
            return transcript
        hub = self._open_hub(task)
        hashes = {"mcp": {name: hub.fingerprint(name) for name in hub.servers}, "mcp_tools_hash": hub.fingerprint()}
        return transcript.model_copy(update={"metadata": {**transcript.metadata, **hashes}})

    def asking(self, task: Task) -> Callable[[Conversation], Awaitable[Conversation]]:
        """Return a function that continues a trial's conversation until the model has finished."""
        caller, tools = self._caller(task), self._tools(task)
        steps, schema = self.most_steps, self.options.output_schema
        return lambda talk: converse(caller, talk, tools, max_steps=steps, output_schema=schema)

    def _tools(self, task: Task) -> tuple[Tool, ...]:
        if not self.uses_tools:
            return ()
        if self.hub is None:
            return task.tools
        try:
            return (*task.tools, *self._open_hub(task).as_tools([tool.name for tool in task.tools]))
        except UsageError as error:
            raise InfraError(str(error), permanent=True) from error

    def _open_hub(self, task: Task) -> OpenHub:
        assert self.hub is not None
        opened: OpenHub = task.resources[self.hub.key]
        return opened

    def _caller(self, task: Task) -> Caller:
        provider: OpenProvider | None = None if self.only_recordings else task.resources[self.access.key]
        price = self.options.price.price(str(self.name)) if self.options.price else None
        remote = self.access.provider.wire not in ("scripted", "custom")
        options = self.options
        must_call = isinstance(options, AgentOptions) and options.tool_choice == "required"
        seed = task.seed if options.seed is None else options.seed
        settings = {
            **options.settings,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "request_timeout": options.timeout,
            "tool_choice": "required" if must_call else None,
            # Anthropic has no seed.
            "seed": seed if options.send_seed and self.access.provider.wire != "anthropic" else None,
        }
        return Caller(
            self.name,
            provider,
            task,
            cast(ModelSettings, {name: value for name, value in settings.items() if value is not None}),
            price=price,
            priced=self.options.priced,
            stream=remote and self.options.stream,
            remote=remote,
            endpoint=self.access.endpoint,
            recordings=recordings_of(task.resources),
        )


def _added(name: str, given: ProviderOptions, owner: str) -> Provider:
    name = provider_name(name)
    who, keys = f"{owner}: provider {name!r}", (given.key_variable,) if given.key_variable else ()
    if given.target is not None:
        factory = import_object(given.target, who)
        check_factory(factory, who)
        return Provider(name, "custom", keys, given.base_url, factory=factory, options=given.options)
    if name in BUILT_IN and BUILT_IN[name].wire == "pydantic-ai":
        return replace(BUILT_IN[name], keys=keys or BUILT_IN[name].keys, base_url=given.base_url, options=given.options)
    if given.base_url is None or given.options:
        raise UsageError(f"{who} needs a {'target' if given.options else 'base_url or a target'}")
    return compatible(name, given.base_url, given.key_variable)
