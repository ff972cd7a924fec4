"""Read the token counts that providers report in their replies."""

from collections.abc import Mapping
from typing import Any, Literal

Reply = Literal["chat", "responses", "anthropic", "google"]
"""The format of a reply: OpenAI's chat completions or responses, Anthropic's messages, Google's Gemini."""

_EXTRACTORS: Mapping[Reply, tuple[str, str, str]] = {
    "chat": ("openai", "chat", "usage"),
    "responses": ("openai", "responses", "usage"),
    "anthropic": ("anthropic", "default", "usage"),
    "google": ("google", "default", "usageMetadata"),
}
_FIELDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "output_reasoning_tokens",
}

_TOTALS: Mapping[Reply, Mapping[str, str]] = {
    "chat": {"input": "prompt_tokens", "output": "completion_tokens"},
    "responses": {"input": "input_tokens", "output": "output_tokens"},
    "anthropic": {"input": "input_tokens", "output": "output_tokens"},
    "google": {"input": "promptTokenCount", "output": "candidatesTokenCount"},
}
"""The plain counts of each format, read where `extract_usage` refuses a usage object as incomplete."""


def reported_counts(usage: Any, format: Reply) -> dict[str, int] | None:
    """Return the counts in a reply's usage object under the names of `Usage`, without those that it does not report.

    None means that it has no usable counts.
    """
    from genai_prices import extract_usage  # slow to import

    provider, flavor, key = _EXTRACTORS[format]
    try:  # without the model, which the price list may not know
        found = extract_usage({key: usage}, provider_id=provider, api_flavor=flavor).usage
        counts = {ours: getattr(found, theirs, None) for ours, theirs in _FIELDS.items()}
    except (ValueError, LookupError, AttributeError, TypeError):  # counts are missing, or not of the expected type
        counts = (
            {ours: usage.get(theirs) for ours, theirs in _TOTALS[format].items()} if isinstance(usage, dict) else {}
        )
    return {name: count for name, count in counts.items() if type(count) is int and count >= 0} or None
