"""Define the base class of all data that is written to disk, and the fingerprint of such data."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class FrozenModel(BaseModel):
    """An immutable model that allows no unknown fields and no NaN or infinity, which JSON cannot represent."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the object itself: it cannot change. Pydantic copies default values for every object it makes."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy without the cached digests, which pydantic would keep."""
        copied = super().model_copy(update=update, deep=deep)
        if len(copied.__dict__) > len(fields := type(self).model_fields):
            for name in copied.__dict__.keys() - fields.keys():
                del copied.__dict__[name]
        return copied

    def __eq__(self, other: object) -> bool:
        return self is other or (other is not None and super().__eq__(other))  # most optional fields are None


def first_problem(error: ValidationError) -> str:
    """Return the first problem that a validation found, after its place."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"


def fingerprint(*parts: Any) -> str:
    """Return 32 hex digits that change when any part does. They do not depend on the machine or the order of keys."""
    return hashlib.blake2b(_ENCODER.encode(parts).encode(), digest_size=16).hexdigest()


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no fingerprint")


_ENCODER = json.JSONEncoder(sort_keys=True, default=_as_json)
