"""The base of everything that is written to disk, and the fingerprint of such data."""

import hashlib
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json


class Frozen(BaseModel):
    """Immutable, strict about unknown fields, and free of NaN and infinity, which JSON has no words for."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def fingerprint(*parts: Any) -> str:
    """32 hex digits that change when any part does; the same on every machine and in every process."""
    return hashlib.blake2b(to_json(_ordered(parts)), digest_size=16).hexdigest()


def _ordered(value: Any) -> Any:
    """JSON objects are equal whatever the order of their keys, so their fingerprints must be."""
    if isinstance(value, BaseModel):
        return _ordered(value.model_dump(mode="json"))
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in value]
    return value
