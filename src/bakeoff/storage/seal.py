"""The seal of a run: what its journal and plan were when a process last finished with them.

`seal.json` lies beside the journal, so that a journal that lost its end, or is gone, is noticed. More lines may follow
what was sealed: a run can be resumed, and the process that resumes it may be killed.
"""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from pydantic_core import from_json, to_json

from bakeoff._kernel.files import os_errors_explained, read_file, write_atomically
from bakeoff.errors import RunFolderError
from bakeoff.storage.journal_lines import Totals, line_end, seal_line

NAME = "seal.json"
_MAX_SIZE = 1 << 20
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Seal:
    """The totals of a run's journal and the digest of its plan, as they were when they were sealed."""

    journal: Totals = field(default_factory=Totals)
    plans: tuple[str, ...] = ()  # the SHA-256 of the plan; of two while it is being replaced


def plan_digest(data: bytes) -> str:
    """Return what a seal knows of a plan."""
    return sha256(data).hexdigest()


def read_seal(folder: Path) -> Seal | None:
    """Return the seal of a run folder, None if it has none. Raise RunFolderError if it is damaged."""
    path = folder / NAME
    with os_errors_explained(path, "read"):
        try:
            raw = read_file(path, _MAX_SIZE)
        except FileNotFoundError:
            return None
    found = line_end(raw)
    try:
        if found is None or not found.intact:
            raise ValueError("its checksum does not match")
        data = from_json(raw)
        if data["v"] > _VERSION:
            raise ValueError("a newer bakeoff wrote it: upgrade bakeoff to read it")
        return Seal(Totals(int(data["lines"]), int(data["sum"], 16)), tuple(map(str, data["plan"])))
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{path} is damaged: {error}; `bakeoff runs check --repair` makes a new one") from error


def write_seal(folder: Path, seal: Seal) -> None:
    """Replace the seal of a run folder. Raise RunFolderError if it cannot be written."""
    totals = {"lines": seal.journal.lines, "sum": f"{seal.journal.sum:08x}"}
    body = to_json({"type": "seal", "v": _VERSION, **totals, "plan": seal.plans})
    with os_errors_explained(folder / NAME, "written"):
        write_atomically(folder / NAME, seal_line(body[:-1], 1, Totals()))


def seal_journal(folder: Path, totals: Totals) -> None:
    """Seal the journal as it is now. The plan stays sealed as it was."""
    write_seal(folder, replace(_known(folder), journal=replace(totals)))


def seal_plans(folder: Path, *plans: str) -> None:
    """Seal the plan, or two while one replaces the other. The journal stays sealed as it was."""
    known = _known(folder)
    if known.plans != plans:
        write_seal(folder, replace(known, plans=plans))


def _known(folder: Path) -> Seal:
    """Return the seal, an empty one in place of none. A damaged one stays damaged until it is repaired."""
    return read_seal(folder) or Seal()
