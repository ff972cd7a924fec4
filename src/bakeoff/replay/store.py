"""Tapes: what an application under test asked of others, with the answers, so that these can be had again for nothing.

A tape is on for a whole process: applications start threads and loops of their own. An answer is found by the hash of
what was asked. Within one round of one case the same may be asked again; then the answers come in their order.
"""

import difflib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic_core import to_jsonable_python

from bakeoff._kernel.files import write_atomically
from bakeoff._kernel.model import FrozenModel, fingerprint
from bakeoff.errors import InfraError
from bakeoff.storage.redaction import Redactor

MODES = ("auto", "record", "strict", "off")
OWN = "bakeoff.own"
"""Marks requests, in their extensions, that have a recording of another kind: those of our own model calls."""

MOST_BYTES = 32 << 20
"""Of one answer: a longer one is handed on and not recorded."""

_MOST_COMPARED = 200
_LINES, _LINE = 20, 200  # of a difference that is shown


class Asked(FrozenModel):
    """What is asked, without secrets."""

    kind: str
    asked: dict[str, Any]

    @property
    def digest(self) -> str:
        return fingerprint(self.kind, self.asked)


class Taped(FrozenModel):
    """What was asked once, and the answer."""

    kind: str
    asked: dict[str, Any]
    answer: dict[str, Any]


class Asking:
    """One round of one case. What its recordings lacked is its error, whatever the application made of that."""

    def __init__(self, round_: int = 0) -> None:
        self.round = round_
        self.problems: list[str] = []
        self._taken: dict[str, set[int]] = {}
        self._lock = threading.Lock()

    def take(self, digest: str) -> int:
        """How often the same has been asked before."""
        with self._lock:
            taken = self._taken.setdefault(digest, set())
            turn = next(number for number in range(len(taken) + 1) if number not in taken)
            taken.add(turn)
        return turn

    def give_back(self, digest: str, turn: int) -> None:
        """It was asked in vain, and will be asked again."""
        with self._lock:
            self._taken.get(digest, set()).discard(turn)

    def __enter__(self) -> Self:
        self._before = _ASKING.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _ASKING.reset(self._before)
        if self.problems and (error is None or isinstance(error, Exception)):
            raise InfraError(self.problems[0], permanent=True) from error


_ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)
_TAPES: list["Tape"] = []  # the last one is on


def tape_on() -> "Tape | None":
    return _TAPES[-1] if _TAPES else None


def mark_problem(problem: str) -> None:
    """Tell the case for which something is being asked that its recordings are at fault."""
    asking = _ASKING.get()
    if asking is not None:
        asking.problems.append(problem)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, with its place among what was asked before."""

    asked: Asked
    asking: Asking | None
    base: str
    turn: int

    def give_back(self) -> None:
        if self.asking is not None:
            self.asking.give_back(self.base, self.turn)


@dataclass(frozen=True, slots=True)
class Tape:
    """The recordings in one folder, and whether they are to be used, made, or both."""

    mode: str
    folder: Path
    redactor: Redactor = field(default_factory=lambda: Redactor({}))

    @contextmanager
    def on(self) -> Iterator[None]:
        _TAPES.append(self)
        try:
            yield
        finally:
            _TAPES.remove(self)

    def request(self, kind: str, asked: dict[str, Any], secrets: Redactor | None = None) -> Request:
        """`secrets` knows those that came with the request itself."""
        question = Asked(kind=kind, asked=to_jsonable_python(asked))
        question = self.redactor.model(secrets.model(question) if secrets else question)
        asking = _ASKING.get()
        if asking is None:
            return Request(question, None, "", 0)
        base = question.digest
        turn = asking.take(base)
        place = {name: number for name, number in (("round", asking.round), ("turn", turn)) if number}
        return Request(question.model_copy(update={"asked": {**question.asked, **place}}), asking, base, turn)

    def find(self, request: Request) -> Taped | None:
        """The recording, where it is to be used. In strict mode there must be one: InfraError where there is none."""
        if self.mode not in ("auto", "strict"):
            return None
        path = self._path(request.asked)
        try:
            return _read(path)
        except FileNotFoundError as error:
            if self.mode != "strict":
                return None
            problem = self._nothing_recorded(request.asked)
            mark_problem(problem)
            raise InfraError(problem, permanent=True) from error
        except (OSError, ValueError) as error:
            problem = f"recording {path} cannot be read, delete it: {str(error).splitlines()[0]}"
            mark_problem(problem)
            raise InfraError(problem, permanent=True) from error

    def keep(self, request: Request, answer: dict[str, Any], secrets: Redactor | None = None) -> None:
        if self.mode not in ("auto", "record"):
            return
        taped = Taped(kind=request.asked.kind, asked=request.asked.asked, answer=answer)
        clean = self.redactor.model(secrets.model(taped) if secrets else taped)
        path = self._path(request.asked)
        try:  # escaped down to ASCII: models emit lone surrogates, which UTF-8 has no bytes for and JSON has
            write_atomically(path, json.dumps(to_jsonable_python(clean), indent=1).encode())
        except OSError as error:
            mark_problem(f"recording {path} cannot be written: {error.strerror}")

    def _path(self, asked: Asked) -> Path:
        return self.folder / asked.kind / asked.digest[:2] / f"{asked.digest}.json"

    def _nothing_recorded(self, asked: Asked) -> str:
        where = f"replay is strict, and nothing is recorded under {asked.digest} ({_summary(asked)})"
        nearest = self._nearest(asked)
        if nearest is None:
            return f"{where}; record it first with --eval-replay=auto or record"
        before, now = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (nearest.asked, asked.asked))
        changes = [line for line in difflib.unified_diff(before, now, n=0, lineterm="") if line[:2] not in ("--", "++")]
        shown = "\n".join(line[:_LINE] for line in changes[:_LINES])
        name = Asked(kind=nearest.kind, asked=nearest.asked).digest
        return f"{where}; against the nearest recording, {name}, this changed:\n{shown}"

    def _nearest(self, asked: Asked) -> Taped | None:
        text = json.dumps(asked.asked, sort_keys=True)

        def likeness(taped: Taped) -> tuple[bool, float]:
            other = json.dumps(taped.asked, sort_keys=True)
            ratio = difflib.SequenceMatcher(None, other[-5000:], text[-5000:], autojunk=False).quick_ratio()
            return _summary(asked) == _summary(Asked(kind=taped.kind, asked=taped.asked)), ratio

        paths = islice(sorted((self.folder / asked.kind).glob("*/*.json")), _MOST_COMPARED)
        return max(filter(None, map(_readable, paths)), key=likeness, default=None)


def _summary(asked: Asked) -> str:
    words = (asked.asked.get(name) for name in ("method", "url", "function"))
    return " ".join(str(word) for word in words if word)


def _read(path: Path) -> Taped:
    return Taped.model_validate(json.loads(path.read_bytes()))


def _readable(path: Path) -> Taped | None:
    try:
        return _read(path)
    except (OSError, ValueError):  # of no use as a hint
        return None
