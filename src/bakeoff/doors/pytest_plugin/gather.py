"""What the evals of a session came to, on the one process that reports: the controller under xdist, else the only one.

A process that runs items adds outcomes under the node id of their test, and `pytest_runtest_logreport` takes them from
there, so that a test that is run again counts once. On a worker they go to the controller as JSON on the report.

For reports, inside or after any hook that is given a report:

    gathered(config)             every outcome so far, in the order in which pytest reported them
    outcomes_of(config, report)  those of the report that is being logged (also in `pytest_report_teststatus`)
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # every pytest run loads this module, and most have no evals
    from bakeoff.doors.pytest_plugin.outcome import EvalOutcome

_ON_REPORT = "bakeoff"  # attribute of a report that travels from a worker: a list of JSON texts
_AT_ONCE = 64  # outcomes that are packed together
_MOST_DIGITS = 1000  # of a number, of which anything but a text can be made
_FINAL = ("passed", "failed", "skipped")  # rerunfailures has another word for an attempt that does not count


class Outcomes(Sequence["EvalOutcome"]):
    """Outcomes in the order added, kept as JSON that is packed: a hundredth of the memory, and nothing for the garbage
    collector to visit.

    Each is read back when it is asked for, so go through them once rather than often.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []  # compressed, `_AT_ONCE` outcomes each
        self._kept: list[bytes] = []  # the last ones, not yet compressed

    def add(self, outcome: "EvalOutcome") -> None:
        self._kept.append(outcome.__pydantic_serializer__.to_json(outcome, exclude_defaults=True))
        if len(self._kept) == _AT_ONCE:
            self._packed.append(zlib.compress(b"\n".join(self._kept), 1))
            self._kept = []

    def __len__(self) -> int:
        return len(self._packed) * _AT_ONCE + len(self._kept)

    def __iter__(self) -> "Iterator[EvalOutcome]":
        for packed in self._packed:
            yield from map(_read, _unpacked(packed))
        yield from map(_read, self._kept)

    def __getitem__(self, place: Any) -> Any:
        places = range(len(self))[place]
        return [self._at(each) for each in places] if isinstance(places, range) else self._at(places)

    def _at(self, place: int) -> "EvalOutcome":
        number, place = divmod(place, _AT_ONCE)
        return _read(_unpacked(self._packed[number])[place] if number < len(self._packed) else self._kept[place])


def _unpacked(packed: bytes) -> list[bytes]:
    return zlib.decompress(packed).split(b"\n")


def _read(kept: bytes | str) -> "EvalOutcome":
    from pydantic import ValidationError

    from bakeoff.doors.pytest_plugin.outcome import EvalOutcome

    try:
        return EvalOutcome.model_validate_json(kept)
    except ValidationError:  # a number of more digits than are read: pydantic writes it, and does not take it back
        return EvalOutcome.model_validate(json.loads(kept, parse_int=_number))


def _number(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


class Gathered:
    """The outcomes of one session."""

    def __init__(self) -> None:
        self.outcomes = Outcomes()
        self._made: dict[str, list[EvalOutcome]] = {}  # in this process, by node id; their report is not logged yet
        self._logged: tuple[object, Sequence[EvalOutcome]] = (None, ())

    def begin(self, nodeid: str) -> None:
        """A test runs; what an earlier try of it left, and nobody logged, does not count."""
        self._made.pop(nodeid, None)

    def add(self, nodeid: str, outcome: "EvalOutcome") -> None:
        """An outcome whose report is still to come."""
        self._made.setdefault(nodeid, []).append(outcome)

    def attach(self, report: pytest.TestReport) -> None:
        """On a worker: let the report carry what belongs to it."""
        if made := self._made.pop(report.nodeid, None):
            setattr(report, _ON_REPORT, [outcome.model_dump_json(exclude_defaults=True) for outcome in made])

    def take(self, report: pytest.TestReport) -> None:
        """On the process that reports: keep what belongs to a report that is being logged."""
        found = self._made.pop(report.nodeid, None) or _carried(report)
        self._logged = (report, found)
        if report.outcome in _FINAL:
            for outcome in found:
                self.outcomes.add(outcome)

    def of(self, report: object) -> "Sequence[EvalOutcome]":
        return self._logged[1] if self._logged[0] is report else ()


def _carried(report: pytest.TestReport) -> "Sequence[EvalOutcome]":
    texts: Sequence[str] = report.__dict__.pop(_ON_REPORT, ())
    return [_read(text) for text in texts]


_KEY = pytest.StashKey[Gathered]()


def gathering(config: pytest.Config) -> Gathered:
    """The session's one place for outcomes."""
    found = config.stash.get(_KEY, None)
    if found is None:
        found = config.stash[_KEY] = Gathered()
    return found


def gathered(config: pytest.Config) -> Outcomes:
    """Every outcome so far, in the order reported; empty on a worker."""
    return gathering(config).outcomes


def outcomes_of(config: pytest.Config, report: Any) -> "Sequence[EvalOutcome]":
    """The outcomes of the report that is being logged; none of any other."""
    return gathering(config).of(report)
