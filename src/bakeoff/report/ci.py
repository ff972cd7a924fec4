"""What continuous integration is given at the end of a run, whichever door it came through."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bakeoff.plan import Plan
from bakeoff.report.github import annotations, write_step_summary
from bakeoff.report.junit import write_junit_of_all
from bakeoff.report.markdown import to_markdown
from bakeoff.report.outputs_shelf import Shelf
from bakeoff.report.outputs_summary import describe_run
from bakeoff.report.summary import summarise
from bakeoff.report.whole_files import refuse_unwritable, whole_text
from bakeoff.storage.run_folder import RunFolder


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


@dataclass(frozen=True, slots=True)
class CiRun:
    """A run that is told of."""

    folder: RunFolder
    plan: Plan
    share: float = 1.0  # of a case's rounds that have to pass for the case to pass

    def shelf(self) -> Shelf:
        return Shelf(self.plan, self.folder.latest_records(self.plan), share=self.share)


def write_ci_outputs(
    runs: Sequence[CiRun],
    outputs: CiOutputs,
    stream: TextIO | None = None,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Write them, and say where. GitHub reads stderr as well as stdout, and the latter may have to be JSON."""
    if not outputs or not runs:
        return ()
    with ExitStack() as stack:
        shelves = [(run.folder.name, stack.enter_context(run.shelf())) for run in runs]
        return tuple(_written(shelves, outputs, stream or sys.stderr, environment))


def _written(
    shelves: Sequence[tuple[str, Shelf]], outputs: CiOutputs, stream: TextIO, environment: Mapping[str, str]
) -> Iterator[Path]:
    if outputs.junit:
        several = len(shelves) > 1
        named = [(f"{shelf.plan.name}: " if several else "", shelf) for _, shelf in shelves]
        with whole_text(outputs.junit) as file:
            write_junit_of_all("bakeoff" if several else shelves[0][0], named, file)
        yield outputs.junit
    if not outputs.markdown and not outputs.github:
        return
    blocks = [
        block for name, shelf in shelves for block in describe_run(name, summarise(shelf.plan, shelf.records()), shelf)
    ]
    if outputs.markdown:
        with whole_text(outputs.markdown) as file:
            file.write(to_markdown(blocks))
        yield outputs.markdown
    if outputs.github:
        stream.writelines(f"{line}\n" for _, shelf in shelves for line in annotations(shelf))
        write_step_summary(blocks, stream, environment)
