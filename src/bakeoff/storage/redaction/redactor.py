"""Replace secrets in bytes, texts and models by their names."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_origin

from bakeoff.storage.redaction.forms import SHORTEST
from bakeoff.storage.redaction.search import Needles, SecretMatch

if TYPE_CHECKING:
    from pydantic import BaseModel

Model = TypeVar("Model", bound="BaseModel")

_MAX_NUMBER_LENGTH = 1000  # bits: Python refuses to format very long numbers


class Redactor:
    """Replace secret values by their names, in all the forms that `redaction.forms` spells.

    With `cut`, for texts that may have been shortened, the rest of a secret at the edge of a text or beside a `CUT`
    mark is replaced as well.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """Take the values of secrets by their names. Values shorter than `SHORTEST` are ignored."""
        known = tuple((name, value) for name, value in secrets.items() if len(value) >= SHORTEST)
        self._needles = _NEEDLES(known) if known else None

    def __bool__(self) -> bool:
        """Return True if there is a secret to look for."""
        return self._needles is not None

    def finds(self, data: bytes) -> bool:
        """Return True if the data may hold a secret. Fast, and never wrong if it returns False.

        The data may be JSON: every replaceable string contains the first or the last bytes of a secret.
        """
        return self._needles is not None and self._needles.may_be_in(data)

    def __call__(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return the data without secrets."""
        if self._needles is None or not self.finds(data):
            return data
        pieces: list[bytes] = []
        end = 0
        for each in _apart(self._needles.found_in(data, cut=cut)):
            # In JSON, a backslash before it is the rest of an escape that began with the first letter.
            label = re.sub(r"[^A-Za-z0-9_.-]", "_", each.name)  # these characters need no escape in JSON
            pieces += (data[end : each.start].rstrip(b"\\"), f"[redacted {label}]".encode())
            end = each.end
        return b"".join((*pieces, data[end:])) if pieces else data

    def text(self, text: str, *, cut: bool = False) -> str:
        """Return the text without secrets."""
        if self._needles is None:
            return text
        return self(text.encode("utf-8", "surrogatepass"), cut=cut).decode("utf-8", "surrogatepass")

    def model(self, model: Model, *, cut: bool = False) -> Model:
        """Return the data without secrets. Redacting its JSON is wrong: in `\\nkey` the `n` belongs to the escape."""
        return with_texts(model, partial(self.text, cut=cut))

    def names_in(self, model: "BaseModel") -> list[str]:
        """Return the names of the secrets in the data."""
        from pydantic_core import PydanticSerializationError

        if self._needles is None:
            return []
        try:
            if not self.finds(model.model_dump_json().encode()):
                return []
        except PydanticSerializationError:  # lone surrogates
            pass
        needles, found = self._needles, set[str]()

        def look(text: str) -> str:
            found.update(each.name for each in needles.found_in(text.encode("utf-8", "surrogatepass"), cut=False))
            return text

        with_texts(model, look)
        return sorted(found)


_NEEDLES = lru_cache(maxsize=64)(Needles)


def _apart(found: Iterable[SecretMatch]) -> Iterator[SecretMatch]:
    """Yield the places in order. Overlapping ones become one, with the name of the longest."""
    whole: SecretMatch | None = None
    longest = 0
    for each in sorted(found, key=lambda found: (found.start, -found.end)):
        length = each.end - each.start
        if whole is None or each.start >= whole.end:
            if whole is not None:
                yield whole
            whole, longest = each, length
        else:
            name = each.name if length > longest else whole.name
            whole, longest = SecretMatch(whole.start, max(whole.end, each.end), name), max(length, longest)
    if whole is not None:
        yield whole


def with_texts(model: Model, change: Callable[[str], str]) -> Model:
    """Return the model with every text changed, keys of free data included. Fields with literal types stay."""
    from pydantic import BaseModel, JsonValue  # not above: texts are redacted without them

    def changed(value: Any, annotation: Any = JsonValue) -> Any:
        if get_origin(annotation) is Literal or (isinstance(value, int | float) and annotation != JsonValue):
            return value
        if isinstance(value, BaseModel):
            return with_texts(value, change)
        if isinstance(value, str):
            return change(value)
        if isinstance(value, dict):
            return {change(key): changed(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(changed(item) for item in value)
        if isinstance(value, float) or (type(value) is int and value.bit_length() < _MAX_NUMBER_LENGTH):
            number = str(value)  # some secrets in free data are numbers
            return value if (new := change(number)) == number else new
        return value

    fields = type(model).model_fields.items()
    return model.model_copy(update={name: changed(getattr(model, name), info.annotation) for name, info in fields})
