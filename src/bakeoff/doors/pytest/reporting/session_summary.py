"""The numbers of a session, and the results of its gates: what every report of it shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bakeoff._kernel.model import FrozenModel
from bakeoff.doors.pytest.reporting.numbers import Numbers, SuiteName, Tallies

if TYPE_CHECKING:  # most sessions compare nothing
    from bakeoff.report.summary import Comparisons


class GateResult(FrozenModel):
    """The result of one gate on the whole run. `met` None: it refuses to decide, which is not met either."""

    option: str
    met: bool | None
    sentence: str


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """The numbers of a run: the head of the file of `--eval-json`."""

    tallies: Tallies
    suites: dict[SuiteName, Numbers]
    numbers: Numbers
    gates: tuple[GateResult, ...] = ()
    complete: bool = True
    shards: int = 1
    comparisons: "Comparisons | None" = None


def summary_of(
    tallies: Tallies, gates: Sequence[GateResult] = (), *, complete: bool = True, shards: int = 1
) -> SessionSummary:
    """Return the numbers of every suite and of all together."""
    numbers = {name: tally.numbers() for name, tally in tallies.suites.items()}
    total = next(iter(numbers.values())) if len(numbers) == 1 else tallies.whole().numbers()
    return SessionSummary(tallies, numbers, total, tuple(gates), complete, shards)
