"""Remember which runs this user started, so that others' runs do not execute without consent.

Each run has a small file in the user's state folder, named by the path of its run folder. It holds
a digest of the plan and the start folder, because a plan's modules and programs depend on it.
"""

import hashlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path

from bakeoff._kernel.files import write_atomically

MAX_KEPT = 10_000
_PRIVATE_FOLDER = 0o700


def state_folder() -> Path:
    """Return `bakeoff` in the user's state folder. Raise RuntimeError without a home folder."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The XDG specification says that relative paths are ignored.
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "bakeoff"


def remember(run: Path, plan: bytes, *, instead_of: bytes | None = None) -> None:
    """Note that this user starts a run with this plan. If that fails, `why_unknown` reports it.

    `instead_of` is the plan that this one replaces. If that plan was known, it stays known.
    """
    with suppress(OSError, RuntimeError):
        facts, marker = _facts(run, plan), _marker(run)
        if instead_of is not None and why_unknown(run, instead_of) is None:
            facts["before"] = _facts(run, instead_of)["plan"]
        marker.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        write_atomically(marker, json.dumps(facts).encode())
        markers = list(marker.parent.iterdir())
        if len(markers) > MAX_KEPT:  # without its marker, the user is asked again about a run
            for old in sorted(markers, key=lambda each: each.stat().st_mtime)[:-MAX_KEPT]:
                old.unlink()


def why_unknown(run: Path, plan: bytes) -> str | None:
    """Return why it is unknown that this user started the run with this plan here, or None."""
    try:
        noted = _read(_marker(run))
    except (OSError, RuntimeError, ValueError):
        return "was not started by you in this place"
    facts = _facts(run, plan)
    if noted.get("run") != facts["run"] or facts["plan"] not in (noted.get("plan"), noted.get("before")):
        return "has another plan than the one that you started"
    if noted.get("cwd") != facts["cwd"]:
        return f"was started in {noted.get('cwd')}, and its names may mean something else here"
    return None


def _facts(run: Path, plan: bytes) -> dict[str, str]:
    return {"run": str(run.resolve()), "plan": hashlib.sha256(plan).hexdigest(), "cwd": str(Path.cwd())}


def _marker(run: Path) -> Path:
    name = hashlib.sha256(os.fsencode(run.resolve())).hexdigest()
    return state_folder() / "runs-made-here" / f"{name}.json"


def _read(marker: Path) -> dict[str, object]:
    """Return a marker. Raise OSError or ValueError if others could have written it."""
    descriptor = os.open(marker, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or others_write:
            raise ValueError(f"{marker} may have been written by another user")
        noted = json.loads(file.read(1 << 16))
    if not isinstance(noted, dict):
        raise ValueError(f"{marker} is not an object")
    return noted
