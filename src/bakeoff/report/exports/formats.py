"""Write a run in the format of another tool, to a file or to stdout, and draw badges as SVG."""

import io
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from bakeoff._kernel.choices import ExportFormat
from bakeoff._kernel.text import visible
from bakeoff.errors import UsageError
from bakeoff.grading.audit import Audit
from bakeoff.plan import Plan
from bakeoff.report.blocks import Blocks
from bakeoff.report.exports.ci import annotations, write_junit, write_step_summary
from bakeoff.report.exports.inspect_log import write_inspect_log
from bakeoff.report.exports.tables import fields_of, rows_of, write_csv, write_parquet
from bakeoff.report.formatting import percent
from bakeoff.report.output_files import replace_file, replace_text
from bakeoff.report.readers import Source
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run
from bakeoff.report.summary import SubjectSummary, Summary

_HEIGHT = 20
_PAD = 6
_MAX_TEXT_LENGTH = 60
_GREY, _GREEN, _AMBER, _RED = "#555", "#2a7d2e", "#8a6100", "#b3261e"  # white text on each has a contrast of 4.5:1


def score_badge(subject: SubjectSummary, label: str | None = None) -> str:
    """Return a badge with a subject's score and interval."""
    interval = subject.interval
    around = f" ({100 * interval.low:.0f}–{100 * interval.high:.0f})" if interval else ""
    return badge(label or subject.subject, f"{percent(subject.score)}{around}", _colour(subject.score))


def run_badge(summary: Summary, label: str | None = None) -> str:
    """Return a badge with the trials that passed. Controls count only if there is nothing else."""
    passed = sum(subject.passed for subject in summary.judged)
    scored = sum(subject.judged for subject in summary.judged)
    of_what = " (controls)" if summary.only_controls else ""
    if summary.threshold is None:
        return badge(label or summary.name, f"{scored} scored, no threshold{of_what}", _GREY)
    share = passed / scored if scored else None
    return badge(label or summary.name, f"{passed}/{scored} passed{of_what}", _colour(share))


def audit_badge(audit: Audit, label: str = "audit") -> str:
    """Return a badge with the cases that are fit for use and the share of mutants that their tests notice."""
    fit, all_cases = len(audit.cases) - len(audit.excluded), len(audit.cases)
    mutants = f", {audit.killed:.0%} of mutants found" if audit.killed is not None else ""
    return badge(label, f"{fit}/{all_cases} fit{mutants}", _colour(fit / all_cases if all_cases else None))


def badge(label: str, value: str, colour: str) -> str:
    """Return a badge with two texts side by side, the left one on grey."""
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


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Hold what to export, where to, and the files that were written."""

    source: Source
    run_records: RunRecords
    output: str  # a path, or `-`
    written: list[str] = field(default_factory=list)

    @property
    def plan(self) -> Plan:
        """Return the plan with the chosen subjects only."""
        return self.run_records.plan


def export_run(source: Source, format_: ExportFormat, output: str, subject: str | None = None) -> list[str]:
    """Write a run, or one of its subjects, to a file or to stdout (`-`). Return the files that were written."""
    plan = source.plan if subject is None else _with_subject(source, subject)
    records = (record for record in source.records() if subject in (None, record.subject))
    with RunRecords(plan, records) as run_records:
        request = ExportRequest(source, run_records, output)
        FORMATS[format_](request)
    return request.written


def _with_subject(source: Source, subject: str) -> Plan:
    chosen = tuple(spec for spec in source.plan.subjects if spec.name == subject)
    if not chosen:
        names = ", ".join(spec.name for spec in source.plan.subjects)
        raise UsageError(f"{source.name} has no subject {subject!r}: it has {names}")
    return source.plan.with_changes(subjects=chosen)


def _csv(wanted: ExportRequest) -> None:
    with _text_to(wanted) as file:
        write_csv(fields_of(wanted.plan), rows_of(wanted.source.name, wanted.run_records), file)


def _parquet(wanted: ExportRequest) -> None:
    with _file_at(wanted, wanted.output, "parquet") as path:
        write_parquet(fields_of(wanted.plan), rows_of(wanted.source.name, wanted.run_records), path)


def _inspect(wanted: ExportRequest) -> None:
    """Write one log for each subject; several go into a folder."""
    chosen, source = wanted.plan.subjects, wanted.source
    if len(chosen) == 1:
        if not wanted.output.endswith(".eval"):
            raise UsageError(f"-o {wanted.output}: Inspect recognises logs by their suffix: name a file *.eval")
        with _file_at(wanted, wanted.output, "inspect") as path:
            write_inspect_log(source.name, source.plan, chosen[0], wanted.run_records, path)
        return
    if wanted.output == STDOUT or Path(wanted.output).suffix:
        raise UsageError(
            f"-o {wanted.output}: {source.name} has {len(chosen)} subjects and a log holds only one: "
            "name a folder, or choose one with --subject"
        )
    for number, spec in enumerate(chosen, 1):
        slug = re.sub(r"[^A-Za-z0-9._-]+", "_", spec.name).strip(".") or "subject"
        with _file_at(wanted, str(Path(wanted.output) / f"{number:02d}-{slug[:80]}.eval"), "inspect") as path:
            write_inspect_log(source.name, source.plan, spec, wanted.run_records, path)


def _junit(wanted: ExportRequest) -> None:
    with _text_to(wanted) as file:
        write_junit(wanted.source.name, wanted.run_records, file)


def _markdown(wanted: ExportRequest) -> None:
    with _text_to(wanted) as file:
        file.write(to_markdown(_blocks(wanted)))


def _github(wanted: ExportRequest) -> None:
    """Print annotations, also where no GitHub runner reads them, and write the step summary."""
    if wanted.output != STDOUT:
        raise UsageError(f"-o {wanted.output}: GitHub reads annotations from stdout: leave -o out")
    for line in annotations(wanted.run_records):
        sys.stdout.write(line + "\n")
    write_step_summary(_blocks(wanted), sys.stdout, os.environ)


def _badge(wanted: ExportRequest) -> None:
    summary = wanted.run_records.summary
    with _text_to(wanted) as file:
        file.write(score_badge(summary.subjects[0]) if len(summary.subjects) == 1 else run_badge(summary))


def _blocks(wanted: ExportRequest) -> Blocks:
    return describe_run(wanted.source.name, wanted.run_records)


FORMATS: dict[ExportFormat, Callable[[ExportRequest], None]] = {
    "csv": _csv,
    "parquet": _parquet,
    "inspect": _inspect,
    "junit": _junit,
    "github": _github,
    "markdown": _markdown,
    "badge": _badge,
}


@contextmanager
def _text_to(wanted: ExportRequest) -> Iterator[TextIO]:
    """Open the output for text. It is always UTF-8, whatever the encoding of the terminal."""
    if wanted.output == STDOUT:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        yield sys.stdout
        return
    with replace_text(Path(wanted.output)) as file:
        yield file
    wanted.written.append(wanted.output)


@contextmanager
def _file_at(wanted: ExportRequest, output: str, format_: str) -> Iterator[Path]:
    if output == STDOUT:
        raise UsageError(f"--format {format_} is not text: name a file with -o")
    with replace_file(Path(output)) as path:
        yield path
    wanted.written.append(output)
