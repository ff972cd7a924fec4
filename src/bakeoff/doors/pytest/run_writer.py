"""Keep the evals of a session as a run: a folder that `bakeoff report`, `compare` and `runs` read like any other."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bakeoff._kernel.files import require_locks, write_atomically
from bakeoff.doors.pytest.options import results_folder
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.engine.reuse import delete_runs
from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, SubjectSpec
from bakeoff.record import Record
from bakeoff.report.suites.outcomes import EvalOutcome
from bakeoff.storage.run_folder import RunFolder, new_run_folder, run_folders

_IGNORED = """\
# Made by pytest: its runs and the page of --eval-watch can be made again. Edit or delete this file as you like.
/.gitignore
/runs/*-{name}
/runs/*-{name}-[0-9]*
/watch.html*
"""

_OURS = re.compile(rf"-{re.escape(EMPTY_PLAN.name)}(-\d+)?$")

_PLAIN_CASE = Case(id="case", prompt="")  # copied for each, which is faster: an outcome is valid already

MAX_KEPT = 20
"""The number of pytest runs that are kept in the default folder."""


class RunWriter:
    """A writer of the journal while outcomes are reported, and of the plan at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._results = results_folder(config)
        self._prune = config.getoption("eval_results") is None
        self._folder: RunFolder | None = None
        self._journal: RunJournal | None = None
        self._redactor = RunOptions().redactor()
        self._cases: dict[str, Case] = {}  # by id
        self._subjects: dict[str, SubjectSpec] = {}
        self._rounds = 1
        self._plugins = config.pluginmanager
        self.problem: str | None = None

    @property
    def path(self) -> Path | None:
        """Return the folder of the run; None as long as nothing was written."""
        return self._folder.path if self._folder else None

    def add(self, outcome: EvalOutcome, *, earlier: bool = False) -> None:
        """Keep an outcome. If it cannot be written, `problem` says so, and later outcomes are ignored.

        An `earlier` outcome is from another run; its records get the keys that they have in this run.
        """
        if not outcome.records or self.problem is not None:
            return
        if (subject := outcome.subject) is not None:
            known = self._subjects.get(subject.name) if earlier else None
            self._subjects[subject.name] = known or subject
        self._rounds = max(self._rounds, len(outcome.records))
        try:
            journal = self._journal or self._start()
            case = _case(outcome)
            if self._redactor.finds(case.model_dump_json().encode()):
                outcome = self._redactor.model(outcome)
                case = _case(outcome)
                earlier = True
            if earlier:
                outcome = outcome.model_copy(update={"records": self._with_keys_of(case, outcome.records)})
            for record in outcome.records:
                journal.append(record)
        except RunFolderError as error:
            self.problem = str(error)
            return
        self._cases.setdefault(outcome.records[0].case, case)

    def _with_keys_of(self, case: Case, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Return the records with the current keys of their case and subject."""
        subject = self._subjects.get(records[0].subject) or EMPTY_PLAN.subjects[0]
        trials = [EMPTY_PLAN.trial_of(case, subject, record.round, 0) for record in records]
        return tuple(
            record.model_copy(update={"attempt_key": trial.attempt_key, "score_key": trial.score_key})
            for record, trial in zip(records, trials, strict=True)
        )

    def _start(self) -> RunJournal:
        require_locks()
        folder = self._folder = new_run_folder(self._results, EMPTY_PLAN.name)
        if self._prune:
            ignore_in_git(self._results)
        self._journal = RunJournal(folder, self._redactor)
        self._journal.start(EMPTY_PLAN, sandbox=None)  # without a plan, nobody could read what a killed session leaves
        return self._journal

    def finish(self, *, interrupted: bool, conclusion: Mapping[str, Any]) -> None:
        """Write the plan and the end of the journal with these facts, and delete old runs of the default folder."""
        if self._folder is None or self._journal is None:
            return
        decisions = self._plugins.getplugin("bakeoff-until-decided")
        known = {
            "cases": tuple(self._cases.values()),
            "subjects": tuple(self._subjects.values()) or EMPTY_PLAN.subjects,
            "rounds": self._rounds,
            "until_decided": decisions and decisions.settings,
        }
        plan = EMPTY_PLAN.model_copy(update=known)
        try:
            with self._journal as journal:
                journal.end("interrupted" if interrupted else "finished", **conclusion)
            self._folder.write_plan(plan, self._redactor)
            if self._prune:
                self._delete_old_runs()
        except (RunFolderError, OSError) as error:
            self.problem = self.problem or str(error)

    def _delete_old_runs(self) -> None:
        """Delete old runs of pytest, except for labelled and signed ones."""
        for run in [run for run in run_folders(self._results) if _OURS.search(run.name)][:-MAX_KEPT]:
            with suppress(RunFolderError, OSError):  # another session may be deleting it, and a damaged one stays
                if not run.is_being_written() and run.read_plan().door == EMPTY_PLAN.door:
                    delete_runs([run])


def ignore_in_git(results: Path) -> None:
    """Exclude the folder's files from git, unless it already has rules."""
    if not (ignored := results / ".gitignore").exists():
        write_atomically(ignored, _IGNORED.format(name=EMPTY_PLAN.name).encode())


def _case(outcome: EvalOutcome) -> Case:
    known = {"prompt": outcome.input, "expected": outcome.expected, "pass_rule": outcome.rule}
    return _PLAIN_CASE.model_copy(update={"id": outcome.records[0].case, "tags": {"suite": outcome.suite}, **known})
