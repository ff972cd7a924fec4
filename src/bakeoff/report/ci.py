"""What continuous integration is given at the end of a run, whichever door it came through."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bakeoff.plan import Plan
from bakeoff.report.github import annotations, write_step_summary
from bakeoff.report.junit import write_junit
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.outputs_summary import describe_run
from bakeoff.report.summary import summarise
from bakeoff.report.whole_files import refuse_unwritable, whole_text
from bakeoff.rundir import RunFolder


@dataclass(frozen=True, slots=True)
class CiOutputs:
    """What was asked for. Made before a run starts, so that a place that cannot be written to is refused in time."""

    junit: Path | None = None
    markdown: Path | None = None
    github: bool = False

    def __post_init__(self) -> None:
        for option, target in (("--junit", self.junit), ("--markdown", self.markdown)):
            if target is not None:
                refuse_unwritable(option, target)

    def __bool__(self) -> bool:
        return bool(self.junit or self.markdown or self.github)


NO_OUTPUTS = CiOutputs()


def write_ci_outputs(
    folder: RunFolder,
    plan: Plan,
    outputs: CiOutputs,
    stream: TextIO | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Write them, and say where. GitHub reads stderr as well as stdout, and the latter may have to be JSON."""
    if not outputs:
        return ()
    with Shelf(plan, folder.latest_records(plan)) as shelf:
        return tuple(_written(folder.name, plan, shelf, outputs, stream or sys.stderr, environment))


def _written(
    name: str, plan: Plan, shelf: Shelf, outputs: CiOutputs, stream: TextIO, environment: Mapping[str, str]
) -> Iterator[Path]:
    if outputs.junit:
        with whole_text(outputs.junit) as file:
            write_junit(name, shelf, file)
        yield outputs.junit
    if not outputs.markdown and not outputs.github:
        return
    blocks = describe_run(name, summarise(plan, shelf.records()), shelf)
    if outputs.markdown:
        with whole_text(outputs.markdown) as file:
            file.write(to_markdown(blocks))
        yield outputs.markdown
    if outputs.github:
        stream.writelines(f"{line}\n" for line in annotations(shelf))
        write_step_summary(blocks, stream, environment)
