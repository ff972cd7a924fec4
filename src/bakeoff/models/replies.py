"""Read provider replies: token counts, refusals because of a request's size, and errors of connections."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import httpx2

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
"""The basic counts of each format, for usage objects that `extract_usage` refuses as incomplete."""


def reported_counts(usage: Any, format: Reply) -> dict[str, int] | None:
    """Return the counts in a reply's usage object by the names of `Usage`, without missing ones.

    None means that there are no usable counts.
    """
    from genai_prices import extract_usage  # slow to import

    provider, flavor, key = _EXTRACTORS[format]
    try:  # omit the model, which the price list may lack
        found = extract_usage({key: usage}, provider_id=provider, api_flavor=flavor).usage
        counts = {ours: getattr(found, theirs, None) for ours, theirs in _FIELDS.items()}
    except (ValueError, LookupError, AttributeError, TypeError):  # counts are missing, or not of the expected type
        counts = (
            {ours: usage.get(theirs) for ours, theirs in _TOTALS[format].items()} if isinstance(usage, dict) else {}
        )
    return {name: count for name, count in counts.items() if type(count) is int and count >= 0} or None


_TOO_LARGE = re.compile(
    r"(?:request|payload|prompt|input|message|body|content|string)s?(?: entity)?(?: is| was| are)? too (?:large|long)"
    r"|context[ _](?:size|length|window)|exceed_context_size|string_above_max_length|request_too_large"
    r"|tokens must be reduced|reduce (?:the length|your (?:prompt|input|message))"
    r"|exceeds? the (?:maximum|max)(?: allowed)?(?: number of)? (?:input )?(?:tokens|size|length)",
    re.IGNORECASE,
)
_REQUESTED = re.compile(r"limit:? ?([\d,_]+)\b.{0,200}?\brequested:? ?([\d,_]+)", re.IGNORECASE | re.DOTALL)
_LIMIT = re.compile(r"limit of ([\d,_]+) (?:input |output )?tokens", re.IGNORECASE)
_LIMIT_HEADERS = (
    "x-ratelimit-limit-tokens",
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-tokens-limit",
)
_CHARACTERS_PER_TOKEN = 4
_RATE_LIMITED = 429
_ENTITY_TOO_LARGE = 413
_ABOUT_THE_REQUEST = (None, 400, 422, _RATE_LIMITED)  # others concern keys, addresses or the provider


def is_refused_for_size(status: int | None, said: str, headers: Mapping[str, str], characters: int) -> bool:
    """Return True if a request was refused because of its size.

    Args:
        status: the HTTP status, if any.
        said: the provider's message.
        headers: the answer's headers, with names in lower case.
        characters: the length of the request.
    """
    if status == _ENTITY_TOO_LARGE:
        return True
    if status not in _ABOUT_THE_REQUEST:
        return False
    if found := _REQUESTED.search(said):  # the numbers decide, not the words
        limit, requested = map(_number, found.groups())
        return requested > limit
    if _TOO_LARGE.search(said):
        return True
    limits = [_number(found) for found in _LIMIT.findall(said)]
    limits += [_number(headers[name]) for name in _LIMIT_HEADERS if headers.get(name, "").isdecimal()]
    tokens = characters // _CHARACTERS_PER_TOKEN
    return status == _RATE_LIMITED and bool(limits) and 0 < min(limits) < tokens


def _number(digits: str) -> int:
    kept = "".join(char for char in digits if char.isdecimal())[:18]
    return int(kept) if kept else 0


UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
"""The errors of a client that got no connection, because of the name, the port, a proxy or TLS."""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors behind it, the first cause last."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def connection_problem(error: Exception) -> str:
    """Return the cause of a connection error, because SDKs only say "Connection error."."""
    *_, cause = causes_of(error)
    if isinstance(cause, OSError) and cause.strerror:
        return f"cannot connect: {cause.strerror.strip('.')}"
    return f"{error} ({cause})" if str(cause) not in ("", str(error)) else str(error)
