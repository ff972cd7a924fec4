"""The model of a result file, with the field names of the format, and its steps as parts of transcripts.

Objects are written with the fields with which they were created, so that imported ones do not
change. Objects that bakeoff creates (`known`) omit empty fields, except for the few that the format
writes as null. Unknown fields are ignored. The key `bakeoff` has the additions to the format.
"""

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    StrictBool,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from bakeoff._kernel.text import count_of
from bakeoff.doors.result_files import (
    CamelObject,
    HiddenTests,
    Moment,
    written_shortest,
)
from bakeoff.logs.trials import END_OF_TIME, MAX_NUMBER, seconds_of
from bakeoff.plan import Name
from bakeoff.record import Part, ProvenTests, Reasoning, Step, Text, ToolCall, UnitTests, Usage
from bakeoff.verdict import Verdict

LEGACY_NAME = "legacy"
"""The test name in files of the old form, which hold one test without a name."""

MAX_LENGTH = 4000  # characters of a name
_MAX_COUNT = 10_000  # tests of a file, steps of a test, blocks of a step


def _finite(value: JsonValue) -> JsonValue:
    """Refuse infinite numbers: 1e999 is valid JSON."""
    inner: Iterable[JsonValue] = ()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large to be kept")
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    for item in inner:
        _finite(item)
    return value


FreeJson: TypeAlias = Annotated[JsonValue, AfterValidator(_finite)]
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=MAX_NUMBER)]
Number: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=MAX_NUMBER), written_shortest()]
Money: TypeAlias = Annotated[float, Field(strict=True, ge=-MAX_NUMBER, le=MAX_NUMBER), written_shortest()]
"""USD, or tokens that are billed. Older files have negative ones, where more tokens were cached than read."""
Short: TypeAlias = Annotated[str, Field(max_length=MAX_LENGTH)]
ShortName: TypeAlias = Annotated[Name, Field(max_length=500)]
Transport: TypeAlias = Literal["HTTP", "StdIO"]


class FileObject(CamelObject):
    """An object of the file."""

    written_as_null: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def known(cls, **given: Any) -> Self:
        """Create an object, leaving out fields without a value."""
        return cls(**{name: value for name, value in given.items() if value is not None or name in cls.written_as_null})

    @model_serializer(mode="wrap")
    def _only_fields_that_were_set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        made = {fields[name].alias or name if name in fields else name for name in self.model_fields_set}
        return {name: value for name, value in handler(self).items() if name in made or name == "type"}


_CALLED = ("tool_call_id", "tool_name")
_NEEDED = {
    **dict.fromkeys(("text", "reasoning"), ("text",)),
    **dict.fromkeys(("tool-call", "tool-result", "tool-error"), _CALLED),
}
"""The types of blocks that are read, and the fields that they must have."""


class ContentBlock(FileObject):
    """A part of a step: text, reasoning, a call of a tool, or its result, which has the same id.

    A `tool-error` reports a tool that raised an error. Other types of blocks keep only their type.
    """

    type: str
    text: str = ""
    tool_call_id: Short = ""
    tool_name: Short = ""
    input: FreeJson = None
    output: FreeJson = None
    error: FreeJson = None

    @model_validator(mode="before")
    @classmethod
    def _without_unknown(cls, block: Any) -> Any:
        known = not isinstance(block, dict) or block.get("type") in [*_NEEDED]  # a list: the type may be unhashable
        return block if known else {name: value for name, value in block.items() if name == "type"}

    @model_validator(mode="after")
    def _check_needed(self) -> Self:
        for name in _NEEDED.get(self.type, ()):
            if name not in self.model_fields_set:
                raise ValueError(f"{self.type!r} needs {to_camel(name)}")
        return self

    def call(self, **returned: JsonValue) -> ToolCall:
        """Return the call of a tool, with its result if that is known."""
        made = ToolCall(name=self.tool_name, arguments=self.input, id=self.tool_call_id)
        return made.model_copy(update=returned)


class StepUsage(FileObject):
    """`inputTokens` is the whole prompt, cached tokens included."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    total_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class StepResult(FileObject):
    """One answer of the model. `usage` is missing where the provider reported none."""

    content: tuple[ContentBlock, ...] = Field(default=(), max_length=_MAX_COUNT)
    finish_reason: Short = "unknown"
    usage: StepUsage | None = None
    warnings: tuple[FreeJson, ...] | None = None
    response: dict[str, FreeJson] | None = None


class FailedTest(FileObject):
    """A test that did not pass, with the first error that it gave."""

    full_name: str
    error_message: str = ""


class Validation(FileObject):
    """The result of the suite's validator, which checks the code itself."""

    valid: StrictBool
    errors: tuple[str, ...] = ()


class Verification(FileObject):
    """The result of one suite's tests. `duration` is in milliseconds."""

    test_name: ShortName
    passed: StrictBool
    num_tests: Count
    num_passed: Count
    num_failed: Count
    duration: Number = 0.0
    error: str | None = None
    failed_tests: tuple[FailedTest, ...] | None = Field(default=None, max_length=_MAX_COUNT)
    validation: Validation | None = None
    validation_failed: StrictBool | None = None

    @model_validator(mode="after")
    def _check_counts(self) -> "Verification":
        if self.num_passed > self.num_tests:
            raise ValueError(f"numPassed is {self.num_passed}, more than numTests, which is {self.num_tests}")
        return self

    @property
    def reason(self) -> str:
        """Return why the component did not pass, if the file says so."""
        if self.value == 1.0:
            return ""
        refused = self.validation.errors if self.validation_failed and self.validation else ()
        first = [f"{test.full_name}: {test.error_message}".rstrip(": ") for test in (self.failed_tests or ())[:1]]
        why = self.error or (refused[0] if refused else "") or "".join(first)
        counts = (
            "the validator refused it"
            if self.validation_failed
            else f"{self.num_passed} of {count_of(self.num_tests, 'test')} passed"
        )
        return f"{counts}; {why}" if why else counts

    @property
    def value(self) -> float:
        """Return the share of passed tests; an error outside of them counts as a failed test."""
        if self.validation_failed:  # some files say `passed` besides
            return 0.0
        if self.passed:
            return 1.0
        if not self.num_tests:
            return 0.0
        return min(self.num_passed, self.num_tests - 1) / self.num_tests

    @property
    def unit_tests(self) -> UnitTests:
        """Return how many tests passed; none count if the validator refused the component."""
        passed = 0 if self.validation_failed else min(self.num_passed, self.num_tests)
        return UnitTests(passed=passed, total=self.num_tests)


class ComponentResult(FileObject):
    """One test of the file: the result of one suite."""

    written_as_null = frozenset({"result_write_content", "verification"})

    test_name: ShortName
    prompt: str = ""
    steps: tuple[StepResult, ...] = Field(default=(), max_length=_MAX_COUNT)
    result_write_content: str | None = None
    verification: Verification | None = None


class Pricing(FileObject):
    """USD per million tokens."""

    input_cost_per_m_tok: Number = Field(alias="inputCostPerMTok")
    output_cost_per_m_tok: Number = Field(alias="outputCostPerMTok")
    cache_read_cost_per_m_tok: Number | None = Field(default=None, alias="cacheReadCostPerMTok")
    cache_creation_cost_per_m_tok: Number | None = Field(default=None, alias="cacheCreationCostPerMTok")


class TotalCost(FileObject):
    """USD and tokens. `inputTokens` are those billed at the input rate, `cachedInputTokens` at the read rate."""

    input_cost: Money
    output_cost: Money
    cache_read_cost: Money = 0.0
    total_cost: Money
    input_tokens: Annotated[int, Field(strict=True, ge=-MAX_NUMBER, le=MAX_NUMBER)]
    output_tokens: Count
    cached_input_tokens: Count = 0


class SimulatedCache(FileObject):
    """`cacheSimulation`. Unknown fields are kept: the format allows more."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, FreeJson] = Field(init=False)

    simulated_cost_with_cache: Money
    cache_hits: Count
    cache_write_tokens: Count


class UnitTestTotals(FileObject):
    """The tests of all suites that were graded. `score` is the percentage that passed."""

    total: Count
    passed: Count
    failed: Count
    score: Number | None = None  # older files do not have it

    @property
    def share(self) -> float:
        """Return the percentage of tests that passed."""
        return percentage(self.passed, self.total) if self.score is None else self.score


class ComponentsMetadata(FileObject):
    """The subject, its prices and its totals. `timestamp` is when the run began."""

    written_as_null = frozenset({"mcp_server_url", "mcp_transport_type", "timestamp"})

    mcp_enabled: StrictBool = False
    mcp_server_url: Short | None = None
    mcp_transport_type: Transport | None = None
    timestamp: Moment | None = None
    model: ShortName = "unknown"
    pricing_key: Short | None = None
    pricing: Pricing | None = None
    total_cost: TotalCost | None = None
    cache_simulation: SimulatedCache | None = None
    unit_test_totals: UnitTestTotals | None = None


class ResultServer(FileObject):
    """An MCP server, with an address that contains no password or token."""

    name: ShortName
    transport: Transport
    address: Short


class TrialFacts(FileObject):
    """The facts of a trial for which the format has no field: its verdict and its times."""

    test_name: ShortName
    verdict: Verdict
    reason: str | None = None
    attempt_seconds: Number | None = None
    score_seconds: Number | None = None
    started: Annotated[Number, Field(lt=END_OF_TIME)] | None = None
    tries: Count | None = None
    bound: StrictBool | None = None
    hidden_tests: HiddenTests | None = None
    proven_tests: ProvenTests | None = None


class ComponentsAdditions(FileObject):
    """The key `bakeoff`. Rounds count from 1; `spent` includes retries and attempts that were cut off."""

    version: Short
    run: Short | None = None  # the run folder that the file was computed from
    subject: ShortName
    kind: ShortName
    round: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1
    rounds: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] = 1
    checkout: Short | None = None  # the folder of the suites, or `bundled`
    commit: Short | None = None  # of that folder; the version, for bundled suites
    left_out: tuple[Annotated[str, Field(max_length=10_000)], ...] = ()  # why suites of the folder could not be used
    replayed: Count | None = None  # trials that were answered from recordings, at least in part
    mcp_servers: tuple[ResultServer, ...] = ()
    mcp_tools_hash: Short | None = None
    spent: dict[str, Number | None] = {}
    cache_write_cost: Number | None = None
    not_run: tuple[ShortName, ...] = ()
    hidden_tests: HiddenTests | None = None  # where a share of the tests was hidden from the model
    proven_tests: ProvenTests | None = None  # of all suites
    trials: tuple[TrialFacts, ...] = Field(default=(), max_length=_MAX_COUNT)


_UNKNOWN = {
    "mcpEnabled": False,
    "mcpServerUrl": None,
    "mcpTransportType": None,
    "timestamp": None,
    "model": "unknown",
}
"""The metadata of a file of the old form without metadata."""


class ComponentsResult(FileObject):
    """One subject in one round."""

    tests: tuple[ComponentResult, ...] = Field(max_length=_MAX_COUNT)
    metadata: ComponentsMetadata = ComponentsMetadata()
    bakeoff: ComponentsAdditions | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_old_form(cls, data: Any) -> Any:
        """Convert the old form, in which a file held one test with its fields at the top."""
        if not isinstance(data, dict) or "tests" in data or "steps" not in data:
            return data
        one = {name: value for name, value in data.items() if name not in ("metadata", "bakeoff")}
        test = {"testName": LEGACY_NAME, "prompt": "", "resultWriteContent": None, "verification": None, **one}
        return {"tests": [test], "metadata": data.get("metadata") or _UNKNOWN}

    @field_validator("tests")
    @classmethod
    def _check_names(cls, tests: tuple[ComponentResult, ...]) -> tuple[ComponentResult, ...]:
        seen: set[str] = set()
        for test in tests:
            if test.test_name in seen:
                raise ValueError(f"testName {test.test_name!r:.100} is used more than once")
            seen.add(test.test_name)
        return tests

    def to_json(self) -> bytes:
        """Return the contents of the file."""
        return self.model_dump_json(indent=2).encode() + b"\n"


def totals_of(tests: Iterable[ComponentResult]) -> UnitTestTotals:
    """Add up the tests of all verified suites. If validation failed, no test of the suite counts as passed."""
    checked = [test.verification for test in tests if test.verification is not None]
    counts = sum((found.unit_tests for found in checked), UnitTests(passed=0, total=0))
    score = percentage(counts.passed, counts.total)
    return UnitTestTotals(total=counts.total, passed=counts.passed, failed=counts.total - counts.passed, score=score)


def percentage(passed: int, total: int) -> int:
    """Return the percentage, with halves rounded up as in JavaScript's Math.round."""
    return (200 * passed + total) // (2 * total) if total else 0


_UNSAFE = re.compile(r"[^a-zA-Z0-9.]")
_STAMP = re.compile(r"(?:result-)?(\d{4}-\d{2}-\d{2})[-T](\d{2})-(\d{2})-(\d{2})(?!\d)")  # files have -, runs have T
_MAX_LENGTH = 100  # of a model or of servers; file systems allow 255 bytes for a whole name


def sanitize_model_name(model: str) -> str:
    """Return a model's name as part of a file name."""
    return _UNSAFE.sub("-", model)[:_MAX_LENGTH]


def timestamped_name(
    timestamp: str | None, model: str | None = None, servers: Iterable[str] = (), round_: int | None = None
) -> str:
    """Return `result-YYYY-MM-DD-HH-MM-SS-<model>[-mcp-<name>][-r<round>].json`; rounds count from 1."""
    moment = datetime.fromtimestamp(seconds_of(timestamp) or 0, UTC)
    parts = [f"result-{moment:%Y-%m-%d-%H-%M-%S}"]
    parts += [sanitize_model_name(model)] if model else []
    named = sanitize_model_name("-".join(servers))
    parts += [f"mcp-{named}"] if named else []
    parts += [f"r{round_}"] if round_ is not None else []
    return "-".join(parts) + ".json"


def stamp_in(name: str) -> str | None:
    """Return the time in the name of a result file, or of a run folder: when the run began."""
    found = _STAMP.match(name)
    if found is None:
        return None
    day, clock = found[1], ":".join(found.groups()[1:])
    stamp = f"{day}T{clock}.000Z"
    return None if seconds_of(stamp) is None else stamp


SUITE = "suite"
"""The scorer to which a verification belongs."""
VERIFICATION = "verification"
"""Key of the verification in the metadata of its score."""


class RecordedSubject(ComponentsMetadata):
    """The options of an imported subject: the metadata in its file. Totals are never recomputed."""

    bakeoff: ComponentsAdditions | None = Field(
        default=None, description="from a file that bakeoff wrote, without its trials"
    )


RESULT_WRITE = "ResultWrite"
TEST_COMPONENT = "TestComponent"
BUILT_IN = (RESULT_WRITE, TEST_COMPONENT)
"""Our own tools. All others are those of MCP servers."""

_OUR_REASONS = {"tool_call": "tool-calls", "content_filter": "content-filter"}
_THEIR_REASONS = {theirs: ours for ours, theirs in _OUR_REASONS.items()}


def extract_result_write_content(steps: Iterable[Step]) -> str | None:
    """Return the submitted component: the content of the first accepted `ResultWrite` call."""
    for step in steps:
        for part in step.parts:
            if isinstance(part, ToolCall) and part.name == RESULT_WRITE and part.error is None:
                content = part.arguments.get("content") if isinstance(part.arguments, dict) else None
                if isinstance(content, str):
                    return content
    return None


_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cached_input_tokens": "cache_read",
    "reasoning_tokens": "reasoning",
}


def write_step(step: Step) -> StepResult:
    """Return a step as a file has it: the model's text and calls first, then the results of the calls."""
    said = [_block(part, place) for place, part in enumerate(step.parts)]
    returned = [
        ContentBlock(type="tool-result", **_called(part, place), output=_output(part))
        for place, part in enumerate(step.parts)
        if isinstance(part, ToolCall)
    ]
    used = step.usage
    counts = {theirs: getattr(used, ours) for theirs, ours in _COUNTS.items()}
    known = used.tokens or not used.requests  # unknown if the provider sent no counts
    reason = step.finish_reason or "unknown"
    return StepResult(
        content=(*said, *returned),
        finish_reason=_OUR_REASONS.get(reason, reason),
        usage=StepUsage(**counts, total_tokens=used.tokens) if known else StepUsage(),
        warnings=(),
        response={},
    )


def _output(call: ToolCall) -> JsonValue:
    """Return the result of a tool. Results of MCP servers get the form that the protocol defines."""
    found = call.result
    if call.error is not None:
        return {"error": call.error}
    if call.name in BUILT_IN or found is None or (isinstance(found, dict) and isinstance(found.get("content"), list)):
        return found
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}]}


def _block(part: Part, place: int) -> ContentBlock:
    if isinstance(part, ToolCall):
        return ContentBlock(type="tool-call", **_called(part, place))
    return ContentBlock(type=part.type, text=part.text)


def _called(call: ToolCall, place: int) -> dict[str, Any]:
    called = call.id if call.id is not None else f"call-{place + 1}"
    names = {"tool_call_id": called[:MAX_LENGTH], "tool_name": call.name[:MAX_LENGTH]}  # the model chooses both
    return {**names, "input": call.arguments}


def read_step(step: StepResult) -> Step:
    """Return a step of a file as part of a transcript.

    A result that follows its call, with the same name and input, is stored in the call.
    """
    parts: list[Part] = []
    waiting: dict[str, int] = {}  # the places of calls without a result so far, by id
    for block in step.content:
        if block.type in ("tool-result", "tool-error"):
            place = waiting.get(block.tool_call_id)
            call = None if place is None else parts[place]
            if place is None or not isinstance(call, ToolCall) or not _same(call, block):
                parts.append(block.call(**_returned(block)))
            else:
                del waiting[block.tool_call_id]
                parts[place] = call.model_copy(update=_returned(block))
        elif block.type == "tool-call":
            waiting[block.tool_call_id] = len(parts)
            parts.append(block.call())
        elif block.type in _NEEDED:
            parts.append(Text(text=block.text) if block.type == "text" else Reasoning(text=block.text))
    counts = step.usage or StepUsage()
    usage = Usage(requests=1, **{ours: getattr(counts, theirs) or 0 for theirs, ours in _COUNTS.items()})
    reason = _THEIR_REASONS.get(step.finish_reason, step.finish_reason)
    return Step(parts=tuple(parts), usage=usage, finish_reason=reason)


def _returned(block: ContentBlock) -> dict[str, JsonValue]:
    if block.type == "tool-result":
        return {"result": block.output}
    return {"error": block.error if isinstance(block.error, str) else json.dumps(block.error)}


def _same(call: ToolCall, block: ContentBlock) -> bool:
    return call.name == block.tool_name and ("input" not in block.model_fields_set or call.arguments == block.input)
