"""Write a run in the format of another tool, to a file or to stdout."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from bakeoff._kernel.choices import ExportFormat
from bakeoff.errors import UsageError
from bakeoff.plan import Plan
from bakeoff.report.blocks import Blocks
from bakeoff.report.exports.badges import run_badge, score_badge
from bakeoff.report.exports.ci import annotations, write_step_summary
from bakeoff.report.exports.inspect_log import write_inspect_log
from bakeoff.report.exports.junit import write_junit
from bakeoff.report.exports.tables import fields_of, rows_of, write_csv, write_parquet
from bakeoff.report.output_files import replace_file, replace_text
from bakeoff.report.readers import Source
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run

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
