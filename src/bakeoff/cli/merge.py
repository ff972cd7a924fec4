"""Carry out `bakeoff merge`: combine the results of the shards of one run, here those of pytest."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bakeoff._kernel.text import count_of
from bakeoff.cli.console import err, say
from bakeoff.cli.flags import MergeFlags
from bakeoff.doors.pytest.reporting.blocks import summary_blocks
from bakeoff.doors.pytest.reporting.ending import OutcomeRedactor, write_html, write_json
from bakeoff.doors.pytest.reporting.eval_file import file_chunks, merge_files, read_eval_file
from bakeoff.doors.pytest.reporting.gates import Gates, judge_gates
from bakeoff.doors.pytest.reporting.numbers import Tallies
from bakeoff.doors.pytest.reporting.session_summary import summary_of
from bakeoff.doors.pytest.reporting.undecided import Allowance
from bakeoff.errors import UsageError
from bakeoff.report.output_files import refuse_unwritable
from bakeoff.report.render.terminal import print_blocks
from bakeoff.stats.gates import exit_code_of
from bakeoff.storage.object_store import is_store_address

STDOUT = "-"


def run_merge(*, files: Sequence[Path], wanted: MergeFlags) -> int:
    """Merge files and judge the gates. The summary goes to stderr, since stdout may be the merged JSON."""
    if address := next((file for file in files if is_store_address(str(file))), None):
        raise UsageError(f"{address}: runs are merged from folders on this machine: name those that have the copies")
    if any(file.is_dir() for file in files):
        from bakeoff.cli.merge_runs import merge_run_folders

        return merge_run_folders(files, wanted)
    output, html = wanted.output, wanted.html
    for option, target in (("--output", None if output == STDOUT else Path(output)), ("--html", html)):
        if target is not None:
            refuse_unwritable(option, target)
    before = None if wanted.baseline is None else read_eval_file(wanted.baseline).outcomes
    merged = merge_files(files)
    if wanted.shards is not None and merged.shards != wanted.shards:
        given = count_of(merged.shards, "shard is", "shards are")
        raise UsageError(f"--shards {wanted.shards}: {given} here: name the file of every shard, once")
    summary = summary_of(Tallies.of(merged.outcomes), complete=merged.complete, shards=merged.shards)
    asked = Gates(
        wanted.min_pass_rate,
        wanted.min_score,
        before,
        margin=wanted.margin,
        undecidable=wanted.undecidable,
        labelled=wanted.results if wanted.require_calibrated_judge else None,
        prefix="--",
        allowed=_allowance(wanted.allow_undecided),
    )
    gates = judge_gates(asked, merged.outcomes, summary)
    summary = replace(summary, gates=gates)
    print_blocks(err(), list(summary_blocks(summary)))
    notes, redact = list(merged.notes), OutcomeRedactor(os.environ)
    if output == STDOUT:
        sys.stdout.buffer.writelines(file_chunks(merged.outcomes, summary, redact))
    else:
        notes.append(write_json(merged.outcomes, summary, Path(output), redact))
    if html is not None:
        notes.append(write_html(list(map(redact, merged.outcomes)), summary, html))
    for note in notes:
        say(note)
    return exit_code_of({True: 0, False: 1, None: 3}[gate.met] for gate in gates)


def _allowance(text: str) -> Allowance:
    try:
        return Allowance.parse(text)
    except ValueError as error:
        raise UsageError(f"--allow-undecided {text!r}: give a number such as 3, or a share such as 0.05") from error
