"""Record and replay calls of the application under test: HTTP requests and `@replayable` tools.

The active store is process-wide, because applications start their own threads and event loops. If a
round of a case repeats a question, the answers are replayed in their original order.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

from pydantic_core import to_jsonable_python

from bakeoff._kernel.model import fingerprint
from bakeoff.errors import InfraError
from bakeoff.replay.store import Found, Key, Recording, Store
from bakeoff.storage.redaction import Redactor


class ReplayRound:
    """One round of a case: a context manager that counts equal questions and collects problems.

    Leaving it raises the first problem as an InfraError, even if the application handled the error itself.
    """

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.problems: list[str] = []
        self._turns: dict[str, set[int]] = {}
        self._lock = threading.Lock()

    def take_turn(self, digest: str) -> int:
        """Return the lowest free number for a question, since equal questions may repeat."""
        with self._lock:
            taken = self._turns.setdefault(digest, set())
            turn = next(number for number in range(len(taken) + 1) if number not in taken)
            taken.add(turn)
        return turn

    def release_turn(self, digest: str, turn: int) -> None:
        """Free the number of a question without an answer, so that a retry gets it."""
        with self._lock:
            self._turns.get(digest, set()).discard(turn)

    def __enter__(self) -> Self:
        self._before = _ROUND.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _ROUND.reset(self._before)
        if self.problems and (error is None or isinstance(error, Exception)):
            raise InfraError(self.problems[0], permanent=True) from error


_ROUND: ContextVar[ReplayRound | None] = ContextVar("replay_round", default=None)
_ACTIVE: list[Store] = []


def active_store() -> Store | None:
    """Return the store that was activated last, or None if replay is off."""
    return _ACTIVE[-1] if _ACTIVE else None


@contextmanager
def activated(store: Store) -> Iterator[None]:
    """Make a store the active one during the block, for all threads."""
    _ACTIVE.append(store)
    try:
        yield
    finally:
        _ACTIVE.remove(store)


def report_problem(problem: str) -> None:
    """Add a problem with recordings to the current round; outside of a round, do nothing."""
    current = _ROUND.get()
    if current is not None:
        current.problems.append(problem)


class ApplicationCall:
    """One call of the application, with its number among equal calls of the same round.

    `secrets` holds the secrets in the call itself, to keep them out of the key and the recording.
    """

    def __init__(self, store: Store, kind: str, asked: dict[str, Any], secrets: Redactor) -> None:
        self._store = store
        self._secrets = secrets
        question = store.redactor.model(secrets.model(Recording(asked=to_jsonable_python(asked)))).asked
        self._question_digest = fingerprint(kind, question)
        self._round = _ROUND.get()
        self._turn = 0
        if self._round is not None:
            self._turn = self._round.take_turn(self._question_digest)
            place = {"round": self._round.number, "turn": self._turn}
            question = {**question, **{name: number for name, number in place.items() if number}}
        self.key = Key(kind, question, fingerprint(kind, question))

    def find(self, content: type[Found]) -> Found | None:
        """Return the recording of this call, or None if the call has to be made."""
        try:
            return self._store.find(self.key, content)
        except InfraError as error:
            self.failed()
            report_problem(str(error))
            raise

    def keep(self, recording: Recording) -> None:
        """Write the recording. If that fails, add a problem to the round."""
        try:
            self._store.keep(self.key, self._secrets.model(recording))
        except InfraError as error:
            report_problem(str(error))

    def failed(self) -> None:
        """Free the number of a call without an answer, for its retry."""
        if self._round is not None:
            self._round.release_turn(self._question_digest, self._turn)
