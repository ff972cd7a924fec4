"""Test which errors of an SDK are the provider's, and which are the application's own."""

import httpx2
import openai
import pytest

from bakeoff.sdk_results.provider_errors import provider_failure


def refused(message: str, **headers: str) -> openai.RateLimitError:
    response = httpx2.Response(429, headers=headers, request=httpx2.Request("POST", "http://127.0.0.1"))
    return openai.RateLimitError(message, response=response, body=None)


@pytest.mark.parametrize("message", ["Request too large for tiny", "TPM: Limit 30000, Requested 45000"])
def test_a_request_that_is_too_large_is_the_applications(message: str) -> None:
    assert provider_failure(refused(message)) is None


def test_a_rate_limit_is_the_providers() -> None:
    found = provider_failure(refused("TPM: Limit 30000, Used 29000, Requested 2000", **{"retry-after": "7"}))
    assert found is not None
    assert found.retry_after == 7.0
