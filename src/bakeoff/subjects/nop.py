"""`nop` does nothing. A case that it passes measures nothing."""

from dataclasses import dataclass
from typing import Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import SubjectSpec, read_options
from bakeoff.protocols import Task
from bakeoff.record import Transcript


@dataclass(frozen=True, slots=True)
class Nop:
    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        read_options(spec, FrozenModel)
        return cls()

    async def attempt(self, task: Task) -> Transcript:  # noqa: ARG002 - it does nothing with it
        return Transcript()
