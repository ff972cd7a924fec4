"""Write the reports of suites: JSON, Markdown, a page and a log for each, and one report over several."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bakeoff.doors.mcp_suite.confusion import confusions
from bakeoff.doors.mcp_suite.outcome import CellOutcome, Outcome, State, outcome_of
from bakeoff.doors.mcp_suite.plan import PlanSettings, suite_name
from bakeoff.doors.mcp_suite.results.report import ModelNumbers, Report, RoundDetail, build_report
from bakeoff.doors.mcp_suite.results.sections import mcp_sections
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.record import Record
from bakeoff.report.blocks import (
    Block,
    BulletList,
    Column,
    Datum,
    Quote,
    Section,
    Table,
    Tone,
    Value,
    Words,
    columns,
    heading,
    paragraph,
)
from bakeoff.report.blocks import Report as PageReport
from bakeoff.report.markdown import to_markdown
from bakeoff.report.output_files import replace_file, replace_text
from bakeoff.report.words import UNKNOWN, cost, duration, percent, visible
from bakeoff.storage.run_folder import RunFolder

_MOST_FAILURES = 50
_LONGEST = 2_000
_MOST_AT_ONCE = 1000
_OUTCOMES: dict[State, str] = {"passed": "passed", "failed": "not passed", "undecided": "undecided"}
_TONES: dict[State, Tone] = {"passed": "pass", "failed": "fail", "undecided": "lost"}
_NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Written:
    """The report of a suite, and its files."""

    report: Report
    outcome: Outcome
    stamp: str  # tells the files of this run from those of others
    files: tuple[Path, ...]

    @property
    def page(self) -> str:
        return f"test-report-{self.stamp}.html"


def write_reports(folder: RunFolder, plan: Plan, settings: PlanSettings, records: Iterable[Record]) -> Written:
    """Write the reports of a run from its latest records. A resumed run replaces its own files."""
    from bakeoff.report.html import write_run_page

    records = list(records)
    outcome, found = outcome_of(plan, records, settings), confusions(plan, records)
    started = folder.beginning().get("time")
    if not isinstance(started, int | float):
        started = min((record.started for record in records), default=0.0)
    report = build_report(plan, settings, outcome, found, run=folder.label, started=float(started))
    place = Path(settings.report)
    stamp = own_stamp(place, report.timestamp.replace(":", "-"), folder.label)
    stem = f"test-report-{stamp}"
    with replace_file(place / f"{stem}.json") as path:
        path.write_bytes(report.to_json())
    with replace_text(place / f"{stem}.md") as file:
        file.write(to_markdown(describe(report)))
    page = write_run_page(
        folder, place / f"{stem}.html", sections=lambda run: mcp_sections(run.plan, settings, outcome, found)
    )
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", suite_name(Path(settings.file))).strip(".-") or "suite"
    log = place / f"{name}-{stamp}.log"
    with replace_text(log) as file:
        file.writelines(f"{line}\n" for line in log_lines(report))
    return Written(report, outcome, stamp, (place / f"{stem}.json", place / f"{stem}.md", page, log))


def own_stamp(place: Path, stamp: str, run: str) -> str:
    """Return the time, with a number if a run that started in the same millisecond has reports there.

    The JSON file is created at once, so that two runs that end together do not take the same name.
    """
    for number in range(1, _MOST_AT_ONCE):
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
    raise UsageError(f"{place} has {_MOST_AT_ONCE} reports of {stamp}: name another folder with --report")


def _belongs_to(file: Path, run: str) -> bool:
    try:
        written = json.loads(file.read_bytes())
        return bool(written["bakeoff"]["run"] == run)
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return False


def describe(report: Report) -> tuple[Block, ...]:
    """Describe a report as blocks, for Markdown."""
    summary = report.summary
    return (
        heading("MCP evaluation: ", Quote(report.bakeoff.suite)),
        paragraph(
            f"{summary.passedTests} of {summary.totalTests} cells passed, {summary.failedTests} failed"
            f"{f', {summary.undecidedTests} undecided' if summary.undecidedTests else ''}. "
            f"A cell is a case with a model; it passes at {percent(summary.passThreshold)} of its rounds. "
            f"The suite {'passes' if summary.allPass else 'does not pass'} (rule: {summary.suiteRule})."
        ),
        *(
            [BulletList(tuple((Quote(warning),) for warning in report.bakeoff.warnings))]
            if report.bakeoff.warnings
            else []
        ),
        _rates(report),
        heading("Models", level=3),
        _models(report),
        *_confused(report),
        *_failures(report),
    )


def _rates(report: Report) -> Table:
    models = [result.model for result in report.results[0].modelResults] if report.results else []
    rows: list[tuple[Words, ...]] = []
    for name, case in zip(report.bakeoff.cases, report.results, strict=True):
        rows.append((Quote(name), *(percent(result.passRate) for result in case.modelResults)))
    return Table(columns("case", *(f"{visible(model, 60)}>" for model in models)), tuple(rows))


def _models(report: Report) -> Table:
    titles = columns("model", "score>", "95 % interval>", "rounds>", "lost>", "cost>", "tokens>", "p50>", "p90>")
    return Table(titles, tuple(map(_model, report.bakeoff.models)))


def _model(numbers: ModelNumbers) -> tuple[Words, ...]:
    bounds, latency = numbers.interval, numbers.latency
    return (
        Quote(numbers.model),
        percent(numbers.score),
        f"{100 * bounds.low:.1f}–{100 * bounds.high:.1f}" if bounds else "undefined",
        f"{numbers.scoredRounds:,}",
        f"{numbers.lostRounds:,}",
        cost(numbers.cost),
        f"{numbers.usage.tokens:,}",
        duration(latency.p50) if latency else UNKNOWN,
        duration(latency.p90) if latency else UNKNOWN,
    )


def _confused(report: Report) -> Iterator[Block]:
    pairs = report.bakeoff.mostConfused
    if not pairs:
        return
    yield heading("Most confused tools", level=3)
    rows: list[tuple[Words, ...]] = [
        (Quote(pair.wanted), Quote(pair.called), str(pair.rounds), Quote(", ".join(pair.models))) for pair in pairs
    ]
    yield Table(columns("wanted", "called", "rounds>", "models"), tuple(rows))


def _failures(report: Report) -> Iterator[Block]:
    found: list[tuple[Words, ...]] = []
    for name, case in zip(report.bakeoff.cases, report.results, strict=True):
        for result in case.modelResults:
            failed = [detail for detail in result.details if not detail.passed]
            reasons: dict[str, list[str]] = {}
            for detail in failed:
                reasons.setdefault(detail.error or "", []).append(str(detail.round))
            for reason, rounds in reasons.items():
                place = f", round{'s' * (len(rounds) > 1)} {', '.join(rounds)}: "
                found.append((Quote(name), ", ", Quote(result.model), place, Quote(reason)))
    if not found:
        return
    yield heading("What did not pass", level=3)
    yield BulletList(tuple(found[:_MOST_FAILURES]))
    if len(found) > _MOST_FAILURES:
        yield paragraph(f"{len(found) - _MOST_FAILURES:,} more are in the JSON report.")


def log_lines(report: Report) -> Iterator[str]:
    """Yield the lines of the log: every round with its reply, escaped so that it is plain text."""
    bakeoff, summary = report.bakeoff, report.summary
    yield f"{report.timestamp} suite {visible(bakeoff.suite, 500)}, mode {bakeoff.mode}, tools {bakeoff.toolsHash}"
    yield f"kept in {visible(bakeoff.run, 500)}"
    yield from (f"warning: {visible(warning, _LONGEST)}" for warning in bakeoff.warnings)
    for name, case in zip(bakeoff.cases, report.results, strict=True):
        yield ""
        yield f"case {visible(name)}"
        yield f"  prompt: {visible(case.prompt, _LONGEST)}"
        yield f"  expected: {visible(json.dumps(case.expectedOutput, ensure_ascii=False), _LONGEST)}"
        for result in case.modelResults:
            yield f"  {visible(result.model)}: {percent(result.passRate)}"
            for detail in result.details:
                yield f"    round {detail.round}: {'passed' if detail.passed else 'FAILED'}"
                yield from (f"      {line}" for line in _detail_lines(detail))
    yield ""
    yield f"{summary.passedTests} of {summary.totalTests} passed: {'PASS' if summary.allPass else 'FAIL'}"


def _detail_lines(detail: RoundDetail) -> Iterator[str]:
    yield f"reply: {visible(detail.response, _LONGEST)}"
    if detail.toolExecutionResult is not None:
        yield f"tool result: {visible(str(detail.toolExecutionResult), _LONGEST)}"
    if detail.gradingResult is not None:
        yield f"grading: {visible(str(detail.gradingResult), _LONGEST)}"
    if detail.error:
        yield f"why: {visible(detail.error, _LONGEST)}"


def write_combined(written: Sequence[Written], not_run: Sequence[str], folder: Path) -> Iterator[Path]:
    """Write `combined-report-<time of the first>` as JSON, Markdown and a page, including suites that did not run."""
    reports = [one.report for one in written]
    stem = f"combined-report-{written[0].stamp}"
    with replace_text(folder / f"{stem}.json") as file:
        json.dump(combined(reports, not_run), file, indent=2, ensure_ascii=False)
        file.write("\n")
    yield folder / f"{stem}.json"
    with replace_text(folder / f"{stem}.md") as file:
        file.write(to_markdown(list(_blocks(written, not_run))))
    yield folder / f"{stem}.md"
    yield _write_page(written, not_run, folder / f"{stem}.html")


def combined(reports: Sequence[Report], not_run: Sequence[str] = ()) -> dict[str, object]:
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


def _blocks(written: Sequence[Written], not_run: Sequence[str]) -> Iterator[Block]:
    yield heading("MCP evaluation of several suites", level=1)
    rows: list[tuple[Words, ...]] = [
        (
            Quote(one.report.bakeoff.suite),
            _OUTCOMES[one.outcome.state],
            f"{one.report.summary.passedTests}/{one.report.summary.totalTests}",
        )
        for one in written
    ]
    rows += [(Quote(suite), _NOT_RUN, UNKNOWN) for suite in not_run]
    yield Table(columns("suite", "outcome", "cells>"), tuple(rows))
    for one in written:
        yield from describe(one.report)


def _write_page(written: Sequence[Written], not_run: Sequence[str], path: Path) -> Path:
    from bakeoff.report.html import write_report_page

    state = _state(written, not_run)
    cells = sum(one.report.summary.totalTests for one in written)
    good = sum(one.report.summary.passedTests for one in written)
    missing = f"; {len(not_run)} {_NOT_RUN}" if not_run else ""
    page = PageReport(
        title="MCP evaluation",
        headline=f"{good} of {cells} cells passed in {len(written) + len(not_run)} suites{missing}",
        badge=_OUTCOMES[state],
        tone=_TONES[state],
        sections=(_overview(written, not_run), *map(_section, range(len(written)), written)),
    )
    return write_report_page(path, page)


def _state(written: Sequence[Written], not_run: Sequence[str]) -> State:
    """Return the state of all suites. A suite that did not run leaves it undecided."""
    states = {one.outcome.state for one in written}
    if "failed" in states:
        return "failed"
    return "undecided" if not_run or "undecided" in states else "passed"


def _overview(written: Sequence[Written], not_run: Sequence[str]) -> Section:
    rows: list[tuple[Value, ...]] = []
    for one in written:
        report, state = one.report, one.outcome.state
        rows.append(
            (
                Datum(text=visible(report.bakeoff.suite), href=one.page),
                Datum(text=_OUTCOMES[state], tone=_TONES[state]),
                f"{report.summary.passedTests} of {report.summary.totalTests}",
                cost(sum((numbers.cost for numbers in report.bakeoff.models if numbers.cost is not None), 0.0)),
            )
        )
    rows += [(visible(suite), Datum(text=_NOT_RUN, tone="lost"), UNKNOWN, UNKNOWN) for suite in not_run]
    headings = (
        Column(title="Suite"),
        Column(title="Outcome"),
        Column(title="Cells", align="end"),
        Column(title="Cost", align="end"),
    )
    table = Table(columns=headings, rows=tuple(rows), caption="Suites")
    return Section(id="suites", title="Suites", blocks=(table,))


def _section(at: int, written: Written) -> Section:
    models = [numbers.model for numbers in written.report.bakeoff.models]
    rows: list[tuple[Value, ...]] = []
    for case, cells in written.outcome.by_case():
        rows.append((visible(case), *map(_rate, cells)))
    headings = (Column(title="Case"), *(Column(title=visible(model), align="end") for model in models))
    table = Table(columns=headings, rows=tuple(rows), caption="Pass rates")
    return Section(id=f"suite-{at}", title=visible(written.report.bakeoff.suite), blocks=(table,))


def _rate(cell: CellOutcome) -> Datum:
    if cell.pass_rate is None:
        return Datum(text="lost", tone="lost")
    return Datum(text=percent(cell.pass_rate) + cell.lost, sort=cell.pass_rate, tone=_TONES[cell.state])
