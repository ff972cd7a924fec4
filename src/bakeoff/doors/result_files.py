"""Share what the result files of several doors have in common: times, their size limit, and readable errors."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from bakeoff._kernel.model import FrozenModel
from bakeoff._kernel.text import free_name
from bakeoff.errors import RunFolderError
from bakeoff.report.formatting import visible

RECORDED = "recorded"
"""The kind of a subject that was imported from a result file."""
LARGEST_NUMBER = 10**15  # JavaScript's integers are exact up to here
END_OF_TIME = 253_402_300_800  # the year 10000
LARGEST_FILE = 256 * 1024**2


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


def seconds_of(timestamp: str) -> float:
    """Return the seconds since 1970. A time without a zone is UTC. Raise `ValueError` if it is not a time."""
    moment = datetime.fromisoformat(timestamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def unique_names(names: Iterable[str]) -> list[str]:
    """Add a number to file names that are taken: two subjects may differ in nothing that a name shows."""
    stems: dict[str, None] = {}
    for name in names:
        stems[free_name(name.removesuffix(".json"), stems, "{}-{}")] = None
    return [f"{stem}.json" for stem in stems]


def _check_moment(timestamp: str) -> str:
    problem = ValueError(f"{timestamp!r:.60} is not a time since 1970: write it as 2026-01-31T12:00:00.000Z")
    try:
        seconds = seconds_of(timestamp)
    except (ValueError, OverflowError) as error:
        raise problem from error
    if not 0 <= seconds < END_OF_TIME:
        raise problem
    return timestamp


Moment: TypeAlias = Annotated[str, Field(max_length=60), AfterValidator(_check_moment)]


def read_limited(path: Path) -> bytes:
    """Read a result file. Raise `RunFolderError` if it is too large."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise RunFolderError(f"{path} has {size / 1024**2:.0f} MiB; at most {LARGEST_FILE // 1024**2} are read")
    return path.read_bytes()


def unreadable(source: str, error: ValidationError, skip: tuple[int | str, ...] = ()) -> RunFolderError:
    """Return the error for a file that does not fit its model. `skip` is left out where a place begins with it."""
    first = error.errors(include_url=False)[0]
    where = first["loc"][len(skip) :] if first["loc"][: len(skip)] == skip else first["loc"]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{visible(part, 60)}" for part in where)
    problem = visible(first["msg"].removeprefix("Value error, "), 300)
    got = "" if isinstance(first["input"], dict | list | bytes) else f" (got {visible(repr(first['input']), 60)})"
    sentence = f"{place.lstrip('.')}: {problem}{got}" if place else problem
    return RunFolderError(f"{source} is not a readable result file: {sentence}")
