"""One report over many suites."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bakeoff.doors.mcp_suite.outcome import CellOutcome, State
from bakeoff.doors.mcp_suite.results.model import Report
from bakeoff.doors.mcp_suite.results.text import describe
from bakeoff.doors.mcp_suite.results.write import Written
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs import Block, Grid, Quote, Words, columns, heading
from bakeoff.report.sections import Column, Datum, Section, Table, Tone, Value
from bakeoff.report.whole_files import whole_text
from bakeoff.report.words import UNKNOWN, cost, percent, visible

_OUTCOMES: dict[State, str] = {"passed": "passed", "failed": "not passed", "undecided": "undecided"}
_TONES: dict[State, Tone] = {"passed": "pass", "failed": "fail", "undecided": "lost"}
_NOT_RUN = "not run"


def write_combined(written: Sequence[Written], not_run: Sequence[str], folder: Path) -> Iterator[Path]:
    """`combined-report-<time of the first>` as JSON, Markdown and a page; also of suites that could not be run."""
    reports = [one.report for one in written]
    stem = f"combined-report-{written[0].stamp}"
    with whole_text(folder / f"{stem}.json") as file:
        json.dump(combined(reports, not_run), file, indent=2, ensure_ascii=False)
        file.write("\n")
    yield folder / f"{stem}.json"
    with whole_text(folder / f"{stem}.md") as file:
        file.write(to_markdown(list(_blocks(written, not_run))))
    yield folder / f"{stem}.md"
    yield _write_page(written, not_run, folder / f"{stem}.html")


def combined(reports: Sequence[Report], not_run: Sequence[str] = ()) -> dict[str, object]:
    """The sum over all suites, and every suite's own report."""
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
    yield Grid(columns("suite", "outcome", "cells>"), tuple(rows))
    for one in written:
        yield from describe(one.report)


def _write_page(written: Sequence[Written], not_run: Sequence[str], path: Path) -> Path:
    from bakeoff.report.html import Masthead, write_section_page

    state = _state(written, not_run)
    cells = sum(one.report.summary.totalTests for one in written)
    good = sum(one.report.summary.passedTests for one in written)
    lacking = f"; {len(not_run)} {_NOT_RUN}" if not_run else ""
    head = Masthead(
        title="MCP evaluation",
        headline=f"{good} of {cells} cells passed in {len(written) + len(not_run)} suites{lacking}",
        badge=_OUTCOMES[state],
        tone=_TONES[state],
    )
    return write_section_page(path, head, [_overview(written, not_run), *map(_section, range(len(written)), written)])


def _state(written: Sequence[Written], not_run: Sequence[str]) -> State:
    """Of all suites; of one that was not run nobody knows."""
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
    rows = [(visible(case), *map(_rate, cells)) for case, cells in written.outcome.by_case()]
    headings = (Column(title="Case"), *(Column(title=visible(model), align="end") for model in models))
    table = Table(columns=headings, rows=tuple(rows), caption="Pass rates")
    return Section(id=f"suite-{at}", title=visible(written.report.bakeoff.suite), blocks=(table,))


def _rate(cell: CellOutcome) -> Datum:
    if cell.pass_rate is None:
        return Datum(text="lost", tone="lost")
    lost = cell.rounds - cell.scored
    text = percent(cell.pass_rate) + (f", {lost} lost" if lost else "")
    return Datum(text=text, sort=cell.pass_rate, tone=_TONES[cell.state])
