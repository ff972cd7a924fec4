"""The cases of a configuration: a prompt with the expected calls, or several turns of a conversation."""

from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    Strict,
    TypeAdapter,
    ValidationError,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from bakeoff._kernel.model import sparse_field
from bakeoff.scorers.entries import ScorerEntries
from bakeoff.scorers.mcp.calls import CallRules, EndCheck, ExpectedMcpCall, GradedText, written_calls

SPELLINGS = ("expectedOutput", "expectedToolUsage")
"""Both names of one key: ours, and the one in older files."""

Truth = Annotated[bool, Strict()]
OF_A_TURN = (
    *("prompt", *SPELLINGS, "expectedResults", "alternatives"),
    *("order", "extraCalls", "maxCalls", "expectedError"),
)
"""The keys that, in a case with several turns, belong into each turn."""


class McpTurn(CallRules):
    """A message of the user and the expected calls."""

    prompt: str = Field(min_length=1)
    expectedOutput: tuple[ExpectedMcpCall, ...] | None = Field(
        validation_alias=AliasChoices(*SPELLINGS),
        description="the call, a list of calls in order, or null if no tool should be called",
    )
    expectedResults: JsonValue = Field(
        default=None, description="what the tool's result must contain; executes the tool"
    )
    alternatives: tuple[tuple[ExpectedMcpCall, ...] | None, ...] = sparse_field(
        (), "other calls that are right too, each written like expectedOutput"
    )

    @field_validator("prompt")
    @classmethod
    def _check_prompt(cls, prompt: str) -> str:
        if not prompt.strip():
            raise ValueError(f"{prompt!r} is empty: write what a person would ask")
        return prompt

    @field_validator("expectedError")
    @classmethod
    def _check_error(cls, error: bool | str | None) -> bool | str | None:
        if isinstance(error, str) and not error.strip():
            raise ValueError(f"{error!r} is empty: write a part of the error, or true for any error")
        return error

    @field_validator("expectedOutput", mode="before")
    @classmethod
    def _as_list(cls, value: Any) -> Any:
        """Accept one call where a list is expected. Refuse an empty list, which is neither null nor a call."""
        if isinstance(value, list) and not value:
            raise ValueError("[] is empty: write null if no tool should be called")
        return [value] if isinstance(value, dict) else value

    @field_validator("alternatives", mode="before")
    @classmethod
    def _as_lists(cls, value: Any) -> Any:
        return [cls._as_list(each) for each in value] if isinstance(value, list) else value

    @field_serializer("expectedOutput")
    def _as_written(self, calls: tuple[ExpectedMcpCall, ...] | None) -> Any:
        return written_calls(calls)

    @field_serializer("alternatives")
    def _all_as_written(self, alternatives: tuple[tuple[ExpectedMcpCall, ...] | None, ...]) -> Any:
        return [written_calls(calls) for calls in alternatives]

    @property
    def rules(self) -> CallRules:
        return CallRules(**{name: getattr(self, name) for name in CallRules.model_fields})


class McpCase(McpTurn):
    """One prompt and the expected call, or several turns.

    With turns, `prompt` has the prompts of all turns and `expectedOutput` all expected calls.
    """

    gradingPrompt: str | None = Field(default=None, min_length=1, description="replaces the one for all cases")
    gradedText: GradedText | None = sparse_field(None, "replaces the one for all cases")
    executeTools: Truth | None = Field(default=None, description="replaces the one for all cases")
    tools: tuple[str, ...] | None = sparse_field(
        None, "the only tools that this case offers: their names, or server/name; all if absent", min_length=1
    )
    turns: tuple[McpTurn, ...] = sparse_field(
        (), "the messages of a conversation, instead of a prompt; a turn that fails ends it"
    )
    expected: JsonValue = sparse_field(None, "the answer that `scorers` compare with; models never see it")
    scorers: ScorerEntries | None = sparse_field(
        None, "of the model's answer, beside the comparison of calls; instead of those of the file", min_length=1
    )
    endState: tuple[EndCheck, ...] = sparse_field((), "what must hold after the case; executes the tools")
    name: str | None = Field(default=None, min_length=1)
    tags: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_turns(cls, value: Any) -> Any:
        """Derive the prompt and the expected calls of all turns. Problems of turns are reported at their own places."""
        if not isinstance(value, dict) or not value.get("turns"):
            return value
        try:
            turns = _TURNS.validate_python(value["turns"])
        except ValidationError:
            return {**value, "prompt": "invalid", SPELLINGS[0]: None}
        calls = [call.model_dump() for turn in turns for call in turn.expectedOutput or ()]
        prompt = "\n\n".join(f"Turn {number}: {turn.prompt}" for number, turn in enumerate(turns, 1))
        return {**value, "prompt": prompt, SPELLINGS[0]: calls or None}

    @model_serializer(mode="wrap")
    def _without_derived(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {name: value for name, value in written.items() if not self.turns or name not in OF_A_TURN}

    @property
    def parts(self) -> tuple[McpTurn, ...]:
        """Return the turns. A case without turns is its own only turn."""
        return self.turns or (self,)

    def names(self, number: int) -> frozenset[str | None]:
        """Return the names that select the case: its name, its tags, and its number from 1."""
        return frozenset((self.name, str(number), *self.tags))


_TURNS: TypeAdapter[tuple[McpTurn, ...]] = TypeAdapter(tuple[McpTurn, ...])
