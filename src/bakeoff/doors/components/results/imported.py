"""Keep what a result file says and records have no field for, as typed data in the plan and the transcript."""

from typing import Literal

from pydantic import Field, JsonValue

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.components.results.model import (
    Additions,
    Pricing,
    SimulatedCache,
    TotalCost,
    Transport,
    UnitTestTotals,
)
from bakeoff.record import Transcript

NOTES = "result_file"
"""Key of `TranscriptNotes` in a transcript's metadata."""

SUITE = "suite"
"""The scorer that a verification belongs to."""
VERIFICATION = "verification"
"""Key of the verification in the metadata of its score."""

BlockKind = Literal["part", "bare", "result", "output", "silent", "nothing"]
"""The kinds of blocks that one part becomes. `part` is the part itself or a call, `bare` a call without input. A result
is `result` with input and output, `output` or `silent` with one of them, `nothing` with neither."""


class RecordedSubject(FrozenModel):
    """The options of an imported subject: those that its file has. Totals are the file's own, never recomputed."""

    model: str = "unknown"
    mcp_enabled: bool = False
    mcp_server: str | None = None
    mcp_transport: Transport | None = None
    recorded: str | None = Field(default=None, description="the time that the file states")
    pricing_key: str | None = None
    price: Pricing | None = None
    cost: TotalCost | None = None
    cached: SimulatedCache | None = None
    units: UnitTestTotals | None = None
    additions: Additions | None = Field(default=None, description="from a file that bakeoff wrote, without its trials")


OPTION_OF = {
    "mcp_enabled": "mcp_enabled",
    "mcp_server_url": "mcp_server",
    "mcp_transport_type": "mcp_transport",
    "timestamp": "recorded",
    "model": "model",
    "pricing_key": "pricing_key",
    "pricing": "price",
    "total_cost": "cost",
    "cache_simulation": "cached",
    "unit_test_totals": "units",
}
"""Fields of a file's metadata, with the subject options that hold them."""


class StepNotes(FrozenModel):
    """What a file says about a step besides its content and usage."""

    warnings: tuple[JsonValue, ...] | None = None
    response: dict[str, JsonValue] | None = None
    total_tokens: int | None = Field(default=None, description="if it is not the sum of input and output")
    finish_reason: str | None = Field(default=None, description="the file's word, if ours differs")
    absent: tuple[str, ...] = Field(default=(), description="fields of a step that the file does not have")
    null: tuple[str, ...] = Field(default=(), description="fields of a step that are null there")
    unknown: tuple[str, ...] = Field(default=(), description="counts of tokens that the file does not have")
    null_counts: tuple[str, ...] = Field(default=(), description="counts of tokens that are null there")
    order: tuple[tuple[int, BlockKind], ...] | None = Field(
        default=None, description="of blocks, if it is not the usual one"
    )


OWN_NOTES = StepNotes(warnings=(), response={})
"""The notes of a step that bakeoff recorded itself."""


class TranscriptNotes(FrozenModel):
    absent: tuple[str, ...] = Field(default=(), description="fields of a test that the file does not have")
    steps: tuple[StepNotes, ...] = ()

    def of(self, place: int) -> StepNotes:
        return self.steps[place] if place < len(self.steps) else OWN_NOTES


def notes_in(transcript: Transcript) -> TranscriptNotes:
    return TranscriptNotes.model_validate(transcript.metadata.get(NOTES, {}))
