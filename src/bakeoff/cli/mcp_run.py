"""What `bakeoff mcp evaluate` does once its options are read."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bakeoff.cli.console import err, out
from bakeoff.cli.running import FAILED, INTERRUPTED, PASSED, UNDECIDED, Ending, command_for, print_spending, watch
from bakeoff.doors.mcp_suite.outcome import CellOutcome, Outcome
from bakeoff.doors.mcp_suite.plan import EvaluationRequest, build_plan
from bakeoff.doors.mcp_suite.results.files import Written, reported, write_combined
from bakeoff.doors.mcp_suite.suites import Asked, Prepared, prepare, read_suites
from bakeoff.errors import InfraError, UsageError
from bakeoff.options import RunOptions
from bakeoff.report import summarise
from bakeoff.report.ci import CiRun, write_ci_outputs
from bakeoff.report.whole_files import refuse_unwritable
from bakeoff.report.words import cost, percent, visible
from bakeoff.storage.run_folder import RunFolder, new_run_folder

_CODES = {"passed": PASSED, "failed": FAILED, "undecided": UNDECIDED}
_WORST_FIRST = (INTERRUPTED, FAILED, UNDECIDED, PASSED)


def evaluate(request: EvaluationRequest, options: RunOptions, ending: Ending, *, dry_run: bool = False) -> int:
    """Every suite in turn; the exit code is that of the worst."""
    _refuse_unusable(request.report)
    suites = read_suites(request, options)
    if dry_run:
        for asked in suites:
            _print_plan(asked, options)
        return PASSED
    codes: list[int] = []
    done: list[_Done] = []
    for asked in suites:
        prepared = _prepared(asked, options, alone=len(suites) == 1)
        if prepared is None:
            codes.append(UNDECIDED)
            continue
        one = _run(prepared, ending)
        codes.append(one.code)
        done.append(one)
        if one.code == INTERRUPTED:
            break
    _leave(suites, done, request.report, ending)
    return next(code for code in _WORST_FIRST if code in codes)


def _leave(suites: Sequence[Asked], done: Sequence["_Done"], report: Path, ending: Ending) -> None:
    """The files over all suites, and word of every file."""
    written = [one.written for one in done]
    files = [path for one in written for path in one.files]
    if len(suites) > 1 and written:
        run = {one.suite for one in done}
        files += write_combined(written, [str(one.suite.file) for one in suites if one.suite.file not in run], report)
    files += write_ci_outputs([one.told for one in done], ending.outputs)
    _tell(written, files, ending, several=len(suites) > 1)


def _refuse_unusable(report: Path) -> None:
    """Before anything is paid for whose report would have no place."""
    if report.exists() and not report.is_dir():
        raise UsageError(f"--report {report} is a file: name a folder")
    refuse_unwritable("--report", report / "test-report.json")


def _prepared(asked: Asked, options: RunOptions, *, alone: bool) -> Prepared | None:
    """Its servers have told their tools; None where they did not, and there are other suites that may be fine."""
    try:
        prepared = asyncio.run(prepare(asked.suite, asked.request, options))
    except InfraError as error:
        if alone:
            raise
        for line in str(error).splitlines():
            _say(f"error: {line}")
        return None
    for warning in prepared.warnings:
        _say(f"warning: {warning}")
    return prepared


def _print_plan(asked: Asked, options: RunOptions) -> None:
    from bakeoff.cli.plans import print_dry_run

    suite = asked.suite
    plan = build_plan(suite, asked.request)
    config = suite.config
    rule = "all cells have to" if config.suiteRule == "all" else f"{percent(config.threshold)} of cells have to"
    out().print(f"{visible(str(suite.file))}: a cell passes at {percent(config.threshold)} of its rounds; {rule}")
    out().print(f"mode {config.mode}, servers: {visible(', '.join(server.name for server in config.mcpServers))}")
    print_dry_run(plan, options.results)


@dataclass(frozen=True, slots=True)
class _Done:
    """A suite that was run."""

    suite: Path
    code: int
    written: Written
    told: CiRun


def _run(prepared: Prepared, ending: Ending) -> _Done:
    plan = prepared.plan
    folder = new_run_folder(prepared.options.results, plan.name)
    options = replace(prepared.options, folder=folder.path)
    interrupted = asyncio.run(watch(plan, options, err()))
    written = reported(folder, plan)
    if not ending.as_json:
        _print_outcome(prepared, written.outcome, folder)
    code = _CODES[written.outcome.state]
    if interrupted:
        _say(f"interrupted; go on with `{command_for('resume', folder, options)}`")
        code = INTERRUPTED
    elif ending.exit_zero and code == FAILED:
        code = PASSED
    return _Done(prepared.suite.file, code, written, CiRun(folder, plan, written.outcome.threshold))


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


def _tell(written: Sequence[Written], files: Sequence[Path], ending: Ending, *, several: bool) -> None:
    if ending.as_json:
        told = [one.report.model_dump(mode="json", by_alias=True) for one in written]
        out().file.write(json.dumps(told if several else told[0], indent=2, ensure_ascii=False) + "\n")
    for path in files:
        _say(f"wrote {path}")
    pages = [path for path in files if path.suffix == ".html"]
    if ending.opened and pages and not ending.as_json:
        from bakeoff.cli.reports import show

        show(pages[-1])


def _say(message: str) -> None:
    err().print(visible(message, 4000))
