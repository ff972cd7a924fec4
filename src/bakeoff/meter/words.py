"""Errors of the meter's own in the words of each API, so that agents understand them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from bakeoff.errors import BudgetError
from bakeoff.meter.upstreams import Family

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_OPENAI = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    404: "not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


_WORTH_A_RETRY = (408, 429, 502)


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that goes out in one piece."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(family: Family, status: int, message: str) -> Whole:
    """An error that the agent's SDK can read, and whether it is worth asking again."""
    headers = {"content-type": "application/json", "x-should-retry": str(status in _WORTH_A_RETRY).lower()}
    return Whole(status, json.dumps(_shaped(family, status, message)).encode(), headers)


def out_of_budget(reason: BudgetError) -> str:
    return f"the budget of this run is used up: {reason}"


def _shaped(family: Family, status: int, message: str) -> dict[str, object]:
    match family:
        case "anthropic":
            return {"type": "error", "error": {"type": _ANTHROPIC.get(status, "api_error"), "message": message}}
        case "google":
            return {"error": {"code": status, "message": message, "status": _GOOGLE.get(status, "INTERNAL")}}
        case _:
            code = _OPENAI.get(status)
            kind = code if status == 402 else "invalid_request_error" if status < 500 else "server_error"
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}
