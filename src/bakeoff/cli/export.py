"""Carry out `bakeoff export`: write a run in the formats of other tools."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TextIO, get_args

from typer import Argument

from bakeoff._kernel.choices import ExportFormat, LogFormat
from bakeoff._kernel.text import count_of, visible
from bakeoff.cli.console import out, print_json, say
from bakeoff.cli.declare import command, flag, group_of
from bakeoff.cli.flags import AsJson, Output, Results, RunName
from bakeoff.errors import UsageError
from bakeoff.logs.importing import ImportedRun, import_log
from bakeoff.logs.reader import Choices, plan_source
from bakeoff.plan import Plan
from bakeoff.report.blocks import Blocks
from bakeoff.report.exports.badges import run_badge, score_badge
from bakeoff.report.exports.github import annotations, write_step_summary
from bakeoff.report.exports.inspect_log import write_inspect_log
from bakeoff.report.exports.junit import write_junit
from bakeoff.report.exports.tables import fields_of, rows_of, write_csv, write_parquet
from bakeoff.report.output_files import replace_file, replace_text
from bakeoff.report.readers import Source, find_source
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run
from bakeoff.storage.journal_lines import note_damage
from bakeoff.storage.object_store import is_store_address

app = group_of()
_LOG_FORMATS = ", ".join(get_args(LogFormat))


STDOUT = "-"


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Hold the format of an export and the file to write."""

    source: Source
    run_records: RunRecords
    output: str  # a path, or `-`

    @property
    def plan(self) -> Plan:
        """Return the plan with the chosen subjects only."""
        return self.run_records.plan


@command(app, "export")
def run_export(
    *,
    run: RunName = "latest",
    results: Results = Path("results"),
    format_: ExportFormat = flag("csv", "The format to write.", "--format"),
    output: Output = "-",
    subject: str | None = flag(None, "Export only this subject.", metavar="NAME"),
) -> None:
    """Write a run in the format of another tool.

    Example: bakeoff export latest --format junit -o junit.xml
    """
    source = find_source(results, run)
    plan = source.plan if subject is None else _with_subject(source, subject)
    records = (record for record in source.records() if subject in (None, record.subject))
    with RunRecords(plan, records) as run_records:
        FORMATS[format_](ExportRequest(source, run_records, output))
    note_damage(source.name, source.circumstances().damaged)


def _with_subject(source: Source, subject: str) -> Plan:
    """Return the plan of a source with one subject only."""
    chosen = tuple(spec for spec in source.plan.subjects if spec.name == subject)
    if not chosen:
        names = ", ".join(spec.name for spec in source.plan.subjects)
        raise UsageError(f"{source.name} has no subject {subject!r}: it has {names}")
    return source.plan.with_changes(subjects=chosen)


def _csv(wanted: ExportRequest) -> None:
    with _text_to(wanted.output) as file:
        write_csv(fields_of(wanted.plan), rows_of(wanted.source.name, wanted.run_records), file)


def _parquet(wanted: ExportRequest) -> None:
    with _file_at(wanted.output, "parquet") as path:
        write_parquet(fields_of(wanted.plan), rows_of(wanted.source.name, wanted.run_records), path)


def _inspect(wanted: ExportRequest) -> None:
    """Write one log for each subject; several go into a folder."""
    chosen, source = wanted.plan.subjects, wanted.source
    if len(chosen) == 1:
        if not wanted.output.endswith(".eval"):
            raise UsageError(f"-o {wanted.output}: Inspect recognises logs by their suffix: name a file *.eval")
        with _file_at(wanted.output, "inspect") as path:
            write_inspect_log(source.name, source.plan, chosen[0], wanted.run_records, path)
        return
    if wanted.output == STDOUT or Path(wanted.output).suffix:
        raise UsageError(
            f"-o {wanted.output}: {source.name} has {len(chosen)} subjects and a log holds only one: "
            "name a folder, or choose one with --subject"
        )
    for number, spec in enumerate(chosen, 1):
        slug = re.sub(r"[^A-Za-z0-9._-]+", "_", spec.name).strip(".") or "subject"
        with _file_at(str(Path(wanted.output) / f"{number:02d}-{slug[:80]}.eval"), "inspect") as path:
            write_inspect_log(source.name, source.plan, spec, wanted.run_records, path)


def _junit(wanted: ExportRequest) -> None:
    with _text_to(wanted.output) as file:
        write_junit(wanted.source.name, wanted.run_records, file)


def _markdown(wanted: ExportRequest) -> None:
    with _text_to(wanted.output) as file:
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
    with _text_to(wanted.output) as file:
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
def _text_to(output: str) -> Iterator[TextIO]:
    """Open the output for text. It is always UTF-8, whatever the encoding of the terminal."""
    if output == STDOUT:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        yield sys.stdout
        return
    with replace_text(Path(output)) as file:
        yield file
    say(f"wrote {output}")


@contextmanager
def _file_at(output: str, format_: str) -> Iterator[Path]:
    if output == STDOUT:
        raise UsageError(f"--format {format_} is not text: name a file with -o")
    with replace_file(Path(output)) as path:
        yield path
    say(f"wrote {output}")


@command(app, "import")
def run_import(
    *,
    logs: Annotated[list[Path], Argument(metavar="LOG", help="Files or folders that another tool wrote.")],
    results: Results = Path("results"),
    format_: LogFormat | None = flag(
        None,
        f"One of {_LOG_FORMATS}. Default: by the content.",
        "--format",
        metavar="FORMAT",
    ),
    scorer: list[str] | None = flag(None, "Count only this scorer of a log."),
    threshold: float | None = flag(
        None, "The score from which a trial passes. Default: 1 if all scores are pass or fail.", min=0, max=1
    ),
    as_json: AsJson = False,
) -> None:
    """Make a run of a log of another tool.

    Inspect, Harbor, promptfoo, DeepEval, pydantic-evals and SWE-bench are known. Every command for runs then works on
    it. `compare`, `leaderboard`, `report` and `export` also take a log as it is.

    Example: bakeoff import logs/task.eval
    """
    if is_store_address(str(results)):
        raise UsageError(f"--results {results}: logs are imported into a folder on this machine: name one")
    choices = Choices(format=format_, scorers=tuple(scorer or ()), threshold=threshold)
    made = []
    for path in logs:
        made.append(imported := import_log(path, results, choices))
        if not as_json:
            say(f"imported {visible(str(path), 300)}: {_describe_import(imported)}")
            out().file.write(f"{imported.folder.path}\n")
    if as_json:
        print_json({"runs": [str(imported.folder.path) for imported in made]})
    else:
        name = made[-1].folder.label
        say(f"next: `bakeoff runs show {name}`, `bakeoff report {name}`, `bakeoff leaderboard`")


def _describe_import(imported: ImportedRun) -> str:
    plan = imported.plan
    design = " × ".join(
        count_of(count, what)
        for count, what in ((len(plan.cases), "case"), (len(plan.subjects), "subject"), (plan.rounds, "round"))
    )
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(imported.verdicts.items()))
    return f"{design} from {plan_source(plan).words}: {verdicts}"
