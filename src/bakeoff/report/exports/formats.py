"""Write a run in the format of another tool, to a file or to stdout, and draw badges as SVG."""

import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from bakeoff._kernel.choices import ExportFormat
from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.grading.audit import Audit
from bakeoff.report.exports.ci import annotations, with_gate, write_junit_of_all, write_step_summary
from bakeoff.report.exports.inspect_log import write_inspect_log
from bakeoff.report.exports.tables import fields_of, rows_of, write_csv, write_parquet
from bakeoff.report.formatting import percent
from bakeoff.report.gates import GateDecision, kept_decision
from bakeoff.report.output_files import replace_file, replace_text
from bakeoff.report.readers import Source
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.summary import SubjectSummary, Summary
from bakeoff.storage.ledger import Ledger

_HEIGHT = 20
_PAD = 6
_MAX_TEXT_LENGTH = 60
_GREY, _GREEN, _AMBER, _RED = "#555", "#2a7d2e", "#8a6100", "#b3261e"  # white text on each has a contrast of 4.5:1


def score_badge(subject: SubjectSummary, ledger: Ledger | None = None, gate: GateDecision | None = None) -> str:
    """Return a badge with a subject's score and interval."""
    interval = subject.interval
    around = f" ({100 * interval.low:.0f}–{100 * interval.high:.0f})" if interval else ""
    value, colour = f"{percent(subject.score)}{around}", _colour(subject.score)
    return badge(subject.subject, value, colour, ledger or subject.ledger, gate)


def run_badge(summary: Summary, ledger: Ledger | None = None, gate: GateDecision | None = None) -> str:
    """Return a badge with the trials that passed. Controls count only if there are no other subjects."""
    passed = sum(subject.passed for subject in summary.judged)
    scored = sum(subject.judged for subject in summary.judged)
    ledger = ledger or summary.ledger
    of_what = " (controls)" if summary.only_controls else ""
    if summary.threshold is None:
        return badge(summary.name, f"{scored} scored, no threshold{of_what}", _GREY, ledger, gate)
    share = passed / scored if scored else None
    return badge(summary.name, f"{passed}/{scored} passed{of_what}", _colour(share), ledger, gate)


def audit_badge(audit: Audit) -> str:
    """Return a badge with the cases that are fit for use and the share of mutants that their tests notice."""
    fit, all_cases = len(audit.cases) - len(audit.excluded), len(audit.cases)
    mutants = f", {audit.killed:.0%} of mutants found" if audit.killed is not None else ""
    return badge("audit", f"{fit}/{all_cases} fit{mutants}", _colour(fit / all_cases if all_cases else None))


def badge(label: str, value: str, colour: str, ledger: Ledger | None = None, gate: GateDecision | None = None) -> str:
    """Return a badge with two texts side by side, the left one on grey.

    It is never green if something is missing, or if the gate did not pass.
    """
    found = []
    if ledger is not None and (ledger.undecided or ledger.gap):
        found.append(f"{ledger.undecided:,} of {ledger.planned:,} missing" if not ledger.gap else "incomplete")
    if gate is not None and (gate.state.met is False or not (gate.passed or found)):
        found.append(f"gate {gate.state}")
        colour = _AMBER if gate.state.met is None else _RED
    colour, value = _AMBER if found and colour == _GREEN else colour, ", ".join([value, *found])
    left, right = visible(label, _MAX_TEXT_LENGTH), visible(value, _MAX_TEXT_LENGTH)
    first, second = _width(left), _width(right)
    whole = first + second
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(f'{left}: {right}')}><title>{escape(f'{left}: {right}')}</title>"
        f'<rect width="{whole}" height="{_HEIGHT}" rx="3" fill="{_GREY}"/>'
        f'<path d="M{first} 0h{second - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{second - 3}z" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_text(left, first / 2, first)}{_text(right, first + second / 2, second)}</g></svg>\n"
    )


def _text(text: str, middle: float, room: int) -> str:
    # The fixed length keeps the text inside with any font.
    return f'<text x="{middle:g}" y="14" textLength="{room - 2 * _PAD}">{escape(text)}</text>'


def _width(text: str) -> int:
    """Return the approximate width in Verdana at 11 pixels."""
    wide = sum(12 if unicodedata.east_asian_width(char) in "WF" else 4 if char in "iljt.,:|! " else 7 for char in text)
    return max(8, wide) + 2 * _PAD


def _colour(score: float | None) -> str:
    if score is None:
        return _GREY
    return _GREEN if score >= 0.75 else _AMBER if score >= 0.5 else _RED


STDOUT = "-"


def export_run(source: Source, format_: ExportFormat, output: str, subject: str | None = None) -> list[str]:
    """Write a run, or one of its subjects, to a file or to stdout (`-`). Return the files that were written.

    Raises `UsageError` if the run has no such subject, or the format cannot go to that output.
    """
    plan = source.plan
    if subject is not None:
        chosen = tuple(spec for spec in plan.subjects if spec.name == subject)
        if not chosen:
            names = ", ".join(spec.name for spec in plan.subjects)
            raise UsageError(f"{source.name} has no subject {subject!r}: it has {names}")
        plan = plan.with_changes(subjects=chosen)
    records = (record for record in source.records() if subject in (None, record.subject))
    with RunRecords(plan, records) as found:
        return export_records(source, found, format_, output)


def export_records(source: Source, records: RunRecords, format_: ExportFormat, output: str) -> list[str]:
    """Write the records of a source, as `export_run` does, and return the files that were written.

    `output` is a path, or `-` for stdout; no file is returned then. The plan of the records has only the chosen
    subjects. Raises `UsageError` if the format cannot go there.
    """
    known = source.circumstances()
    ledger = known.ledger_of(source.plan, records.summary.ledger)
    gate = kept_decision(known.gates, ledger)
    told = gate if known.gates or not gate.passed else None
    if format_ == "inspect":
        return _write_inspect(source, records, output, ledger)
    if format_ == "github":
        # Print annotations, also where no GitHub runner reads them, and write the step summary.
        if output != STDOUT:
            raise UsageError(f"-o {output}: GitHub reads annotations from stdout: leave -o out")
        for line in annotations(records):
            sys.stdout.write(line + "\n")
        write_step_summary(with_gate(source.name, records, ledger, told), sys.stdout, os.environ)
    elif format_ == "parquet":
        with _file_at(output, format_) as path:
            rows = rows_of(source.name, records, ledger)
            write_parquet(fields_of(records.plan), rows, path)
    else:
        with _text_to(output) as file:
            _write_text(format_, source.name, records, ledger, told, file)
    return [] if output == STDOUT else [output]


def _write_text(
    format_: ExportFormat, name: str, records: RunRecords, ledger: Ledger, gate: GateDecision | None, file: TextIO
) -> None:
    match format_:
        case "csv":
            write_csv(fields_of(records.plan), rows_of(name, records, ledger), file)
        case "junit":
            write_junit_of_all(name, [("", gate, records)], file)
        case "markdown":
            file.write(to_markdown(with_gate(name, records, ledger, gate)))
        case _:  # a badge
            subjects = records.summary.subjects
            one = subjects[0] if len(subjects) == 1 else None
            file.write(score_badge(one, ledger, gate) if one else run_badge(records.summary, ledger, gate))


def _write_inspect(source: Source, records: RunRecords, output: str, ledger: Ledger) -> list[str]:
    """Write one log for each subject; several logs go into a folder."""
    chosen = records.plan.subjects
    outputs = [output]
    if len(chosen) == 1 and not output.endswith(".eval"):
        raise UsageError(f"-o {output}: Inspect recognises logs by their suffix: name a file *.eval")
    if len(chosen) > 1:
        if output == STDOUT or Path(output).suffix:
            raise UsageError(
                f"-o {output}: {source.name} has {len(chosen)} subjects and a log holds only one: "
                "name a folder, or choose one with --subject"
            )
        slugs = [re.sub(r"[^A-Za-z0-9._-]+", "_", spec.name).strip(".") or "subject" for spec in chosen]
        outputs = [str(Path(output) / f"{number:02d}-{slug[:80]}.eval") for number, slug in enumerate(slugs, 1)]
    for spec, place in zip(chosen, outputs, strict=True):
        with _file_at(place, "inspect") as path:
            of_run = ledger if len(chosen) == 1 else None
            write_inspect_log(source.name, source.plan, spec, records, path, of_run, whole=ledger.gap is None)
    return outputs


@contextmanager
def _text_to(output: str) -> Iterator[TextIO]:
    """Open the output for text. It is always UTF-8, whatever the encoding of the terminal."""
    if output == STDOUT:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        yield sys.stdout
        return
    with replace_text(Path(output)) as file:
        yield file


@contextmanager
def _file_at(output: str, format_: str) -> Iterator[Path]:
    if output == STDOUT:
        raise UsageError(f"--format {format_} is not text: name a file with -o")
    with replace_file(Path(output)) as path:
        yield path
