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
from bakeoff.doors.mcp.outcome import CallOutcome, State, confusions, outcome_of
from bakeoff.doors.mcp.plan import McpPlanSettings, suite_name
from bakeoff.doors.mcp.results.report import McpReport, ModelNumbers, build_report, cost_of
from bakeoff.doors.mcp.results.sections import (
    TONES,
    coverage_blocks,
    page_parts,
    rate_tables,
    repeated_passes,
    state_with,
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
    Words,
    columns,
    heading,
    paragraph,
)
from bakeoff.report.formatting import NO_INTERVAL, UNKNOWN, duration, percent
from bakeoff.report.output_files import replace_file, replace_text
from bakeoff.report.render.markdown import to_markdown
from bakeoff.storage.run_folder import RunFolder

_MAX_FAILURES = 50
_MAX_LENGTH = 2_000
_MAX_AT_ONCE = 1000
_OUTCOMES: dict[State, str] = {"passed": "passed", "failed": "not passed", "undecided": "undecided"}
_NOT_RUN = "not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpResults(DoorResults):
    """The files, the report and the outcome of a suite."""

    report: McpReport
    outcome: CallOutcome
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
    report = build_report(plan, settings, outcome, found, run=folder.label, started=float(started))
    place = Path(settings.report)
    stamp = own_stamp(place, report.timestamp.replace(":", "-"), folder.label)
    stem = f"test-report-{stamp}"
    with replace_file(place / f"{stem}.json", PRIVATE) as path:
        path.write_bytes(report.to_json())
    with replace_text(place / f"{stem}.md", PRIVATE) as file:
        file.write(to_markdown([heading("MCP evaluation: ", Quote(settings.file)), *describe(report, outcome)]))
    since = compare_with_run_before(folder, plan)
    page = write_run_page(
        folder, place / f"{stem}.html", parts=lambda run: page_parts(run.plan, settings, outcome, found, since)
    )
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", suite_name(Path(settings.file))).strip(".-") or "suite"
    log = place / f"{name}-{stamp}.log"
    with replace_text(log, PRIVATE) as file:
        file.writelines(f"{line}\n" for line in log_lines(report))
    files = (place / f"{stem}.json", place / f"{stem}.md", page, log)
    return McpResults(
        files=files, state=state_with(outcome, settings.coverage), report=report, outcome=outcome, stamp=stamp
    )


def own_stamp(place: Path, stamp: str, run: str) -> str:
    """Return the time, with a number if a run that started in the same millisecond has reports there.

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
    """Return True if a report was written by this run."""
    try:
        written = parse_json(read_file(file))
        return bool(written["bakeoff"]["run"] == run)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def describe(report: McpReport, outcome: CallOutcome) -> Iterator[Block]:
    """Describe a report as blocks, for Markdown and pages."""
    summary = report.summary
    yield paragraph(
        f"{summary.passedTests} of {summary.totalTests} cells passed, {summary.failedTests} failed"
        f"{f', {summary.undecidedTests} undecided' if summary.undecidedTests else ''}. "
        f"A cell is a case with a model; it passes at {percent(summary.passThreshold)} of its rounds. "
        f"The suite {'passes' if summary.allPass else 'does not pass'} (rule: {summary.suiteRule})."
    )
    if report.bakeoff.warnings:
        yield BulletList(tuple(Quote(warning) for warning in report.bakeoff.warnings))
    if report.bakeoff.coverage is not None:
        yield from coverage_blocks(report.bakeoff.coverage)
    yield from rate_tables(outcome)
    titles = columns("model", "score>", "95 % interval>", "rounds>", "lost>", "cost>", "tokens>", "p50>", "p90>")
    yield heading("Models", level=4)
    yield Table(titles, tuple(map(_model, report.bakeoff.models)), "Models")
    yield from repeated_passes(report.bakeoff.models)
    if pairs := report.bakeoff.mostConfused:
        rows = tuple(
            (Quote(pair.wanted), Quote(pair.called), str(pair.rounds), Quote(", ".join(pair.models))) for pair in pairs
        )
        yield heading("Most confused tools", level=4)
        yield Table(columns("wanted", "called", "rounds>", "models"), rows, "Most confused tools")
    yield from _failures(report)


def _model(numbers: ModelNumbers) -> tuple[Words, ...]:
    """Return the row of one model."""
    bounds, latency = numbers.interval, numbers.latency
    return (
        Quote(numbers.model),
        percent(numbers.score),
        f"{100 * bounds.low:.1f}–{100 * bounds.high:.1f}" if bounds else NO_INTERVAL,
        f"{numbers.scoredRounds:,}",
        f"{numbers.lostRounds:,}",
        cost_of([numbers]),
        f"{numbers.usage.tokens:,}",
        duration(latency.p50) if latency else UNKNOWN,
        duration(latency.p90) if latency else UNKNOWN,
    )


def _failures(report: McpReport) -> Iterator[Block]:
    """Yield a list of what did not pass, with rounds of the same reason together."""
    found: list[tuple[Words, ...]] = []
    for name, case in zip(report.bakeoff.cases, report.results, strict=True):
        for result in case.modelResults:
            reasons: dict[str, list[str]] = {}
            for detail in result.details:
                if not detail.passed:
                    reasons.setdefault(detail.error or "", []).append(str(detail.round))
            for reason, rounds in reasons.items():
                place = f", round{'s' * (len(rounds) > 1)} {', '.join(rounds)}: "
                found.append((Quote(name), ", ", Quote(result.model), place, Quote(reason)))
    if not found:
        return
    yield heading("What did not pass", level=4)
    yield BulletList(tuple(found[:_MAX_FAILURES]))
    if len(found) > _MAX_FAILURES:
        yield paragraph(f"{count_of(len(found) - _MAX_FAILURES, 'more is', 'more are')} in the JSON report.")


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
    """Write `combined-report-<time of the first>` as JSON, Markdown and a page, and yield each file once it is there.

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
    """Return the totals of all suites, and the report of each."""
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
    """Describe all suites. A suite that did not run leaves the outcome of all undecided, unless one failed."""
    states = {one.outcome.state for one in written}
    undecided = not_run or "undecided" in states
    state: State = "failed" if "failed" in states else "undecided" if undecided else "passed"
    rows: list[tuple[Value, ...]] = [
        (
            Datum(Quote(one.report.bakeoff.suite), href=one.page),
            Datum(_OUTCOMES[one.outcome.state], tone=TONES[one.outcome.state]),
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
        badge=_OUTCOMES[state],
        tone=TONES[state],
        sections=(
            Section("suites", "Suites", (overview,)),
            *(
                Section(f"suite-{at}", Quote(one.report.bakeoff.suite), tuple(describe(one.report, one.outcome)))
                for at, one in enumerate(written)
            ),
        ),
    )
