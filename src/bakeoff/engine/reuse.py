"""Reuse answers of earlier runs instead of repeating unchanged attempts.

An answer is carried over if its attempt key equals that of the new trial. Its scores are kept if
the score keys are equal too. A door may declare other answers valid. Carried-over answers keep
their usage for comparisons, but a budget counts only the spending of its own run.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import BakeoffError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, Trial
from bakeoff.record import Record
from bakeoff.storage.own_runs import why_unknown
from bakeoff.storage.run_folder import RunFolder, new_run_folder, run_folders

CARRIED_OVER = "carried_over"
"""The key, in the metadata of a transcript, of the run that an answer was carried over from."""

_MAX_SEARCHED = 100  # newest runs that are searched, of any plan


NEW, CHANGED, CHANGED_FILE, NOT_PASSED = "new", "changed case or model", "changed file", "did not pass"
"""Reasons why a part of a plan is stale."""


class KnownPart(NamedTuple):
    """A part of an earlier plan: the key of its content, and whether its result is still valid."""

    key: str
    holds: bool = True


def why_stale(key: str, known: KnownPart | None, touched: str | None = None) -> str | None:
    """Return why a part of a plan must run again; None if its result can be reused.

    A door decides what a part is (a trial, a cell or a test), and what its key covers.

    Args:
        key: the present key of the part.
        known: the part in earlier runs, if any.
        touched: why the part is stale despite an equal key: a used file or tool has changed.
    """
    if known is None:
        return NEW
    if touched is not None or (known.key == key and known.holds):
        return touched
    return CHANGED if known.key != key else NOT_PASSED


def past_runs(results: Path, is_wanted: Callable[[Plan], bool]) -> list[RunFolder]:
    """Return the last readable runs with a wanted plan, newest first.

    Only runs that this user started here count: a cloned repository could contain any answers.
    """
    found: list[RunFolder] = []
    for folder in run_folders(results)[: -_MAX_SEARCHED - 1 : -1]:
        with suppress(BakeoffError):
            data = folder.read_plan_bytes()
            if why_unknown(folder.path, data) is None and is_wanted(folder.parse_plan(data)):
                found.append(folder)
    return found


def reusable_records(
    runs: Iterable[RunFolder], plan: Plan, as_now: Callable[[Plan], Plan] = lambda before: before
) -> list[Record]:
    """Return the newest usable record of earlier runs for each trial of this plan.

    `as_now` updates the keys in an earlier plan, for doors that compare parts of plans themselves.
    """
    found: dict[str, Record] = {}
    for folder in runs:
        with suppress(BakeoffError):  # a damaged run
            before = folder.read_plan()
            adapted = as_now(before)
            for record in folder.latest_records(before):
                place = record.case, record.subject, record.round
                then, trial = adapted.find(*place), plan.find(*place)
                if then is None or trial is None or trial.attempt_key in found:
                    continue
                known = KnownPart(then.attempt_key, record.verdict.counts or record.attempted)
                if why_stale(trial.attempt_key, known) is None:
                    scored = then.score_key == trial.score_key
                    found[trial.attempt_key] = carry_over(record, plan, trial, folder, scored=scored)
        if len(found) == plan.size:
            break
    return list(found.values())


def carry_over(record: Record, plan: Plan, trial: Trial, run: RunFolder, *, scored: bool) -> Record:
    """Return an earlier record as the record of a trial of this plan, marked with its run.

    With `scored`, its scores are kept; otherwise, the answer is scored again.
    """
    transcript = record.transcript
    if transcript is not None and CARRIED_OVER not in transcript.metadata:
        metadata = {**transcript.metadata, CARRIED_OVER: run.label, "replayed": True}
        transcript = transcript.model_copy(update={"metadata": metadata})
    keys = {"attempt_key": trial.attempt_key, "score_key": trial.score_key if scored else ""}
    return record.model_copy(update={**keys, "transcript": transcript, "threshold": plan.threshold_of(trial.case)})


def count_finished(records: Iterable[Record], plan: Plan) -> int:
    """Return how many of these records need no new attempt and no new score."""
    found = ((record, record.trial_in(plan)) for record in records)
    return sum(trial is not None and record.verdict.counts and not record.needs_score(trial) for record, trial in found)


def start_run(plan: Plan, options: RunOptions, carried: Iterable[Record], **facts: Any) -> RunFolder:
    """Make the folder of a run that starts with these records. The facts go into its journal."""
    folder = new_run_folder(options.results, plan.name)
    with RunJournal(folder, options.redactor()) as journal:
        journal.start(plan, jobs=options.jobs, **facts)
        for record in carried:
            journal.append(record)
    return folder


def delete_runs(runs: Sequence[RunFolder]) -> list[RunFolder]:
    """Delete runs of earlier cycles. Return those that are kept because of labels or signatures."""
    kept = [run for run in runs if run.labels_file.exists() or run.signature_file.exists()]
    for run in runs:
        if run not in kept:
            with suppress(BakeoffError, OSError):
                run.delete()
    return kept
