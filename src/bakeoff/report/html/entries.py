"""What the index knows of a run, kept beside it so that the next index need not read the journal again."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from bakeoff._version import __version__
from bakeoff.errors import BakeoffError, RunFolderError
from bakeoff.files import PRIVATE
from bakeoff.frozen import Frozen, fingerprint
from bakeoff.journal import Mark, read_journal
from bakeoff.plan import Plan
from bakeoff.report.html.gather import State, read_plan, refusing
from bakeoff.report.html.render import replaced
from bakeoff.report.html.run_page import PAGE_NAME
from bakeoff.report.summary import Summary, summarise
from bakeoff.report.words import visible
from bakeoff.rundir import RunFolder, run_folders

KEPT_NAME = ".summary.json"
_FORMAT = 2


class Entry(Frozen):
    """One run, as far as the index shows it. Doors make these from result files of their own."""

    run: str
    started: float | None
    cases: str  # a fingerprint: scores over other cases are not a history
    models: dict[str, str]  # of subjects that name one
    summary: Summary
    state: State = "incomplete"
    page: str | None = None  # a link to the run's page, relative to the results folder


class Unreadable(Frozen):
    """A run folder that cannot be shown, and why."""

    run: str
    reason: str


class _Kept(Frozen):
    key: str
    entry: Entry


def read_entries(results: Path) -> Iterator[Entry | Unreadable]:
    """Every run of a results folder, oldest first, one at a time."""
    for folder in run_folders(results):
        try:
            yield read_entry(folder)
        except BakeoffError as error:
            yield Unreadable(run=visible(folder.name), reason=visible(str(error), 500))


def read_entry(folder: RunFolder) -> Entry:
    """From what was kept if the run has not changed since, otherwise from the journal."""
    with refusing(folder):
        key = _key(folder)
        entry = _kept(folder, key) or _fresh(folder, key)
        running = folder.is_being_written()
    state: State = "running" if running else "complete" if entry.summary.complete else "incomplete"
    page = f"runs/{quote(folder.name)}/{PAGE_NAME}" if (folder.path / PAGE_NAME).is_file() else None
    return entry.model_copy(update={"state": state, "page": page})


def _key(folder: RunFolder) -> str:
    """Changes whenever the plan or the journal does."""
    looked_at = [file.stat() for file in (folder.plan_file, folder.journal_file) if file.exists()]
    return fingerprint(_FORMAT, __version__, [[found.st_size, found.st_mtime_ns] for found in looked_at])


def _kept(folder: RunFolder, key: str) -> Entry | None:
    try:
        kept = _Kept.model_validate_json((folder.path / KEPT_NAME).read_bytes())
    except (OSError, ValidationError):
        return None
    return kept.entry if kept.key == key else None


def _fresh(folder: RunFolder, key: str) -> Entry:
    plan = read_plan(folder)
    entry = Entry(
        run=folder.name,
        started=_started(folder),
        cases=fingerprint([(case.id, case.attempt_digest) for case in plan.cases]),
        models=_models(plan),
        summary=summarise(plan, folder.latest_records(plan)),
    )
    try:
        with replaced(folder.path / KEPT_NAME, PRIVATE) as file:
            file.write(_Kept(key=key, entry=entry).model_dump_json().encode(errors="replace"))
    except RunFolderError:
        pass  # a folder that may only be read is read anew each time
    return entry


def _started(folder: RunFolder) -> float | None:
    """When the first process took it up: the journal's first line."""
    if not folder.started:
        return None
    first = next(iter(read_journal(folder.journal_file)), None)
    time = first.facts.get("time") if isinstance(first, Mark) else None
    return float(time) if isinstance(time, int | float) else None


def _models(plan: Plan) -> dict[str, str]:
    named = {spec.name: spec.options.get("model") for spec in plan.subjects}
    return {name: model if isinstance(model, str) else json.dumps(model) for name, model in named.items() if model}
