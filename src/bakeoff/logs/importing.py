"""Make run folders of the logs of other tools."""

import shutil
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bakeoff.engine.run_journal import RunJournal
from bakeoff.logs.reader import IMPORTED, Choices, ForeignLogReader
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE
from bakeoff.report.readers import Source
from bakeoff.storage.run_folder import RunFolder, new_run_folder
from bakeoff.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """The run that was made of a log, and how many trials of it have each verdict."""

    folder: RunFolder
    plan: Plan
    verdicts: Counter[Verdict]


def import_log(path: Path, results: Path, choices: Choices) -> ImportedRun:
    """Write the plan and records of a log to a new run folder. A log that cannot be read to its end leaves none."""
    reader = ForeignLogReader(choices)
    source = Source(path, reader)
    plan = source.plan
    began, ended = reader.open(path).span or (time.time(), time.time())
    folder = new_run_folder(results, plan.name)
    facts = plan.settings[IMPORTED]
    total, verdicts = NO_USAGE, Counter[Verdict]()
    try:
        with RunJournal(folder, RunOptions().redactor()) as journal:
            journal.start(plan, made_here=False, time=began, imported=facts, imported_at=time.time())
            for record in source.records():
                journal.append(record)
                total += record.spent
                verdicts[record.verdict] += 1
            journal.add_usage("", total, total)
            journal.end("imported", time=ended)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)  # it may have no plan yet, so it is no run to `delete`
        raise
    return ImportedRun(folder, plan, verdicts)
