"""Implement `bakeoff merge`: combine the shards of a run (pytest files or run folders)."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from bakeoff._kernel.choices import ComparisonGate
from bakeoff._kernel.text import count_of
from bakeoff.cli.console import err, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import HTML, EndingFlags, GateFlags, Results, allowed_in
from bakeoff.errors import UsageError
from bakeoff.options import RunOptions

if TYPE_CHECKING:
    from bakeoff.plan import Shard
    from bakeoff.report.suites.eval_file import EvalFile

app = group_of()

STDOUT = "-"


class MergeFlags(GateFlags):
    """The options of `bakeoff merge`."""

    output: str = flag(
        "-",
        "Of files: the file to write, `-` is stdout. Of run folders: the folder of results, `-` is results.",
        "--output",
        "-o",
        metavar="PATH",
    )
    html: Path | None = HTML
    shards: int | None = flag(None, "How many shards there are; refuse if one is missing.", min=1, metavar="N")
    min_pass_rate: float | None = flag(None, "Like --eval-min-pass-rate of pytest.", min=0, max=1, metavar="SHARE")
    fail_under: float | None = flag(
        None, "Like --eval-fail-under of pytest.", "--fail-under", "--min-score", min=0, max=1, metavar="SCORE"
    )
    baseline: Path | None = flag(None, "Like --eval-baseline of pytest.", metavar="FILE")
    gate: ComparisonGate = flag("regression", "Like --eval-gate of pytest.")
    require_calibrated_judge: bool = flag(
        False, "Refuse (exit 3) if a judge has too few labels in the runs of --results."
    )
    results: Results = Path("results")


@command(app, "merge")
def run_merge(
    *,
    files: Annotated[
        list[Path],
        Argument(metavar="PATH", help="The run folders of --shard, or the files of `pytest --eval-json`: all shards."),
    ],
    wanted: MergeFlags,
) -> int:
    """Merge the results of the shards of one run. Exits with 1 if something failed or a gate is not met.

    Example: bakeoff merge shard-1.json shard-2.json -o evals.json
    """

    from bakeoff.storage.store_copy import is_store_address

    if address := next((file for file in files if is_store_address(str(file))), None):
        raise UsageError(f"{address}: runs are merged from folders on this machine: name those that have the copies")
    if any(file.is_dir() for file in files):
        return merge_run_folders(files, wanted)
    return merge_eval_files(files, wanted)


def merge_eval_files(files: Sequence[Path], wanted: MergeFlags) -> int:
    """Merge files of `pytest --eval-json`, judge the gates over all shards, and return the exit code.

    The summary and the notes go to stderr, because the merged file may go to stdout.

    Raises `UsageError` if a target cannot be written, if --shards is not the number of shards,
    or if --allow-undecided is neither a number nor a share.
    """

    from bakeoff.report.gates import GateRule, GateState
    from bakeoff.report.output_files import refuse_unwritable
    from bakeoff.report.render.terminal import print_blocks
    from bakeoff.report.suites.blocks import summary_blocks
    from bakeoff.report.suites.eval_file import file_chunks, merge_files
    from bakeoff.report.suites.files import OutcomeRedactor, write_html, write_json
    from bakeoff.report.suites.gates import SuiteGates, judge_gates
    from bakeoff.report.suites.numbers import SuiteTallies, summary_of

    output, html = wanted.output, wanted.html
    for option, target in (("--output", None if output == STDOUT else Path(output)), ("--html", html)):
        if target is not None:
            refuse_unwritable(option, target)
    before = None if wanted.baseline is None else _read_baseline(wanted.baseline, files)
    merged = merge_files(files)
    found = merged.files if merged.shards is None else merged.shards.of
    if wanted.shards is not None and found != wanted.shards:
        given = count_of(found, "shard is here", "shards are here")
        if merged.shards is not None:
            given = f"the tests were parted into {count_of(found, 'shard')}"
        raise UsageError(f"--shards {wanted.shards}: {given}: name the file of every shard, once")
    summary = summary_of(SuiteTallies.of(merged.outcomes), complete=merged.complete, shards=merged.shards)
    asked = SuiteGates(
        wanted.min_pass_rate,
        wanted.fail_under,
        before,
        GateRule(wanted.gate, wanted.margin, wanted.undecidable),
        labelled=wanted.results if wanted.require_calibrated_judge else None,
        prefix="--",
        allowed=allowed_in(wanted.allow_undecided),
    )
    gates = judge_gates(asked, merged.outcomes, summary)
    summary = replace(summary, gates=gates)
    notes, redact = list(merged.notes), OutcomeRedactor(os.environ)
    if output == STDOUT:
        sys.stdout.buffer.writelines(file_chunks(merged.outcomes, summary, redact))
    else:
        notes.append(write_json(merged.outcomes, summary, Path(output), redact))
    if html is not None:
        notes.append(write_html(list(map(redact, merged.outcomes)), summary, html))
    for note in notes:
        say(note)
    print_blocks(err(), list(summary_blocks(summary)))  # last, because it ends with the gates
    states = [GateState.of_met(gate.met) for gate in gates]
    if (gap := summary.ledger.gap) is not None:
        say(f"undecided: {gap}")
        states.append(GateState.UNDECIDED)
    return GateState.worst(states).exit_code


def _read_baseline(path: Path, files: Sequence[Path]) -> "EvalFile":
    from bakeoff.report.compare.arms import refuse_copy
    from bakeoff.report.suites.eval_file import read_eval_file

    for file in files:
        refuse_copy(path, file)
    return read_eval_file(path)


def merge_run_folders(folders: Sequence[Path], wanted: MergeFlags) -> int:
    """Merge the run folders of shards into a new run in the folder --output, and report it.

    Missing shards do not prevent the merge, but leave its gate undecided.

    Raises `UsageError` for options that only files of pytest have, and for a path that is not a run folder.
    """

    from bakeoff.cli.run_plan import conclude, finish_run
    from bakeoff.doors import door_of
    from bakeoff.engine.merging import merge_shards, read_shards
    from bakeoff.storage.run_folder import RunFolder, new_run_folder
    from bakeoff.storage.store_copy import is_store_address

    for option in ("html", "baseline", "min_pass_rate", "margin", "gate", "undecidable", "require_calibrated_judge"):
        if getattr(wanted, option) != getattr(MergeFlags(), option):
            raise UsageError(f"--{option.replace('_', '-')} is for files of pytest: leave it out for run folders")
    for path in folders:
        if not (path / "plan.json").is_file():
            raise UsageError(f"{path} is not the folder of a run: leave it out")
    runs = read_shards([RunFolder(path) for path in folders])
    if wanted.shards is not None:
        refuse_other_count(wanted.shards, runs[0].shard, {run.shard.number for run in runs})
    results = Path("results") if wanted.output == "-" else Path(wanted.output)
    if is_store_address(wanted.output):
        raise UsageError(f"--output {wanted.output}: runs are merged into a folder on this machine: name one")
    options = RunOptions(results=results)
    ending = EndingFlags(fail_under=wanted.fail_under, allow_undecided=wanted.allow_undecided)
    target = new_run_folder(results, runs[0].plan.name)
    merged = merge_shards(runs, target, options.redactor())
    shard = runs[0].shard
    empty = shard.of - len(shard.numbers_with_cases)
    note = f"; {count_of(shard.cases, 'case')} left {count_of(empty, 'shard')} empty" if empty else ""
    say(f"merged {count_of(len(runs), 'shard')} of {shard.of}{note}")
    ended = finish_run(merged.folder, merged.plan, door_of(merged.plan), options, ending)
    return conclude([ended], ending)


def refuse_other_count(wanted: int, shard: "Shard", given: set[int]) -> None:
    """Raise `UsageError` unless `wanted` is the plan's number of shards and every shard with cases is present.

    `given` holds the numbers of the given shards. Shards without cases have no run.
    """
    if wanted != (of := shard.of):
        raise UsageError(f"--shards {wanted}: this plan was parted into {count_of(of, 'shard')}: write --shards {of}")
    if missing := [str(number) for number in shard.numbers_with_cases if number not in given]:
        raise UsageError(f"--shards {wanted}: missing: shard {', '.join(missing)}; name the run of every shard")
