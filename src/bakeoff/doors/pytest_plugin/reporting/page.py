"""The page of `--eval-html`: the page of a run, with sections on suites, gates and the worst cases."""

from collections.abc import Sequence
from pathlib import Path

from bakeoff.doors.pytest_plugin.outcome import EvalOutcome
from bakeoff.doors.pytest_plugin.reporting.blocks import gate_word, notes
from bakeoff.doors.pytest_plugin.reporting.eval_file import Summary
from bakeoff.doors.pytest_plugin.reporting.numbers import MOST_WORST, Numbers
from bakeoff.doors.pytest_plugin.reporting.source import HeldEvals
from bakeoff.report.blocks import Column, Datum, Section, Table, Tone, Value
from bakeoff.report.html import write_source_page
from bakeoff.report.html.render import NAME
from bakeoff.report.html.run_data import RunData
from bakeoff.report.output_files import PUBLIC
from bakeoff.report.readers import Source
from bakeoff.report.scores import counted, interval_datum
from bakeoff.report.words import UNKNOWN, cost, duration, percent, visible


def write_eval_page(outcomes: Sequence[EvalOutcome], summary: Summary, target: Path) -> Path:
    """Write the page, one file that loads nothing from the network."""
    target.parent.mkdir(parents=True, exist_ok=True)

    def sections(run: RunData) -> Sequence[Section]:  # noqa: ARG001 - the summary has more than the records
        found = (_suites(summary), _gates(summary), _worst(summary))
        return [section for section in found if section]

    return write_source_page(Source(target, HeldEvals(outcomes)), target, sections=sections, mode=PUBLIC)


def _suites(summary: Summary) -> Section:
    columns = (
        Column(title="Suite"),
        Column(title="Cases", align="end"),
        Column(title="Score", align="end", help="the mean over cases of the mean over rounds"),
        Column(title="95 % interval"),
        Column(title="Passed / judged", align="end"),
        Column(title="Pass rate"),
        Column(title="Not judged", align="end", help="a scorer broke, or a provider or a budget failed"),
        Column(title="Unscored", align="end", help="scorers that returned no number"),
        Column(title="Grader errors", align="end"),
        Column(title="Time", align="end", help="mean of a round"),
        Column(title="Tokens", align="end"),
        Column(title="Cost", align="end"),
    )
    rows = [_suite_row(name.suite, name.file, numbers) for name, numbers in summary.suites.items()]
    if len(rows) > 1:
        rows.append(_suite_row("all", "", summary.numbers))
    said = [f"{note[:1].upper()}{note[1:]}." for note in notes(summary)]
    table = Table(columns=columns, rows=tuple(rows), caption="Suites", notes=tuple(said))
    return Section(id="suites", title="Suites", blocks=(table,))


def _suite_row(name: str, path: str, numbers: Numbers) -> tuple[Value, ...]:
    passed = f"{numbers.passed:,} / {numbers.judged:,}" if numbers.judged else UNKNOWN
    return (
        Datum(text=visible(name, NAME), tone="strong", note=visible(path, NAME)),
        Datum(text=f"{numbers.cases:,}", sort=numbers.cases),
        Datum(text=percent(numbers.score), sort=numbers.score, tone="strong"),
        interval_datum(numbers.score, numbers.interval),
        Datum(text=passed, sort=numbers.passed),
        interval_datum(numbers.pass_rate, numbers.pass_interval) if numbers.judged else UNKNOWN,
        counted(numbers.undecided),
        counted(numbers.unscored),
        counted(numbers.grader_errors),
        Datum(text=duration(numbers.seconds), sort=numbers.seconds),
        Datum(text=f"{numbers.usage.tokens:,}", sort=numbers.usage.tokens),
        Datum(text=cost(numbers.usage.cost), sort=numbers.usage.cost),
    )


def _gates(summary: Summary) -> Section | None:
    if not summary.gates:
        return None
    tones: dict[bool | None, Tone] = {True: "pass", False: "fail", None: "lost"}
    rows = tuple(
        (gate.option, Datum(text=gate_word(gate.met), tone=tones[gate.met]), visible(gate.sentence, 2000))
        for gate in summary.gates
    )
    columns = (Column(title="Gate"), Column(title="Verdict"), Column(title="Why"))
    return Section(id="gates", title="Gates", blocks=(Table(columns=columns, rows=rows, caption="Gates on the run"),))


def _worst(summary: Summary) -> Section | None:
    """Return the cases with the lowest scores, lowest first."""
    found = [one for tally in summary.tallies.suites.values() for one in tally.lowest(MOST_WORST)]
    if not found:
        return None
    rows = tuple(
        (
            Datum(text=visible(one.nodeid, NAME), tone="strong"),
            Datum(text=UNKNOWN if one.score is None else f"{one.score:.2f}", sort=one.score),
            visible(one.why, 300),
        )
        for one in sorted(found, key=lambda one: one.rank)[:MOST_WORST]
    )
    columns = (Column(title="Test"), Column(title="Score", align="end"), Column(title="Why"))
    table = Table(columns=columns, rows=rows, caption=f"Worst cases, {MOST_WORST} at most")
    return Section(id="worst", title="Worst cases", blocks=(table,))
