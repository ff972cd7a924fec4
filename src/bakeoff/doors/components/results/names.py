"""How result files are called, and the small facts that stand in their names."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlsplit

_UNSAFE = re.compile(r"[^a-zA-Z0-9.]")
_STAMP = re.compile(r"result-(\d{4}-\d{2}-\d{2})-(\d{2})-(\d{2})-(\d{2})(?!\d)")
_RUN_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})(?!\d)")
_LONGEST = 100  # of a model's or servers' name in a file name, which a file system allows 255 bytes for


def sanitize_model_name(model: str) -> str:
    """A model's name as a part of a file name."""
    return _UNSAFE.sub("-", model)[:_LONGEST]


def timestamp_of(seconds: float) -> str:
    """As JavaScript writes a date: UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(timestamp: str) -> float:
    """Since 1970; a time without a zone is UTC. ValueError where it is no time."""
    moment = datetime.fromisoformat(timestamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def timestamped_name(
    timestamp: str | None, model: str | None = None, servers: Iterable[str] = (), round_: int | None = None
) -> str:
    """`result-YYYY-MM-DD-HH-MM-SS-<model>[-mcp-<name>][-r<round>].json`; the round counts from 1."""
    moment = datetime.fromtimestamp(seconds_of(timestamp) if timestamp else 0, UTC)
    parts = [f"result-{moment:%Y-%m-%d-%H-%M-%S}"]
    parts += [sanitize_model_name(model)] if model else []
    named = sanitize_model_name("-".join(servers))
    parts += [f"mcp-{named}"] if named else []
    parts += [f"r{round_}"] if round_ is not None else []
    return "-".join(parts) + ".json"


def told_apart(names: Iterable[str]) -> list[str]:
    """The same, where a name that is taken has a number: two subjects may differ in nothing that a name shows."""
    taken: set[str] = set()
    apart = []
    for name in names:
        stem, free, number = name.removesuffix(".json"), name, 1
        while free in taken:
            number += 1
            free = f"{stem}-{number}.json"
        taken.add(free)
        apart.append(free)
    return apart


def stamp_in(name: str) -> str | None:
    """The time in a result file's name."""
    return _stamp(_STAMP.match(name))


def started_at(run: str) -> str | None:
    """The time in the name of a run's folder: that at which it began, however often it is taken up again."""
    return _stamp(_RUN_STAMP.match(run))


def _stamp(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    day, *clock = found.groups()
    stamp = f"{day}T{':'.join(clock)}.000Z"
    try:
        seconds_of(stamp)
    except ValueError:
        return None
    return stamp


def is_http_url(text: str) -> bool:
    """Whether a server is reached over HTTP rather than started as a program."""
    try:
        parts = urlsplit(text)
    except ValueError:  # such as a bracket that is never closed
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
