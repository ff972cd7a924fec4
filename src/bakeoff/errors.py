"""One exception tree. Who is to blame decides where an error goes.

    BakeoffError
    ├── UsageError            the person at the keyboard: exit 2, nothing has run
    │   ├── PlanError         every problem of a plan, gathered
    │   └── SandboxMissing    a rung that was insisted on is not there
    ├── RunFolderError        a run folder that cannot be read, written or is taken: exit 2
    ├── ToolError             a tool's word that it was called wrongly: told to the subject, which may go on
    └── TrialError            ends one phase of one trial; never reaches the person as a traceback
        ├── SubjectError      the subject's own doing: the trial fails
        │   └── ContextOverflow   what it was told and said no longer fits its context
        ├── SubjectTimeout    the subject's own doing: it was too slow
        ├── InfraError        ours or the provider's: excluded from the score, retried
        ├── BudgetError       the run's limits were reached: excluded, retried on resume
        └── GraderError       a scorer broke: excluded, scored again on resume

The message names the value, the place and the way out.
"""

from collections.abc import Sequence


class BakeoffError(Exception):
    """Anything this package raises on purpose."""


class UsageError(BakeoffError):
    """What was asked for cannot be done as asked."""


class PlanError(UsageError):
    """Everything that is wrong with a plan, found before the first trial."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class SandboxMissing(UsageError):
    """The sandbox that was insisted on is not on this machine."""


class RunFolderError(BakeoffError):
    """A run folder is missing, damaged, taken by another process or cannot be written."""


class ToolError(BakeoffError):
    """What a tool says of a call it cannot carry out; the subject is told and may try again."""


class TrialError(BakeoffError):
    """Ends one phase of one trial."""


class SubjectError(TrialError):
    """The subject did something wrong; it is its own failure."""


class ContextOverflow(SubjectError):
    """The conversation no longer fits the model's context."""


class SubjectTimeout(TrialError):
    """The subject did not finish in its time; it scores 0 and is never retried."""


class InfraError(TrialError):
    """Our side or the provider's broke; says nothing about the subject.

    `retry_after` is the wait in seconds that the other side asked for; `permanent` says that trying again in this run
    would fail again.
    """

    def __init__(self, message: str, *, retry_after: float | None = None, permanent: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.permanent = permanent


class BudgetError(TrialError):
    """A limit of the run (cost, tokens, time) was reached."""


class GraderError(TrialError):
    """A scorer broke; says nothing about the subject."""
