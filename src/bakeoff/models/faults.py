"""Whose doing it is when a model call fails."""

import re

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
_MAY_PASS_STATUS = (408, 409, 425)  # timed out waiting for us, in conflict with itself, too early

# What servers of one's own say (llama.cpp, LM Studio, Ollama), which have no code for it.
_TOO_LONG = re.compile(r"context (size|length|window)|exceed_context_size|(prompt|input) is too long", re.IGNORECASE)
_REFUSED = {"content_filter", "content_policy_violation", "invalid_prompt", "data_inspection_failed"}


def fault(error: ai.AgentRunError | ai.UserError, model: str) -> TrialError | Busy:
    """What an error of a provider's means for the trial.

    `Busy` may pass. A prompt that is too long, or an answer that takes too long, is the subject's failure. All else is
    the provider's or ours: a quota, a wrong key, an unknown model, a request it will not read, an answer nobody can.
    """
    message = f"{model}: {error}"
    if isinstance(error, ai.ModelContextWindowExceededError):
        return ContextOverflow(message)
    if isinstance(error, ai.ModelRequestTimeout):
        return SubjectTimeout(message)
    if isinstance(error, ai.ModelRequestRejectedError) and _TOO_LONG.search(message):
        return ContextOverflow(message)
    if isinstance(error, ai.ModelQuotaExceededError | ai.ModelRequestRejectedError | ai.UserError):
        return InfraError(message, permanent=True)
    if isinstance(error, _MAY_PASS):
        return Busy(message, retry_after=_retry_after(error), overloaded=isinstance(error, _TOO_MUCH))
    if isinstance(error, ai.ModelHTTPError) and error.status_code < 500 and error.status_code not in _MAY_PASS_STATUS:
        return InfraError(message, permanent=True)
    return Busy(message)


def refusal(error: ai.AgentRunError | ai.UserError) -> str | None:
    """What was said where the provider would not put the question to the model: that, too, is an answer."""
    if not isinstance(error, ai.ModelRequestRejectedError) or error.provider_error_code not in _REFUSED:
        return None
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return str(said or error)


def _retry_after(error: ai.AgentRunError) -> float | None:
    seconds = getattr(error, "retry_after", None)
    return float(seconds) if seconds is not None else None
