"""Keep the evals of a session as a run: a folder that `bakeoff report`, `compare` and `runs` read like any other."""

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from bakeoff._kernel.files import require_locks, write_atomically
from bakeoff.doors.pytest.options import results_folder
from bakeoff.doors.pytest.parallel import EMPTY_PLAN
from bakeoff.engine.reuse import delete_runs
from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Case, PassRule, SubjectSpec
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

MAX_KEPT = 20
"""Runs of pytest that stay in the default folder."""


class RunWriter:
    """Write the journal as outcomes are reported, and the plan at the end, when all cases are known."""

    def __init__(self, config: pytest.Config) -> None:
        self._results = results_folder(config)
        self._prune = config.getoption("eval_results") is None
        self._folder: RunFolder | None = None
        self._journal: RunJournal | None = None
        self._redactor = RunOptions().redactor()
        self._cases: dict[str, bytes] = {}  # by id, as JSON: a thousand cases take less memory than as objects
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

        An `earlier` one is of another run; its records get the keys that they have in this one.
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
            if self._redactor.finds(case):
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

    def _with_keys_of(self, case: bytes, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Return the records with the keys of a case or subject that has changed: they are found by these."""
        subject = self._subjects.get(records[0].subject) or EMPTY_PLAN.subjects[0]
        redacted = Case.model_validate_json(case)
        trials = [EMPTY_PLAN.trial_of(redacted, subject, record.round, 0) for record in records]
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

    def finish(self, *, interrupted: bool) -> None:
        """Write the end of the journal and the whole plan, and delete old runs of the default folder."""
        if self._folder is None or self._journal is None:
            return
        cases: list[Case] = []
        rules: dict[str, PassRule] = {}
        empty = Case(id="case", prompt="")
        for name in list(self._cases):
            known = from_json(self._cases.pop(name))  # of a valid outcome: it need not be validated again
            text = repr(known["pass_rule"])
            rule = rules.get(text) or rules.setdefault(text, PassRule(**known["pass_rule"]))  # many share a few
            cases.append(empty.model_copy(update={**known, "pass_rule": rule}))
        subjects = tuple(self._subjects.values()) or EMPTY_PLAN.subjects
        known = {"cases": tuple(cases), "subjects": subjects, "rounds": self._rounds}
        decisions = self._plugins.getplugin("bakeoff-until-decided")
        plan = EMPTY_PLAN.model_copy(update={**known, "until_decided": decisions and decisions.settings})
        try:
            with self._journal as journal:
                journal.end("interrupted" if interrupted else "finished")
            self._folder.write_plan(plan, self._redactor)
            if self._prune:
                self._delete_old_runs()
        except (RunFolderError, OSError) as error:
            self.problem = self.problem or str(error)

    def _delete_old_runs(self) -> None:
        """Delete all but the last runs of pytest; labelled and signed ones stay."""
        for run in [run for run in run_folders(self._results) if _OURS.search(run.name)][:-MAX_KEPT]:
            with suppress(RunFolderError, OSError):  # another session may be deleting it, and a damaged one stays
                if not run.is_being_written() and run.read_plan().door == EMPTY_PLAN.door:
                    delete_runs([run])


def ignore_in_git(results: Path) -> None:
    """Keep what pytest writes out of git, and nothing else, unless the folder has rules already."""
    if not (ignored := results / ".gitignore").exists():
        write_atomically(ignored, _IGNORED.format(name=EMPTY_PLAN.name).encode())


def _case(outcome: EvalOutcome) -> bytes:
    expected = {} if outcome.expected is None else {"expected": outcome.expected}
    judged = {"tags": {"suite": outcome.suite}, "pass_rule": _dumped(outcome.rule)}
    return to_json({"id": outcome.records[0].case, "prompt": outcome.input, **expected, **judged})


@lru_cache
def _dumped(rule: PassRule) -> dict[str, Any]:
    return rule.model_dump(exclude_defaults=True)
