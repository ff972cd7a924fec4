"""`mcp-testing-framework.yaml`: what it may say, and everything that can be wrong with it, with file, line and key."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import AliasChoices, Field, JsonValue, PositiveFloat, PositiveInt, field_validator, model_validator

from bakeoff.doors.mcp_suite.matching import matcher_problems
from bakeoff.errors import UsageError
from bakeoff.frozen import Frozen
from bakeoff.mcp import ServerSpec
from bakeoff.models.names import parse_model_name
from bakeoff.placed_yaml import Key, PlacedYaml, gathered, read_yaml

CONFIG_NAME = "mcp-testing-framework.yaml"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LEFT_TO_SERVERS = ("env", "headers")  # filled in where the server is started, so that no file of a run holds them


class ExpectedCall(Frozen):
    """One call that should be made."""

    serverName: str
    toolName: str
    parameters: dict[str, JsonValue] = {}


class SuiteCase(Frozen):
    """One prompt, and what a model that understands the tools does with it."""

    prompt: str = Field(min_length=1)
    expectedOutput: tuple[ExpectedCall, ...] | None = Field(
        validation_alias=AliasChoices("expectedOutput", "expectedToolUsage"),
        description="the call, a list of calls one after the other, or null where no tool should be called",
    )
    expectedResults: JsonValue = Field(
        default=None, description="what the tool's result has to hold; executes the tool"
    )
    gradingPrompt: str | None = None
    name: str | None = Field(default=None, min_length=1)
    tags: tuple[str, ...] = ()

    @field_validator("expectedOutput", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if isinstance(value, list) and not value:
            raise ValueError("an empty list expects nothing: write null where no tool should be called")
        return [value] if isinstance(value, dict) else value


class RetryConfig(Frozen):
    """What is done about a provider that is busy, in milliseconds."""

    maxRetries: int = Field(default=3, ge=0)
    baseDelay: float = Field(default=1000, ge=0)
    maxDelay: float = Field(default=30000, ge=0)


class ModelSettings(Frozen):
    temperature: float = Field(default=0, ge=0)
    seed: int | None = Field(default=None, description="the number of the round where left out")
    maxTokens: PositiveInt = 1024
    timeout: PositiveFloat = Field(default=60, description="seconds for one answer")


class ProviderConfig(Frozen):
    """A provider of one's own: `module:Class`, or an address that speaks the OpenAI API."""

    target: str | None = Field(default=None, validation_alias=AliasChoices("target", "class", "module"))
    baseUrl: str | None = Field(default=None, validation_alias=AliasChoices("baseUrl", "base_url", "url"))
    apiKeyVariable: str | None = Field(
        default=None, validation_alias=AliasChoices("apiKeyVariable", "key_variable", "apiKeyEnv")
    )
    options: dict[str, JsonValue] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return {"baseUrl": value} if value.startswith(("http://", "https://")) else {"target": value}

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.target is None and self.baseUrl is None:
            raise ValueError("a provider needs `target: module:Class`, or a `baseUrl`")
        return self


class SuiteConfig(Frozen):
    """All of a configuration, as the file spells it."""

    testRound: int = Field(default=10, ge=1)
    passThreshold: float | None = Field(default=None, ge=0, le=1, description="1 where left out")
    suiteRule: Literal["all", "ratio"] = "all"
    concurrencyLimit: int = Field(default=5, ge=1)
    modelsToTest: tuple[str, ...] = Field(min_length=1)
    testCases: tuple[SuiteCase, ...] = Field(min_length=1)
    mcpServers: tuple[ServerSpec, ...] = Field(min_length=1)
    executeTools: bool = False
    mode: Literal["json", "native", "agent"] = "json"
    gradingPrompt: str | None = None
    judge: str | None = Field(default=None, description="the model that grades: `provider:model`")
    extraParameters: Literal["reject", "allow"] = "reject"
    strictJson: bool = False
    retryConfig: RetryConfig = RetryConfig()
    modelSettings: ModelSettings = ModelSettings()
    modelSettingsOf: dict[str, ModelSettings] = Field(default={}, description="for single models, by their names")
    serverScope: Literal["run", "trial"] = "run"
    providers: dict[str, ProviderConfig] = {}

    @field_validator("modelsToTest", mode="after")
    @classmethod
    def _names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            try:
                parse_model_name(name)
            except UsageError as error:
                raise ValueError(str(error)) from error
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is listed twice: remove one")
        return names

    @property
    def threshold(self) -> float:
        return 1.0 if self.passThreshold is None else self.passThreshold

    def settings_of(self, model: str) -> ModelSettings:
        return self.modelSettingsOf.get(model, self.modelSettings)


@dataclass(frozen=True, slots=True)
class Suite:
    """A configuration and the file it came from."""

    file: Path
    config: SuiteConfig
    lines: PlacedYaml

    @property
    def folder(self) -> Path:
        return self.file.parent


def read_suite(file: Path, environment: Mapping[str, str]) -> Suite:
    """Read and check one file. Nothing is called; all that is wrong is told at once."""
    placed = _with_model_settings(_expanded(read_yaml(file), environment))
    if not isinstance(placed.value, dict):
        raise UsageError(
            f"{file}:1: this is not a configuration: it has to have modelsToTest, testCases and mcpServers"
        )
    config = placed.read(SuiteConfig)
    gathered(list(_problems(placed, config)))
    return Suite(file, config, placed)


def config_schema() -> dict[str, Any]:
    """The JSON Schema that editors check and complete a configuration with."""
    schema = SuiteConfig.model_json_schema(by_alias=False)
    schema["title"] = "MCP evaluation"
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    for shape in (schema["$defs"]["SuiteCase"],):
        shape["properties"]["expectedToolUsage"] = shape["properties"]["expectedOutput"]
        shape["required"] = ["prompt"]
    call = {"$ref": "#/$defs/ExpectedCall"}
    expected = {"anyOf": [call, {"type": "array", "items": call, "minItems": 1}, {"type": "null"}]}
    for name in ("expectedOutput", "expectedToolUsage"):
        told = schema["$defs"]["SuiteCase"]["properties"][name].get("description", "")
        schema["$defs"]["SuiteCase"]["properties"][name] = {**expected, "description": told}
    return schema


def _expanded(placed: PlacedYaml, environment: Mapping[str, str]) -> PlacedYaml:
    """With `${NAME}` replaced everywhere but in what servers are given in confidence."""
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
                what = f"${{{name}}} is not set: set {name}, in the environment, in .env or in .env.local"
                missing.append(placed.problem(key, what))
        if key[:1] == ("mcpServers",) and len(key) > 2 and key[2] in _LEFT_TO_SERVERS:
            return value
        return _VARIABLE.sub(lambda found: environment.get(found[1], found[0]), value)

    value = expand(placed.value, ())
    gathered(missing)
    return PlacedYaml(placed.file, value, placed.lines)


def _with_model_settings(placed: PlacedYaml) -> PlacedYaml:
    """`modelSettings` holds settings for all, and beside them settings of single models under their names."""
    settings = placed.value.get("modelSettings") if isinstance(placed.value, dict) else None
    if not isinstance(settings, dict) or not isinstance(placed.value, dict):
        return placed
    single = {name: value for name, value in settings.items() if ":" in name or "/" in name}
    common = {name: value for name, value in settings.items() if name not in single}
    of = {name: {**common, **value} if isinstance(value, dict) else value for name, value in single.items()}
    lines = dict(placed.lines)
    for key, line in placed.lines.items():
        if key[:1] == ("modelSettings",) and len(key) > 1 and key[1] in single:
            lines[("modelSettingsOf", *key[1:])] = line
    value: dict[str, JsonValue] = {**placed.value, "modelSettings": common}
    if of:
        value["modelSettingsOf"] = of
    return PlacedYaml(placed.file, value, lines)


def _problems(placed: PlacedYaml, config: SuiteConfig) -> Iterator[str]:
    yield from _twice(placed, "mcpServers", [server.name for server in config.mcpServers])
    yield from _twice(placed, "testCases", [case.name for case in config.testCases])
    for model in config.modelSettingsOf:
        if model not in config.modelsToTest:
            settings: Key = ("modelSettings", model)
            yield placed.problem(settings, f"{model!r} is not among modelsToTest: add it there, or remove its settings")
    for at, case in enumerate(config.testCases):
        yield from _case_problems(placed, at, case)
    if config.judge is not None:
        try:
            parse_model_name(config.judge)
        except UsageError as error:
            yield placed.problem(("judge",), str(error))
    graded = config.gradingPrompt is not None or any(case.gradingPrompt for case in config.testCases)
    if graded and config.judge is None:
        key = ("gradingPrompt",) if config.gradingPrompt is not None else ("testCases",)
        yield placed.problem(key, "a gradingPrompt needs a `judge: provider:model` to grade with")


def _case_problems(placed: PlacedYaml, at: int, case: SuiteCase) -> Iterator[str]:
    spellings: tuple[Key, ...] = (("testCases", at, "expectedToolUsage"), ("testCases", at, "expectedOutput"))
    base = next(key for key in spellings if key in placed.lines)
    for place, call in enumerate(case.expectedOutput or ()):
        inside = (*base, place) if (*base, place) in placed.lines else base
        for name, problem in matcher_problems(call.parameters):
            yield placed.problem((*inside, "parameters", *_parts(name)), problem)
    if case.expectedResults is not None and case.expectedOutput is None:
        yield placed.problem(("testCases", at, "expectedResults"), "has no meaning where no tool should be called")


def _parts(place: str) -> Key:
    """`a.b[0]` as a key."""
    return tuple(int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", place))


def _twice(placed: PlacedYaml, what: str, names: list[str] | list[str | None]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for at, name in enumerate(names):
        if name is None:
            continue
        if name in seen:
            yield placed.problem(
                (what, at, "name"), f"{name!r} is used twice, first by {what}[{seen[name]}]: rename one"
            )
        seen.setdefault(name, at)
