"""Recognise errors of providers that may pass: they say nothing about the application, and another try may succeed."""

from collections.abc import Mapping

from bakeoff.errors import InfraError
from bakeoff.models.replies import is_refused_for_size
from bakeoff.sdk_results.plain_data import classes_of

_PACKAGES = frozenset(
    {
        "aiohttp",
        "anthropic",
        "botocore",
        "cohere",
        "google",
        "groq",
        "httpx",
        "httpx2",
        "litellm",
        "mistralai",
        "openai",
        "pydantic_ai",
        "requests",
    }
)
_CONNECTION = frozenset(
    {
        "APIConnectionError",
        "ClientConnectionError",
        "ConnectionError",
        "ConnectTimeout",
        "EndpointConnectionError",
        "ModelConnectionError",
        "NetworkError",
        "RemoteProtocolError",
        "TimeoutException",
        "Timeout",
    }
)
_MAY_PASS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST = 500


def provider_failure(error: BaseException) -> InfraError | None:
    """Return the failure of a provider or of the network that an SDK raised; None if it is another error."""
    ours = [each for each in classes_of(error) if each.__module__.partition(".")[0] in _PACKAGES]
    if not ours:
        return None
    status = _status(error)
    headers = getattr(getattr(error, "response", None), "headers", None)
    limits = {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, Mapping) else {}
    if is_refused_for_size(status, str(error), limits, characters=0):
        return None  # the application wrote that request
    may_pass = status in _MAY_PASS if status is not None else any(each.__name__ in _CONNECTION for each in ours)
    if not may_pass:
        return None
    return InfraError(f"{type(error).__name__}: {error}"[:_LONGEST], retry_after=_retry_after(error))


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (error, "status"), (error, "code"), (response, "status_code")):
        if isinstance(value := getattr(holder, name, None), int) and not isinstance(value, bool):
            return value
    return None


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        return float(headers["retry-after"]) if headers is not None else None
    except (KeyError, TypeError, ValueError):
        return None
