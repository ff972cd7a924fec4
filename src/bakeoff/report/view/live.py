"""Follow runs: the progress of one, from the end of its journal, and which runs of a folder have changed.

A lock shows whether a process still writes to a run; the size and time of its files show whether it changed.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple

from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import BakeoffError
from bakeoff.plan import PassRule, Plan
from bakeoff.record import Record
from bakeoff.report.render.html.index_page import IndexEntry, index_rows, read_entry
from bakeoff.report.render.html.render import ServedPages
from bakeoff.report.render.html.run_data import read_plan
from bakeoff.storage.blobs import Blobs
from bakeoff.storage.journal import JournalMark, SpentTokens, read_line
from bakeoff.storage.journal_lines import Damage, lines_forwards
from bakeoff.storage.run_folder import RunFolder, run_folders
from bakeoff.storage.segments import open_journal
from bakeoff.verdict import Round, Verdict, case_score

State = Literal["running", "ended", "incomplete", "stopped"]
_ONE_BY_ONE = PassRule(gate="share")  # of cases without a rule of their own


class LiveProgress:
    """The progress of a run. `update` reads new lines; `news` returns the numbers."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.plan: Plan = read_plan(folder)
        self._planned = folder.plan_file.stat().st_mtime_ns
        self._at = 0  # how much of the journal has been read
        self._outcomes: dict[int, Round] = {}  # of each trial, by its latest record
        self._cost: float | None = None
        self._ending: str | None = None
        self._damaged = 0  # lines that cannot be read
        self._told: dict[str, Any] | None = None  # what the listener knows

    def update(self) -> bool:
        """Read new lines; return whether there were any."""
        before = self._at
        if (planned := self.folder.plan_file.stat().st_mtime_ns) != self._planned:
            self._planned, self.plan = planned, read_plan(self.folder)
            self._forget()  # what was scored otherwise no longer counts
        for raw in self._new_lines():
            entry = read_line(raw, 0, Blobs(self.folder.path / "blobs"))
            match entry:
                case Record():
                    self._take_record(entry)
                case SpentTokens():
                    self._cost = entry.total.cost
                case Damage():
                    self._damaged += 1  # the report says which
                case JournalMark(kind="start"):
                    self._ending = None
                case JournalMark(kind="end"):
                    self._ending = visible(str(entry.facts.get("reason", "ended")))
        return self._at != before

    def _forget(self) -> None:
        self._at, self._outcomes, self._cost, self._ending, self._damaged = 0, {}, None, None, 0

    def _new_lines(self) -> Iterator[bytes | None]:
        """Return complete lines only: the last one may be incomplete."""
        if not self.folder.started:
            return
        with open_journal(self.folder.journal_file) as journal:
            if journal.size < self._at:
                self._forget()  # another journal stands in its place
            journal.file.seek(self._at)
            for _, raw in lines_forwards(journal.file):
                self._at = journal.file.tell()
                yield raw

    def _take_record(self, record: Record) -> None:
        trial = record.trial_in(self.plan)
        if trial is None:
            return
        if record.needs_score(trial):
            self._outcomes.pop(trial.index, None)
        else:
            self._outcomes[trial.index] = record.judged()

    def next_event(self) -> bytes | None:
        """Return the next event for the one listener, if anything changed."""
        self.update()
        news = self.news()
        if news == self._told:
            return None
        self._told = news
        return event("progress", news)

    def news(self) -> dict[str, Any]:
        """Return all numbers, for a new listener."""
        running = self.folder.is_being_written()
        state = self._state(running=running)
        damage = f" {count_of(self._damaged, 'damaged line')} left out of these numbers." if self._damaged else ""
        return {
            "state": state,
            "words": self._words(state) + damage,
            "planned": len(self._outcomes) if self.plan.sparse else self.plan.size,
            "finished": len(self._outcomes),
            "cost": self._cost,
            "subjects": [self._subject(place) for place in range(len(self.plan.subjects))],
        }

    def _state(self, *, running: bool) -> State:
        if running:
            return "running"
        if self._ending is None and self.folder.started:
            return "stopped"
        counted = sum(outcome.verdict.counts for outcome in self._outcomes.values())
        planned = len(self._outcomes) if self.plan.sparse else self.plan.size
        return "ended" if counted == planned else "incomplete"

    def _words(self, state: State) -> str:
        match state:
            case "running":
                return "The run goes on."
            case "stopped":
                return (
                    f"The run was stopped before its end; continue with `bakeoff resume {visible(self.folder.name)}`."
                )
            case _:
                return f"The run has ended: {self._ending or 'it never started'}."

    def _subject(self, place: int) -> dict[str, Any]:
        width, cases = len(self.plan.subjects), len(self.plan.cases)
        mine = {index: outcome for index, outcome in self._outcomes.items() if index % width == place}
        rounds: dict[int, list[Round]] = {}
        for index, outcome in mine.items():
            rounds.setdefault(index // width % cases, []).append(outcome)
        found = (case_score(self.plan.cases[at].rule_over_rounds or _ONE_BY_ONE, each) for at, each in rounds.items())
        scores = [score for score in found if score is not None]
        verdicts = [outcome.verdict for outcome in mine.values()]
        return {
            "name": visible(self.plan.subjects[place].name),
            "planned": len(mine) if self.plan.sparse else cases * self.plan.rounds,
            "finished": len(mine),
            "passed": verdicts.count(Verdict.PASS),
            "lost": sum(not verdict.counts for verdict in verdicts),
            "score": sum(scores) / len(scores) if scores else None,
        }


def event(name: str, news: dict[str, Any]) -> bytes:
    """Return a server-sent event; compact JSON has no newlines."""
    return f"event: {name}\ndata: {json.dumps(news, allow_nan=False)}\n\n".encode()


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
    """Return the state of a run's files, without reading them."""
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
