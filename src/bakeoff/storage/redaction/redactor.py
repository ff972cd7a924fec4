"""Find secrets in data, even if cut off, and replace them by their names."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_origin

from bakeoff.storage.redaction.forms import KEPT, SHORTEST, Form, fold, forms_of

if TYPE_CHECKING:
    from pydantic import BaseModel


CUT = "…"
"""Marks where a text was shortened. The remains of a secret may stand beside it."""

_CUT_ENDS = (CUT.encode(), b"...")
_CUT_MARK = re.compile(b"|".join(map(re.escape, _CUT_ENDS)))
# Invisible additions of programs between characters: escapes of control characters,
# colours, and the mark that pytest puts before the lines of an error.
_ESCAPES = re.compile(
    rb"\\(?<!\\\\)\\*+(?:(?:x1[bB]|u001[bB]|033|e)\[[0-9;?]*+[A-Za-z]"
    rb"|[nrtbfv]|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-7]{3})"
    rb"|\x1b(?:\[[0-9;?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\))"
    rb"|\nE(?=[ \t])"
)
_IS_KEPT = bytes(byte in KEPT for byte in range(256))
_GAP = re.compile(rb"[^A-Za-z0-9]+")
_SPACE = re.compile(rb"\s+")
_UNUSUAL = re.compile(rb"[^\t\n\r -~]")  # bytes that do not separate ordinary words


class SecretMatch(NamedTuple):
    """The position of a secret, or of a part of one."""

    start: int
    end: int
    name: str


class Needles:
    """The spellings of several secrets, ready for searching."""

    def __init__(self, secrets: Iterable[tuple[str, str]]) -> None:
        """Take pairs of name and value. If secrets share a spelling, use the first one's name."""
        folded: dict[bytes, _Spelling] = {}
        plain: dict[bytes, _Spelling] = {}
        for name, value in secrets:
            for form in forms_of(value):
                known = (folded if form.folded else plain).setdefault(form.needle, _Spelling(name, []))
                known.forms.append(form)
        self._folded, self._plain = _Index(folded), _Index(plain)

    def may_be_in(self, data: bytes) -> bool:
        """Return True if the data contains the first or last bytes of any needle."""
        seen, blanked = fold(data), _without_escapes(data)
        return bool(
            self._folded.edges_in(seen if blanked is data else b"%b %b" % (seen, fold(blanked)))
            or self._plain.edges_in(data)
        )

    def found_in(self, data: bytes, *, cut: bool) -> Iterator[SecretMatch]:
        """Yield the positions of secrets; with `cut`, also of parts at the ends or `CUT` marks."""
        marks = (place for match in _CUT_MARK.finditer(data) for place in match.span())
        cuts = [0, *marks, len(data)] if cut else []
        for start, end, needle in self._plain.found_in(data, cuts):
            yield SecretMatch(start, end, self._plain.needles[needle].name)
        yield from self._found_folded(data, data, cuts)
        if (blanked := _without_escapes(data)) is not data:
            yield from self._found_folded(data, blanked, cuts)

    def _found_folded(self, data: bytes, searched: bytes, cuts: list[int]) -> Iterator[SecretMatch]:
        """Yield the secrets in folded data. `searched` is the data, perhaps without escapes."""
        view = fold(searched)
        places = array("Q", compress(range(len(searched)), searched.translate(_IS_KEPT)))  # of kept bytes
        for start, end, needle in self._folded.found_in(view, [bisect_left(places, cut) for cut in cuts]):
            name, forms = self._folded.needles[needle]
            first, last = places[start], places[end - 1] + 1
            if end - start == len(needle):
                said = [form.around(data, first, last) for form in forms if _is_said(form, data, first, last)]
                if not said:
                    continue
                first, last = max(said, key=lambda place: place[1] - place[0])
            elif forms[0].words:  # parts of words count only beside a cut
                if needle.startswith(view[start:end]):
                    is_cut = last == len(data) or _CUT_MARK.match(data, last) is not None
                else:
                    is_cut = first == 0 or data.endswith(_CUT_ENDS, 0, first)
                if not is_cut:
                    continue
            yield SecretMatch(first, last, name)


def _without_escapes(data: bytes) -> bytes:
    """Return the data with escapes, colours and line marks replaced by NULs."""
    if b"\\" not in data and b"\x1b" not in data and b"\nE" not in data:
        return data
    blanked = _ESCAPES.sub(lambda match: bytes(len(match[0])), data)
    return data if blanked == data else blanked


def _is_said(form: Form, data: bytes, first: int, last: int) -> bool:
    """Return False if ordinary words only happen to spell a secret made of words."""
    if not form.words:
        return True
    found, start, end = data[first:last], first - len(form.before), last + len(form.after)
    is_whole = data[max(0, start) : first] == form.before and data[last:end] == form.after
    if is_whole and _SPACE.sub(b"", found).lower() == _SPACE.sub(b"", form.inner).lower():
        return True
    gaps = _GAP.findall(found)
    return len(gaps) * 2 >= len(form.needle) or fold(found) != form.needle or any(map(_UNUSUAL.search, gaps))


class _Spelling(NamedTuple):
    """A needle's secret, and the forms that share the needle."""

    name: str
    forms: list[Form]


class _Index:
    """Needles, indexed by their first and last bytes, since a cut leaves at least one of these."""

    def __init__(self, needles: dict[bytes, _Spelling]) -> None:
        self.needles = needles
        self._starting: dict[bytes, list[bytes]] = {}
        self._ending: dict[bytes, list[bytes]] = {}
        for needle in sorted(needles, key=len, reverse=True):
            self._starting.setdefault(needle[:SHORTEST], []).append(needle)
            self._ending.setdefault(needle[-SHORTEST:], []).append(needle)
        self._edges = list(self._starting | self._ending)
        self._automaton = None
        if needles:
            from ahocorasick_rs import BytesAhoCorasick  # often not needed

            self._automaton = BytesAhoCorasick(self._edges)

    def edges_in(self, view: bytes) -> list[tuple[int, bytes]]:
        """Return the positions of all edges, in order, each with its edge."""
        if self._automaton is None:
            return []
        found = self._automaton.find_matches_as_indexes(view, overlapping=True)
        return [(start, self._edges[number]) for number, start, _ in found]

    def found_in(self, view: bytes, cuts: list[int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield start, end and needle of each match; with `cuts`, also of partial matches."""
        covered, last = 0, b""
        for at, edge in self.edges_in(view):
            for needle in self._starting.get(edge, ()):
                if at + len(needle) <= covered:
                    break
                # Skip matches that overlap the last one, as of repetitive needles.
                if (at >= covered or needle != last) and view.startswith(needle, at):
                    yield at, at + len(needle), needle
                    covered, last = at + len(needle), needle
                    break
            if cuts:
                yield from self._rests(view, at, edge, cuts)

    def _rests(self, view: bytes, at: int, edge: bytes, cuts: list[int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield the remaining parts of needles whose other end was cut off."""
        end = cuts[bisect_left(cuts, at + SHORTEST)]
        for needle in self._starting.get(edge, ()):
            if end - at < len(needle) and needle.startswith(view[at:end]):
                yield at, end, needle
        start, end = cuts[bisect_right(cuts, at) - 1], at + SHORTEST
        for needle in self._ending.get(edge, ()):
            if end - start < len(needle) and needle.endswith(view[start:end]):
                yield start, end, needle


Model = TypeVar("Model", bound="BaseModel")

_MAX_NUMBER_LENGTH = 1000  # bits, since Python refuses to format very long numbers


class Redactor:
    """Replaces secret values by their names, in all forms of `redaction.forms`.

    With `cut`, for texts that may have been shortened, parts of a secret at the ends of a text or
    beside a `CUT` mark are replaced too.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """Take secret values by name. Values shorter than `SHORTEST` are ignored."""
        known = tuple((name, value) for name, value in secrets.items() if len(value) >= SHORTEST)
        self._needles = _NEEDLES(known) if known else None

    def __bool__(self) -> bool:
        """Return True if there are any secrets to search for."""
        return self._needles is not None

    def finds(self, data: bytes) -> bool:
        """Return True if the data may contain a secret. This is fast, and False is always right.

        The data may be JSON: every string to replace has the first or last bytes of a secret.
        """
        return self._needles is not None and self._needles.may_be_in(data)

    def __call__(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return the data without secrets."""
        if self._needles is None or not self.finds(data):
            return data
        pieces: list[bytes] = []
        end = 0
        for each in _apart(self._needles.found_in(data, cut=cut)):
            # In JSON, a backslash before the match is the rest of an escape sequence.
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
        """Return the data without secrets. Redacting its JSON instead would fail on escapes."""
        return with_texts(model, partial(self.text, cut=cut))

    def names_in(self, model: "BaseModel") -> list[str]:
        """Return the names of secrets in the data."""
        from pydantic_core import PydanticSerializationError

        if self._needles is None:
            return []
        try:
            if not self.finds(model.model_dump_json().encode()):
                return []
        except PydanticSerializationError:  # because of lone surrogates
            pass
        needles, found = self._needles, set[str]()

        def look(text: str) -> str:
            found.update(each.name for each in needles.found_in(text.encode("utf-8", "surrogatepass"), cut=False))
            return text

        with_texts(model, look)
        return sorted(found)


_NEEDLES = lru_cache(maxsize=64)(Needles)


def _apart(found: Iterable[SecretMatch]) -> Iterator[SecretMatch]:
    """Yield the matches in order. Join overlapping ones under the name of the longest."""
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
    """Return the model with every text changed, including keys of free data, but not literals."""
    from pydantic import BaseModel, JsonValue  # imported here, since texts need none of them

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
