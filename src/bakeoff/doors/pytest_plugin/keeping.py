"""The evals of a session as a run: a folder that `bakeoff report`, `compare` and `runs` read like any other."""

import time
from pathlib import Path

import pytest
from pydantic_core import to_json

from bakeoff._kernel.files import write_atomically
from bakeoff._version import __version__
from bakeoff.doors.pytest_plugin.options import results_folder
from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.parallel import RUN
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, Plan, SubjectSpec
from bakeoff.record import Record
from bakeoff.storage.journal import JournalWriter
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder, new_run_folder, run_folders

KEPT = 20
"""Runs that stay in the folder that nobody chose."""

_AT_ONCE, _WAIT_SECONDS = 64, 1.0  # records that wait to be written, and how long


class RunKeeper:
    """Writes the journal as outcomes are reported, and the plan at the end, when all cases are known."""

    def __init__(self, config: pytest.Config) -> None:
        self._results = results_folder(config)
        self._prune = config.getoption("eval_results") is None
        self._folder: RunFolder | None = None
        self._journal: JournalWriter | None = None
        self._redactor: Redactor = RunOptions().redactor()
        self._cases: list[bytes] = []
        self._seen: set[str] = set()
        self._subjects: dict[str, SubjectSpec] = {}
        self._rounds = 1
        self._unwritten = 0  # records
        self._written = 0.0  # when some were last
        self.problem: str | None = None

    @property
    def path(self) -> Path | None:
        return self._folder.path if self._folder else None

    def add(self, outcome: EvalOutcome) -> None:
        """Keep an outcome; if nothing can be written, that is said once, and pytest goes on."""
        if not outcome.records or self.problem is not None:
            return
        try:
            journal = self._journal or self._start()
            case, outcome = self._kept(outcome)
            for record in outcome.records:
                journal.append_record(record)
            self._write_in_time(journal, len(outcome.records))
        except RunFolderError as error:
            self.problem = str(error)
            return
        self._rounds = max(self._rounds, len(outcome.records))
        if (subject := outcome.subject) is not None:
            self._subjects[subject.name] = subject
        if (name := outcome.records[0].case) not in self._seen:
            self._seen.add(name)
            self._cases.append(case)

    def _kept(self, outcome: EvalOutcome) -> tuple[bytes, EvalOutcome]:
        """Return the case as the plan has it, and its outcome, both without secrets."""
        case = _case(outcome)
        if self._redactor.finds(case):
            outcome = self._redactor.model(outcome)
            case = _case(outcome)
            outcome = outcome.model_copy(update={"records": self._under_keys_of(case, outcome)})
        return case, outcome

    def _under_keys_of(self, case: bytes, outcome: EvalOutcome) -> tuple[Record, ...]:
        """Records are found by what their case says, and it says something else now."""
        subject = outcome.subject or self._subjects.get(outcome.records[0].subject) or RUN.subjects[0]
        rounds = 1 + max(record.round for record in outcome.records)
        changes = {"cases": (Case.model_validate_json(case),), "subjects": (subject,), "rounds": rounds}
        plan = RUN.model_copy(update=changes)
        return tuple(_found_by(plan, record) for record in outcome.records)

    def _write_in_time(self, journal: JournalWriter, more: int) -> None:
        """So that a session that is killed loses little, and one that goes on for long holds little."""
        self._unwritten += more
        now = time.monotonic()
        if self._unwritten >= _AT_ONCE or now - self._written > _WAIT_SECONDS:
            journal.flush()
            self._unwritten, self._written = 0, now

    def _start(self) -> JournalWriter:
        folder = self._folder = new_run_folder(self._results, RUN.name)
        folder.write_plan(RUN, self._redactor)  # without one, a session that is killed would leave what nobody can read
        if self._prune:
            write_atomically(folder.path.parent / ".gitignore", b"*\n")
        self._journal = JournalWriter(folder.journal_file, self._redactor)
        self._journal.append("start", bakeoff=__version__, time=time.time(), sandbox=None)
        return self._journal

    def finish(self, *, interrupted: bool) -> None:
        """Make it whole."""
        if self._folder is None or self._journal is None:
            return
        try:
            self._journal.append("end", reason="interrupted" if interrupted else "finished", time=time.time())
            self._journal.close()
            write_atomically(self._folder.plan_file, self._plan())
            if self._prune:
                self._remove_old()
        except (RunFolderError, OSError) as error:
            self.problem = self.problem or str(error)

    def _plan(self) -> bytes:
        """As `RunFolder.write_plan` has it; the cases are JSON already, so that they need not be in memory twice."""
        subjects = tuple(self._subjects.values()) or RUN.subjects
        plan = RUN.model_copy(update={"rounds": self._rounds, "subjects": subjects})
        head = plan.model_dump_json(exclude_defaults=True).encode()
        whole = head.replace(b'"cases":[]', b'"cases":[' + b",\n".join(self._cases) + b"]", 1)
        return self._redactor(whole) if self._redactor.finds(whole) else whole

    def _remove_old(self) -> None:
        runs = [run for run in run_folders(self._results) if run.name.endswith(RUN.name) or f"-{RUN.name}-" in run.name]
        for run in runs[:-KEPT]:
            if not run.is_being_written():
                run.delete()


def _case(outcome: EvalOutcome) -> bytes:
    expected = {} if outcome.expected is None else {"expected": outcome.expected}
    judged = {"tags": {"suite": outcome.suite}, "pass_rule": outcome.rule.model_dump(exclude_defaults=True)}
    return to_json({"id": outcome.records[0].case, "prompt": outcome.input, **expected, **judged})


def _found_by(plan: Plan, record: Record) -> Record:
    trial = plan.trial(record.round)
    return record.model_copy(update={"attempt_key": trial.attempt_key, "score_key": trial.score_key})
