"""What a result file says and the core has no field for, as typed data in the plan and the transcript."""

from typing import Literal

from pydantic import Field, JsonValue

from bakeoff.doors.components.results.model import (
    Additions,
    Pricing,
    SimulatedCache,
    TotalCost,
    Transport,
    UnitTestTotals,
)
from bakeoff.frozen import Frozen
from bakeoff.record import Transcript

RECORDED = "recorded"
"""The kind of a subject that is known only by what was written of it."""
NOTES = "result_file"
"""Where a transcript's metadata has them."""

SUITE = "suite"
"""The scorer whose word a verification is."""
VERIFICATION = "verification"
"""Where the metadata of its score has it."""

Half = Literal["part", "result", "output"]
"""Of a part: itself or the call; the result of the call; the same without the input repeated."""


class RecordedSubject(Frozen):
    """The options of a subject that was read from a file. Totals are the file's own, and nothing computes them anew."""

    model: str
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


class StepNotes(Frozen):
    """What a file says of a step besides what was said and used in it."""

    warnings: tuple[JsonValue, ...] | None = None
    response: dict[str, JsonValue] | None = None
    total_tokens: int | None = Field(default=None, description="where they are not the sum of input and output")
    unknown: tuple[str, ...] = Field(default=(), description="counts of tokens that the file does not have")
    order: tuple[tuple[int, Half], ...] | None = Field(default=None, description="of blocks, where it is not the usual")


OURS = StepNotes(warnings=(), response={})
"""What is written for a step of our own."""


class TranscriptNotes(Frozen):
    steps: tuple[StepNotes, ...] = ()

    def of(self, place: int) -> StepNotes:
        return self.steps[place] if place < len(self.steps) else OURS


def notes_in(transcript: Transcript) -> TranscriptNotes:
    return TranscriptNotes.model_validate(transcript.metadata.get(NOTES, {}))
