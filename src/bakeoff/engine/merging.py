"""Merge the runs of the shards of one plan into one run."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

from bakeoff.engine.run_journal import RunJournal
from bakeoff.errors import UsageError
from bakeoff.plan import Plan, Shard
from bakeoff.record import NO_USAGE
from bakeoff.storage.journal_lines import Damage
from bakeoff.storage.own_runs import why_unknown
from bakeoff.storage.redaction import Redactor
from bakeoff.storage.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class ShardRun:
    """The run of one shard."""

    folder: RunFolder
    plan: Plan
    shard: Shard

    @classmethod
    def read(cls, folder: RunFolder) -> "ShardRun":
        """Read the run of a shard. Raise UsageError if it is incomplete, or not a shard."""
        plan = folder.read_plan()
        if plan.shard is None:
            raise UsageError(f"run {folder.label} is not a shard: only runs that were started with --shard are merged")
        if plan.shard.merged:
            raise UsageError(f"run {folder.label} was merged already, without all shards: name the runs of the shards")
        if folder.is_being_written():
            raise UsageError(f"run {folder.label} (shard {plan.shard}) is being written: wait for it, or stop it first")
        return cls(folder, plan, plan.shard)

    def __str__(self) -> str:
        return f"run {self.folder.path} (shard {self.shard})"  # runs of several machines may have one name

    def refuse_gaps(self) -> None:
        """Raise UsageError if a trial has no record, or if the journal is damaged."""
        damaged: list[Damage] = []
        done = bytearray(self.plan.size)
        for record in self.folder.latest_records(self.plan, damaged):
            trial = self.plan.find(record.case, record.subject, record.round)
            assert trial is not None, "records of other trials were left out"
            done[trial.index] = True
        if damaged:
            raise UsageError(
                f"{self} is damaged: {damaged[0].reason}; `bakeoff runs check --repair {self.folder.path}` keeps "
                "what is whole"
            )
        left = next((trial for trial in self.plan.trials() if not done[trial.index]), None)
        if left is not None:
            raise UsageError(
                f"{self} has {done.count(1):,} of {self.plan.size:,} trials: the first without a record is round "
                f"{left.round + 1} of {left.subject.name!r} on {left.case.id!r}; continue it with "
                f"`bakeoff resume {self.folder.path}`"
            )

    @property
    def made_here(self) -> bool:
        """Return True if this user started the run here."""
        return why_unknown(self.folder.path, self.folder.read_plan_bytes()) is None


@dataclass(frozen=True, slots=True)
class MergedRun:
    """The merged run, and the numbers of the missing shards."""

    folder: RunFolder
    plan: Plan
    missing: tuple[int, ...]


def read_shards(folders: Sequence[RunFolder]) -> list[ShardRun]:
    """Return the runs in the order of their shards. Raise UsageError unless they fit together."""
    runs = sorted(map(ShardRun.read, folders), key=lambda run: run.shard.number)
    for one, other in pairwise(runs):
        if (one.shard.whole, one.shard.of) != (other.shard.whole, other.shard.of):
            raise UsageError(
                f"{one} and {other} are not parts of one plan: cases, subjects, scorers, rounds, seed or the number "
                "of shards differ"
            )
        if one.shard.number == other.shard.number:
            raise UsageError(f"{one} and {other} are the same shard: leave one of them out")
    for run in runs:
        run.refuse_gaps()
    return runs


def merge_shards(runs: Sequence[ShardRun], target: RunFolder, redactor: Redactor) -> MergedRun:
    """Write one run with the records of all shards. Cases of missing shards are left out."""
    given = {run.shard.number for run in runs}
    cases = chain.from_iterable(zip_longest(*(run.plan.cases for run in runs)))
    first = runs[0].shard
    missing = tuple(number for number in first.numbers_with_cases if number not in given)
    here = first.model_copy(update={"merged": tuple(sorted(given))}) if missing else None
    plan = runs[0].plan.with_changes(cases=tuple(case for case in cases if case is not None), shard=here)
    with RunJournal(target, redactor) as journal:
        facts = {name: value for name, value in runs[0].folder.beginning().items() if name in ("sandbox", "jobs")}
        # If others made a shard, nothing from its plan runs here without consent.
        made_here = all(run.made_here for run in runs)
        journal.start(plan, made_here=made_here, merged=[run.folder.label for run in runs], **facts)
        total = NO_USAGE
        for run in runs:
            for record in run.folder.latest_records(run.plan):
                journal.append(record)
            spent = run.folder.spent()  # includes trials that were killed before they had a record
            total += spent
            journal.add_usage("", spent, total)
            if run.folder.pictures.is_dir():
                shutil.copytree(run.folder.pictures, target.pictures, dirs_exist_ok=True)
        journal.end("merged")
    return MergedRun(target, plan, missing)
