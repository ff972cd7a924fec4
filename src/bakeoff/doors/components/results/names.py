"""Make and read the names of result files."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from bakeoff.doors.result_files import seconds_of

_UNSAFE = re.compile(r"[^a-zA-Z0-9.]")
_STAMP = re.compile(r"(?:result-)?(\d{4}-\d{2}-\d{2})[-T](\d{2})-(\d{2})-(\d{2})(?!\d)")  # files have -, runs have T
_LONGEST = 100  # of a model or of servers; file systems allow 255 bytes for a whole name


def sanitize_model_name(model: str) -> str:
    """Return a model's name as part of a file name."""
    return _UNSAFE.sub("-", model)[:_LONGEST]


def timestamped_name(
    timestamp: str | None, model: str | None = None, servers: Iterable[str] = (), round_: int | None = None
) -> str:
    """Return `result-YYYY-MM-DD-HH-MM-SS-<model>[-mcp-<name>][-r<round>].json`; rounds count from 1."""
    moment = datetime.fromtimestamp(seconds_of(timestamp) if timestamp else 0, UTC)
    parts = [f"result-{moment:%Y-%m-%d-%H-%M-%S}"]
    parts += [sanitize_model_name(model)] if model else []
    named = sanitize_model_name("-".join(servers))
    parts += [f"mcp-{named}"] if named else []
    parts += [f"r{round_}"] if round_ is not None else []
    return "-".join(parts) + ".json"


def stamp_in(name: str) -> str | None:
    """Return the time in the name of a result file, or of a run folder: when the run began."""
    found = _STAMP.match(name)
    if found is None:
        return None
    day, clock = found[1], ":".join(found.groups()[1:])
    stamp = f"{day}T{clock}.000Z"
    try:
        seconds_of(stamp)
    except ValueError:
        return None
    return stamp
