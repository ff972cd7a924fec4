"""What earlier processes have done of a run, and so what is left to do."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bakeoff._kernel.bitmap import Bitmap
from bakeoff.engine.trial import Job
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan, Trial
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.storage.journal import Damage, Spent, record_at
from bakeoff.storage.run_folder import RunFolder


@dataclass(slots=True)
class Done:
    """What earlier processes of a run have left behind."""

    finished: Bitmap
    attempted: dict[int, int] = field(default_factory=dict)  # trial -> where its record is, if only scoring is left
    spent: Usage = NO_USAGE
    spent_on: dict[str, Usage] = field(default_factory=dict)  # attempt key -> by a trial that is not finished


def what_is_done(folder: RunFolder, plan: Plan, options: RunOptions) -> Done:
    """Read a journal once, in constant memory. A record of an edited case or subject is not one of this plan."""
    done = Done(Bitmap(plan.size))
    for place, entry in folder.entries_with_places():
        if isinstance(entry, Spent):
            done.spent = entry.total
            done.spent_on[entry.trial] = done.spent_on.get(entry.trial, NO_USAGE) + entry.usage
        elif isinstance(entry, Damage) and entry.newer:
            raise RunFolderError(f"run {folder.name} cannot be gone on with: line {entry.line}: {entry.reason}")
        elif isinstance(entry, Record):
            trial = plan.find(entry.case, entry.subject, entry.round)
            if trial is not None and trial.attempt_key == entry.attempt_key:
                _note(done, trial, entry, place, again=options.rescore_all)
                if done.finished[trial.index] or trial.index in done.attempted:
                    done.spent_on.pop(entry.attempt_key, None)
    return done


def _note(done: Done, trial: Trial, record: Record, place: int, *, again: bool) -> None:
    attempted = record.attempted
    scored = record.score_key == trial.score_key and not again
    done.finished[trial.index] = record.verdict.counts and (scored or not attempted)
    if attempted and not done.finished[trial.index]:
        done.attempted[trial.index] = place
    else:
        done.attempted.pop(trial.index, None)


def pending_jobs(plan: Plan, done: Done, folder: RunFolder, options: RunOptions) -> Iterator[Job]:
    """What is not finished, in the plan's order, one at a time."""
    for index in range(plan.size):
        if not done.finished[index]:
            place = done.attempted.get(index)
            if place is not None:
                prior = record_at(folder.journal_file, place)
                yield Job(plan.trial(index), prior, prior.spent)
            elif not options.rescore_only:
                trial = plan.trial(index)
                yield Job(trial, spent=done.spent_on.get(trial.attempt_key, NO_USAGE))
