"""Find the runs that changed, by the size and time of their files and by their locks."""

from pathlib import Path
from time import monotonic
from typing import NamedTuple

from bakeoff.errors import BakeoffError
from bakeoff.report.render.html.entries import IndexEntry, read_entry
from bakeoff.report.render.html.index_page import index_rows
from bakeoff.report.render.html.render import ServedPages
from bakeoff.report.view.live import event
from bakeoff.storage.run_folder import RunFolder, run_folders

RUNS = "/runs/"
_REST = 3  # times as long as a run took to read, it is left alone: a long one takes a quarter of a core at most


class Look(NamedTuple):
    """The state of a run's files, read before the run itself."""

    plan: int  # when it was written: scoring anew begins with another one
    size: int
    changed: int
    running: bool


def look_at(results: Path) -> dict[str, Look]:
    """Return the state of every readable run."""
    looks = {}
    for folder in run_folders(results):
        try:
            looks[folder.name] = look_into(folder)
        except (OSError, BakeoffError):  # deleted just now, or not ours to read
            continue
    return looks


def look_into(folder: RunFolder) -> Look:
    running = folder.is_being_written()  # first: what is written after this changes the size
    plan = folder.plan_file.stat()
    found = folder.journal_file.stat() if folder.started else plan
    return Look(plan.st_mtime_ns, found.st_size, found.st_mtime_ns, running)


class FolderWatch:
    """Track the changes for one listener."""

    def __init__(self, results: Path, seen: dict[str, Look]) -> None:
        self._results = results
        self._seen = dict(seen)
        self._rest: dict[str, float] = {}  # until when a run is left alone

    def news(self) -> bytes | None:
        """Return the rows of new and changed runs, and the names of deleted ones."""
        looks = look_at(self._results)
        gone = sorted(self._seen.keys() - looks.keys())
        for name in gone:
            del self._seen[name]
        entries = [entry for name, look in looks.items() if (entry := self._changed(name, look))]
        if not gone and not entries:
            return None
        forgotten = [RunFolder(Path(name)).label for name in gone]
        return event("runs", {**index_rows(entries, ServedPages(home="/", reports=RUNS)), "gone": forgotten})

    def _changed(self, name: str, look: Look) -> IndexEntry | None:
        began = monotonic()
        if self._seen.get(name) == look or began < self._rest.get(name, 0.0):
            return None
        self._seen[name] = look
        try:
            entry = read_entry(next(run for run in run_folders(self._results) if run.name == name))
        except (BakeoffError, StopIteration):  # the page names it when it is loaded again; or it is deleted just now
            return None
        self._rest[name] = monotonic() + _REST * (monotonic() - began)
        return entry
