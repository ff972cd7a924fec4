"""Token counts of provider replies."""

import pytest

from bakeoff.models.replies import Reply, reported_counts


@pytest.mark.parametrize(
    ("format", "usage", "counts"),
    [
        ("chat", {"prompt_tokens": 10, "completion_tokens": 2}, {"input": 10, "output": 2}),
        ("chat", {"prompt_tokens": 10}, {"input": 10}),
        ("anthropic", {"output_tokens": 4}, {"output": 4}),
        ("google", {"promptTokenCount": 10, "candidatesTokensDetails": [{"modality": "TEXT"}]}, {"input": 10}),
        ("google", {"cachedContentTokenCount": 4, "candidatesTokenCount": 5}, {"output": 5}),
        (
            "google",
            {"promptTokenCount": 10, "candidatesTokenCount": 5, "promptTokensDetails": [{"modality": 5}]},
            {"input": 10, "output": 5},
        ),
        ("google", {"promptTokenCount": -1}, None),
        ("chat", {"prompt_tokens": "ten"}, None),
        ("responses", [], None),
        ("responses", None, None),
    ],
)
def test_incomplete_usage_keeps_its_plain_counts_and_never_raises(
    format: Reply, usage: object, counts: dict[str, int] | None
) -> None:
    found = reported_counts(usage, format)
    assert found is None if counts is None else found is not None and found.items() >= counts.items()
