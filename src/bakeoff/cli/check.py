"""Carry out `bakeoff runs check`: find damage in the files of a run, and repair them."""

from dataclasses import dataclass, field
from pathlib import Path

from rich.text import Text

from bakeoff._kernel.text import count_of, part_of
from bakeoff.cli.console import out, print_json
from bakeoff.errors import RunFolderError
from bakeoff.record import Record
from bakeoff.report.formatting import visible
from bakeoff.storage.journal import JournalMark
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.labels import read_labels
from bakeoff.storage.repair import ASIDE, Repair, repair_run
from bakeoff.storage.run_folder import RunFolder, find_run
from bakeoff.storage.store_copy import store_of
from bakeoff.storage.store_upload import upload_run

_SHOWN = 20


@dataclass(slots=True)
class _RunProblem:
    """What was found in the files of a run."""

    folder: RunFolder
    records: int = 0
    lines: int = 0
    without_checksum: int = 0
    ended: bool = False
    damaged: list[Damage] = field(default_factory=list)
    labels: int = 0  # damaged lines
    plan: str | None = None  # what is wrong with it

    @property
    def any(self) -> bool:
        return bool(self.damaged or self.labels or self.plan)


def check_run(*, run: str, results: Path, repair: bool, as_json: bool) -> int:
    """Check the files of a run; return 1 if anything is damaged. With `repair`, keep what is whole first."""
    folder = find_run(results, run)
    repaired = repair_run(folder) if repair else None
    store = store_of(folder.path.parent.parent)
    if repaired is not None and repaired.changed and store is not None:
        upload_run(store, folder.path, whole=True)
    found = _look(folder)
    if as_json:
        print_json(_as_data(found, repaired))
        return int(found.any)
    if repaired is not None:
        _print_repair(folder, repaired)
    _print(found)
    return int(found.any)


def _look(folder: RunFolder) -> _RunProblem:
    found = _RunProblem(folder)
    try:
        folder.read_plan()
    except RunFolderError as error:
        found.plan = str(error)
    for entry in folder.entries():
        found.records += isinstance(entry, Record)
        if isinstance(entry, Damage):
            found.damaged.append(entry)
        elif isinstance(entry, JournalMark):
            found.ended = entry.kind == "end"
    found.lines, found.without_checksum = folder.count_checksums()
    found.labels = read_labels(folder.labels_file).damaged
    return found


def _as_data(found: _RunProblem, repaired: Repair | None) -> dict[str, object]:
    data: dict[str, object] = {
        "run": found.folder.name,
        "records": found.records,
        "damaged": [{"line": damage.line, "reason": damage.reason} for damage in found.damaged],
        "torn": found.folder.has_torn_line(),
        "damaged_labels": found.labels,
        "damaged_plan": found.plan,
        "without_checksum": found.without_checksum,
    }
    if repaired is not None:
        aside = [{"line": one.line, "reason": one.reason, "trial": one.trial} for one in repaired.aside]
        data["repaired"] = {"kept": repaired.kept, "missing": repaired.missing, "aside": aside}
    return data


def _print(found: _RunProblem) -> None:
    console, folder = out(), found.folder
    counted = f"{count_of(found.records, 'record')}, {count_of(len(found.damaged), 'damaged line')}"
    console.print(Text(f"{folder.label}: {counted}"))
    for damage in found.damaged[:_SHOWN]:
        place = f"{folder.journal_file.name}:{damage.line}: " if damage.line else ""
        console.print(Text(f"  {place}{visible(damage.reason)}"))
    if len(found.damaged) > _SHOWN:
        console.print("  … and more")
    for note in _notes(found):
        console.print(Text(f"  {note}"))


def _notes(found: _RunProblem) -> list[str]:
    folder, notes = found.folder, []
    if found.plan:
        notes.append(visible(found.plan))
    if folder.has_torn_line():
        notes.append("the last line is incomplete: the process was killed while writing; no finished trial is lost")
    if not found.ended and not folder.is_being_written():
        notes.append(f"the last process did not finish; continue with `bakeoff resume {folder.label}`")
    if found.damaged:
        notes.append(
            "reports leave damaged lines out; `bakeoff resume` runs their trials again, and "
            f"`bakeoff runs check --repair {folder.label}` puts them aside"
        )
    if found.labels:
        notes.append(
            f"{found.labels} damaged lines of {folder.labels_file.name} are left out: those answers are labelled again"
        )
    if folder.signature_file.exists():
        notes.append(f"it is signed: `bakeoff runs verify {folder.label}` says whether anything changed since")
    if found.without_checksum:
        notes.append(
            f"{part_of(found.without_checksum, found.lines, 'line', 'has/have')} no checksum, because an older bakeoff "
            "wrote them: not every damage to them can be noticed"
        )
    return notes


def _print_repair(folder: RunFolder, repaired: Repair) -> None:
    console = out()
    if not repaired.changed:
        console.print("nothing had to be repaired")
        return
    console.print(f"repaired: {count_of(repaired.kept, 'line')} kept, {len(repaired.aside)} put aside in {ASIDE}")
    for one in repaired.aside[:_SHOWN]:
        about = f" ({visible(one.trial)})" if one.trial else ""
        console.print(Text(f"  line {one.line}{about}: {visible(one.reason)}"))
    if len(repaired.aside) > _SHOWN:
        console.print("  … and more")
    if repaired.missing:
        console.print(f"  {count_of(repaired.missing, 'line')} cannot be found: the trials in them are lost")
    if repaired.plan_accepted:
        console.print("  plan.json is not as the run wrote it, and was accepted as it is")
    if repaired.aside or repaired.missing:
        console.print(Text(f"  run their trials again with `bakeoff resume {folder.label}`"))
