"""Common parts of the result files of several doors: times, a size limit, and readable errors."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from bakeoff._kernel.files import read_file
from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import expectation, free_name, visible
from bakeoff.errors import RunFolderError
from bakeoff.logs.trials import seconds_of
from bakeoff.record import ProvenTests, Record

MAX_FILE_SIZE = 256 * 1024**2
Noted = TypeVar("Noted", bound=FrozenModel)


class CamelObject(FrozenModel):
    """An object of a result file. Names are written as in JavaScript; fields that we do not know are ignored."""

    model_config = ConfigDict(
        extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


def written_shortest(digits: int | None = None) -> PlainSerializer:
    """Write a number as JavaScript does: 3, not 3.0. `digits` are the decimals to keep; None keeps all."""

    def write(number: float) -> int | float:
        if float(number).is_integer():
            return int(number)
        return number if digits is None else round(number, digits)

    return PlainSerializer(write, return_type=int | float)


def timestamp_of(seconds: float) -> str:
    """Return a time as JavaScript writes it: UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unique_names(names: Iterable[str]) -> list[str]:
    """Return unique file names, with numbers where needed, because names do not show every difference of subjects."""
    stems: dict[str, None] = {}
    for name in names:
        stems[free_name(name.removesuffix(".json"), stems, "{}-{}")] = None
    return [f"{stem}.json" for stem in stems]


def _check_moment(timestamp: str) -> str:
    if seconds_of(timestamp) is None:
        raise ValueError(f"{timestamp!r:.60} is not a time since 1970: write it as 2026-01-31T12:00:00.000Z")
    return timestamp


Moment: TypeAlias = Annotated[str, Field(max_length=60), AfterValidator(_check_moment)]


class HiddenTests(CamelObject):
    """How many tests passed: those that the subject could see, and those that were hidden."""

    visible_passed: NonNegativeInt
    visible_total: NonNegativeInt
    hidden_passed: NonNegativeInt
    hidden_total: NonNegativeInt
    visible_score: float | None = None
    hidden_score: float | None = None
    difference: float | None = None


def hidden_tests_of(records: Iterable[Record]) -> HiddenTests | None:
    """Add up the visible and hidden tests of records, or return None if no tests were hidden."""
    found = [record.test_shares for record in records if record.verdict.counts]
    shares = [each for each in found if each is not None]
    if not shares:
        return None
    total = reduce(add, shares)
    scores = {"visible_score": total.visible, "hidden_score": total.hidden, "difference": total.difference}
    known = {name: round(score, 6) for name, score in scores.items() if score is not None}
    return HiddenTests.model_validate({**total.model_dump(), **known})


def proven_tests_of(records: Iterable[Record]) -> ProvenTests | None:
    """Add up the proven tests of all cases, or return None if no tests were graded."""
    found = {record.case: known for record in records if (known := record.proven_tests) is not None}
    return reduce(add, found.values()) if found else None


def read_limited(path: Path) -> bytes:
    """Read a result file. Raise `RunFolderError` if it is too large."""
    size = path.stat().st_size
    if size > MAX_FILE_SIZE:
        raise RunFolderError(f"{path} has {size / 1024**2:.0f} MiB; at most {MAX_FILE_SIZE // 1024**2} are read")
    return read_file(path, MAX_FILE_SIZE)


def unreadable(source: str, error: ValidationError, skip: tuple[int | str, ...] = ()) -> RunFolderError:
    """Return the error for a file that does not fit its model, without `skip` in front of the place."""
    first = error.errors(include_url=False)[0]
    where = first["loc"][len(skip) :] if first["loc"][: len(skip)] == skip else first["loc"]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{visible(part, 60)}" for part in where)
    problem = visible(expectation(first), 300)
    got = "" if isinstance(first["input"], dict | list | bytes) else f" (got {visible(repr(first['input']), 60)})"
    sentence = f"{place.lstrip('.')}: {problem}{got}" if place else problem
    return RunFolderError(f"{source} is not a readable result file: {sentence}")


def noted_by(record: Record, scorer: str, key: str, kind: type[Noted]) -> Noted | None:
    """Return the metadata of one of our scorers under a key; None if absent or not of this kind."""
    for score in record.scores:
        if score.name == scorer and key in score.metadata:
            with suppress(ValidationError):  # not written by our scorer
                return kind.model_validate(score.metadata[key])
            return None
    return None


def replayed_in(records: Iterable[Record]) -> int:
    """Return how many trials were answered from recordings, at least in part."""
    return sum(record.answers == "replayed" for record in records)
