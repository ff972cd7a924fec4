"""One report over many suites."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bakeoff.doors.mcp_suite.results.model import Report
from bakeoff.doors.mcp_suite.results.text import describe
from bakeoff.doors.mcp_suite.results.write import Written
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs import Block, Grid, Quote, Words, columns, heading
from bakeoff.report.sections import Column, Datum, Section, Table, Tone, Value
from bakeoff.report.whole_files import whole_text
from bakeoff.report.words import cost, percent, visible


def write_combined(written: Sequence[Written], folder: Path) -> Iterator[Path]:
    """`combined-report-<time of the first>` as JSON, Markdown and a page."""
    reports = [one.report for one in written]
    stem = f"combined-report-{written[0].stamp}"
    with whole_text(folder / f"{stem}.json") as file:
        json.dump(combined(reports), file, indent=2, ensure_ascii=False)
        file.write("\n")
    yield folder / f"{stem}.json"
    with whole_text(folder / f"{stem}.md") as file:
        file.write(to_markdown(list(_blocks(reports))))
    yield folder / f"{stem}.md"
    yield _write_page(written, folder / f"{stem}.html")


def combined(reports: Sequence[Report]) -> dict[str, object]:
    """The sum over all suites, and every suite's own report."""
    totals = {
        name: sum(getattr(report.summary, name) for report in reports)
        for name in ("totalTests", "passedTests", "failedTests", "undecidedTests")
    }
    return {
        "timestamp": reports[0].timestamp,
        "summary": {"allPass": all(report.passed for report in reports), "suites": len(reports), **totals},
        "suites": [report.model_dump(mode="json") for report in reports],
    }


def _blocks(reports: Sequence[Report]) -> Iterator[Block]:
    yield heading("MCP evaluation of several suites", level=1)
    rows: list[tuple[Words, ...]] = [
        (
            Quote(report.bakeoff.suite),
            "passed" if report.passed else "not passed",
            f"{report.summary.passedTests}/{report.summary.totalTests}",
        )
        for report in reports
    ]
    yield Grid(columns("suite", "outcome", "cells>"), tuple(rows))
    for report in reports:
        yield from describe(report)


def _write_page(written: Sequence[Written], path: Path) -> Path:
    from bakeoff.report.html import Masthead, write_section_page

    reports = [one.report for one in written]
    passed = all(report.passed for report in reports)
    cells = sum(report.summary.totalTests for report in reports)
    good = sum(report.summary.passedTests for report in reports)
    head = Masthead(
        title="MCP evaluation",
        headline=f"{good} of {cells} cells passed in {len(reports)} suites",
        badge="passed" if passed else "not passed",
        tone="pass" if passed else "fail",
    )
    return write_section_page(path, head, [_overview(written), *map(_section, range(len(reports)), reports)])


def _overview(written: Sequence[Written]) -> Section:
    rows: list[tuple[Value, ...]] = []
    for one in written:
        report = one.report
        tone: Tone = "pass" if report.passed else "fail"
        rows.append(
            (
                Datum(text=visible(report.bakeoff.suite), href=one.page),
                Datum(text="passed" if report.passed else "not passed", tone=tone),
                f"{report.summary.passedTests} of {report.summary.totalTests}",
                cost(sum((numbers.cost for numbers in report.bakeoff.models if numbers.cost is not None), 0.0)),
            )
        )
    headings = (
        Column(title="Suite"),
        Column(title="Outcome"),
        Column(title="Cells", align="end"),
        Column(title="Cost", align="end"),
    )
    table = Table(columns=headings, rows=tuple(rows), caption="Suites")
    return Section(id="suites", title="Suites", blocks=(table,))


def _section(at: int, report: Report) -> Section:
    models = [numbers.model for numbers in report.bakeoff.models]
    rows = [
        (visible(name), *(_rate(result.passRate, report) for result in case.modelResults))
        for name, case in zip(report.bakeoff.cases, report.results, strict=True)
    ]
    headings = (Column(title="Case"), *(Column(title=visible(model), align="end") for model in models))
    table = Table(columns=headings, rows=tuple(rows), caption="Pass rates")
    return Section(id=f"suite-{at}", title=visible(report.bakeoff.suite), blocks=(table,))


def _rate(rate: float | None, report: Report) -> Datum:
    if rate is None:
        return Datum(text="lost", tone="lost")
    return Datum(text=percent(rate), sort=rate, tone="pass" if rate >= report.summary.passThreshold else "fail")
