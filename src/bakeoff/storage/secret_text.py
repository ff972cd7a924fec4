"""Find secrets in data and replace them by their names. The command line loads this, so it imports nothing heavy."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from bakeoff.storage.secret_archives import archives_in, may_hold_archives
from bakeoff.storage.secret_forms import SHORTEST, Form, edges, fold, forms_of
from bakeoff.storage.secret_search import Places, Scanner, without_escapes

CUT = "…"
"""Marks where a text was shortened. The rest of a secret may stand beside it."""

_CUT_ENDS = (CUT.encode(), b"...")
_CUT_MARK = re.compile(b"|".join(map(re.escape, _CUT_ENDS)))
_UNPACKING_DEPTH = 2  # compressed content in compressed content
_GAP = re.compile(rb"[^A-Za-z0-9]+")
_SPACE = re.compile(rb"\s+")
_UNUSUAL = re.compile(rb"[^\t\n\r -~]")  # bytes that do not separate ordinary words


class _SecretMatch(NamedTuple):
    """The place of a secret, or of a part of one."""

    start: int
    end: int
    name: str


class TextRedactor:
    """Replace secret values in bytes and texts by their names, in all the forms that `secret_forms` spells.

    With `cut`, for texts that may have been shortened, the rest of a secret at the edge of a text or beside a `CUT`
    mark is replaced as well.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        known = {name: value for name, value in secrets.items() if len(value) >= SHORTEST}
        self._needles = _needles_of(tuple(known.items())) if known else None

    def __bool__(self) -> bool:
        """Return True if there is a secret to look for."""
        return self._needles is not None

    def finds(self, data: bytes) -> bool:
        """Return True if the data may hold a secret. Fast, and never wrong if it returns False.

        The data may be JSON: every replaceable string contains the first or the last bytes of a secret.
        """
        if self._needles is None or len(data) < SHORTEST:
            return False
        return self._needles.may_be_in(data) or (may_hold_archives(data) and bool(self._packed(data)))

    def __call__(self, data: bytes, *, cut: bool = False) -> bytes:
        """Return the data without secrets."""
        if not self.finds(data):
            return data
        return _replaced(data, _apart(self._found(data, cut=cut)))

    def text(self, text: str, *, cut: bool = False) -> str:
        """Return the text without secrets."""
        if self._needles is None:
            return text
        return self(text.encode("utf-8", "surrogatepass"), cut=cut).decode("utf-8", "surrogatepass")

    def _found(self, data: bytes, *, cut: bool) -> Iterator[_SecretMatch]:
        if self._needles is not None:
            yield from self._needles.found_in(data, cut=cut)
            if may_hold_archives(data):
                yield from self._packed(data)

    def _packed(self, data: bytes, depth: int = _UNPACKING_DEPTH) -> list[_SecretMatch]:
        """Return the compressed parts of the data that hold a secret."""
        found: list[_SecretMatch] = []
        for start, end, content in archives_in(data):
            inside = next(self._needles.found_in(content, cut=False), None) if self._needles else None
            if inside is None and depth > 1 and may_hold_archives(content):
                inside = next(iter(self._packed(content, depth - 1)), None)
            if inside is not None:
                found.append(_SecretMatch(start, end, inside.name))
        return found


class _Needles:
    """The needles of some secrets, ready to be searched for."""

    def __init__(self, secrets: Iterable[tuple[str, str]]) -> None:
        folded: dict[bytes, _Spelling] = {}
        plain: dict[bytes, _Spelling] = {}
        for name, value in secrets:
            for form in forms_of(value):
                known = (folded if form.folded else plain).setdefault(form.needle, _Spelling(name, []))
                known.forms.append(form)
        self._folded, self._plain = _Index(folded), _Index(plain)

    def may_be_in(self, data: bytes) -> bool:
        """Return True if the first or the last bytes of a needle are in the data."""
        stripped = without_escapes(data)
        seen = fold(data) if stripped is None else b"%b %b" % (fold(data), fold(stripped))
        return self._folded.scanner.finds(seen) or self._plain.scanner.finds(data)

    def found_in(self, data: bytes, *, cut: bool) -> Iterator[_SecretMatch]:
        """Yield where the secrets are in the data."""
        cuts = [0, *_marks(data), len(data)] if cut else []
        for start, end, needle in self._plain.found_in(data, cuts):
            yield _SecretMatch(start, end, self._plain.needles[needle].name)
        yield from self._found_folded(data, Places(data), cut=cut)
        if without_escapes(data) is not None:
            yield from self._found_folded(data, Places(data, escapes=True), cut=cut)

    def _found_folded(self, data: bytes, places: Places, *, cut: bool) -> Iterator[_SecretMatch]:
        view = fold(places.data)
        cuts = [0, *places.folded(_marks(places.data)), len(view)] if cut else []
        for start, end, needle in self._folded.found_in(view, cuts):
            name, forms = self._folded.needles[needle]
            first, last = places.original(start), places.original(end - 1) + 1
            if end - start == len(needle):
                said = [form.around(data, first, last) for form in forms if _is_said(form, data, first, last)]
                if not said:
                    continue
                first, last = max(said, key=lambda place: place[1] - place[0])
            elif forms[0].words and not _is_cut(data, first, last, head=needle.startswith(view[start:end])):
                continue
            yield _SecretMatch(first, last, name)


@lru_cache(maxsize=64)
def _needles_of(secrets: tuple[tuple[str, str], ...]) -> _Needles:
    return _Needles(secrets)


def _marks(data: bytes) -> list[int]:
    return [place for match in _CUT_MARK.finditer(data) for place in match.span()]


def _is_said(form: Form, data: bytes, first: int, last: int) -> bool:
    """Tell a secret that consists of words from ordinary words: there, other things than blanks separate letters."""
    if not form.words:
        return True
    found, start, end = data[first:last], first - len(form.before), last + len(form.after)
    is_whole = data[max(0, start) : first] == form.before and data[last:end] == form.after
    if is_whole and _SPACE.sub(b"", found).lower() == _SPACE.sub(b"", form.inner).lower():
        return True
    gaps = _GAP.findall(found)
    return len(gaps) * 2 >= len(form.needle) or fold(found) != form.needle or any(map(_UNUSUAL.search, gaps))


def _is_cut(data: bytes, first: int, last: int, *, head: bool) -> bool:
    """Tell whether nothing stands between the part of a secret and the place where the text was cut."""
    if head:
        return last == len(data) or _CUT_MARK.match(data, last) is not None
    return first == 0 or data.endswith(_CUT_ENDS, 0, first)


class _Spelling(NamedTuple):
    """The secret behind a needle, and the forms that have this needle."""

    name: str
    forms: list[Form]


class _Index:
    """Needles by their first and last bytes."""

    def __init__(self, needles: dict[bytes, _Spelling]) -> None:
        self.needles = needles
        self.scanner = Scanner(edges(needles))
        self._starting: dict[bytes, list[bytes]] = {}
        self._ending: dict[bytes, list[bytes]] = {}
        for needle in needles:
            self._starting.setdefault(needle[:SHORTEST], []).append(needle)
            self._ending.setdefault(needle[-SHORTEST:], []).append(needle)
        self._lengths = {edge: sorted({*map(len, found)}, reverse=True) for edge, found in self._starting.items()}

    def found_in(self, view: bytes, cuts: list[int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield the start, the end and the needle of each place; with `cuts`, also of what was cut off there."""
        covered, last = 0, b""
        for at, edge in self.scanner.places(view):
            for length in self._lengths.get(edge, ()):
                if at + length <= covered:
                    break
                if at + length > len(view):
                    continue
                needle = view[at : at + length]
                if needle in self.needles and (at >= covered or needle != last):
                    yield at, at + length, needle
                    covered, last = at + length, needle
                    break
            if cuts:
                yield from self._rests(view, at, edge, cuts)

    def _rests(self, view: bytes, at: int, edge: bytes, cuts: list[int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield the parts of needles whose other end was cut off."""
        end = cuts[bisect_left(cuts, at + SHORTEST)]
        for needle in self._starting.get(edge, ()):
            if end - at < len(needle) and needle.startswith(view[at:end]):
                yield at, end, needle
        start, end = cuts[bisect_right(cuts, at) - 1], at + SHORTEST
        for needle in self._ending.get(edge, ()):
            if end - start < len(needle) and needle.endswith(view[start:end]):
                yield start, end, needle


def _apart(found: Iterable[_SecretMatch]) -> Iterator[_SecretMatch]:
    """Yield the places in order. Overlapping ones become one, with the name of the longest."""
    whole: _SecretMatch | None = None
    longest = 0
    for each in sorted(found, key=lambda found: (found.start, -found.end)):
        length = each.end - each.start
        if whole is None or each.start >= whole.end:
            if whole is not None:
                yield whole
            whole, longest = each, length
        else:
            name = each.name if length > longest else whole.name
            whole, longest = _SecretMatch(whole.start, max(whole.end, each.end), name), max(length, longest)
    if whole is not None:
        yield whole


def _replaced(data: bytes, found: Iterable[_SecretMatch]) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for each in found:
        # In JSON, a backslash before it is the rest of an escape that began with the first letter.
        pieces += (data[end : each.start].rstrip(b"\\"), f"[redacted {_label(each.name)}]".encode())
        end = each.end
    return b"".join((*pieces, data[end:])) if pieces else data


def _label(name: str) -> str:
    """Return the name with only those characters that need no escape in JSON."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)
