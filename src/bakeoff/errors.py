"""One exception tree. The cause decides how an error is handled.

    BakeoffError
    ├── UsageError            the user asked for something impossible: exit 2, nothing has run
    │   ├── PlanError         all problems of a plan
    │   └── SandboxMissing    the requested sandbox is not available
    ├── RunFolderError        a run folder cannot be read or written, or is in use: exit 2
    ├── ToolError             a tool was called wrongly: the subject is told and may continue
    └── TrialError            ends one phase of one trial; users never see its traceback
        ├── SubjectError      caused by the subject: the trial fails
        │   ├── ContextOverflow   the conversation no longer fits the model's context
        │   └── RequestTooLarge   the provider answers smaller requests and refuses this one
        ├── SubjectTimeout    caused by the subject: it was too slow
        ├── InfraError        caused by us or the provider: excluded from the score, retried
        │   └── ToolTimeout       a server did not answer a call in time
        ├── BudgetError       a limit of the run was reached: excluded, retried on resume
        └── GraderError       a scorer broke: excluded, scored again on resume

Each message names the value, the place and how to fix the problem.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.record import Transcript


class BakeoffError(Exception):
    """The base of all exceptions that this package raises on purpose."""


class UsageError(BakeoffError):
    """A request cannot be carried out as given."""


class PlanError(UsageError):
    """One or more problems of a plan, all found before the first trial."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class SandboxMissing(UsageError):
    """The requested sandbox is not available on this machine."""


class RunFolderError(BakeoffError):
    """A run folder is missing, damaged, in use by another process, or cannot be written."""


class ToolError(BakeoffError):
    """A tool cannot carry out a call; the subject is told and may try again."""


class TrialError(BakeoffError):
    """Ends one phase of one trial."""

    transcript: "Transcript | None" = None
    """The transcript up to the error, if there is one: it shows what was paid for and what happened."""


class SubjectError(TrialError):
    """The subject failed through its own fault."""


class ContextOverflow(SubjectError):
    """The conversation no longer fits the model's context."""


class RequestTooLarge(SubjectError):
    """The provider kept refusing a large request of the subject but answered smaller ones."""


class SubjectTimeout(TrialError):
    """The subject did not finish within its time limit. It scores 0 and is never retried."""


class InfraError(TrialError):
    """Bakeoff or the provider failed. This says nothing about the subject.

    Attributes:
        retry_after: how many seconds the provider asks to wait.
        permanent: a retry would fail too.
        exhausted: all allowed retries have failed; a later trial may succeed.
        stops_subject: every other trial of the subject would fail too, for example because its key is refused.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        permanent: bool = False,
        exhausted: bool = False,
        stops_subject: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.permanent = permanent or stops_subject
        self.exhausted = exhausted
        self.stops_subject = stops_subject


class ToolTimeout(InfraError):
    """A server did not answer a call within its time limit."""


class BudgetError(TrialError):
    """A limit of the run (cost, tokens, time) was reached."""


class GraderError(TrialError):
    """A scorer broke. This says nothing about the subject."""
