"""Whose doing it is when a model call fails."""

from pydantic_ai import exceptions as ai

from bakeoff.errors import ContextOverflow, InfraError, SubjectTimeout, TrialError
from bakeoff.models.gate import Busy

_MAY_PASS = (
    ai.ModelRateLimitError,
    ai.ModelUnavailableError,
    ai.ModelServerError,
    ai.ModelConnectionError,
)
_TOO_MUCH = (ai.ModelRateLimitError, ai.ModelOverloadedError)


def fault(error: ai.AgentRunError, model: str) -> TrialError | Busy:
    """What an error of a provider's means for the trial.

    `Busy` may pass. A prompt that is too long, or an answer that takes too long, is the subject's failure. All else is
    the provider's or ours: a quota, a wrong key, an unknown model, a request it will not read, an answer nobody can.
    """
    message = f"{model}: {error}"
    if isinstance(error, ai.ModelContextWindowExceededError):
        return ContextOverflow(message)
    if isinstance(error, ai.ModelRequestTimeout):
        return SubjectTimeout(message)
    if isinstance(error, ai.ModelQuotaExceededError | ai.ModelRequestRejectedError):
        return InfraError(message, permanent=True)
    if isinstance(error, _MAY_PASS):
        return Busy(message, retry_after=_retry_after(error), overloaded=isinstance(error, _TOO_MUCH))
    if isinstance(error, ai.ModelHTTPError) and error.status_code < 500:
        return InfraError(message, permanent=True)
    return Busy(message)


def _retry_after(error: ai.AgentRunError) -> float | None:
    seconds = getattr(error, "retry_after", None)
    return float(seconds) if seconds is not None else None
