"""Define the base class of all data that is written to disk, and the fingerprint of such data."""

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

    Its validator is built when it is first used: most commands use few of the models that they import.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **given: Any) -> bool | None:
        """Build the validator as pydantic does, but in one thread at a time: pydantic's own way is not thread-safe."""
        with _BUILDING:
            return super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **given)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the object itself: it cannot change. Pydantic copies default values for every object it makes."""
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002 - pydantic's signature
        """Copy without the cached digests that pydantic would keep, and three times as fast.

        `deep` changes nothing, since the values of fields cannot change.
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
    """Return a field that dumps omit while it has its default value, as in the files of versions that lack it."""
    return Field(default=default, description=description, exclude_if=lambda value: bool(value == default), **more)


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a validation, preceded by its place if it has one."""
    first = error.errors(include_url=False)[0]
    return ": ".join([*filter(None, [".".join(map(str, first["loc"]))]), expectation(first)])


def fingerprint(*parts: Any) -> str:
    """Return 32 hex digits that change when any part does. They do not depend on the machine or the order of keys."""
    return hashlib.blake2b(_ENCODER.encode(parts).encode(), digest_size=16).hexdigest()


def _as_json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no fingerprint")


_ENCODER = json.JSONEncoder(sort_keys=True, default=_as_json)
