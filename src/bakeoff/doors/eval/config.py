"""Define the keys of `bakeoff.yaml`, and its JSON Schema. Every problem names its file, line and key."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, Field, JsonValue, PositiveFloat, PositiveInt, Strict, field_validator, model_validator
from pydantic.errors import PydanticInvalidForJsonSchema

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import shown
from bakeoff.mcp import ServerSpec
from bakeoff.models.prices import PriceOptions
from bakeoff.models.prompt_templates import PromptTemplate
from bakeoff.plan import ScorerSpec, SubjectSpec
from bakeoff.protocols import Scorer
from bakeoff.scorers.checks import CONDITIONS, WITHOUT_VALUE
from bakeoff.scorers.entries import BESIDE_A_KIND, ScorerEntries, ScorerEntry, kinds_for_files
from bakeoff.scorers.transforms import Transform

CONFIG_NAME = "bakeoff.yaml"
EMBEDDED = "local:smollm2"
"""The model that is asked if a file names none. It runs on this machine and needs no key."""

CONTROLS = ("oracle", "nop")
KINDS = ("model", "command", "function", "control", "scripted")
FILE = "file:"

Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict()]
Truth = Annotated[bool, Strict()]
Share = Annotated[Number, Field(ge=0, le=1)]
Text = Annotated[str, Field(min_length=1)]
Label: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]

EXAMPLES = {
    "prompts": "write a text, `file:prompt.txt`, or a list of them",
    "subjects": "list models, such as `- local:smollm2`",
    "cases": "list cases, each with an `input` and an `expected`, or write `file:cases.csv`",
    "scorers": "list scorers, such as `- contains`",
    "transform": "write a JMESPath such as `items[0].id`, or a template such as `{{ output | lower }}`",
    "threshold": "write a share, such as 0.8",
    "vars": "write names and values, such as `{city: Oslo}`",
    "tags": "write a list such as [smoke]",
    "columns": "write names and columns, such as `{input: question}`",
    "command": "write each word by itself, such as [python, my_app.py]",
    "limits": "write {max_cost, max_total_tokens, max_seconds, jobs}",
    "mcp": "list servers, each with a `name` and a `command` or `url`",
    "env": "write `NAME: value`, such as `{API_KEY: '${API_KEY}'}`",
}
"""Examples of correct values, by the names of keys, for error messages."""


def path_in(text: str) -> str | None:
    """Return the path of a text such as `file:prompts/*.txt`, or None if the text is not a path."""
    return text.removeprefix(FILE).removeprefix("//") if text.startswith(FILE) else None


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


class _OneOf(FrozenModel):
    """An object that must have exactly one of several keys."""

    one_of: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        given = [name for name in self.one_of if getattr(self, name) is not None]
        if len(given) != 1:
            some = ", ".join(f"`{name}`" for name in self.one_of[:-1]) + f" or `{self.one_of[-1]}`"
            raise ValueError(f"has {' and '.join(given)}: keep one" if given else f"needs {some}")
        return self


class PromptEntry(_OneOf):
    """A prompt: a text or a file, both of which may be Jinja templates. A text alone is short for `{text: …}`."""

    one_of = ("text", "file")

    name: Label | None = Field(default=None, description="shown in tables; the file's name, or a number, if absent")
    text: Text | None = Field(default=None, description="the prompt; `{{ name }}` stands for a value of the case")
    file: Text | None = Field(default=None, description="a file, or a pattern such as `prompts/*.txt`, one prompt each")

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        if isinstance(value, int | float):
            raise ValueError(f"{shown(value)}: has to be a text: put it in quotes")
        if not isinstance(value, str):
            return value
        path = path_in(value)
        return {"text": value} if path is None else {"file": path}


class SubjectEntry(_OneOf):
    """A subject: a model, command, function, script or control. A text names a model or control."""

    one_of = KINDS

    name: Label | None = Field(default=None, description="shown in tables; the model, command or function if absent")
    model: Text | None = Field(default=None, description="`provider:model`, such as `local:smollm2`")
    command: tuple[Text, ...] | None = Field(
        default=None, min_length=1, description="a program and its arguments; what it prints is the answer"
    )
    function: Text | None = Field(default=None, description="`module:function`; it gets the prompt, returns the answer")
    control: Literal["oracle", "nop"] | None = Field(
        default=None,
        description="`oracle` gives the expected answer, `nop` none: both check the cases, without a judge",
    )
    scripted: JsonValue = Field(default=None, description="the answer to everything, or `{answers: {case: answer}}`")
    # of a model
    system: Text | None = Field(default=None, description="the system prompt, or `file:system.txt`")
    temperature: Annotated[Number, Field(ge=0)] | None = Field(default=None, description="the provider's if absent")
    max_tokens: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="the longest answer")
    seed: Whole | None = Field(default=None, description="the number of the round if absent")
    send_seed: Truth = Field(default=True, description="false: the provider gets no seed")
    timeout: Annotated[Number, Field(gt=0)] | None = Field(default=None, description="seconds for one answer")
    stream: Truth = Field(default=False, description="read the answer as it is written")
    output_schema: dict[str, JsonValue] | None = Field(default=None, description="JSON Schema that an answer must fit")
    base_url: Text | None = Field(default=None, description="address of an OpenAI-compatible API for this provider")
    key_variable: Text | None = Field(default=None, description="the variable that has the key for `base_url`")
    price: PriceOptions | None = Field(default=None, description="USD per million tokens, if it is not known")
    mcp: tuple[ServerSpec, ...] = Field(default=(), description="MCP servers whose tools the model may call")
    max_steps: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="answers with tool calls; 10")
    # of a command
    input: Literal["stdin", "argument"] = Field(
        default="stdin", description="how a command gets the prompt: `argument` adds it, or replaces `{prompt}`"
    )
    env: dict[str, str] = Field(default={}, description="variables of a command; `${NAME}` is a variable of yours")
    sandbox: Literal["auto", "none"] = Field(
        default="auto", description="where a command runs: in the sandbox of the run, or as you"
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return {"control": value} if value in CONTROLS else {"model": value}


OF_KINDS = {
    "model": (
        *("system", "temperature", "max_tokens", "seed", "send_seed", "timeout", "stream", "output_schema"),
        *("base_url", "key_variable", "price", "mcp", "max_steps"),
    ),
    "command": ("input", "env", "sandbox"),
}
"""The keys of a subject that belong to only one kind."""


class CaseEntry(FrozenModel):
    """A case or a source of cases: a file, a folder of a data set, or a function."""

    name: Label | None = Field(default=None, description="the beginning of its input if absent")
    input: JsonValue = Field(default=None, description="`{{ input }}` in prompts; without `prompts`, the prompt")
    vars: dict[str, JsonValue] = Field(default={}, description="values for prompts; scorers can read them, too")
    expected: JsonValue = Field(default=None, description="what scorers compare the answer with; models never see it")
    scorers: ScorerEntries | None = Field(
        default=None, min_length=1, description="of this case, instead of those of the file"
    )
    transform: Transform | None = Field(default=None, description="of this case, instead of that of the file")
    threshold: Share | None = Field(default=None, description="of this case, instead of that of the file")
    tags: tuple[Text, ...] | dict[str, str] = Field(default=(), description="select cases with --case; tables by tag")
    # of a source
    file: Text | None = Field(
        default=None, description="CSV, JSONL, JSON, YAML or Parquet; a pattern such as `cases/*.jsonl`"
    )
    dataset: Text | None = Field(default=None, description="the folder of a Hugging Face data set that is on disk")
    split: Text | None = Field(default=None, description="of a `dataset`, such as `test`")
    function: Text | None = Field(default=None, description="`module:function`, whose result yields objects")
    columns: dict[str, str] = Field(default={}, description="other names of columns: `{input: question}`")
    limit: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="only the first so many cases")

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        path = path_in(value)
        return {"input": value} if path is None else {"file": path}

    @property
    def source(self) -> str | None:
        """Return the key that names the source of cases, or None if this is a case."""
        return next((name for name in SOURCES if getattr(self, name) is not None), None)


SOURCES = ("file", "dataset", "function")
OF_A_SOURCE = ("split", "columns", "limit")
OF_A_CASE = ("name", "input", "vars", "expected", "scorers", "transform", "threshold")
"""The keys that an entry with a source of cases must not have. Its `tags` are added to each case of the source."""


class LimitsConfig(FrozenModel):
    """The limits of a run, and of one trial."""

    max_cost: PositiveFloat | None = Field(default=None, description="USD of the whole run; --max-cost")
    max_total_tokens: PositiveInt | None = Field(default=None, description="tokens of all trials; --max-total-tokens")
    max_seconds: PositiveFloat | None = Field(default=None, description="time of the run; --max-seconds")
    jobs: PositiveInt | None = Field(
        default=None, description="trials at the same time, two for each core (at most 8) if absent; --jobs"
    )
    attempt_seconds: PositiveFloat | None = Field(default=None, description="time of one trial's answer; 300")
    score_seconds: PositiveFloat | None = Field(default=None, description="time to score one answer; 120")


class EvalConfig(FrozenModel):
    """A whole configuration, with the keys of the file."""

    name: Label | None = Field(default=None, description="of the runs; the folder's name if absent")
    prompts: tuple[PromptEntry, ...] = Field(
        default=(), min_length=1, description="a prompt or a list; each is tried with each case. Absent: `{{ input }}`"
    )
    subjects: tuple[SubjectEntry, ...] = Field(
        default=(SubjectEntry(model=EMBEDDED),), min_length=1, description="what is compared; the embedded model"
    )
    cases: tuple[CaseEntry, ...] = Field(
        default=(), min_length=1, description="cases, and files of cases. Absent: each prompt is one case"
    )
    scorers: ScorerEntries = Field(default=(), min_length=1, description="how answers are scored")
    transform: Transform = Field(
        default=(), description="changes each answer before it is scored: a JMESPath of JSON, or Jinja with `output`"
    )
    judge: Text | None = Field(default=None, description="`provider:model` of scorers that ask a model")
    threshold: Share | None = Field(
        default=1.0, description="the score that an answer needs to pass; null only records scores"
    )
    rounds: Annotated[Whole, Field(ge=1)] = Field(default=1, description="how often each subject gets each prompt")
    seed: Whole = Field(default=0, description="of the first round; later rounds count up")
    limits: LimitsConfig = LimitsConfig()

    @field_validator("prompts", "subjects", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return _listed(value)

    @field_validator("judge", mode="before")
    @classmethod
    def _judge_by_name(cls, value: Any) -> Any:
        if isinstance(value, dict):
            raise ValueError(
                "is the name of a model, such as `openai:gpt-5`; a variable such as OPENAI_BASE_URL has its address"
            )
        return value

    @field_validator("cases", mode="before")
    @classmethod
    def _list_cases(cls, value: Any) -> Any:
        if isinstance(value, str):  # alone, a text is a file
            return [{"file": path_in(value) or value}]
        return _listed(value)


def printable(text: str, longest: int = 200) -> str:
    """Return a text as a name: in one line, without control characters, and cut if it is long."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * longest]).split())
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class SuitePrompt:
    """A prompt with its name and its place, as `file:line: key`."""

    name: str
    template: PromptTemplate
    where: str


@dataclass(frozen=True, slots=True)
class PromptCase:
    """A case whose prompt is not filled in yet."""

    where: str
    name: str | None = None
    input: Any = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = None
    scorers: tuple[ScorerSpec, ...] | None = None
    threshold: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    around: tuple[str, str] = ("", "")  # stands before and after the prompt


@dataclass(frozen=True, slots=True)
class PromptSuite:
    """A configuration after it was read and checked."""

    file: Path
    name: str
    prompts: tuple[SuitePrompt, ...]
    subjects: tuple[SubjectSpec, ...]
    cases: tuple[PromptCase, ...]
    scorers: tuple[ScorerSpec, ...]
    built: Mapping[str, Scorer]  # by the digests of their specs
    threshold: float | None = 1.0
    rounds: int = 1
    seed: int = 0
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    warnings: tuple[str, ...] = ()  # about what is not understood, or not run
    sources: tuple[Path, ...] = ()  # the files that it was read from
    mapping: tuple[tuple[str, str, int], ...] = ()  # parts of another tool's file, what they are here, how many


SCHEMA_NAME = "bakeoff.schema.json"
_ENTRIES: dict[str, type[BaseModel]] = {
    "prompts": PromptEntry,
    "subjects": SubjectEntry,
    "cases": CaseEntry,
    "scorers": ScorerEntry,
}


def schema_text() -> str:
    """Return the JSON schema of `bakeoff.yaml`, as `bakeoff init eval` writes it for editors."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


@cache
def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration, including all short forms."""
    schema = EvalConfig.model_json_schema()
    shapes = schema["$defs"]
    shapes["ScorerEntry"] = scorer_shape()
    for model in (PromptEntry, SubjectEntry):
        shapes[model.__name__]["oneOf"] = [{"required": [name]} for name in model.one_of]
    texts: dict[str, Any] = {
        "prompts": {"type": "string", "minLength": 1},
        "subjects": {"anyOf": [{"enum": list(CONTROLS)}, {"type": "string", "pattern": "[:/]"}]},
        "cases": {"type": "string", "description": "an input, or `file:cases.csv`"},
    }
    entries: list[tuple[Any, str, type[BaseModel]]] = [(schema["properties"], *entry) for entry in _ENTRIES.items()]
    entries.append((shapes["CaseEntry"]["properties"], "scorers", ScorerEntry))
    for properties, key, shape in entries:
        ref = {"$ref": f"#/$defs/{shape.__name__}"}
        item = {"anyOf": [texts[key], ref]} if key in texts else ref
        several = {"type": "array", "items": item, "minItems": 1}
        properties[key] = {"description": properties[key]["description"], "anyOf": [item, several]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Bakeoff",
        "description": "Compare models, commands and functions on your own prompts.",
    }


def scorer_shape() -> dict[str, Any]:
    """Return the JSON Schema of a scorer: a kind, or a kind with its options."""
    beside = ScorerEntry.model_json_schema(mode="validation")["properties"]
    properties: dict[str, Any] = {name: beside[name] for name in BESIDE_A_KIND}
    kinds = kinds_for_files()
    for kind, known in kinds.items():
        fields = _field_shapes(known.load().options_model())
        options: dict[str, Any] = {"type": "object"}
        if fields:
            options |= {"properties": fields, "additionalProperties": False}
        properties[kind] = {"anyOf": [options, {"type": "null"}]}
        if known.main:
            alone = f"alone: `{known.main}`"
            properties[kind] = {"anyOf": [options, {"not": {"type": "object"}}], "description": alone}
    properties |= {kind: {"description": "a condition of `checks`"} for kind in CONDITIONS if kind not in kinds}
    one = [{"required": [kind]} for kind in properties if kind not in BESIDE_A_KIND]
    whole = {"type": "object", "properties": properties, "additionalProperties": False, "oneOf": one}
    return {"title": "Scorer", "anyOf": [{"enum": [*kinds, *WITHOUT_VALUE]}, whole]}


def _field_shapes(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of each option. Options that have none, such as functions, allow anything."""
    try:
        shapes = model.model_json_schema()["properties"]
    except PydanticInvalidForJsonSchema:
        return {name: {} for name in model.model_fields}
    return {name: {} if "$ref" in json.dumps(shape) else shape for name, shape in shapes.items()}


def first_files() -> dict[str, str]:
    """Return a small working configuration and its schema, by file name."""
    config = resources.files("bakeoff.bundled").joinpath("eval", CONFIG_NAME).read_text("utf-8")
    return {CONFIG_NAME: config, SCHEMA_NAME: schema_text()}
