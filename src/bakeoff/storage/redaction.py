"""Keep secret values off the disk: everything that is written to a run folder passes through a `Redactor`."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, get_origin

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError

from bakeoff.storage.secret_forms import SHORTEST
from bakeoff.storage.secret_names import known_secrets, secrets_in, secrets_inside, secrets_within
from bakeoff.storage.secret_text import CUT, TextRedactor

__all__ = [
    "CUT",
    "SHORTEST",
    "Model",
    "Redactor",
    "known_secrets",
    "secrets_in",
    "secrets_inside",
    "secrets_within",
    "with_texts",
]

_MAX_NUMBER_LENGTH = 1000  # bits: Python refuses to format very long numbers

Model = TypeVar("Model", bound=BaseModel)


class Redactor(TextRedactor):
    """Replace secret values in models too."""

    def names_in(self, model: BaseModel) -> list[str]:
        """Return the names of the secrets in the data."""
        if not self._may_hold(model):
            return []
        found: set[str] = set()

        def look(text: str) -> str:
            found.update(each.name for each in self._found(text.encode("utf-8", "surrogatepass"), cut=False))
            return text

        with_texts(model, look)
        return sorted(found)

    def _may_hold(self, model: BaseModel) -> bool:
        """Return True if the data may hold a secret, like `finds`."""
        try:
            return bool(self) and self.finds(model.model_dump_json().encode())
        except PydanticSerializationError:  # lone surrogates
            return True

    def model(self, model: Model, *, cut: bool = False) -> Model:
        """Return the data without secrets. Redacting its JSON is wrong: in `\\nkey` the `n` belongs to the escape."""
        return with_texts(model, partial(self.text, cut=cut))


def with_texts(model: Model, change: Callable[[str], str]) -> Model:
    """Return the model with every text changed, keys of free data included. Fields with literal types stay."""
    fields = type(model).model_fields.items()
    return model.model_copy(
        update={name: _change(getattr(model, name), change, info.annotation) for name, info in fields}
    )


def _change(value: Any, change: Callable[[str], str], annotation: Any = JsonValue) -> Any:
    if get_origin(annotation) is Literal or (isinstance(value, int | float) and annotation != JsonValue):
        return value
    if isinstance(value, BaseModel):
        return with_texts(value, change)
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _change(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_change(item, change) for item in value)
    if isinstance(value, float) or (type(value) is int and value.bit_length() < _MAX_NUMBER_LENGTH):
        number = str(value)  # some secrets in free data are numbers
        return value if (changed := change(number)) == number else changed
    return value
