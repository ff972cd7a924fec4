"""Read and check `mcp-testing-framework.yaml`. Every problem names its file, line and key."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    Strict,
    model_serializer,
    model_validator,
)

from bakeoff._kernel.environment import read_environment
from bakeoff._kernel.model import FrozenModel, sparse_field
from bakeoff._kernel.text import near_names
from bakeoff._kernel.yaml import MAX_FILE_SIZE, Key, PlacedYaml, gathered, parse_yaml, read_yaml
from bakeoff.doors.mcp.cases import OF_A_TURN, SPELLINGS, McpCase, McpTurn, Truth
from bakeoff.errors import UsageError
from bakeoff.mcp import ServerSpec
from bakeoff.mcp.client_files import is_client_file, with_imports
from bakeoff.mcp.servers import is_http_address
from bakeoff.models.providers import parse_model_name, provider_name
from bakeoff.scorers.entries import ScorerEntries
from bakeoff.scorers.matchers import matcher_problems, parameter_problems
from bakeoff.scorers.mcp.calls import ExpectedMcpCall, GradedText, Mode, check_target

CONFIG_NAME = "mcp-testing-framework.yaml"
_LOCAL_SECONDS = 600.0  # for one answer of a model on this machine, which may be slow or busy
_NO_FILE = "configuration"  # the file name in messages and reports if a configuration has no file
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MALFORMED = re.compile(r"\$\{(?![A-Za-z_][A-Za-z0-9_]*\})[^}]*\}?")
# Expanded only when a server starts, so that no file of a run contains them.
_LEFT_TO_SERVERS = ("env", "headers", "args")

# Types are strict: "10" is not a number, and true is not 1.
Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]

_NO_TOOL_TO_CHECK = "has no meaning if no tool should be called: remove it"


class RetryConfig(FrozenModel):
    """The retries when a provider is busy. Delays are in milliseconds."""

    maxRetries: Whole = Field(default=3, ge=0)
    baseDelay: Number = Field(default=1000, ge=0)
    maxDelay: Number = Field(default=30000, ge=0)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.maxDelay < self.baseDelay:
            raise ValueError(f"maxDelay {self.maxDelay:g} is less than baseDelay {self.baseDelay:g}: raise it")
        return self


class ModelSettings(FrozenModel):
    """The settings of a model."""

    # The fields have the names of a subject's options.
    temperature: Number = Field(default=0, ge=0)
    seed: Whole | None = Field(default=None, description="the number of the round if absent")
    max_tokens: Whole = Field(default=1024, ge=1, alias="maxTokens")
    timeout: Number = Field(default=60, gt=0, description="seconds for one answer; 600 for models on this machine")


class SuiteModelSettings(ModelSettings):
    """The settings of all models, and those of single models. A file has both under one key."""

    # The alias is not a key of a file: a key with a colon is the name of a model.
    of: dict[str, ModelSettings] = Field(default={}, validation_alias=AliasChoices(AliasPath(":")))

    @model_validator(mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """Separate settings for all models from settings for single models, which inherit them."""
        if not isinstance(value, dict):
            return value
        single = {name: own for name, own in value.items() if ":" in name or "/" in name}
        common = {name: setting for name, setting in value.items() if name not in single}
        of = {name: {**common, **own} if isinstance(own, dict) else own for name, own in single.items()}
        return {**common, ":": of}

    @model_serializer(mode="wrap")
    def _join(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write both kinds of settings under one key again."""
        written: dict[str, Any] = handler(self)
        single = written.pop("of", {})
        return {**written, **single}


def _address(url: str) -> str:
    """Refuse a text that is not an HTTP address."""
    if not is_http_address(url):
        raise ValueError(f"{url!r} is not an address: write it as https://host/v1")
    return url


def _variable_name(name: str) -> str:
    """Refuse a text that is not the name of a variable. It is not shown, because it may be the key itself."""
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
        # The value is not shown, because it may be the key itself.
        raise ValueError("this is not the name of a variable: write its name, such as MY_API_KEY, and not the key")
    return name


class ProviderConfig(FrozenModel):
    """An additional provider: `module:Class`, or the address of an OpenAI-compatible API."""

    # The fields have the names of `bakeoff.subjects.model.ProviderOptions`.
    target: Annotated[str, AfterValidator(partial(check_target, kind="Class"))] | None = Field(
        default=None, validation_alias=AliasChoices("target", "class", "module")
    )
    base_url: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None, validation_alias=AliasChoices("baseUrl", "base_url", "url"), serialization_alias="baseUrl"
    )
    key_variable: Annotated[str, AfterValidator(_variable_name)] | None = Field(
        default=None,
        validation_alias=AliasChoices("apiKeyVariable", "key_variable", "apiKeyEnv"),
        serialization_alias="apiKeyVariable",
    )
    options: dict[str, JsonValue] = {}

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        """Read `module:Class` or an address where an object is expected."""
        if not isinstance(value, str):
            return value
        return {"baseUrl": value} if value.startswith(("http://", "https://")) else {"target": value}

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        if self.target is None and self.base_url is None:
            raise ValueError("a provider needs `target: module:Class`, or a `baseUrl`")
        return self


class RunSettings(FrozenModel):
    """The keys of a configuration that its plan keeps unchanged."""

    suiteRule: Literal["all", "ratio"] = Field(
        default="all", description="`all` cases must pass, or the `ratio` of them that is the threshold"
    )
    concurrencyLimit: Whole = Field(default=5, ge=1, description="calls in flight at a time, over all models")
    gradingPrompt: str | None = Field(default=None, min_length=1, description="the criterion of the judge")
    retryConfig: RetryConfig = RetryConfig()
    # Absent in plans that do not use them, as in those of older versions.
    toolTimeout: Number = sparse_field(60, "seconds for one call of a tool; a tool that takes longer has failed", gt=0)
    allowDestructive: Truth = sparse_field(
        False, "execute tools that their server marks as destructive, wherever tools are executed"
    )
    minCoverage: Number | None = sparse_field(
        None, "the share of all tools, parameters and enum values that the cases must exercise", ge=0, le=1
    )
    serverScope: Literal["run", "trial"] = Field(
        default="run", description="one server for the whole run, or a fresh one for each trial"
    )


class SuiteConfig(RunSettings):
    """A whole configuration, with the keys of the file."""

    testRound: Whole = Field(default=10, ge=1, description="how often each model gets each prompt")
    passThreshold: Number | None = Field(
        default=None, ge=0, le=1, description="the share of rounds that must pass for a case to pass; 1 if absent"
    )
    modelsToTest: tuple[str, ...] = Field(min_length=1, description="each as `provider:model`")
    testCases: tuple[McpCase, ...] = Field(min_length=1)
    mcpServers: tuple[ServerSpec, ...] = Field(min_length=1)
    executeTools: Truth | None = Field(
        default=None, description="call the tools that models ask for, and check the results; false: never"
    )
    mode: Mode = Field(
        default="json", description="a JSON reply, native function calling, or several steps with tool results"
    )
    judge: str | None = Field(default=None, description="the model that grades: `provider:model`")
    allowSelfGrading: Truth = Field(default=False, description="allow the judge to be one of the models under test")
    gradedText: GradedText = Field(
        default="answer",
        description="the model's answer after the tools ran, which is asked for, the tools' results, or both",
    )
    extraParameters: Literal["reject", "allow"] = Field(
        default="reject", description="whether unexpected parameters fail a round"
    )
    scorers: ScorerEntries = sparse_field((), "of the models' answers, beside the comparison of calls")
    strictJson: Truth = Field(default=False, description="a reply with anything around its JSON fails")
    modelSettings: SuiteModelSettings = SuiteModelSettings()
    providers: dict[str, ProviderConfig] = {}

    @property
    def threshold(self) -> float:
        """Return the share of rounds that must pass for a case to pass."""
        return 1.0 if self.passThreshold is None else self.passThreshold

    def executes(self, case: McpCase) -> bool:
        """Return True if the tools of a case are executed: the case needs it, and no setting forbids it."""
        told = case.executeTools if case.executeTools is not None else self.executeTools
        # Later turns go on with the results of earlier ones.
        needed = case.gradingPrompt is not None or len(case.turns) > 1 or bool(case.endState)
        checked = any(part.expectedResults is not None or part.expectedError is not None for part in case.parts)
        return told if told is not None else needed or checked or self.mode == "agent"

    def settings_of(self, model: str) -> ModelSettings:
        """Return the settings of a model. A local model has more time, unless the file sets a timeout."""
        settings = self.modelSettings.of.get(model, self.modelSettings)
        if "timeout" in settings.model_fields_set or not model.lower().startswith("local:"):
            return settings
        return settings.model_copy(update={"timeout": _LOCAL_SECONDS})


@dataclass(frozen=True, slots=True)
class McpSuite:
    """A configuration and its file."""

    file: Path
    config: SuiteConfig
    lines: PlacedYaml
    environment: Mapping[str, str] = field(repr=False)  # the variables that it was read with

    @property
    def folder(self) -> Path:
        """Return the folder to which relative paths and modules of the configuration belong."""
        return self.file.parent

    @property
    def case_names(self) -> set[str | None]:
        """Return all names, numbers and tags that select a case."""
        return {name for number, case in enumerate(self.config.testCases, 1) for name in case.names(number)}


def read_suite(file: Path, environment: Mapping[str, str] | None = None) -> McpSuite:
    """Read and check one file without calling anything. One error lists all problems.

    `environment` has the variables; None means `suite_environment` of the file's folder.
    """
    if is_client_file(file):
        drafted = f"`bakeoff mcp generate {file} -o {CONFIG_NAME}`"
        raise UsageError(f"{file}:1: this file of a client has servers and no testCases: draft some with {drafted}")
    if environment is None:
        environment = suite_environment(file.parent)
    read = read_yaml(file)
    if not isinstance(read.value, dict):
        raise UsageError(f"{file}:1: this is not a configuration: it needs modelsToTest, testCases and mcpServers")
    return _checked(read, environment)


def check_config(text: str, file: Path, environment: Mapping[str, str]) -> None:
    """Raise a `UsageError` if a text would not be a valid configuration as a file."""
    if len(text.encode()) > MAX_FILE_SIZE:
        raise UsageError(f"nothing was written, because {file} would be larger than {MAX_FILE_SIZE // 1024 // 1024} MB")
    try:
        _checked(parse_yaml(text, file), environment)
    except UsageError as error:
        raise UsageError(f"nothing was written, because the result would be invalid:\n{error}") from error


def suite_of(config: Mapping[str, Any] | SuiteConfig) -> McpSuite:
    """Check a configuration that is not a file, in the current folder."""
    if isinstance(config, SuiteConfig):
        config = config.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    try:
        value = json.loads(json.dumps(dict(config), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{_NO_FILE}: the configuration is not plain data: {error}") from error
    return _checked(PlacedYaml(Path(_NO_FILE), value, {}), suite_environment(Path()))


def _checked(read: PlacedYaml, environment: Mapping[str, str]) -> McpSuite:
    """Check the shape of a file, expand its imports and variables, and validate it. One error lists all problems."""
    gathered(list(shape_problems(read)))
    placed = _expanded(with_imports(read, environment), environment)
    hints = tomllib.loads(Path(__file__).with_name("hints.toml").read_text("utf-8"))
    config = placed.read(SuiteConfig, hints)
    gathered(list(config_problems(placed, config)))
    return McpSuite(read.file, config, placed, environment)


def suite_environment(folder: Path) -> dict[str, str]:
    """Return the variables: from the environment, else from `.env` beside the configuration, else from `.env` here."""
    here = read_environment(base={})
    beside = {} if folder == Path() else read_environment(folder, base={})
    return {**here, **beside, **os.environ}


def _expanded(placed: PlacedYaml, environment: Mapping[str, str]) -> PlacedYaml:
    """Expand `${NAME}` everywhere except in values that may be secrets of servers and providers."""
    missing: list[str] = []

    def expand(value: JsonValue, key: Key) -> JsonValue:
        if isinstance(value, dict):
            return {name: expand(inner, (*key, name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [expand(inner, (*key, at)) for at, inner in enumerate(value)]
        if not isinstance(value, str):
            return value
        for name in _VARIABLE.findall(value):
            if name not in environment:
                what = f"${{{name}}} is not set: set {name} in the environment, in .env or in .env.local"
                missing.append(placed.problem(key, what))
        if key[:1] == ("mcpServers",):  # elsewhere, a prompt may contain `${…}`
            wrong = (f"{each!r} is not a variable: write it as ${{NAME}}" for each in _MALFORMED.findall(value))
            missing.extend(placed.problem(key, what) for what in wrong)
        if _is_left(key, value):
            return value
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[0]), value)

    value = expand(placed.value, ())
    gathered(missing)
    return PlacedYaml(placed.file, value, placed.lines)


def _is_left(key: Key, value: str) -> bool:
    """Tell whether variables in a text are expanded only on use, because it may contain a key."""
    match key:
        case ("mcpServers", _, "url"):
            return value.startswith(("http://", "https://"))  # can be checked without its variables
        case ("mcpServers", _, "oauth", "clientSecret"):
            return True
        case ("mcpServers", _, field, *_):
            return field in _LEFT_TO_SERVERS
        case ("providers", _, "options", *_):
            return True
    return False


def shape_problems(placed: PlacedYaml) -> Iterator[str]:
    """Yield problems of the file's shape, for which validation would give worse messages."""
    assert isinstance(placed.value, dict)
    servers = placed.value.get("mcpServers")
    if isinstance(servers, dict):
        first = next(iter(servers), "my-server")
        yield placed.problem(("mcpServers",), f"an object: must be a list: write `- name: {first}`, then its keys")
    cases = placed.value.get("testCases")
    for at, case in enumerate(cases if isinstance(cases, list) else []):
        if isinstance(case, dict):
            yield from _shape_of_case(placed, ("testCases", at), case)


def _shape_of_case(placed: PlacedYaml, key: Key, case: dict[str, JsonValue]) -> Iterator[str]:
    """Yield problems that pydantic would report less clearly: both spellings of a key, and keys in the wrong place."""
    if all(name in case for name in SPELLINGS):
        what = f"{SPELLINGS[1]!r} is another name for {SPELLINGS[0]!r}, which is here too: remove one"
        yield placed.problem((*key, SPELLINGS[1]), what)
    if "turns" not in case:
        return
    if case["turns"] in ([], None):
        yield placed.problem((*key, "turns"), "is empty: list turns, or write a `prompt` and an `expectedOutput`")
    for name in OF_A_TURN:
        if name in case:
            yield placed.problem((*key, name), "belongs in a turn, if a case has `turns`: move it there")
    for at, turn in enumerate(case["turns"] if isinstance(case["turns"], list) else []):
        if isinstance(turn, dict):
            yield from _shape_of_case(placed, (*key, "turns", at), turn)


def config_problems(placed: PlacedYaml, config: SuiteConfig) -> Iterator[str]:
    """Yield problems that involve several keys: duplicate names, unknown models and servers, impossible calls."""
    named: dict[str, list[str | None]] = {
        "mcpServers": [server.name for server in config.mcpServers],
        "testCases": [case.name for case in config.testCases],
    }
    for what, names in named.items():
        for at, first in repeated(names):
            told = f"{names[at]!r} is used twice, first by {what}[{first}]: rename one"
            yield placed.problem((what, at, "name"), told)
    yield from _model_problems(placed, config)
    yield from _provider_problems(placed, config)
    for at, server in enumerate(config.mcpServers):
        yield from _server_problems(placed, at, server)
    for at, case in enumerate(config.testCases):
        yield from _case_problems(placed, at, case)
        yield from _end_state_problems(placed, at, case, [server.name for server in config.mcpServers])
    if config.judge is not None:
        yield from _name_problems(placed, ("judge",), config.judge)
        if not config.allowSelfGrading and is_same_model(config.judge, config.modelsToTest):
            what = f"{config.judge!r} is under test: name another model, or write `allowSelfGrading: true`"
            yield placed.problem(("judge",), what)


def _model_problems(placed: PlacedYaml, config: SuiteConfig) -> Iterator[str]:
    """Yield models with invalid names, models listed twice, and models with settings that are not tested."""
    for at, name in enumerate(config.modelsToTest):
        yield from _name_problems(placed, ("modelsToTest", at), name)
        if not name.isprintable():
            yield placed.problem(("modelsToTest", at), f"{name!r} has unprintable characters: remove them")
    for at, _ in repeated(config.modelsToTest):
        yield placed.problem(("modelsToTest", at), f"{config.modelsToTest[at]!r} is listed twice: remove one")
    for model in config.modelSettings.of:
        if model not in config.modelsToTest:
            near = near_names(model, config.modelsToTest)
            yield placed.problem(("modelSettings", model), f"{model!r} is not among modelsToTest{near}")


def _name_problems(
    placed: PlacedYaml, key: Key, name: str, parse: Callable[[str], object] = parse_model_name
) -> Iterator[str]:
    """Yield the problem of a name that `parse` refuses."""
    try:
        parse(name)
    except UsageError as error:
        yield placed.problem(key, str(error))


def _provider_problems(placed: PlacedYaml, config: SuiteConfig) -> Iterator[str]:
    """Yield providers with a wrong name, with two targets, or with options and no class."""
    for name, provider in config.providers.items():
        key: Key = ("providers", name)
        yield from _name_problems(placed, key, name, provider_name)
        if provider.target is not None and provider.base_url is not None:
            yield placed.problem(key, f"{name!r} has both `target` and `baseUrl`: keep one")
        if provider.options and provider.target is None:
            yield placed.problem((*key, "options"), "go to a class: name one with `target`, or remove them")


def _server_problems(placed: PlacedYaml, at: int, server: ServerSpec) -> Iterator[str]:
    """Yield a problem if `command` holds a whole command line, which would be a program with spaces in its name."""
    command = server.command or ""
    program, *rest = command.split() or [""]
    if rest and not server.args and not Path(command).exists():
        with suppress(ValueError):
            rest = shlex.split(command)[1:]
        what = f"{command!r} is not one program: write `command: {program}` and `args: {rest}`"
        yield placed.problem(("mcpServers", at, "command"), what)


def _case_problems(placed: PlacedYaml, at: int, case: McpCase) -> Iterator[str]:
    """Yield the problems of the expected calls and results of a case."""
    for key, call in expected_calls(placed, at, case):
        for place, problem in parameter_problems(call.parameters):
            yield placed.problem((*key, "parameters", *place), problem)
    for key, part in parts_of(at, case):
        for place, problem in matcher_problems(part.expectedResults):
            yield placed.problem((*key, "expectedResults", *place), problem)
        if part.expectedResults is not None and part.expectedOutput is None:
            yield placed.problem((*key, "expectedResults"), _NO_TOOL_TO_CHECK)
        if part.expectedError is not None and part.expectedResults is not None:
            yield placed.problem((*key, "expectedError"), "excludes expectedResults: remove one")
        needed = len(part.expectedOutput or ())
        if part.maxCalls is not None and part.maxCalls < needed:
            yield placed.problem((*key, "maxCalls"), f"{part.maxCalls}: {needed} calls are expected: raise it")
    if case.gradingPrompt is not None and case.expectedOutput is None:
        yield placed.problem(("testCases", at, "gradingPrompt"), _NO_TOOL_TO_CHECK)


def _end_state_problems(placed: PlacedYaml, at: int, case: McpCase, servers: Sequence[str]) -> Iterator[str]:
    """Yield wrong matchers of the end state, and servers in its checks that do not exist."""
    for number, check in enumerate(case.endState):
        key: Key = ("testCases", at, "endState", number)
        for place, problem in matcher_problems(check.expectedResults):
            yield placed.problem((*key, "expectedResults", *place), problem)
        if check.serverName is not None and check.command is None:
            yield placed.problem((*key, "serverName"), "is the server in whose folder a `command` runs: remove it")
        elif check.serverName is not None and check.serverName not in servers:
            near = near_names(check.serverName, servers)
            yield placed.problem((*key, "serverName"), f"no server is called {check.serverName!r}{near}")


def is_same_model(judge: str, models: Iterable[str]) -> bool:
    """Tell whether a judge is one of the models, by provider and name. Invalid names are reported elsewhere."""
    try:
        return _canonical(judge) in [_canonical(name) for name in models]
    except UsageError:
        return False


def _canonical(name: str) -> tuple[str, str]:
    parsed = parse_model_name(name)
    return ("google" if parsed.provider == "gemini" else parsed.provider), parsed.model


def repeated(names: Iterable[str | None]) -> Iterator[tuple[int, int]]:
    """Yield the place of each name that occurred before, and its first place."""
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        if name is not None and seen.setdefault(name, at) != at:
            yield at, seen[name]


def parts_of(at: int, case: McpCase) -> Iterator[tuple[Key, McpTurn]]:
    """Yield each turn of a case with its place in the file; a case without turns is one."""
    key: Key = ("testCases", at)
    for number, part in enumerate(case.parts):
        yield (*key, "turns", number) if case.turns else key, part


def expected_calls(placed: PlacedYaml, at: int, case: McpCase) -> Iterator[tuple[Key, ExpectedMcpCall]]:
    """Yield each expected call, alternative and query of the end state of a case, with its place in the file."""
    for owner, part in parts_of(at, case):
        spellings: list[Key] = [(*owner, name) for name in SPELLINGS]
        base = next((key for key in spellings if key in placed.lines), spellings[0])
        for place, call in enumerate(part.expectedOutput or ()):
            yield (*base, place) if (*base, place) in placed.lines else base, call
        for number, calls in enumerate(part.alternatives):
            base = (*owner, "alternatives", number)
            for place, call in enumerate(calls or ()):
                yield (*base, place) if (*base, place) in placed.lines else base, call
    for place, check in enumerate(case.endState):
        if check.query is not None:
            yield ("testCases", at, "endState", place, "query"), check.query
