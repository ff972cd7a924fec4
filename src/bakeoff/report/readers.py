"""Read records from run folders, journals and the result files that doors know.

A `Reader` turns one kind of file or folder into a plan and records, which is all that reports and exports use.
`find_source` and `open_source` find the reader of a path. They return a `Source`, which checks what the reader returns.
A package adds a reader under the entry point group `bakeoff.readers`: a class that takes no arguments.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from pydantic import ValidationError

from bakeoff._kernel.files import open_file
from bakeoff._kernel.model import FrozenModel, first_problem
from bakeoff._kernel.text import count_of, visible
from bakeoff.errors import RunFolderError, UsageError
from bakeoff.plan import Case, Plan, ScorerSpec, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.gates import GateResult, kept_decision
from bakeoff.report.summary import Outcome, Summary
from bakeoff.storage.journal import Entry, JournalMark, implausible_number, read_journal, read_journal_backwards
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.ledger import Ledger
from bakeoff.storage.run_folder import LATEST, RunFolder, find_run
from bakeoff.storage.store_copy import is_store_address

GROUP = "bakeoff.readers"
CONCLUSION = ("ledger", "gates")  # facts in the last entry of a journal
_FOREIGN_LOGS = EntryPoint("foreign-logs", "bakeoff.logs.reader:ForeignLogReader", GROUP)
_MAX_WORDS = 5  # sandboxes or versions that are listed
_MAX_REASON_LENGTH = 300
_BREAKS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""The errors that parsers raise on unexpected files."""


class Description(FrozenModel):
    """The plan of some records. If only the ids of cases are known, prompts are empty and `content_known` is False."""

    name: str  # in reports
    plan: Plan
    content_known: bool = True
    run: str | None = None  # the run folder that a file was computed from, if known


class Circumstances(FrozenModel):
    """The recorded conditions of a run."""

    sandboxes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()  # of bakeoff
    damaged: int = 0  # unreadable entries, which are not counted
    ended: bool = True  # False: a journal has no end, because its process was killed or still runs
    planned: bool = True  # False: it is unknown what else was planned, as for a journal without its run folder
    ledger: Ledger | None = None  # of the whole run, if it recorded one
    gates: tuple[GateResult, ...] = ()  # that its command or session judged

    def ledger_of(self, plan: Plan, counted: Ledger) -> Ledger:
        """Return the ledger that the run recorded, or the one counted from its records.

        It is marked as incomplete for a killed pytest session, whose remaining evals are unknown,
        for a journal with unreadable lines, which may be results, and for one without a plan.
        """
        found = self.ledger or counted
        if plan.sparse and not (self.ledger or self.ended):
            return found.without_end()
        if self.damaged:
            cannot = f"{count_of(self.damaged, 'line')} of its journal cannot be read"
            return found.without_end(f"{cannot}: `bakeoff runs check` lists them")
        if not self.planned:
            return found.without_end("a journal alone does not say what was planned: name its run folder")
        return found

    def state_of(self, plan: Plan, summary: Summary) -> Outcome | Literal["undecided"]:
        """Return the verdict on a run by its gates or trials. A run with gaps never passes."""
        decision = kept_decision(self.gates, self.ledger_of(plan, summary.ledger))
        if self.gates:
            return decision.state.value
        return "incomplete" if not decision.passed and summary.outcome in ("passed", "recorded") else summary.outcome

    def sentence_of(self, plan: Plan, summary: Summary) -> str:
        """Describe the decision of the gates or, without gates, what is missing."""
        ledger = self.ledger_of(plan, summary.ledger)
        if self.gates:
            return f"{kept_decision(self.gates, ledger).sentence}."
        return f"Incomplete: {ledger.gap}." if ledger.gap else ""


_NOTHING_KNOWN = Circumstances()


class Reader(Protocol):
    """A reader of one kind of file or folder."""

    @property
    def what(self) -> str:
        """Return the kind of file for error messages, such as "a run folder"."""

    def recognises(self, path: Path) -> bool:
        """Tell whether a path is of this kind, by its name or first bytes.

        The path may be of another kind or may not exist. A damaged file of this kind is recognised,
        so that reading it can report the damage.
        """

    def describe(self, path: Path) -> Description:
        """Return the plan of the records. May raise any error of a parser, which `Source` turns into a message."""

    def circumstances(self, path: Path) -> Circumstances:
        """Return the recorded conditions; they are empty if the file has none."""

    def read(self, path: Path) -> Iterator[Record]:
        """Yield the record that counts for each trial, in any order."""


@dataclass(frozen=True)
class Source:
    """A path and the reader that recognised it."""

    path: Path
    reader: Reader

    @cached_property
    def description(self) -> Description:
        """Read the plan once. Raises `RunFolderError` if it cannot be read or contradicts itself."""
        with _sentences(self.path):
            described = self.reader.describe(self.path)
        if problems := described.plan.problems():
            raise RunFolderError(f"{self.path}: {problems[0]}")
        return described

    @property
    def name(self) -> str:
        """Return the name of the run or file in reports."""
        return self.description.name

    @property
    def plan(self) -> Plan:
        """Return the plan that the records belong to."""
        return self.description.plan

    def circumstances(self) -> Circumstances:
        """Return the recorded conditions. Raises `RunFolderError` if the file cannot be read."""
        with _sentences(self.path):
            return self.reader.circumstances(self.path)

    def records(self) -> Iterator[Record]:
        """Yield at most one record for each trial of the plan.

        Raises `RunFolderError` if the file cannot be read, or if a foreign reader returns something else.
        """
        plan = self.plan
        with _sentences(self.path):
            records = self.reader.read(self.path)
            yield from records if isinstance(self.reader, _OWN) else _checked(self.path, plan, records)


@dataclass(frozen=True, slots=True)
class RecordsInMemory:
    """A reader of records that were computed rather than stored, such as those of one subject.

    `records` is called for each reading. The path of the source is used only as a name.
    """

    description: Description
    records: Callable[[], Iterator[Record]]
    known: Circumstances = _NOTHING_KNOWN
    what: ClassVar[str] = "records of a run"

    def recognises(self, path: Path) -> bool:  # noqa: ARG002 - the signatures of a reader
        return True

    def describe(self, path: Path) -> Description:  # noqa: ARG002
        return self.description

    def circumstances(self, path: Path) -> Circumstances:  # noqa: ARG002
        return self.known

    def read(self, path: Path) -> Iterator[Record]:  # noqa: ARG002
        return self.records()


def _checked(path: Path, plan: Plan, records: Iterator[Record]) -> Iterator[Record]:
    """Check the records of a foreign reader: at most one for each trial, and only planned trials."""
    seen: set[int] = set()
    for record in records:
        name = f"round {record.round + 1} of case {record.case!r:.100} with subject {record.subject!r:.100}"
        trial = plan.find(record.case, record.subject, record.round)
        if trial is None:
            raise RunFolderError(f"{path}: {name} is not in the plan that was read from the same file")
        if trial.index in seen:
            raise RunFolderError(f"{path}: {name} occurs more than once")
        if found := implausible_number(record):
            raise RunFolderError(f"{path}: {name}: {found}")
        seen.add(trial.index)
        yield record


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turn any error of reading a file into an error message."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}") from error
    except _BREAKS as error:
        raise RunFolderError(f"{path} cannot be read: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Return the message of an error on one line, with its type if needed."""
    if isinstance(error, ValidationError):
        return visible(first_problem(error), _MAX_REASON_LENGTH)
    return visible(f"{type(error).__name__}: {error}", _MAX_REASON_LENGTH)


class RunFolderReader:
    """The reader of run folders. Later records of a trial replace earlier ones."""

    what = "a run folder (plan.json and journal.jsonl)"

    def recognises(self, path: Path) -> bool:
        """Tell whether the folder has a plan, which even a run without any record has."""
        return (path / "plan.json").is_file()

    def describe(self, path: Path) -> Description:
        return Description(name=RunFolder(path.resolve()).label, plan=RunFolder(path).read_plan())

    def circumstances(self, path: Path) -> Circumstances:
        return _circumstances(RunFolder(path).entries())

    def read(self, path: Path) -> Iterator[Record]:
        folder = RunFolder(path)
        return folder.latest_records(folder.read_plan())


class JournalReader:
    """The reader of journals. Without the plan beside it, cases are known by their ids only."""

    what = "a journal (.jsonl as bakeoff writes it)"

    def recognises(self, path: Path) -> bool:
        """Tell whether a path is a `.jsonl` file that is empty or begins as our journals do."""
        if path.suffix != ".jsonl" or not path.is_file():
            return False
        with open_file(path) as file:
            return file.read(9) in (b'{"type":"', b"")

    def describe(self, path: Path) -> Description:
        if self._in_run_folder(path):
            return RunFolderReader().describe(path.parent)
        return Description(name=path.name, plan=_plan_from_records(path), content_known=False)

    def circumstances(self, path: Path) -> Circumstances:
        found = _circumstances(read_journal(path))
        return found.model_copy(update={"planned": self._in_run_folder(path)})

    def read(self, path: Path) -> Iterator[Record]:
        return RunFolderReader().read(path.parent) if self._in_run_folder(path) else _latest(path)

    def _in_run_folder(self, path: Path) -> bool:
        return path.name == "journal.jsonl" and (path.parent / "plan.json").is_file()


_OWN = (RunFolderReader, JournalReader)


class InstalledReader:
    """A reader of an installed package, imported only for files that are not ours.

    A reader that cannot be imported, or that breaks on a path, recognises nothing. `problem` then says why.
    """

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.problem: str | None = None

    @cached_property
    def _reader(self) -> Reader | None:
        try:
            made: Reader = self._point.load()()
        except (ImportError, OSError, SyntaxError, *_BREAKS) as error:
            self._blame("cannot be imported", error)
            return None
        return made

    def _blame(self, what: str, error: Exception) -> None:
        self.problem = f"reader {self._point.name!r} ({self._point.value}) {what}: {reason_of(error)}"

    @property
    def what(self) -> str:
        return str(getattr(self._reader, "what", f"whatever reader {self._point.name!r} knows"))

    def recognises(self, path: Path) -> bool:
        """Ask the installed reader. If it fails, keep the error in `problem` and return False."""
        try:
            return self._reader is not None and bool(self._reader.recognises(path))
        except (OSError, *_BREAKS) as error:
            self._blame(f"broke on {path}", error)
            return False

    def describe(self, path: Path) -> Description:
        return self._loaded().describe(path)

    def circumstances(self, path: Path) -> Circumstances:
        return self._loaded().circumstances(path)

    def read(self, path: Path) -> Iterator[Record]:
        return self._loaded().read(path)

    def _loaded(self) -> Reader:
        if self._reader is None:
            raise UsageError(self.problem or f"reader {self._point.name!r} is broken")
        return self._reader


def known_readers() -> tuple[Reader, ...]:
    """Return all readers in the order in which they are tried: ours, installed ones, foreign logs.

    Installed readers are not imported yet; the variable BAKEOFF_NO_PLUGINS leaves them out.
    """
    points = () if os.environ.get("BAKEOFF_NO_PLUGINS") else entry_points(group=GROUP)
    installed = map(InstalledReader, sorted(points, key=lambda point: point.name))
    return (RunFolderReader(), JournalReader(), *installed, InstalledReader(_FOREIGN_LOGS))


def open_source(path: Path, readers: tuple[Reader, ...] | None = None) -> Source:
    """Return a file or folder with the first reader that recognises it.

    Raises `UsageError`, which lists what can be read and which installed readers are broken, if none does.
    """
    readers = known_readers() if readers is None else readers
    with _sentences(path):
        reader = next((reader for reader in readers if reader.recognises(path)), None)
    if reader is None:
        state = "is not a kind of file that can be read" if path.exists() else "does not exist"
        broken = [problem for reader in readers if (problem := getattr(reader, "problem", None))]
        working = [reader.what for reader in readers if not getattr(reader, "problem", None)]
        raise UsageError(f"{path} {state}: {'; '.join([', '.join(working), *broken])}")
    return Source(path, reader)


def find_source(results: Path, name: str, readers: tuple[Reader, ...] | None = None) -> Source:
    """Find a source by a path, the address of an object store, the name of a run under `results`, or `latest`.

    A name that looks like a path is treated as one, so that the error names the missing file.
    """
    if is_store_address(name):
        return Source(find_run(results, name).path, RunFolderReader())
    if name != LATEST and Path(name).exists():
        return open_source(Path(name), readers)
    if name.endswith((".jsonl", ".json", ".eval")) or "/" in name.rstrip("/"):
        return open_source(Path(name), readers)  # for its error message
    return Source(find_run(results, name).path, RunFolderReader())


def is_log(path: Path) -> bool:
    """Tell whether a path is a file, or a folder that is not a run, such as one of another tool."""
    return path.is_file() or (path.is_dir() and not (path / "plan.json").is_file())


def _circumstances(entries: Iterator[Entry]) -> Circumstances:
    sandboxes: dict[str, None] = {}
    versions: dict[str, None] = {}
    damaged, last = 0, None
    for entry in entries:
        last = entry
        if isinstance(entry, Damage):
            damaged += 1
        elif isinstance(entry, JournalMark) and entry.kind == "start":
            for words, key in ((sandboxes, "sandbox"), (versions, "bakeoff")):
                if entry.facts.get(key) is not None and len(words) < _MAX_WORDS:
                    words[str(entry.facts[key])] = None
    found = {"sandboxes": tuple(sandboxes), "versions": tuple(versions), "damaged": damaged}
    return circumstances_at(last).model_copy(update=found)


def circumstances_at(last: Entry | None) -> Circumstances:
    """Return the conditions in a journal's last entry: whether the run ended, and its gates."""
    if not isinstance(last, JournalMark) or last.kind != "end":
        return Circumstances(ended=False)
    try:
        return Circumstances.model_validate({name: last.facts[name] for name in CONCLUSION if name in last.facts})
    except ValidationError:
        return Circumstances(ended=False)


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
    return Plan(
        name=path.stem if path.stem.isprintable() else "journal",
        cases=tuple(Case(id=case, prompt="") for case in cases),
        subjects=tuple(SubjectSpec(kind="recorded", name=name) for name in subjects),
        scorers=tuple(ScorerSpec(kind="recorded", name=name) for name in scorers if name.isprintable() and name)
        or (ScorerSpec(kind="recorded"),),
        rounds=rounds,
        threshold=threshold,
    )
