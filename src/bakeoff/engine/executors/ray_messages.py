"""Define the messages between the driver of a run and its Ray workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bakeoff._kernel.clock import Delay
from bakeoff.models.rate_limit import Outcome
from bakeoff.options import RunOptions
from bakeoff.record import Record, Usage

# --- from the driver to a worker ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """Everything that a worker needs to run trials of a plan, but the plan.

    It has secrets, so it travels as the argument of a call, from memory to memory. Ray itself puts arguments of more
    than 100 kB into its object store, which may spill to a disk.
    """

    version: str
    source: str  # of the registry
    folder: str  # the current folder of the driver
    options: RunOptions
    environment: Mapping[str, str] = field(repr=False)
    marker: str | None  # a file among the recordings


@dataclass(frozen=True, slots=True)
class Start:
    """Run a trial. `job` is unique, also if the trial was started before on a worker that was lost."""

    job: int
    trial: int
    prior: Record | None
    spent: Usage


@dataclass(frozen=True, slots=True)
class Cancel:
    job: int


@dataclass(frozen=True, slots=True)
class Drain:
    pass


@dataclass(frozen=True, slots=True)
class Close:
    """Cancel what runs, and close the resources."""


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """A provider's slot. The worker has to give it back."""

    request: int


@dataclass(frozen=True, slots=True)
class SpendingReport:
    """The spending of the run on all nodes."""

    spent: Usage
    counted: int  # how many reports of this worker are in it
    reached: str | None  # a sentence about the limit that has been reached


# --- from a worker to the driver ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeOpened:
    """The worker can run trials."""


@dataclass(frozen=True, slots=True)
class NodeFailed:
    """The worker cannot run trials, or met an error that is no trial's."""

    reason: str
    ended: bool = False  # it runs nothing any more


@dataclass(frozen=True, slots=True)
class NodeClosed:
    left_behind: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TrialEnded:
    job: int
    record: Record


@dataclass(frozen=True, slots=True)
class UsageSpent:
    job: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class TrialsWanted:
    """A trial needs a slot of a provider. All workers together get `most` at a time."""

    request: int
    provider: str
    most: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A slot is no longer held, or no longer wanted."""

    request: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class WaitNotice:
    """A trial waits, or waits no longer."""

    trial: int
    delay: Delay | None


ToWorker = Start | Cancel | Drain | Close | BudgetGrant | SpendingReport
ToDriver = NodeOpened | NodeFailed | NodeClosed | TrialEnded | UsageSpent | TrialsWanted | GivenBack | WaitNotice
