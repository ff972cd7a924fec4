"""`bakeoff export`: a run in the formats of other tools."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bakeoff.cli.console import err
from bakeoff.errors import UsageError
from bakeoff.plan import SubjectSpec
from bakeoff.report.badges import run_badge, score_badge
from bakeoff.report.export_csv import write_csv
from bakeoff.report.export_inspect import write_inspect_log
from bakeoff.report.export_parquet import write_parquet
from bakeoff.report.export_rows import fields_of, rows_of
from bakeoff.report.github import annotations, write_step_summary
from bakeoff.report.junit import write_junit
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs import Blocks
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.outputs_summary import describe_run
from bakeoff.report.readers import Source, find_source
from bakeoff.report.summary import Summary, summarise
from bakeoff.report.whole_files import whole_file, whole_text

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to export, and where to."""

    source: Source
    shelf: Shelf
    output: str  # a path, or `-`
    subject: str | None = None

    def summary(self) -> Summary:
        return summarise(self.source.plan, self.shelf.records())

    def subjects(self) -> tuple[SubjectSpec, ...]:
        specs = self.source.plan.subjects
        chosen = tuple(spec for spec in specs if self.subject in (None, spec.name))
        if not chosen:
            names = ", ".join(spec.name for spec in specs)
            raise UsageError(f"{self.source.name} has no subject {self.subject!r}: it has {names}")
        return chosen


def run_export(results: Path, name: str, format_: str, output: str, subject: str | None) -> int:
    write = FORMATS.get(format_)
    if write is None:
        raise UsageError(f"--format {format_!r} is not one of {', '.join(FORMATS)}")
    source = find_source(results, name)
    plan = source.plan
    with Shelf(plan, source.records()) as shelf:
        wanted = Wanted(source, shelf, output, subject)
        if subject is not None:
            wanted.subjects()
        write(wanted)
    return 0


def _csv(wanted: Wanted) -> None:
    plan = wanted.source.plan
    with _text_to(wanted.output) as file:
        write_csv(fields_of(plan), rows_of(wanted.source.name, plan, wanted.shelf.records()), file)


def _parquet(wanted: Wanted) -> None:
    plan = wanted.source.plan
    rows = rows_of(wanted.source.name, plan, wanted.shelf.records())
    with _file_at(wanted.output, "parquet") as path:
        write_parquet(fields_of(plan), rows, path)


def _inspect(wanted: Wanted) -> None:
    """One log holds one subject, so several go into a folder."""
    chosen = wanted.subjects()
    source = wanted.source
    if len(chosen) == 1:
        if not wanted.output.endswith(".eval"):
            raise UsageError(f"-o {wanted.output}: Inspect knows its logs by their ending: name a file *.eval")
        with _file_at(wanted.output, "inspect") as path:
            write_inspect_log(source.name, source.plan, chosen[0], wanted.shelf, path)
        return
    if wanted.output == STDOUT or Path(wanted.output).suffix:
        raise UsageError(
            f"-o {wanted.output}: {source.name} has {len(chosen)} subjects and one log holds one: "
            "name a folder, or choose with --subject"
        )
    for number, spec in enumerate(chosen, 1):
        slug = re.sub(r"[^A-Za-z0-9._-]+", "_", spec.name).strip(".") or "subject"
        with _file_at(str(Path(wanted.output) / f"{number:02d}-{slug[:80]}.eval"), "inspect") as path:
            write_inspect_log(source.name, source.plan, spec, wanted.shelf, path)


def _junit(wanted: Wanted) -> None:
    with _text_to(wanted.output) as file:
        write_junit(wanted.source.name, wanted.source.plan, wanted.shelf, file)


def _markdown(wanted: Wanted) -> None:
    with _text_to(wanted.output) as file:
        file.write(to_markdown(_blocks(wanted)))


def _github(wanted: Wanted) -> None:
    """Annotations are commands that only GitHub reads; elsewhere they are printed all the same, to be looked at."""
    if wanted.output != STDOUT:
        raise UsageError(f"-o {wanted.output}: GitHub reads annotations from stdout: leave -o out")
    for line in annotations(wanted.source.plan, wanted.shelf):
        sys.stdout.write(line + "\n")
    write_step_summary(_blocks(wanted), sys.stdout, os.environ)


def _badge(wanted: Wanted) -> None:
    summary = wanted.summary()
    chosen = {spec.name for spec in wanted.subjects()}
    subjects = [subject for subject in summary.subjects if subject.subject in chosen]
    with _text_to(wanted.output) as file:
        file.write(score_badge(subjects[0]) if len(subjects) == 1 else run_badge(summary))


def _blocks(wanted: Wanted) -> Blocks:
    return describe_run(wanted.source.name, wanted.summary(), wanted.source.plan, wanted.shelf)


FORMATS: dict[str, Callable[[Wanted], None]] = {
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
    """Always UTF-8: these formats are, whatever the terminal speaks."""
    if output == STDOUT:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        yield sys.stdout
        return
    with whole_text(Path(output)) as file:
        yield file
    err().print(f"written to {output}", markup=False)


@contextmanager
def _file_at(output: str, format_: str) -> Iterator[Path]:
    if output == STDOUT:
        raise UsageError(f"--format {format_} is not text: name a file with -o")
    with whole_file(Path(output)) as path:
        yield path
    err().print(f"written to {output}", markup=False)
