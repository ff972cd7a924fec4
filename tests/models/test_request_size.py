"""Test which refusals are about the size of a request itself, and which are about waiting."""

import pytest

from bakeoff.models.replies import is_refused_for_size

BUSY = (
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Try again in 2s."
)
ANTHROPIC = "This request would exceed your organization's rate limit of 30,000 input tokens per minute"


@pytest.mark.parametrize(
    ("status", "said", "headers", "characters"),
    [
        (413, "", {}, 0),
        (400, "This model's maximum context length is 8192 tokens", {}, 0),
        (None, "the input is too long", {}, 0),
        (429, "Request too large for gpt-4o", {}, 0),
        (429, "tokens per min: Limit 30,000, Requested 45,000", {}, 0),
        (429, ANTHROPIC, {}, 200_000),
        (429, "slow down", {"x-ratelimit-limit-tokens": "30000"}, 200_000),
        (429, "slow down", {"anthropic-ratelimit-input-tokens-limit": "30000"}, 200_000),
    ],
)
def test_a_request_that_no_wait_helps_is_refused_for_its_size(
    status: int | None, said: str, headers: dict[str, str], characters: int
) -> None:
    assert is_refused_for_size(status, said, headers, characters)


@pytest.mark.parametrize(
    ("status", "said", "headers", "characters"),
    [
        (429, BUSY, {}, 8000),
        (429, "Too many requests", {"retry-after": "20"}, 200_000),
        (429, ANTHROPIC, {}, 8000),
        (429, "slow down", {"x-ratelimit-limit-tokens": "30000"}, 8000),
        (429, "slow down", {"x-ratelimit-limit-tokens": "many"}, 8000),
        (429, "slow down", {"x-ratelimit-limit-tokens": "0"}, 8000),
        (429, f"Limit {'9' * 9000}, Requested 1", {}, 8000),
        (503, "the request is too large for us today", {}, 200_000),
        (403, "your key may not use the long context window", {}, 200_000),
        (401, "no", {}, 0),
    ],
)
def test_a_request_that_may_pass_later_is_not(
    status: int | None, said: str, headers: dict[str, str], characters: int
) -> None:
    assert not is_refused_for_size(status, said, headers, characters)
