"""What `bakeoff mcp evaluate` does once its options are read."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bakeoff.cli.console import err, out
from bakeoff.cli.running import FAILED, INTERRUPTED, PASSED, UNDECIDED, Ending, command_for, print_spending, watch
from bakeoff.doors.mcp_suite.outcome import CellOutcome, Outcome
from bakeoff.doors.mcp_suite.preparing import Prepared, prepare, read_suites
from bakeoff.doors.mcp_suite.request import EvaluationRequest
from bakeoff.doors.mcp_suite.results.combined import write_combined
from bakeoff.doors.mcp_suite.results.write import Written, reported
from bakeoff.errors import InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.report import summarise
from bakeoff.report.ci import write_ci_outputs
from bakeoff.report.words import cost, percent, visible
from bakeoff.rundir import RunFolder, new_run_folder

_CODES = {"passed": PASSED, "failed": FAILED, "undecided": UNDECIDED}
_WORST_FIRST = (INTERRUPTED, FAILED, UNDECIDED, PASSED)


def evaluate(request: EvaluationRequest, options: RunOptions, ending: Ending) -> int:
    """Every suite in turn; the exit code is that of the worst."""
    suites = read_suites(request, options)
    if len(suites) > 1 and (ending.outputs.junit or ending.outputs.markdown):
        raise UsageError(f"--junit and --markdown are one file each, and there are {len(suites)} suites: name one")
    codes: list[int] = []
    written: list[Written] = []
    for suite in suites:
        try:
            prepared = asyncio.run(prepare(suite, request, options))
        except InfraError as error:
            if len(suites) == 1:
                raise
            for line in str(error).splitlines():  # the other suites may be fine
                _say(f"error: {line}")
            codes.append(UNDECIDED)
            continue
        for warning in prepared.warnings:
            _say(f"warning: {warning}")
        code, one = _run(prepared, ending)
        codes.append(code)
        written.append(one)
        if code == INTERRUPTED:
            break
    files = [path for one in written for path in one.files]
    if len(suites) > 1 and written:
        files += write_combined([one.report for one in written], request.report)
    _tell(written, files, ending)
    return next(code for code in _WORST_FIRST if code in codes)


def _run(prepared: Prepared, ending: Ending) -> tuple[int, Written]:
    plan = prepared.plan
    folder = new_run_folder(prepared.options.results, plan.name)
    options = replace(prepared.options, folder=folder.path)
    interrupted = asyncio.run(watch(plan, options, err()))
    written = reported(folder, plan)
    written = replace(written, files=(*written.files, *write_ci_outputs(folder, plan, ending.outputs)))
    if not ending.as_json:
        _print_outcome(prepared, written.outcome, folder)
    if interrupted:
        _say(f"interrupted; go on with `{command_for('resume', folder, options)}`")
        return INTERRUPTED, written
    code = _CODES[written.outcome.state]
    return (PASSED if ending.exit_zero and code == FAILED else code), written


def _print_outcome(prepared: Prepared, outcome: Outcome, folder: RunFolder) -> None:
    """Pass rates, a row for each case and a column for each model."""
    plan = prepared.plan
    models = [spec.name for spec in plan.subjects]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("case")
    for model in models:
        table.add_column(visible(model, 60), justify="right")
    for case, cells in outcome.by_case():
        table.add_row(Text(visible(case, 70)), *map(_rate, cells))
    out().print(table)
    needed = "" if outcome.rule == "all" else f", and {percent(outcome.threshold)} of them have to"
    out().print(
        f"{outcome.passed} of {len(outcome.cells)} cells passed at {percent(outcome.threshold)} of {plan.rounds} rounds"
        f"{needed}: {outcome.state}"
    )
    summary = summarise(plan, folder.latest_records(plan))
    if summary.spent.tokens:
        out().print(f"{summary.spent.tokens:,} tokens, {cost(summary.spent.cost)}")
    print_spending(err(), summary, folder)


def _rate(cell: CellOutcome) -> Text:
    style = {"passed": "green", "failed": "red", "undecided": "yellow"}[cell.state]
    lost = f", {cell.rounds - cell.scored} lost" if cell.scored < cell.rounds else ""
    return Text(f"{percent(cell.pass_rate)} ({cell.passed}/{cell.scored}{lost})", style=style)


def _tell(written: Sequence[Written], files: Sequence[Path], ending: Ending) -> None:
    if ending.as_json:
        told = [one.report.model_dump(mode="json", by_alias=True) for one in written]
        out().file.write(json.dumps(told[0] if len(told) == 1 else told, indent=2, ensure_ascii=False) + "\n")
    for path in files:
        _say(f"wrote {path}")
    pages = [path for path in files if path.suffix == ".html"]
    if ending.opened and pages and not ending.as_json:
        from bakeoff.cli.reports import show

        show(pages[-1])


def _say(message: str) -> None:
    err().print(visible(message, 4000))
