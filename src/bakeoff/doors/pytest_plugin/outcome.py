"""What one eval came to: the data that travels from a worker to the controller, and into every report."""

from typing import Literal

from bakeoff._kernel.json import CleanJson, CleanText
from bakeoff._kernel.model import FrozenModel
from bakeoff.plan import SubjectSpec
from bakeoff.record import NO_USAGE, Record, Usage

Gate = Literal["mean", "pass@k", "pass^k"]


class EvalOutcome(FrozenModel):
    """One case of a suite, or one `to_eval`, with a record for each round."""

    nodeid: CleanText
    suite: CleanText  # what its users call it: the test function, or the name given to `describe_eval`
    case: CleanText
    input: CleanText  # as it is shown
    expected: CleanJson = None
    threshold: float | None = 1.0
    gate: Gate = "mean"
    null_as_zero: bool = False
    parameters: CleanText = ""  # of pytest's `parametrize`, where they are a column of the matrix
    subject: SubjectSpec | None = None  # of the records; said once by each process
    records: tuple[Record, ...] = ()
    score: float | None = None  # what the gate compares with the threshold
    passed: bool | None = None  # None: recorded without a threshold, or not decided
    problem: CleanText | None = None  # why it could not be decided: a scorer that broke, a task that nobody could run

    @property
    def seconds(self) -> float:
        return sum(record.attempt.seconds for record in self.records if record.attempt)

    @property
    def used(self) -> Usage:
        """By the task; what scorers used is apart."""
        return sum((record.used for record in self.records), NO_USAGE)

    @property
    def judging(self) -> Usage:
        return sum((record.judging for record in self.records), NO_USAGE)
