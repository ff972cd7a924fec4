"""Carry out `bakeoff merge` for run folders: one run of the shards of a plan."""

from collections.abc import Sequence
from pathlib import Path

from bakeoff._kernel.text import count_of
from bakeoff.cli.console import say
from bakeoff.cli.flags import EndingFlags, MergeFlags
from bakeoff.cli.run_plan import UNDECIDED, conclude, finish_run, worst_of
from bakeoff.doors import door_of
from bakeoff.engine.merging import MergedRun, merge_shards, read_shards
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions
from bakeoff.plan import Shard
from bakeoff.storage.object_store import is_store_address
from bakeoff.storage.run_folder import RunFolder, new_run_folder


def merge_run_folders(folders: Sequence[Path], wanted: MergeFlags) -> int:
    """Make one run of the shards in the folder of results that `--output` names, and report it as if it had run."""
    for option in ("html", "baseline", "min_pass_rate", "margin"):
        if getattr(wanted, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} is for files of pytest: leave it out for run folders")
    if wanted.require_calibrated_judge:
        raise UsageError("--require-calibrated-judge is for files of pytest: leave it out for run folders")
    for path in folders:
        if not (path / "plan.json").is_file():
            raise UsageError(f"{path} is not the folder of a run: leave it out")
    runs = read_shards([RunFolder(path) for path in folders])
    of = runs[0].shard.of
    if wanted.shards is not None:
        refuse_other_count(wanted.shards, runs[0].shard, {run.shard.number for run in runs})
    results = Path("results") if wanted.output == "-" else Path(wanted.output)
    if is_store_address(wanted.output):
        raise UsageError(f"--output {wanted.output}: runs are merged into a folder on this machine: name one")
    options, ending = RunOptions(results=results), EndingFlags(fail_under=wanted.min_score)
    target = new_run_folder(results, runs[0].plan.name)
    merged = merge_shards(runs, target, options.redactor())
    ended = finish_run(merged.folder, merged.plan, door_of(merged.plan), options, ending)
    code = conclude([ended], ending)
    say(f"merged {count_of(len(runs), 'shard')} of {of}{_without_cases(runs[0].shard)}")
    if not merged.missing:
        return code
    say(describe_missing(merged, runs[0].shard.cases))
    return worst_of([code, UNDECIDED])


def _without_cases(shard: Shard) -> str:
    empty = shard.of - len(shard.numbers_with_cases)
    return f"; {count_of(shard.cases, 'case')} left {count_of(empty, 'shard')} empty" if empty else ""


def refuse_other_count(wanted: int, shard: Shard, given: set[int]) -> None:
    if wanted != (of := shard.of):
        raise UsageError(f"--shards {wanted}: this plan was parted into {count_of(of, 'shard')}: write --shards {of}")
    if missing := [str(number) for number in shard.numbers_with_cases if number not in given]:
        raise UsageError(f"--shards {wanted}: missing: shard {', '.join(missing)}; name the run of every shard")


def describe_missing(merged: MergedRun, cases: int) -> str:
    """Say which shards are missing, and what that means."""
    numbers = ", ".join(map(str, merged.missing))
    what = "shard" if len(merged.missing) == 1 else "shards"
    return (
        f"missing: {what} {numbers}: these are the results of {len(merged.plan.cases):,} of {count_of(cases, 'case')}; "
        "merge again when all shards are there"
    )
