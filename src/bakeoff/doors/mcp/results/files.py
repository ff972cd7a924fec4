"""Write the reports of suites: JSON, Markdown, a page and a log for each, and one report over several."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff._kernel.files import PRIVATE, read_file
from bakeoff._kernel.json import parse_json
from bakeoff._kernel.text import count_of, visible
from bakeoff.doors import DoorResults
from bakeoff.doors.mcp.outcome import CallOutcome, confusions, outcome_of
from bakeoff.doors.mcp.plan import McpPlanSettings, suite_name
from bakeoff.doors.mcp.results.report import McpReport, build_report, cost_of
from bakeoff.doors.mcp.results.sections import (
    TONES,
    coverage_blocks,
    evidence_of,
    page_parts,
    rate_tables,
    reasons,
)
from bakeoff.doors.mcp.runs import compare_with_run_before
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.blocks import (
    Block,
    BulletList,
    Datum,
    Quote,
    Report,
    Section,
    Table,
    Value,
    columns,
    heading,
    paragraph,
)
from bakeoff.report.formatting import UNKNOWN, percent
from bakeoff.report.gates import GateState
from bakeoff.report.output_files import replace_text
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_summary import summary_table
from bakeoff.report.summary import Summary, summarise
from bakeoff.storage.run_folder import RunFolder

_MAX_REASONS = 50
_MAX_LENGTH = 2_000
_MAX_AT_ONCE = 1000
_NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpResults(DoorResults):
    """The files, the report and the outcome of a suite."""

    report: McpReport
    outcome: CallOutcome
    summary: Summary
    stamp: str  # tells the files of this run from those of others

    @property
    def page(self) -> str:
        return f"test-report-{self.stamp}.html"


def write_reports(folder: RunFolder, plan: Plan, settings: McpPlanSettings, records: Iterable[Record]) -> McpResults:
    """Write the reports of a run from its latest records. A resumed run replaces its own files."""
    from bakeoff.report.render.html.run_page import write_run_page

    records = list(records)
    outcome, found = outcome_of(plan, records, settings), confusions(plan, records)
    started = folder.beginning().get("time")
    if not isinstance(started, int | float):
        started = min((record.started for record in records), default=0.0)
    summary = summarise(plan, records)
    report = build_report(plan, settings, outcome, found, summary, run=folder.label, started=float(started))
    place = Path(settings.report)
    stamp = own_stamp(place, report.timestamp.replace(":", "-"), folder.label)
    stem = f"test-report-{stamp}"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", suite_name(Path(settings.file))).strip(".-") or "suite"
    files = (*(place / f"{stem}.{kind}" for kind in ("json", "md", "html")), place / f"{name}-{stamp}.log")
    evidence = evidence_of(outcome, settings.coverage, plan.rounds)
    results = McpResults(files=files, evidence=evidence, report=report, outcome=outcome, summary=summary, stamp=stamp)
    title, since = heading("MCP evaluation: ", Quote(settings.file)), compare_with_run_before(folder, plan)
    with replace_text(files[0], PRIVATE) as file:
        file.write(report.to_json())
    with replace_text(files[1], PRIVATE) as file:
        file.write(to_markdown([title, *describe(results)]))
    write_run_page(folder, files[2], parts=lambda run: page_parts(run.plan, settings, outcome, found, since))
    with replace_text(files[3], PRIVATE) as file:
        file.writelines(f"{line}\n" for line in log_lines(report))
    return results


def own_stamp(place: Path, stamp: str, run: str) -> str:
    """Return the time stamp, with a number if another run has reports of the same millisecond.

    The JSON file is created at once, so that two runs that end together do not take the same name.
    """
    for number in range(1, _MAX_AT_ONCE):
        taken = stamp if number == 1 else f"{stamp}-{number}"
        file = place / f"test-report-{taken}.json"
        try:
            place.mkdir(parents=True, exist_ok=True)
            with file.open("x") as made:
                json.dump({"bakeoff": {"run": run}}, made)
        except FileExistsError:
            if not _belongs_to(file, run):
                continue
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}") from error
        return taken
    raise UsageError(f"{place} has {_MAX_AT_ONCE} reports of {stamp}: name another folder with --report")


def _belongs_to(file: Path, run: str) -> bool:
    """Return True if this run wrote the report."""
    try:
        written = parse_json(read_file(file))
        return bool(written["bakeoff"]["run"] == run)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def describe(results: McpResults) -> Iterator[Block]:
    """Describe a report as blocks, for Markdown and pages."""
    report, outcome, counts = results.report, results.outcome, results.report.summary
    yield paragraph(
        f"{counts.passedTests} of {counts.totalTests} cells passed, {counts.failedTests} failed"
        f"{f', {counts.undecidedTests} undecided' if counts.undecidedTests else ''}. "
        f"A cell is a case with a model; it passes at {percent(counts.passThreshold)} of its rounds. "
        f"The suite {'passes' if counts.allPass else 'does not pass'} (rule: {counts.suiteRule})."
    )
    if report.bakeoff.warnings:
        yield BulletList(tuple(Quote(warning) for warning in report.bakeoff.warnings))
    if report.bakeoff.coverage is not None:
        yield from coverage_blocks(report.bakeoff.coverage)
    yield from rate_tables(outcome)
    yield heading("Models", level=4)
    yield summary_table(results.summary)
    if pairs := report.bakeoff.mostConfused:
        rows = tuple(
            (Quote(pair.wanted), Quote(pair.called), str(pair.rounds), Quote(", ".join(pair.models))) for pair in pairs
        )
        yield heading("Most confused tools", level=4)
        yield Table(columns("wanted", "called", "rounds>", "models"), rows, "Most confused tools")
    yield from reasons(outcome, _MAX_REASONS)


def log_lines(report: McpReport) -> Iterator[str]:
    """Yield the lines of the log: every round with its reply, escaped so that it is plain text."""
    bakeoff, summary = report.bakeoff, report.summary
    yield f"{report.timestamp} suite {visible(bakeoff.suite, 500)}, mode {bakeoff.mode}, tools {bakeoff.toolsHash}"
    yield f"kept in {visible(bakeoff.run, 500)}"
    yield from (f"warning: {visible(warning, _MAX_LENGTH)}" for warning in bakeoff.warnings)
    for id, case in zip(bakeoff.cases, report.results, strict=True):
        yield ""
        yield f"case {visible(id)}"
        yield f"  prompt: {visible(case.prompt, _MAX_LENGTH)}"
        yield f"  expected: {visible(json.dumps(case.expectedOutput, ensure_ascii=False), _MAX_LENGTH)}"
        for result in case.modelResults:
            yield f"  {visible(result.model)}: {percent(result.passRate)}"
            for detail in result.details:
                place = f" at turn {detail.failedTurn}" if detail.failedTurn else ""
                yield f"    round {detail.round}: {'passed' if detail.passed else f'FAILED{place}'}"
                texts = {
                    "reply": detail.response,
                    "tool result": detail.toolExecutionResult,
                    "grading": detail.gradingResult,
                    "why": detail.error,
                }
                for name, said in texts.items():
                    if said is not None:
                        yield f"      {name}: {visible(str(said), _MAX_LENGTH)}"
                for check in detail.endState:
                    held = "passed" if check.passed else f"FAILED: {visible(check.reason, _MAX_LENGTH)}"
                    yield f"      end state: {visible(check.check)}: {held}"
    yield ""
    yield f"{summary.passedTests} of {summary.totalTests} passed: {'PASS' if summary.allPass else 'FAIL'}"


def write_combined(written: Sequence[McpResults], not_run: Sequence[str], folder: Path) -> Iterator[Path]:
    """Write `combined-report-<time of the first>` as JSON, Markdown and page; yield each file.

    Nothing is written until the caller iterates. `written` must not be empty; `not_run` names the files of the suites
    that have no results.
    """
    from bakeoff.report.render.html.render import write_report_page

    described = _describe_all(written, not_run)
    stem = f"combined-report-{written[0].stamp}"
    with replace_text(folder / f"{stem}.json", PRIVATE) as file:
        json.dump(combined([one.report for one in written], not_run), file, indent=2, ensure_ascii=False)
        file.write("\n")
    yield folder / f"{stem}.json"
    with replace_text(folder / f"{stem}.md", PRIVATE) as file:
        file.write(to_markdown(described))
    yield folder / f"{stem}.md"
    yield write_report_page(folder / f"{stem}.html", described)


def combined(reports: Sequence[McpReport], not_run: Sequence[str] = ()) -> dict[str, object]:
    """Return the totals of all suites, with the report of each."""
    totals = {
        name: sum(getattr(report.summary, name) for report in reports)
        for name in ("totalTests", "passedTests", "failedTests", "undecidedTests")
    }
    return {
        "timestamp": reports[0].timestamp,
        "summary": {
            "allPass": not not_run and all(report.passed for report in reports),
            "suites": len(reports) + len(not_run),
            **totals,
            "notRun": [*not_run],
        },
        "suites": [report.model_dump(mode="json") for report in reports],
    }


def _describe_all(written: Sequence[McpResults], not_run: Sequence[str]) -> Report:
    """Describe all suites. If a suite did not run, the outcome of all is undecided, unless another one failed."""
    states = [one.outcome.state for one in written]
    state = GateState.worst([*states, GateState.UNDECIDED] if not_run else states)
    rows: list[tuple[Value, ...]] = [
        (
            Datum(Quote(one.report.bakeoff.suite), href=one.page),
            Datum(one.outcome.state, tone=TONES[one.outcome.state]),
            f"{one.outcome.passed}/{len(one.outcome.cells)}",
            cost_of(one.report.bakeoff.models),
        )
        for one in written
    ]
    rows += [(Quote(suite), Datum(_NOT_RUN, tone="lost"), UNKNOWN, UNKNOWN) for suite in not_run]
    overview = Table(columns("suite", "outcome", "cells>", "cost>"), tuple(rows), "Suites")
    good, cells = (sum(getattr(one.report.summary, name) for one in written) for name in ("passedTests", "totalTests"))
    missing = f"; {len(not_run)} {_NOT_RUN}" if not_run else ""
    return Report(
        title="MCP evaluation",
        headline=f"{good} of {cells} cells passed in {count_of(len(written) + len(not_run), 'suite')}{missing}",
        badge=state,
        tone=TONES[state],
        sections=(
            Section("suites", "Suites", (overview,)),
            *(
                Section(
                    f"suite-{at}",
                    Quote(one.report.bakeoff.suite),
                    tuple(describe(one)),
                )
                for at, one in enumerate(written)
            ),
        ),
    )
