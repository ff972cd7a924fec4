"""Where records come from: run folders, journals, and whatever result files a door can read.

A `Reader` turns one kind of file or folder into a plan and records; everything that reports, compares or exports works
on those two. A package adds its own under the entry point group `bakeoff.readers`: a class made without arguments.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from bakeoff.errors import RunFolderError, UsageError
from bakeoff.frozen import Frozen
from bakeoff.journal import Damage, Entry, Mark, read_journal, read_journal_backwards
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record
from bakeoff.rundir import LATEST, RunFolder, find_run

GROUP = "bakeoff.readers"
_MOST_WORDS = 5  # sandboxes or versions that are told apart; more of them is no longer a circumstance


class Description(Frozen):
    """What records are about. Where only their ids are known, cases have empty prompts and `content_known` is False."""

    name: str  # how reports call it
    plan: Plan
    content_known: bool = True


class Circumstances(Frozen):
    """What was written down of how the records came about."""

    sandboxes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()  # of bakeoff
    damaged: int = 0  # entries that could not be read and are in no number


class Reader(Protocol):
    """Reads one kind of file or folder. `what` is how an error message lists it."""

    @property
    def what(self) -> str: ...

    def recognises(self, path: Path) -> bool:
        """Whether this is the kind; a look at names or first bytes, not a full read."""

    def describe(self, path: Path) -> Description: ...

    def circumstances(self, path: Path) -> Circumstances: ...

    def read(self, path: Path) -> Iterator[Record]:
        """The one record that counts for each trial, in any order, one at a time."""


@dataclass(frozen=True)
class Source:
    """Something that was recognised, and the reader that did."""

    path: Path
    reader: Reader

    @cached_property
    def description(self) -> Description:
        with _sentences(self.path):
            described = self.reader.describe(self.path)
        if problems := described.plan.problems():
            raise RunFolderError(f"{self.path}: {problems[0]}")
        return described

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def plan(self) -> Plan:
        return self.description.plan

    def circumstances(self) -> Circumstances:
        with _sentences(self.path):
            return self.reader.circumstances(self.path)

    def records(self) -> Iterator[Record]:
        with _sentences(self.path):
            yield from self.reader.read(self.path)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """What the disk says about a file, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}") from error
    except (OverflowError, RecursionError) as error:  # numbers and nesting that nothing we write has
        raise RunFolderError(f"{path} cannot be read: {error}; `bakeoff runs check` looks at every line") from error


class RunFolderReader:
    """A run's own folder."""

    what = "a run folder (plan.json and journal.jsonl)"

    def recognises(self, path: Path) -> bool:
        return (path / "plan.json").is_file()

    def describe(self, path: Path) -> Description:
        return Description(name=path.resolve().name, plan=RunFolder(path).read_plan())

    def circumstances(self, path: Path) -> Circumstances:
        return _circumstances(RunFolder(path).entries())

    def read(self, path: Path) -> Iterator[Record]:
        folder = RunFolder(path)
        return folder.latest_records(folder.read_plan())


class JournalReader:
    """A journal: with the plan beside it as good as the folder, without it known by ids alone."""

    what = "a journal (.jsonl as bakeoff writes it)"

    def recognises(self, path: Path) -> bool:
        if path.suffix != ".jsonl" or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(9) in (b'{"type":"', b"")

    def describe(self, path: Path) -> Description:
        if self._in_run_folder(path):
            return RunFolderReader().describe(path.parent)
        return Description(name=path.name, plan=_plan_from_records(path), content_known=False)

    def circumstances(self, path: Path) -> Circumstances:
        return _circumstances(read_journal(path))

    def read(self, path: Path) -> Iterator[Record]:
        return RunFolderReader().read(path.parent) if self._in_run_folder(path) else _latest(path)

    def _in_run_folder(self, path: Path) -> bool:
        return path.name == "journal.jsonl" and (path.parent / "plan.json").is_file()


def known_readers() -> tuple[Reader, ...]:
    """Ours, then those of installed packages, by name."""
    return (RunFolderReader(), JournalReader(), *_from_entry_points())


def _from_entry_points() -> Iterator[Reader]:
    if os.environ.get("BAKEOFF_NO_PLUGINS"):
        return
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            made = point.load()
        except (ImportError, AttributeError, SyntaxError) as error:
            raise UsageError(f"reader {point.name!r}: {point.value!r} cannot be imported: {error}") from error
        yield made()


def open_source(path: Path, readers: tuple[Reader, ...] | None = None) -> Source:
    """The file or folder with the first reader that knows it."""
    readers = known_readers() if readers is None else readers
    with _sentences(path):
        reader = next((reader for reader in readers if reader.recognises(path)), None)
    if reader is None:
        state = "is none of what can be read" if path.exists() else "does not exist"
        raise UsageError(f"{path} {state}: {', '.join(reader.what for reader in readers)}")
    return Source(path, reader)


def find_source(results: Path, name: str, readers: tuple[Reader, ...] | None = None) -> Source:
    """A path, the name of a run under `results`, or `latest`."""
    if name != LATEST and Path(name).exists():
        return open_source(Path(name), readers)
    if name.endswith((".jsonl", ".json", ".eval")) or "/" in name.rstrip("/"):
        return open_source(Path(name), readers)  # which says what was wrong with it
    return Source(find_run(results, name).path, RunFolderReader())


def _circumstances(entries: Iterator[Entry]) -> Circumstances:
    sandboxes: dict[str, None] = {}
    versions: dict[str, None] = {}
    damaged = 0
    for entry in entries:
        if isinstance(entry, Damage):
            damaged += 1
        elif isinstance(entry, Mark) and entry.kind == "start":
            for words, key in ((sandboxes, "sandbox"), (versions, "bakeoff")):
                if entry.facts.get(key) is not None and len(words) < _MOST_WORDS:
                    words[str(entry.facts[key])] = None
    return Circumstances(sandboxes=tuple(sandboxes), versions=tuple(versions), damaged=damaged)


def _latest(path: Path) -> Iterator[Record]:
    seen: set[tuple[str, str, int]] = set()
    for entry in read_journal_backwards(path):
        if isinstance(entry, Record) and (key := (entry.case, entry.subject, entry.round)) not in seen:
            seen.add(key)
            yield entry


def _plan_from_records(path: Path) -> Plan:
    cases: dict[str, None] = {}
    subjects: dict[str, None] = {}
    scorers: dict[str, None] = {}
    rounds, threshold = 0, None
    for record in (entry for entry in read_journal(path) if isinstance(entry, Record)):
        if record.round < 0:
            raise RunFolderError(f"{path}: round {record.round} of case {record.case!r:.100} is below 0")
        cases[record.case] = subjects[record.subject] = None
        scorers |= dict.fromkeys(score.name for score in record.scores)
        rounds, threshold = max(rounds, record.round + 1), record.threshold
    if not cases:
        raise RunFolderError(f"{path} holds no record that can be read")
    try:
        return Plan(
            name=path.stem if path.stem.isprintable() else "journal",
            cases=tuple(Case(id=case, prompt="") for case in cases),
            subjects=tuple(SubjectSpec(kind="recorded", name=name) for name in subjects),
            scorers=tuple(ScorerSpec(kind="recorded", name=name) for name in scorers if name.isprintable() and name)
            or (ScorerSpec(kind="recorded"),),
            rounds=rounds,
            threshold=threshold,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise RunFolderError(f"{path} cannot be read: {first['msg']:.300}") from error
