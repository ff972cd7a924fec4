"""Write the outputs for continuous integration at the end of a run."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from bakeoff.plan import Plan
from bakeoff.report.exports.github import annotations, write_step_summary
from bakeoff.report.exports.junit import write_junit_of_all
from bakeoff.report.output_files import refuse_unwritable, replace_text
from bakeoff.report.render.markdown import to_markdown
from bakeoff.report.run_records import RunRecords
from bakeoff.report.run_summary import describe_run
from bakeoff.storage.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class CiOutputs:
    """The outputs that were asked for. Created before a run starts, so that unwritable files are refused in time."""

    junit: Path | None = None
    github: bool = False

    def __post_init__(self) -> None:
        if self.junit is not None:
            refuse_unwritable("--junit", self.junit)

    def __bool__(self) -> bool:
        return bool(self.junit or self.github)


@dataclass(frozen=True, slots=True)
class CiRun:
    """A finished run."""

    folder: RunFolder
    plan: Plan
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # file and line of cases, by name

    def records(self) -> RunRecords:
        return RunRecords(self.plan, self.folder.latest_records(self.plan))


def markdown_of(runs: Sequence[CiRun]) -> str:
    """Return the summaries of runs as Markdown, such as for a pull request."""
    with ExitStack() as stack:
        found = [(run.folder.name, stack.enter_context(run.records())) for run in runs]
        return to_markdown([block for name, records in found for block in describe_run(name, records)])


def write_ci_outputs(
    runs: Sequence[CiRun],
    outputs: CiOutputs,
    stream: TextIO | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Write the outputs and return their paths. GitHub also reads stderr, and stdout may have to be JSON."""
    if not outputs or not runs:
        return ()
    with ExitStack() as stack:
        found = [(run.folder.name, stack.enter_context(run.records())) for run in runs]
        places = {run.folder.name: run.places for run in runs}
        return tuple(_written(found, places, outputs, stream or sys.stderr, environment))


def _written(
    runs: Sequence[tuple[str, RunRecords]],
    places: Mapping[str, Mapping[str, tuple[str, int]]],
    outputs: CiOutputs,
    stream: TextIO,
    environment: Mapping[str, str],
) -> Iterator[Path]:
    if outputs.junit:
        several = len(runs) > 1
        prefixed = [(f"{records.plan.name}: " if several else "", records) for _, records in runs]
        with replace_text(outputs.junit) as file:
            write_junit_of_all("bakeoff" if several else runs[0][0], prefixed, file)
        yield outputs.junit
    if outputs.github:
        blocks = [block for name, records in runs for block in describe_run(name, records)]
        stream.writelines(f"{line}\n" for name, records in runs for line in annotations(records, places[name]))
        write_step_summary(blocks, stream, environment)
