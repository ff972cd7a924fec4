"""Recognise temporary errors of providers, which are not the application's fault."""

from collections.abc import Mapping
from contextlib import suppress

from bakeoff.errors import InfraError
from bakeoff.models.replies import is_refused_for_size
from bakeoff.sdk_results.plain_data import classes_of

_PACKAGES = (
    *("aiohttp", "anthropic", "botocore", "cohere", "google", "groq", "httpx", "httpx2", "litellm", "mistralai"),
    *("openai", "pydantic_ai", "requests"),
)
_CONNECTION = (
    *("APIConnectionError", "ClientConnectionError", "ConnectionError", "ConnectTimeout", "EndpointConnectionError"),
    *("ModelConnectionError", "NetworkError", "RemoteProtocolError", "TimeoutException", "Timeout"),
)
_MAY_PASS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_LENGTH = 500


def provider_failure(error: BaseException) -> InfraError | None:
    """Return the failure of a provider or network that an SDK raised; None for other errors."""
    ours = [each for each in classes_of(error) if each.__module__.partition(".")[0] in _PACKAGES]
    if not ours:
        return None
    status, response = None, getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (error, "status"), (error, "code"), (response, "status_code")):
        found = getattr(holder, name, None)
        if status is None and isinstance(found, int) and not isinstance(found, bool):
            status = found
    sent = getattr(response, "headers", None)
    headers = {str(name).lower(): str(value) for name, value in sent.items()} if isinstance(sent, Mapping) else {}
    if is_refused_for_size(status, str(error), headers, characters=0):
        return None  # the application's request is wrong
    may_pass = status in _MAY_PASS if status is not None else any(each.__name__ in _CONNECTION for each in ours)
    if not may_pass:
        return None
    seconds = None
    with suppress(KeyError, ValueError):
        seconds = float(headers["retry-after"])
    return InfraError(f"{type(error).__name__}: {error}"[:_MAX_LENGTH], retry_after=seconds)
