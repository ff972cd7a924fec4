"""A report in words: as Markdown, and as a log with everything that was said."""

import json
from collections.abc import Iterator, Sequence

from bakeoff.doors.mcp_suite.results.model import ModelNumbers, Report, RoundDetail
from bakeoff.report.outputs import Block, Grid, Listing, Quote, Words, columns, heading, paragraph
from bakeoff.report.words import UNKNOWN, cost, duration, percent, visible

_MOST_FAILURES = 50
_LONGEST = 2_000


def describe(report: Report) -> tuple[Block, ...]:
    """The whole report, as blocks that Markdown can be made of."""
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
            [Listing(tuple((Quote(warning),) for warning in report.bakeoff.warnings))]
            if report.bakeoff.warnings
            else []
        ),
        _rates(report),
        heading("Models", level=3),
        _models(report),
        *_confused(report),
        *_failures(report),
    )


def _rates(report: Report) -> Grid:
    models = [result.model for result in report.results[0].modelResults] if report.results else []
    rows: list[tuple[Words, ...]] = []
    for name, case in zip(report.bakeoff.cases, report.results, strict=True):
        rows.append((Quote(name), *(percent(result.passRate) for result in case.modelResults)))
    return Grid(columns("case", *(f"{visible(model, 60)}>" for model in models)), tuple(rows))


def _models(report: Report) -> Grid:
    titles = columns("model", "score>", "95 % interval>", "rounds>", "lost>", "cost>", "tokens>", "p50>", "p90>")
    return Grid(titles, tuple(map(_model, report.bakeoff.models)))


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
    yield heading("Tools that were taken for each other", level=3)
    rows: list[tuple[Words, ...]] = [
        (Quote(pair.wanted), Quote(pair.called), str(pair.rounds), Quote(", ".join(pair.models))) for pair in pairs
    ]
    yield Grid(columns("wanted", "called", "rounds>", "models"), tuple(rows))


def _failures(report: Report) -> Iterator[Block]:
    found: list[tuple[Words, ...]] = []
    for name, case in zip(report.bakeoff.cases, report.results, strict=True):
        for result in case.modelResults:
            failed = [detail for detail in result.details if not detail.passed]
            for why, rounds in _by_reason(failed):
                found.append((Quote(name), ", ", Quote(result.model), f", {_rounds(rounds)}: ", Quote(why)))
    if not found:
        return
    yield heading("What did not pass", level=3)
    yield Listing(tuple(found[:_MOST_FAILURES]))
    if len(found) > _MOST_FAILURES:
        yield paragraph(f"And {len(found) - _MOST_FAILURES:,} more.")


def _by_reason(details: Sequence[RoundDetail]) -> list[tuple[str, list[int]]]:
    grouped: dict[str, list[int]] = {}
    for detail in details:
        grouped.setdefault(detail.error or "", []).append(detail.round)
    return list(grouped.items())


def _rounds(rounds: Sequence[int]) -> str:
    return f"round {rounds[0]}" if len(rounds) == 1 else f"rounds {', '.join(map(str, rounds))}"


def log_lines(report: Report) -> Iterator[str]:
    """Every round on lines of its own; nothing in it is more than text, whatever a model said."""
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
                yield from (f"      {line}" for line in _said(detail))
    yield ""
    yield f"{summary.passedTests} of {summary.totalTests} passed: {'PASS' if summary.allPass else 'FAIL'}"


def _said(detail: RoundDetail) -> Iterator[str]:
    yield f"reply: {visible(detail.response, _LONGEST)}"
    if detail.toolExecutionResult is not None:
        yield f"tool result: {visible(str(detail.toolExecutionResult), _LONGEST)}"
    if detail.gradingResult is not None:
        yield f"grading: {visible(str(detail.gradingResult), _LONGEST)}"
    if detail.error:
        yield f"why: {visible(detail.error, _LONGEST)}"
