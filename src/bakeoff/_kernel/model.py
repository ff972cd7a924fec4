"""Define the base class of all data on disk, and a fingerprint for such data."""

import hashlib
import json
import threading
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bakeoff._kernel.text import expectation

_BUILDING = threading.RLock()


class FrozenModel(BaseModel):
    """An immutable model that allows no unknown fields and no NaN or infinity, which JSON cannot represent.

    Its validator is built on first use, because most commands use few of the imported models.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **given: Any) -> bool | None:
        """Build the validator in one thread at a time: pydantic's own way is not thread-safe."""
        with _BUILDING:
            return super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **given)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the object itself: it cannot change, and pydantic copies every default value."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002 - pydantic's signature
        """Copy without the cached digests that pydantic would keep, and three times faster.

        `deep` has no effect, since the values of fields cannot change.
        """
        kind, changes = type(self), update or {}
        values = {**self.__dict__, **changes}
        fields = kind.__pydantic_fields__
        if len(values) > len(fields):
            values = {name: value for name, value in values.items() if name in fields}
        copied = kind.__new__(kind)
        object.__setattr__(copied, "__dict__", values)
        object.__setattr__(copied, "__pydantic_fields_set__", self.__pydantic_fields_set__ | changes.keys())
        object.__setattr__(copied, "__pydantic_extra__", None)
        object.__setattr__(copied, "__pydantic_private__", None)
        return copied

    def __eq__(self, other: object) -> bool:
        return self is other or (other is not None and super().__eq__(other))  # most optional fields are None


def sparse_field(default: Any, description: str | None = None, **more: Any) -> Any:
    """Return a field that is left out of dumps while it has its default value."""
    return Field(default=default, description=description, exclude_if=lambda value: bool(value == default), **more)


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a validation, with its place if known."""
    first = error.errors(include_url=False)[0]
    return ": ".join([*filter(None, [".".join(map(str, first["loc"]))]), expectation(first)])


def fingerprint(*parts: Any) -> str:
    """Return 32 hex digits that change with any part, but not with the machine or order of keys."""
    return hashlib.blake2b(_ENCODER.encode(parts).encode(), digest_size=16).hexdigest()


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no fingerprint")


_ENCODER = json.JSONEncoder(sort_keys=True, default=_as_json)
