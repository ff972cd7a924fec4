"""The base of everything that is written to disk, and the fingerprint of such data."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Immutable, strict about unknown fields, and free of NaN and infinity, which JSON has no words for."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """What cannot change need not be copied; pydantic copies default values for every object it makes."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with changes computes its digests anew; pydantic would hand on the cached ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


def fingerprint(*parts: Any) -> str:
    """32 hex digits that change when any part does; the same on every machine, whatever the order of keys."""
    return hashlib.blake2b(_ENCODER.encode(parts).encode(), digest_size=16).hexdigest()


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no fingerprint")


_ENCODER = json.JSONEncoder(sort_keys=True, default=_as_json)
