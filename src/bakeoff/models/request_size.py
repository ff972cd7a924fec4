"""Tell a request that a provider refuses for its own size from one that has to wait.

A provider answers both with status 429. The first is the doing of whoever wrote the request, and no wait helps.
"""

import re
from collections.abc import Mapping

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
_ABOUT_THE_REQUEST = (None, 400, 422, _RATE_LIMITED)  # others are about keys, addresses and the provider


def is_refused_for_size(status: int | None, said: str, headers: Mapping[str, str], characters: int) -> bool:
    """Return whether a refusal is about the size of the request itself.

    Args:
        status: the HTTP status; None where there was none.
        said: the words of the provider.
        headers: of its answer, with names in lower case.
        characters: the size of the request.
    """
    if status == _ENTITY_TOO_LARGE:
        return True
    if status not in _ABOUT_THE_REQUEST:
        return False
    if found := _REQUESTED.search(said):  # the numbers decide, whatever the words around them
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
