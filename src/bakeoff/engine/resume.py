"""Read the progress of a run from its journal, and yield the jobs that are left."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bakeoff.engine.trial import Job
from bakeoff.errors import RunFolderError
from bakeoff.options import RunOptions
from bakeoff.plan import Plan
from bakeoff.record import NO_USAGE, Record, Usage
from bakeoff.stats.sequential import PairDecisions, random_order
from bakeoff.storage.journal import SpentTokens, record_at
from bakeoff.storage.journal_lines import Damage, note_damage
from bakeoff.storage.run_folder import RunFolder
from bakeoff.verdict import Round


@dataclass(slots=True)
class RunProgress:
    """The finished trials and the spending of earlier processes of a run."""

    finished: bytearray  # 1 for each trial that is finished, by its index
    attempted: dict[int, int] = field(default_factory=dict)  # trial -> place of its record, where only scoring is left
    spent: Usage = NO_USAGE
    spent_on: dict[str, Usage] = field(default_factory=dict)  # attempt key -> spending on an unfinished trial
    damaged: int = 0  # lines that are left out
    rounds: dict[int, Round] = field(default_factory=dict)  # trial -> result, in a run that ends when it is decided

    def decisions(self, plan: Plan) -> PairDecisions | None:
        """Return the comparisons so far of a run that ends when it is decided, None for others.

        While a pair is open, lost trials are left out: they are tried again.
        """
        if not plan.ends_when_decided:
            return None
        every, finished = PairDecisions(plan), PairDecisions(plan)
        for index, result in self.rounds.items():
            trial = plan.trial(index)
            every.add_round(trial.subject.name, trial.case.id, trial.round, result)
            if self.finished[index]:
                finished.add_round(trial.subject.name, trial.case.id, trial.round, result)
        return every if every.decided == every.pairs else finished


def read_progress(folder: RunFolder, plan: Plan, options: RunOptions) -> RunProgress:
    """Read the journal once, in constant memory unless the run ends when it is decided.

    A record of an edited case or subject does not belong to the plan, and is ignored.
    """
    progress = RunProgress(bytearray(plan.size))
    for place, entry in folder.entries_with_places():
        if isinstance(entry, SpentTokens):
            progress.spent = entry.total
            progress.spent_on[entry.trial] = progress.spent_on.get(entry.trial, NO_USAGE) + entry.usage
        elif isinstance(entry, Damage) and not entry.newer:
            progress.damaged += 1
        elif isinstance(entry, Damage):
            raise RunFolderError(f"run {folder.name} cannot be resumed: line {entry.line}: {entry.reason}")
        elif isinstance(entry, Record):
            if (trial := entry.trial_in(plan)) is None:
                continue
            scored = not entry.needs_score(trial) and not (options.rescore_all and entry.attempted)
            finished = entry.verdict.counts and scored
            progress.finished[trial.index] = finished
            if entry.attempted and not finished:
                progress.attempted[trial.index] = place
            else:
                progress.attempted.pop(trial.index, None)
            if finished or entry.attempted:
                progress.spent_on.pop(entry.attempt_key, None)
            if plan.ends_when_decided and scored:
                progress.rounds[trial.index] = entry.judged()
    note_damage(folder.label, progress.damaged)
    return progress


def trials_left(plan: Plan, progress: RunProgress) -> int:
    """Return how many trials are unfinished and, in a run that ends when it is decided, still needed."""
    decisions = progress.decisions(plan)
    if decisions is None:
        return plan.size - progress.finished.count(1)
    needed = [decisions.needs(spec.name) for spec in plan.subjects]
    return sum(not progress.finished[index] and needed[index % len(needed)] for index in range(plan.size))


def pending_jobs(plan: Plan, progress: RunProgress, folder: RunFolder, options: RunOptions) -> Iterator[Job]:
    """Yield a job for each unfinished trial: in the plan's order, or case by case in random order until decided."""
    order: Iterable[int] = range(plan.size)
    if plan.ends_when_decided:
        places = {case.id: place for place, case in enumerate(plan.cases)}
        width, cases = len(plan.subjects), [places[case.id] for unit in random_order(plan) for case in unit]
        firsts = ((round_ * len(places) + place) * width for place in cases for round_ in range(plan.rounds))
        order = (first + number for first in firsts for number in range(width))
    for index in order:
        if progress.finished[index]:
            continue
        place = progress.attempted.get(index)
        if place is not None:
            prior = record_at(folder.journal_file, place)
            yield Job(plan.trial(index), prior, prior.spent)
        elif not options.rescore_only:
            trial = plan.trial(index)
            yield Job(trial, spent=progress.spent_on.get(trial.attempt_key, NO_USAGE))
