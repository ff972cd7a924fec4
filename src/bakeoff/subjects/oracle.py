"""`oracle` gives the reference. A case that it fails is broken."""

from dataclasses import dataclass
from typing import Self

from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import Case, SubjectSpec, read_options
from bakeoff.protocols import Needs, Task
from bakeoff.record import Transcript


@dataclass(frozen=True, slots=True)
class BoundOracle:
    """The oracle of one case."""

    case: Case

    @property
    def needs(self) -> Needs:
        return Needs(workspace=bool(self.case.reference))

    async def attempt(self, task: Task) -> Transcript:
        if self.case.reference:
            task.workspace.write(self.case.reference)
        return Transcript(output=self.case.expected)


@dataclass(frozen=True, slots=True)
class Oracle:
    @classmethod
    def from_spec(cls, spec: SubjectSpec) -> Self:
        read_options(spec, FrozenModel)
        return cls()

    def bind(self, case: Case) -> BoundOracle:
        return BoundOracle(case)
