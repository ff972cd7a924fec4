"""What a result file says and the core has no field for, as typed data in the plan and the transcript."""

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

RECORDED = "recorded"
"""The kind of a subject that is known only by what was written of it."""
NOTES = "result_file"
"""Where a transcript's metadata has them."""

SUITE = "suite"
"""The scorer whose word a verification is."""
VERIFICATION = "verification"
"""Where the metadata of its score has it."""

Half = Literal["part", "bare", "result", "output", "silent", "nothing"]
"""Of a part: itself or the call; a call without an input. Of its result: with input and output; with the output alone;
with the input alone; with neither."""


class RecordedSubject(FrozenModel):
    """The options of a subject that was read from a file: those that the file has, and no others.

    Totals are the file's own, and nothing computes them anew.
    """

    model: str = "unknown"
    mcp_enabled: bool = False
    mcp_server: str | None = None
    mcp_transport: Transport | None = None
    recorded: str | None = Field(default=None, description="when, in the file's own words")
    pricing_key: str | None = None
    price: Pricing | None = None
    cost: TotalCost | None = None
    cached: SimulatedCache | None = None
    units: UnitTestTotals | None = None
    additions: Additions | None = Field(default=None, description="of a file that bakeoff wrote, without its trials")


KEPT_AS = {
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
"""Fields of a file's metadata, and the options of the subject that hold them."""


class StepNotes(FrozenModel):
    """What a file says of a step besides what was said and used in it."""

    warnings: tuple[JsonValue, ...] | None = None
    response: dict[str, JsonValue] | None = None
    total_tokens: int | None = Field(default=None, description="where they are not the sum of input and output")
    finish_reason: str | None = Field(default=None, description="the file's word, where ours is another")
    absent: tuple[str, ...] = Field(default=(), description="fields of a step that the file does not have")
    null: tuple[str, ...] = Field(default=(), description="fields of a step that are null there")
    unknown: tuple[str, ...] = Field(default=(), description="counts of tokens that the file does not have")
    null_counts: tuple[str, ...] = Field(default=(), description="counts of tokens that are null there")
    order: tuple[tuple[int, Half], ...] | None = Field(default=None, description="of blocks, where it is not the usual")


OURS = StepNotes(warnings=(), response={})
"""What is written for a step of our own."""


class TranscriptNotes(FrozenModel):
    absent: tuple[str, ...] = Field(default=(), description="fields of a test that the file does not have")
    steps: tuple[StepNotes, ...] = ()

    def of(self, place: int) -> StepNotes:
        return self.steps[place] if place < len(self.steps) else OURS


def notes_in(transcript: Transcript) -> TranscriptNotes:
    return TranscriptNotes.model_validate(transcript.metadata.get(NOTES, {}))
