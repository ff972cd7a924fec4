"""Keep what a result file says and records have no field for, as typed data in the plan and the transcript."""

from collections.abc import Collection
from typing import Literal, Self, TypeVar

from pydantic import Field, JsonValue
from pydantic_core import to_jsonable_python

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.components.results.model import ComponentsAdditions, ComponentsMetadata, FileObject
from bakeoff.record import Transcript

NOTES = "result_file"
"""Key of `TranscriptNotes` in a transcript's metadata."""

SUITE = "suite"
"""The scorer that a verification belongs to."""
VERIFICATION = "verification"
"""Key of the verification in the metadata of its score."""

Written = TypeVar("Written", bound=FileObject)
BlockKind = Literal["part", "bare", "result", "output", "silent", "nothing"]
"""The kinds of blocks that one part becomes. `part` is the part itself or a call, `bare` a call without input. A result
is `result` with input and output, `output` or `silent` with one of them, `nothing` with neither."""


class RecordedSubject(ComponentsMetadata):
    """The options of an imported subject: the metadata that its file has. Totals are never recomputed."""

    bakeoff: ComponentsAdditions | None = Field(
        default=None, description="from a file that bakeoff wrote, without its trials"
    )


class FileDifference(FrozenModel):
    """How an object of a file differs from the one that bakeoff would write."""

    absent: tuple[str, ...] = Field(default=(), description="fields that the file does not have")
    values: dict[str, JsonValue] = Field(default={}, description="fields with another value in the file")

    @classmethod
    def between(cls, found: FileObject, usual: FileObject, skip: Collection[str] = ()) -> Self:
        """Compare the fields of two objects, without those in `skip`."""
        had = [name for name in type(found).model_fields if name in found.model_fields_set]
        other = [name for name in had if name not in skip and getattr(found, name) != getattr(usual, name)]
        return cls(
            absent=tuple(name for name in type(found).model_fields if name not in had),
            values={name: to_jsonable_python(getattr(found, name)) for name in other},
        )

    def applied(self, usual: Written) -> Written:
        """Return the object of the file."""
        fields = {name: getattr(usual, name) for name in type(usual).model_fields} | self.values
        return type(usual)(**{name: value for name, value in fields.items() if name not in self.absent})


class StepNotes(FrozenModel):
    """What a file says about a step besides its content and usage."""

    step: FileDifference = FileDifference()
    usage: FileDifference = FileDifference()
    order: tuple[tuple[int, BlockKind], ...] | None = Field(
        default=None, description="of blocks, if it is not the usual one"
    )


OWN_NOTES = StepNotes()
"""The notes of a step that bakeoff recorded itself."""


class TranscriptNotes(FrozenModel):
    """Hold the fields of a test that its record lacks."""

    absent: tuple[str, ...] = Field(default=(), description="fields of a test that the file does not have")
    steps: tuple[StepNotes, ...] = ()

    def of(self, place: int) -> StepNotes:
        return self.steps[place] if place < len(self.steps) else OWN_NOTES


def notes_in(transcript: Transcript) -> TranscriptNotes:
    return TranscriptNotes.model_validate(transcript.metadata.get(NOTES, {}))
