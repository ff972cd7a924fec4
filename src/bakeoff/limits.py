"""What one trial may use. Part of a case, obeyed by every phase and every sandbox."""

from functools import cached_property

from pydantic import Field, PositiveFloat, PositiveInt

from bakeoff.frozen import Frozen, fingerprint


class Limits(Frozen):
    """Bounds of one trial; the seconds are wall-clock."""

    @cached_property
    def attempt_digest(self) -> str:
        """Changes with what a subject can notice: how long scoring may take is none of its business."""
        return fingerprint(self.model_dump(exclude={"score_seconds"}, exclude_defaults=True))

    prepare_seconds: PositiveFloat = 60.0
    attempt_seconds: PositiveFloat = 300.0
    score_seconds: PositiveFloat = 120.0
    memory_mb: PositiveInt = 4096
    processes: PositiveInt = Field(default=256, description="processes and threads alive at one time")
    disk_mb: PositiveInt = Field(default=1024, description="workspace, HOME and TMPDIR together")
    output_kb: PositiveInt = Field(default=1024, description="kept of each of stdout and stderr; more ends the command")
